"""Families whose stages are made here and not by ``ppcgc.hf``: through generated runners, or bare.

A bare pipeline calls each stage's module with the batch itself, live rows only. It has the face
of :class:`hf_family.Pipeline`, so that both are checked by ``check_serving``: a mistake of the
reference stage shows in one, a mistake of the runners in the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from hf_family import StageParts
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class BarePipeline:
    """Modules of every stage, by runner."""

    stages: Sequence[StageParts]
    later: Callable[[Any], Mapping[str, Any]]  # keywords of a later stage, from the boundary
    ids_everywhere: bool = False

    @torch.no_grad()
    def step(self, name: str, batch: Any) -> Tensor:
        """Logits [requests, vocab]."""
        handed: Any = None
        for i, stage in enumerate(self.stages):
            keywords = dict(self.later(handed)) if i else {}
            if i == 0 or self.ids_everywhere:
                keywords["input_ids"] = batch.input_ids
            handed = stage.modules[name](positions=batch.positions, batch=batch, **keywords)
        logits: Tensor = handed
        return logits

    def path(self, name: str) -> str:
        return "bare"


def cut_by(make_stage: Callable[[Any, int, int], Any]) -> Callable[[Any, Any], list[Any]]:
    """What ``hf_family.build`` cuts a model with, from a stage's constructor."""

    def cut(model: Any, ranges: Sequence[tuple[int, int]]) -> list[Any]:
        return [make_stage(model, start, end) for start, end in ranges]

    return cut


def bare(
    model: Any,
    cut: Callable[[Any, Any], list[Any]],
    make_parts: Callable[[Any], StageParts],
    *,
    cuts: Sequence[int],
    later: Callable[[Any], Mapping[str, Any]],
    ids_everywhere: bool = False,
) -> BarePipeline:
    """The stages of ``model`` cut before each layer of ``cuts``, without runners."""
    bounds = [0, *cuts, model.config.num_hidden_layers]
    return BarePipeline(
        stages=[make_parts(stage) for stage in cut(model, list(pairwise(bounds)))],
        later=later,
        ids_everywhere=ids_everywhere,
    )
