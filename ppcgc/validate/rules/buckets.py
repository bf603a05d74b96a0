"""Buckets: every axis has one rule, and lists mean exactly what they say."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ppcgc.diagnostics.model import Span
from ppcgc.ir import (
    Axis,
    ComputedCount,
    Family,
    ListedBuckets,
    PaddedValue,
    Place,
    Runner,
)
from ppcgc.plan.counts import counted_from
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import (
    axes_in,
    boundary_of,
    bucket_of,
    expressions,
    follows,
    in_order,
    listed,
    lowered,
)


@checked("PPC310", "bucket-missing", cases=(41,))
def bucket_missing(family: Family) -> Iterator[Finding]:
    """A runner uses an axis that its buckets do not size.

    **What.** Every axis of the runner's slots, of the boundary and of the outputs, and every
    axis that an expression counts, has one entry in `buckets`.

    **Why it hurts.** A graph has one size on each axis; an axis without a rule would take its
    size from whatever batch was captured.
    Seen in: vllm-project/vllm-ascend#9863.

    **Bad**

    ```yaml
    buckets: {tokens: [16, 32]}        # and slots of axis requests
    ```

    **Good**

    ```yaml
    buckets: {tokens: [16, 32], requests: max}
    ```
    """
    for runner in family.runners:
        own = lowered(family, runner)
        for axis, span in _first_uses(family, runner).items():
            if bucket_of(runner, axis) is None:
                yield Finding(
                    span,
                    f"runner '{runner.name}' uses axis '{axis}' and has no buckets for it",
                    f"add it to 'buckets': a list up to {own.axis(axis).max}, max, "
                    "{equals: e} or {padded: e}",
                )


def _first_uses(family: Family, runner: Runner) -> dict[str, Span]:
    """Each axis that a runner uses, with the place that says so."""
    uses: dict[str, Span] = {}
    for slot in runner.slots:
        for axis in slot.axes:
            uses.setdefault(axis, slot.span_of("axis"))
        for expr, span in expressions(slot):
            for axis in sorted(axes_in(expr)):
                uses.setdefault(axis, span)
    for output in runner.outputs:
        for axis in output.axes:
            uses.setdefault(axis, output.span_of("axis"))
    for rule in runner.buckets:
        for axis in sorted(follows(rule)):
            uses.setdefault(axis, rule.span)
    for rule in runner.buckets:
        for axis in sorted(counted_from(rule, family.axis(rule.axis))):
            uses.setdefault(axis, rule.span)
    for limit in runner.limits:
        for axis in sorted(axes_in(limit.expr)):
            uses.setdefault(axis, limit.span)
    for place in Place:
        for binding in runner.forward.at(place):
            if isinstance(binding.value, PaddedValue):
                uses.setdefault(binding.value.axis, binding.span)
    for key in boundary_of(family, runner):
        for axis in () if key.never else key.axes:
            uses.setdefault(axis, runner.span)
    for scalar in runner.scalars:
        if isinstance(scalar.source, ComputedCount):
            for axis in sorted(axes_in(scalar.source.expr)):
                uses.setdefault(axis, scalar.span)
    for condition in runner.eager_when:
        for axis in sorted(axes_in(condition.above)) if condition.above is not None else ():
            uses.setdefault(axis, condition.span)
    return uses


@checked("PPC311", "bucket-unused", cases=(37,))
def bucket_unused(family: Family) -> Iterator[Finding]:
    """A runner has buckets for an axis that it does not use.

    **What.** No slot, output, boundary key, expression or binding of the runner has the axis.

    **Why it hurts.** Each size multiplies the graphs without changing any of them.
    Seen in: NVIDIA/TensorRT-LLM#5014.

    **Bad**

    ```yaml
    buckets: {tokens: [16, 32], images: [1, 2, 4]}     # no slot has axis images
    ```

    **Good**

    ```yaml
    buckets: {tokens: [16, 32]}
    ```
    """
    for runner in family.runners:
        used = _first_uses(family, runner)
        for rule in runner.buckets:
            if rule.axis not in used:
                yield Finding(
                    rule.span,
                    f"runner '{runner.name}' has buckets for axis '{rule.axis}' and no use of it",
                    f"remove '{rule.axis}' from 'buckets'",
                )


@checked("PPC312", "bucket-order", cases=(32, 36, 37))
def bucket_order(family: Family) -> Iterator[Finding]:
    """A list of buckets is empty, or not positive, ascending and unique.

    **What.** Lists are taken as they stand, never sorted, clamped or cleaned. The help shows
    the mended list.

    **Why it hurts.** "The first bucket that is large enough" of an unsorted list is the wrong
    one; an empty list has no last entry.
    Seen in: vllm-project/vllm#26016, vllm-project/vllm#29559, NVIDIA/TensorRT-LLM#6615.

    **Bad**

    ```yaml
    buckets: {tokens: [256, 64, 128, 64]}
    ```

    **Good**

    ```yaml
    buckets: {tokens: [64, 128, 256]}
    ```
    """
    for runner in family.runners:
        for rule in runner.buckets:
            if isinstance(rule, ListedBuckets) and not in_order(rule.sizes):
                axis = lowered(family, runner).axis(rule.axis)
                yield Finding(
                    _first_fault(rule),
                    f"buckets of {rule.axis} {_fault(rule.sizes)}",
                    f"write {mended(rule.sizes, axis)}",
                )


def _fault(sizes: tuple[int, ...]) -> str:
    if not sizes:
        return "are empty"
    lowest = min(sizes)
    if lowest < 1:
        return f"hold {lowest}; a size is at least 1"
    before, size = next((a, b) for a, b in pairwise(sizes) if a >= b)
    return f"hold {size} twice" if before == size else f"hold {size} after {before}"


def _first_fault(rule: ListedBuckets) -> Span:
    sizes = rule.sizes
    for number, size in enumerate(sizes):
        repeats = size < 1 if min(sizes) < 1 else number > 0 and sizes[number - 1] >= size
        if repeats and number < len(rule.size_spans):
            return rule.size_spans[number]
    return rule.span


def mended(sizes: tuple[int, ...], axis: Axis) -> str:
    """The list that the author may have meant: within 1 and the capacity, which it reaches."""
    kept = sorted({size for size in sizes if 1 <= size <= axis.max} | {axis.max})
    return f"[{listed(kept)}]"


@checked("PPC313", "bucket-over-capacity", cases=(15, 29, 30, 36, 72))
def bucket_over_capacity(family: Family) -> Iterator[Finding]:
    """A bucket is larger than the capacity of its axis.

    **What.** `max` of the axis, or of the runner's own `axes`, bounds every listed size.

    **Why it hurts.** The buffers have `max` rows: a larger graph runs past them. Dropping the
    size instead leaves the true maximum without a graph.
    Seen in: NVIDIA/TensorRT-LLM#10688, NVIDIA/TensorRT-LLM#4843, xLLM-AI/xllm#1939,
    vllm-project/vllm#29559, sgl-project/sglang#35275.

    **Bad**

    ```yaml
    axes: {requests: {max: 100, live: batch.num_requests}}
    # in a runner
    buckets: {requests: [64, 128]}
    ```

    **Good**

    ```yaml
    buckets: {requests: [64, 100]}
    ```
    """
    for runner in family.runners:
        for rule in runner.buckets:
            axis = lowered(family, runner).axis(rule.axis)
            if isinstance(rule, ListedBuckets):
                yield from _listed_over(rule, axis)


def _listed_over(rule: ListedBuckets, axis: Axis) -> Iterator[Finding]:
    over = [number for number, size in enumerate(rule.sizes) if size > axis.max]
    if not over:
        return
    usable = len(over) < len(rule.sizes)
    shown = listed(rule.sizes[number] for number in over)
    spans = rule.size_spans
    yield Finding(
        spans[over[0]] if over[0] < len(spans) else rule.span,
        f"buckets of {rule.axis} exceed its capacity: {shown} > {axis.max}"
        + ("" if usable else "; no bucket is usable"),
        f"write {mended(rule.sizes, axis)}, or raise 'max' of {rule.axis}",
    )
