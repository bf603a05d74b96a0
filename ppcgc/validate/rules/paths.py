"""Paths of the batch: one path is one thing, in one form."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.diagnostics.model import Related, Span
from ppcgc.ir import (
    BatchCount,
    BatchSource,
    Family,
    Runner,
    Slot,
)
from ppcgc.validate.rules.checks import Finding, checked

_COUNT, _NUMBER = "the live count of ", "a host number"


@checked("PPC230", "path-of-two-forms", cases=(1, 20, 23))
def path_of_two_forms(family: Family) -> Iterator[Finding]:
    """Two slots of a runner read one path of the batch in different forms.

    **What.** A tensor has one dtype, one shape and one place (host or device).

    **Why it hurts.** One of the two copies must cast or broadcast in silence.
    Seen in: sgl-project/sglang#24743, sgl-project/sglang#6994, vllm-project/vllm#9546.

    **Bad**

    ```yaml
    - {name: loc, axis: tokens, dtype: int64, padding: zero, source: batch.loc}
    - {name: loc_32, axis: tokens, dtype: int32, padding: zero, source: batch.loc}
    ```

    **Good**

    ```yaml
    - {name: loc, axis: tokens, dtype: int64, padding: zero, source: batch.loc}
    - {name: loc_32, axis: tokens, dtype: int32, padding: zero, source: batch.loc, cast: true}
    ```
    """
    for runner in family.runners:
        first: dict[tuple[str, ...], Slot] = {}
        for slot, path in _batch_slots(runner):
            other = first.setdefault(path, slot)
            difference = _difference(other, slot)
            if difference is not None:
                yield Finding(
                    slot.span_of("source"),
                    f"slots '{other.qualified}' and '{slot.qualified}' read "
                    f"batch.{'.'.join(path)} with different {difference}",
                    "give them one form, or a source each",
                    (Related(other.span_of("source"), "the other slot"),),
                )


def _difference(one: Slot, two: Slot) -> str | None:
    if one.dtype != two.dtype and not (one.cast or two.cast):
        return f"dtypes: {one.dtype} and {two.dtype}"
    if one.shape != two.shape:
        return "shapes"
    if one.residency is not two.residency:
        return f"residency: {one.residency.value} and {two.residency.value}"
    return None


@checked("PPC231", "path-of-two-kinds")
def path_of_two_kinds(family: Family) -> Iterator[Finding]:
    """One path of the batch is a tensor here and something else there.

    **What.** `batch.x` cannot be a tensor and also hold `batch.x.y`, or be a live count.

    **Why it hurts.** The generated batch Protocol would ask for an attribute of two types.

    **Bad**

    ```yaml
    - {name: mm, axis: tokens, dtype: int64, padding: zero, source: batch.mm}
    - {name: mm_grid, axis: tokens, dtype: int64, padding: zero, source: batch.mm.grid}
    ```

    **Good**

    ```yaml
    - {name: mm, axis: tokens, dtype: int64, padding: zero, source: batch.mm.ids}
    - {name: mm_grid, axis: tokens, dtype: int64, padding: zero, source: batch.mm.grid}
    ```
    """
    for runner in family.runners:
        leaves = [(path, slot.span_of("source"), "a tensor") for slot, path in _batch_slots(runner)]
        counts = [
            (axis.live.path, axis.span, f"{_COUNT}{axis.name}")
            for axis in family.axes
            if isinstance(axis.live, BatchCount)
        ]
        uses = counts + _host_numbers(family, runner) + leaves
        for number, (path, span, kind) in enumerate(uses):
            before = uses[:number]
            clash = next((other for other in before if _clashes(path, kind, other)), None)
            if clash is not None:
                other_path, other_span, other_kind = clash
                yield Finding(
                    span,
                    f"batch.{'.'.join(path)} is {kind}, "
                    f"but batch.{'.'.join(other_path)} is {other_kind}",
                    "use another path for one of them",
                    (Related(other_span, "the other use"),),
                )


def _host_numbers(family: Family, runner: Runner) -> list[tuple[tuple[str, ...], Span, str]]:
    """The paths that are host values: scalars, lists of groups, conditions, host twins."""
    found = [
        (axis.group.path, axis.span, f"the live counts of {axis.name} by rank")
        for axis in family.axes
        if axis.group is not None
    ]
    found += [
        (scalar.source.path, scalar.span, _NUMBER)
        for scalar in runner.scalars
        if isinstance(scalar.source, BatchCount)
    ]
    found += [
        (condition.path, condition.span, _NUMBER)
        for condition in runner.eager_when
        if condition.kind == "above"
    ]
    return found


def _clashes(path: tuple[str, ...], kind: str, other: tuple[tuple[str, ...], Span, str]) -> bool:
    other_path, _, other_kind = other
    longer, shorter = max(path, other_path, key=len), min(path, other_path, key=len)
    below = len(longer) > len(shorter) and longer[: len(shorter)] == shorter
    return below or (
        path == other_path and kind != other_kind and not _both_integers(kind, other_kind)
    )


def _both_integers(*kinds: str) -> bool:
    """One number may be a scalar, a condition and a live count at once."""
    return _NUMBER in kinds and all(kind == _NUMBER or kind.startswith(_COUNT) for kind in kinds)


def _batch_slots(runner: Runner) -> list[tuple[Slot, tuple[str, ...]]]:
    return [
        (slot, slot.source.path) for slot in runner.slots if isinstance(slot.source, BatchSource)
    ]
