"""One verification under way: the stages, the cases, and steps through all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ppcgc.runtime.verification.cases import Case, cases_of
from ppcgc.runtime.verification.comparing import tensors_of
from ppcgc.runtime.verification.stages import StageUnderTest
from ppcgc.runtime.verification.subject import Subject
from ppcgc.runtime.verification.verdicts import Finding

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check gives: its evidence and findings; ``skipped`` where it had nothing to do."""

    evidence: str
    findings: list[Finding]
    skipped: bool = False


class Session:
    """State is full of numbers that no model makes by chance, so that every read of it shows."""

    def __init__(self, subject: Subject, *, quick: bool, say: Progress) -> None:
        self.subject = subject
        self.quick = quick
        self.say = say
        self.stages = [
            StageUnderTest(subject, runner, number) for number, runner in enumerate(subject.runners)
        ]
        self.whole = None
        if subject.unsplit is not None:
            self.whole = StageUnderTest(subject, subject.unsplit, 0)
        self.cases: list[Case] = []
        self.attributes_before_capture: dict[int, Any] = {}  # by stage; empty: unknown
        self.tensors_before_capture: dict[int, set[str]] = {}  # the same, of the model's tensors

    @property
    def runners(self) -> list[Any]:
        return [stage.runner for stage in self.stages]

    @property
    def every(self) -> list[StageUnderTest]:
        """The stages, and the unsplit model where there is one."""
        return [*self.stages, *([] if self.whole is None else [self.whole])]

    def prepare(self) -> None:
        """Fill the state, remember the memory, and run each case once to have its boundaries."""
        generator = torch.Generator().manual_seed(11)
        for stage in self.stages:
            for tensor in stage.state.values():
                if holds_numbers(tensor):
                    tensor.copy_(_noise(tensor, generator))
            stage.remember()
        if self.whole is not None:
            self.whole.remember()
        self.cases = [
            self.with_boundaries(case) for case in cases_of(self.subject, quick=self.quick)
        ]

    def with_boundaries(self, case: Case) -> Case:
        """The case with the boundary that each stage takes, as the stage before computes it."""
        return self.through(case)[0]

    def through(
        self, case: Case, before: Callable[[StageUnderTest], None] | None = None
    ) -> tuple[Case, list[dict[str, Tensor]]]:
        """A case through every stage, each given what the one before made: that case, outputs.

        ``before`` changes the memory of a stage, which is then as it was remembered.
        """
        incoming: list[Any] = [None]
        found = []
        for stage in self.stages:
            stage.restore()
            if before is not None:
                before(stage)
            case = replace(case, incoming=tuple(incoming))
            handed = cloned(stage.runner.finish(stage.begin(case)))
            incoming.append(handed)
            found.append(tensors_of(handed))
        return case, found

    def each(self, check: str) -> Iterator[tuple[StageUnderTest, Case]]:
        """Every stage with every case, from the remembered memory, saying so."""
        for stage in self.stages:
            for case in self.cases:
                self.say(f"{check}: {stage.where(case)}")
                stage.restore()
                yield stage, case
            stage.restore()

    def one_a_bucket(
        self, check: str, *, padded: bool = True
    ) -> Iterator[tuple[StageUnderTest, Case]]:
        """As ``each``, with one case of each bucket: one that has padded rows, if any has."""
        chosen: dict[Any, Case] = {}
        for case in self.cases:
            if case.padded not in chosen or (padded and not chosen[case.padded].is_padded):
                chosen[case.padded] = case
        for stage in self.stages:
            for case in chosen.values():
                self.say(f"{check}: {stage.where(case)}")
                stage.restore()
                yield stage, case
            stage.restore()


def holds_numbers(state: Tensor) -> bool:
    """Whether a state's elements may be any number: floats, and bytes, which are quantized ones.

    Wider integers are as likely indices, and any number would be none.
    """
    return state.is_floating_point() or state.dtype in (torch.int8, torch.uint8)


def _noise(like: Tensor, generator: torch.Generator) -> Tensor:
    if like.is_floating_point():
        return torch.randn(like.shape, generator=generator).to(like.dtype)
    limits = torch.iinfo(like.dtype)
    return torch.randint(limits.min, limits.max, like.shape, generator=generator).to(like.dtype)


def cloned(view: Any) -> Any:
    """A boundary or outputs whose tensors are copies."""
    return replace(view, **{name: tensor.clone() for name, tensor in tensors_of(view).items()})
