"""Runners that are given together: a list of them, each once, and stages of one runner that join.

Note [stages that join]
    Ranges are given stage by stage, and a layer that no stage has would be missed by nobody: the
    boundary before it fits the stage behind it. So where a stage ends and others of its runner
    are given that come later, one of them must begin there. Only stages that other processes may
    have can be left out in between, so a gap is refused where there are no other processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ppcgc.runtime.errors import BuildError, LayerError
from ppcgc.runtime.stage_captured import CapturedStage

AnyRunner = CapturedStage[Any, Any, Any, Any, Any, Any]


def check_together(runners: Sequence[AnyRunner]) -> None:
    """What is captured. Raises BuildError for no list of runners, LayerError for stages apart."""
    check_list(runners, "capture")
    groups: dict[object, list[AnyRunner]] = {}
    for runner in runners:
        model = (runner.fingerprint, runner.runner, runner.layers.count)
        groups.setdefault(model, []).append(runner)
    for stages in groups.values():
        _check_joins(stages)


def check_list(runners: object, taker: str) -> None:
    """Raises BuildError unless ``taker`` was given a list of runners, at least one, each once."""
    if isinstance(runners, CapturedStage):
        raise BuildError(f"{taker} takes a list of runners, not {runners} alone; write [runner]")
    if isinstance(runners, str) or not isinstance(runners, Sequence):
        fix = "[*runners.values()]" if isinstance(runners, Mapping) else "[runner, ...]"
        raise BuildError(f"{taker} takes a list of runners, not a {type(runners).__name__}; {fix}")
    if not runners:
        raise BuildError(f"{taker} was given no runners: the list is empty; [runner, ...]")
    for place, runner in enumerate(runners):
        if not isinstance(runner, CapturedStage):
            raise BuildError(f"{taker}: item {place} is a {type(runner).__name__}, not a runner")
        if runner in runners[:place]:
            raise BuildError(f"{runner} is given more than once: {taker} takes each runner once")


def _check_joins(stages: list[AnyRunner]) -> None:
    """Stages of one runner, of one model or of several of as many layers."""
    begin = Counter(stage.layers.start for stage in stages)
    end = Counter(stage.layers.end for stage in stages)
    for stage in stages:
        cut = stage.layers.end
        later = [other for other in stages if other.layers.start > stage.layers.start]
        if cut == stage.layers.count or not later:
            continue
        if not begin[cut]:
            _refuse(stage, min(later, key=lambda other: other.layers.start))
        elif begin[cut] != end[cut]:
            raise LayerError(
                f"{stage}: {end[cut]} of the stages that are captured end at layer {cut}, "
                f"{begin[cut]} begin there; give each stage of a pipeline once"
            )


def _refuse(stage: AnyRunner, following: AnyRunner) -> None:
    """For two stages that do not join. Returns where other processes have the layers between."""
    cut, start = stage.layers.end, following.layers.start
    if start < cut:
        raise LayerError(
            f"{stage} and {following} overlap: both have layers [{start}, {cut}); let one begin "
            "where the other ends"
        )
    if not _others(stage):
        raise LayerError(
            f"{stage} and {following} do not join: no stage has layers [{cut}, {start}); let one "
            "begin where the other ends, or capture each in a call of its own"
        )


def _others(stage: AnyRunner) -> bool:
    """Whether there are other processes, which may have other stages."""
    if stage.among_ranks:
        return True
    dist = torch.distributed
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
