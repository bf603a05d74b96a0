"""Sources: stages can reach what they read, in the form that it has."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.diagnostics.model import Related
from ppcgc.ir import (
    BoundarySource,
    EqualsBuckets,
    Family,
    Place,
    SourceRows,
)
from ppcgc.plan.counts import rows_source
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import boundary_of, places, slots


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
    for runner, slot in slots(family):
        if not isinstance(slot.source, BoundarySource):
            continue
        keys = {key.name: key for key in boundary_of(family, runner)}
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
