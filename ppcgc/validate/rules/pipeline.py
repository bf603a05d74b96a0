"""The pipeline: stage ranges cover the layers."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.ir import ConfigDim, EvenStages, Family, StageRange
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import fixed, fixed_dims


@checked("PPC401", "stage-ranges", cases=(57,))
def stage_ranges(family: Family) -> Iterator[Finding]:
    """Stage ranges are empty, out of order, overlap, leave a gap or miss layers.

    **What.** Ranges are half open and follow each other: each starts where the one before ends,
    the first at layer 0, the last ends at the number of layers (compared now when it is known,
    else when a runner is built).

    **Why it hurts.** A model that lost two of its layers still answers, badly.
    Seen in: NVIDIA/Megatron-LM#1304, ml-explore/mlx-lm#1688.

    **Bad**

    ```yaml
    pipeline: {layers: {count: 30}, stages: [[0, 7], [7, 14], [14, 21], [21, 28]]}
    ```

    **Good**

    ```yaml
    pipeline: {layers: {count: 30}, stages: [[0, 8], [8, 16], [16, 23], [23, 30]]}
    ```
    """
    stages = family.pipeline.stages
    if isinstance(stages, EvenStages):
        return
    expected = 0
    for number, stage in enumerate(stages):
        problem = _problem(stage, number, expected)
        if problem is not None:
            yield Finding(stage.span, *problem)
        expected = stage.end
    count = layer_count(family)
    if count is not None and stages[-1].end != count:
        yield Finding(
            stages[-1].span,
            f"the stages end at layer {stages[-1].end}, the model has {count} layers",
            f"end the last range at {count}",
        )


def _problem(stage: StageRange, number: int, expected: int) -> tuple[str, str] | None:
    shown = f"stage {number} [{stage.start}, {stage.end})"
    if stage.start >= stage.end:
        return f"{shown} has no layers", "a range is [start, end] with start < end"
    if stage.start > expected:
        missing = f"layers {expected} to {stage.start - 1} belong to no stage"
        return f"{missing}: {shown}", f"start it at {expected}"
    if stage.start < 0:
        return f"{shown} starts below layer 0", "start it at 0"
    if stage.start < expected:
        return (
            f"{shown} starts before the stage ahead ends at {expected}",
            f"start it at {expected}",
        )
    return None


def layer_count(family: Family) -> int | None:
    """The number of layers, or None when the build decides."""
    count = family.pipeline.layer_count
    return None if isinstance(count, ConfigDim) else fixed(count, fixed_dims(family))


@checked("PPC402", "no-layers")
def no_layers(family: Family) -> Iterator[Finding]:
    """The pipeline has fewer than one layer.

    **What.** A number of layers that is known when code is generated is at least 1.

    **Why it hurts.** There is nothing to split.

    **Bad**

    ```yaml
    pipeline: {layers: {count: 0}}
    ```

    **Good**

    ```yaml
    pipeline: {layers: {count: config.num_hidden_layers}}
    ```
    """
    count = layer_count(family)
    if count is not None and count < 1:
        yield Finding(family.pipeline.span, f"the pipeline has {count} layers", "have one at least")
