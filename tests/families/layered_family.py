"""Families whose stages are made here and not by ``ppcgc.hf``: through generated runners, or bare.

A bare pipeline calls each stage's module with the batch itself, live rows only. It has the face
of :class:`hf_family.Pipeline`, so that both are checked by ``check_serving``: a mistake of the
reference stage shows in one, a mistake of the runners in the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from family_models import Layered
from hf_family import PagedEngine, Pipeline, build_runners, eager_again
from torch import Tensor, nn

from examples.serving import Sequence as PagedSequence


@dataclass(frozen=True, slots=True, kw_only=True)
class BarePipeline:
    """The modules of every stage."""

    modules: Sequence[Mapping[str, nn.Module]]  # of each stage, by runner
    state: Mapping[str, list[Tensor]]  # of all stages together
    later: Callable[[Any], Mapping[str, Any]]  # keywords of a later stage, from the boundary
    ids_everywhere: bool
    state_rows: bool
    device: str

    @torch.no_grad()
    def step(self, name: str, batch: Any) -> Tensor:
        """Logits [requests, vocab]."""
        handed: Any = None
        batch = on_device(batch, self.device)
        for i, modules in enumerate(self.modules):
            keywords = dict(self.later(handed)) if i else {}
            if i == 0 or self.ids_everywhere:
                keywords["input_ids"] = batch.input_ids
            if self.state_rows:
                keywords["state_rows"] = batch.state_rows
            handed = modules[name](positions=batch.positions, batch=batch, **keywords)
        logits: Tensor = handed
        return logits

    def path(self, name: str) -> str:
        return "bare"


def on_device(batch: Any, device: str) -> Any:
    """The batch with its tensors on a device."""
    values = attributes(batch)
    return SimpleNamespace(
        **{k: v.to(device) if isinstance(v, Tensor) else v for k, v in values.items()}
    )


def attributes(batch: Any) -> dict[str, Any]:
    """What a batch has, by name."""
    if isinstance(batch, SimpleNamespace):
        return dict(vars(batch))
    return {f.name: getattr(batch, f.name) for f in fields(batch)}


def bare(
    model: Any,
    layered: Layered,
    *,
    cuts: Sequence[int],
    later: Callable[[Any], Mapping[str, Any]],
    device: str,
    ids_everywhere: bool = False,
    state_rows: bool = False,
) -> BarePipeline:
    """The stages of ``model`` cut before each layer of ``cuts``, without runners."""
    bounds = [0, *cuts, model.config.num_hidden_layers]
    parts = [layered.parts(stage) for stage in layered.cut(model, list(pairwise(bounds)))]
    state: dict[str, list[Tensor]] = {}
    for _, of_stage in parts:
        for name, tensors in of_stage.items():
            state.setdefault(name, []).extend(tensors)
    return BarePipeline(
        modules=[modules for modules, _ in parts],
        state=state,
        later=later,
        ids_everywhere=ids_everywhere,
        state_rows=state_rows,
        device=device,
    )


def captured(
    package: ModuleType,
    model: Any,
    layered: Layered,
    *,
    cuts: Sequence[int],
    device: str,
    **dims: int,
) -> Pipeline:
    """The stages of ``model`` behind the generated runners, every bucket captured."""
    sizes = package.Dims.from_config(model.config, **dims)
    parts = []
    for stage in layered.cut(model, list(pairwise([0, *cuts, sizes.layer_count]))):
        modules, state = layered.parts(stage)
        parts.append((stage, modules, package.State(**state)))
    return build_runners(package, sizes, parts, dtype=model.dtype, device=device)


def handed_between(pipeline: Pipeline, name: str, batch: Any) -> list[Any]:
    """What each stage but the last hands on in one step of a runner."""
    *senders, last = pipeline.runners[name]
    handed: list[Any] = []
    for runner in senders:
        handed.append(runner.run(batch, *handed[-1:]))
    last.run(batch, *handed[-1:])
    return handed


def slot_names(runner: Any) -> list[str]:
    """The slots that a captured stage has: those of its first bucket that are not None."""
    slots = next(iter(runner.table.values())).slots
    return [name for name, slot in attributes(slots).items() if slot is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatefulPipeline(Pipeline):
    """Stages whose replays change a state that they read: a second run starts from a copy."""

    states: Sequence[Tensor]

    def step(self, name: str, batch: Any) -> Tensor:
        """As of any pipeline; the state that the stages' own Python leaves is the replay's too."""
        before = [state.clone() for state in self.states]
        first, *later = self.runners[name]
        handed = first.run(batch)
        for runner in later:
            handed = runner.run(batch, handed)
        replayed: Tensor = handed.logits.clone()
        after = [state.clone() for state in self.states]
        for state, copy in zip(self.states, before, strict=True):
            state.copy_(copy)
        assert torch.equal(replayed, eager_again(self.runners[name])[: len(replayed)])
        for state, copy in zip(self.states, after, strict=True):
            assert torch.equal(state[1:], copy[1:])  # row 0 is written by whoever comes last
        return replayed


@dataclass(slots=True, kw_only=True)
class StatefulSequence(PagedSequence):
    """A sequence that owns a row of the state pool besides."""

    state_row: int = field(default=0)


class StatefulEngine(PagedEngine):
    """Sequences over pages of one pool, and rows of another: handed out once, from 1."""

    def __init__(self, rows: int, context: int) -> None:
        super().__init__(rows, context)
        self._next_row = 1

    def start(self, ids: list[int]) -> StatefulSequence:
        self._next_row += 1
        return StatefulSequence(ids=ids, state_row=self._next_row - 1)

    def prefill(self, sequences: Sequence[Any]) -> Any:
        return self._with_rows(super().prefill(sequences), sequences)

    def decode(self, sequences: Sequence[Any]) -> Any:
        return self._with_rows(super().decode(sequences), sequences)

    @staticmethod
    def _with_rows(batch: Any, sequences: Sequence[Any]) -> Any:
        rows = torch.tensor([sequence.state_row for sequence in sequences])
        return SimpleNamespace(**attributes(batch), state_rows=rows)
