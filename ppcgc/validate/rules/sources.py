"""Sources: one path of the batch is one thing, and stages can reach what they read."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.diagnostics.model import Related, Span
from ppcgc.ir import (
    BatchCount,
    BatchSource,
    BoundarySource,
    EqualsBuckets,
    Family,
    Place,
    Runner,
    Slot,
    SourceRows,
)
from ppcgc.plan.counts import rows_source
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import places, slots


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
            (axis.live.path, axis.span, f"the live count of {axis.name}")
            for axis in family.axes
            if isinstance(axis.live, BatchCount)
        ]
        uses = counts + leaves
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


def _clashes(path: tuple[str, ...], kind: str, other: tuple[tuple[str, ...], Span, str]) -> bool:
    other_path, _, other_kind = other
    longer, shorter = max(path, other_path, key=len), min(path, other_path, key=len)
    below = len(longer) > len(shorter) and longer[: len(shorter)] == shorter
    return below or (path == other_path and kind != other_kind)


@checked("PPC232", "boundary-slot-on-first-stage", cases=(50,))
def boundary_slot_on_first_stage(family: Family) -> Iterator[Finding]:
    """A slot reads the boundary on a stage that receives none.

    **What.** The first stage, and the only one, have no stage before them.

    **Why it hurts.** There is nothing to read, and capture fails or reads what was left there.
    Seen in: sgl-project/sglang#29385.

    **Bad**

    ```yaml
    {name: mixed, axis: tokens, shape: [tokens, hidden], dtype: model, padding: zero,
     source: boundary.hidden_states}
    ```

    **Good**

    ```yaml
    {name: mixed, axis: tokens, shape: [tokens, hidden], dtype: model, padding: zero,
     source: boundary.hidden_states, stages: later}
    ```
    """
    possible = set(places(family))
    for _, slot in slots(family):
        starts = slot.stages & {Place.ONLY, Place.FIRST} & possible
        if isinstance(slot.source, BoundarySource) and starts:
            yield Finding(
                slot.span_of("source"),
                f"slot '{slot.qualified}' reads boundary.{slot.source.key} on the "
                f"{' and '.join(sorted(place.value for place in starts))} stage, "
                "which receives no boundary",
                "add 'stages: later'",
            )


@checked("PPC233", "boundary-slot-form", cases=(45, 80))
def boundary_slot_form(family: Family) -> Iterator[Finding]:
    """A slot and the boundary key that it reads differ in axis, shape or dtype.

    **What.** The rows of a boundary key are copied as they are.

    **Why it hurts.** A narrower slot takes fewer rows than were sent.
    Seen in: sgl-project/sglang#30774, sgl-project/sglang#29379.

    **Bad**

    ```yaml
    boundary: [{name: topk, axis: tokens, shape: [tokens, 8], dtype: int32, padding: zero}]
    # in a runner
    {name: topk, axis: tokens, shape: [tokens, 4], dtype: int32, padding: zero,
     source: boundary.topk, stages: later}
    ```

    **Good**

    ```yaml
    {name: topk, axis: tokens, shape: [tokens, 8], dtype: int32, padding: zero,
     source: boundary.topk, stages: later}
    ```
    """
    keys = {key.name: key for key in family.pipeline.boundary}
    for _, slot in slots(family):
        if not isinstance(slot.source, BoundarySource):
            continue
        key = keys[slot.source.key]
        for word, same in (
            ("axis", slot.axes == key.axes),
            ("shape", slot.shape == key.shape),
            ("dtype", slot.dtype == key.dtype),
        ):
            if not same:
                yield Finding(
                    slot.span_of(word),
                    f"slot '{slot.qualified}' and boundary key '{key.name}' differ in {word}",
                    f"give both the same {word}",
                    (Related(key.span_of(word), "the boundary key"),),
                )


@checked("PPC234", "rows-without-source")
def rows_without_source(family: Family) -> Iterator[Finding]:
    """An axis counts the rows of its source, and a runner has no such source.

    **What.** `live: rows` means the extent of the first slot with one row for each row of that
    axis that every stage has, from a source in the batch that is never absent.

    **Why it hurts.** Nothing would say how many rows are live.

    **Bad**

    ```yaml
    axes: {images: {max: 8, live: rows}}
    # in a runner
    {name: image_number, axis: images, dtype: int32, source: {compute: row.images}}
    ```

    **Good**

    ```yaml
    axes: {images: {max: 8, live: batch.num_images}}
    ```
    """
    for runner in family.runners:
        for rule in runner.buckets:
            axis = family.axis(rule.axis)
            counts_rows = isinstance(axis.live, SourceRows) and not isinstance(rule, EqualsBuckets)
            if counts_rows and rows_source(runner, axis.name) is None:
                yield Finding(
                    axis.span,
                    f"axis '{axis.name}' counts the rows of its source, but no slot of runner "
                    f"'{runner.name}' brings exactly such rows from the batch to every stage",
                    "give the axis a count: 'live: batch.<path>'",
                )


def _batch_slots(runner: Runner) -> list[tuple[Slot, tuple[str, ...]]]:
    return [
        (slot, slot.source.path) for slot in runner.slots if isinstance(slot.source, BatchSource)
    ]
