"""Padding: stated exactly where rows are padded, never left to chance."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.diagnostics.model import Related
from ppcgc.ir import (
    BatchSource,
    BoundarySource,
    CallerSource,
    ComputeSource,
    ConstSource,
    Family,
    GraphSource,
    HookSource,
    KeepPadding,
    Slot,
    Source,
)
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import listed, slots


@checked("PPC201", "padding-missing", cases=(1, 2, 3))
def padding_missing(family: Family) -> Iterator[Finding]:
    """A slot has padded rows that its source does not write, and no padding.

    **What.** A batch fills the live rows only. What the rows up to the bucket hold is stated
    for each slot; there is no default.

    **Why it hurts.** A tail that is left alone still holds an earlier, fuller batch: real write
    locations, positions or lengths, which the captured kernels read again.
    Seen in: sgl-project/sglang#24743, sgl-project/sglang#10892, sgl-project/sglang#1469.

    **Bad**

    ```yaml
    {name: positions, axis: tokens, dtype: int64, source: batch.positions}
    ```

    **Good**

    ```yaml
    {name: positions, axis: tokens, dtype: int64, padding: zero, source: batch.positions}
    ```
    """
    for _, slot in slots(family):
        if slot.padding is None and _has_tail(slot):
            axes = listed(slot.axes)
            yield Finding(
                slot.span_of("name"),
                f"slot '{slot.qualified}' does not say what its rows past the live {axes} hold",
                "add padding: zero, {fill: e}, repeat_last, or {keep: why, initial: v}",
            )


@checked("PPC202", "padding-refused")
def padding_refused(family: Family) -> Iterator[Finding]:
    """A slot states a padding but has no rows to pad.

    **What.** A slot without an axis has no padded rows; `compute`, `const` and `graph` sources
    write every padded row themselves.

    **Why it hurts.** Two authors for the same rows: the reader cannot tell which one wins.

    **Bad**

    ```yaml
    {name: rank, axis: tokens, dtype: int32, padding: zero, source: {compute: row.tokens}}
    ```

    **Good**

    ```yaml
    {name: rank, axis: tokens, dtype: int32, source: {compute: row.tokens}}
    ```
    """
    for _, slot in slots(family):
        if slot.padding is None or _has_tail(slot):
            continue
        reason = (
            f"its source, {source_word(slot.source)}, writes every padded row"
            if slot.axes
            else "it has no axis"
        )
        yield Finding(
            slot.span_of("padding"),
            f"slot '{slot.qualified}' has a padding but no rows to pad: {reason}",
            "remove the padding",
        )


def _has_tail(slot: Slot) -> bool:
    return bool(slot.axes) and not isinstance(
        slot.source, ComputeSource | ConstSource | GraphSource
    )


def source_word(source: Source) -> str:
    """A source as a reader calls it."""
    match source:
        case BatchSource(path=path):
            return f"batch.{'.'.join(path)}"
        case BoundarySource(key=key):
            return f"boundary.{key}"
        case ComputeSource():
            return "compute"
        case ConstSource():
            return "const"
        case CallerSource():
            return "caller"
        case GraphSource():
            return "graph"
        case HookSource(hook=hook):
            return f"hook.{hook}"


@checked("PPC203", "mixed-resets", cases=(2,), warning=True)
def mixed_resets(family: Family) -> Iterator[Finding]:
    """One slot of an axis keeps stale rows while its siblings reset theirs.

    **What.** A `keep` beside slots of the same axis that reset.

    **Why it hurts.** The padded rows then mix two batches: a reset location with a stale
    position is a combination that no real batch has.
    Seen in: sgl-project/sglang#10892.

    **Bad**

    ```yaml
    - {name: positions, axis: tokens, dtype: int64, source: batch.positions,
       padding: {keep: unread, initial: 0}}
    - {name: input_ids, axis: tokens, dtype: int64, padding: zero, source: batch.input_ids}
    ```

    **Good**

    ```yaml
    - {name: positions, axis: tokens, dtype: int64, padding: zero, source: batch.positions}
    - {name: input_ids, axis: tokens, dtype: int64, padding: zero, source: batch.input_ids}
    ```
    """
    for runner in family.runners:
        for slot in runner.slots:
            if not any(isinstance(padding, KeepPadding) for padding in slot.paddings):
                continue
            sibling = next((other for other in runner.slots if _resets_beside(other, slot)), None)
            if sibling is not None:
                yield Finding(
                    slot.span_of("padding"),
                    f"slot '{slot.qualified}' keeps stale rows of {listed(slot.axes)} "
                    f"while '{sibling.qualified}' resets its own",
                    "reset both, unless stale rows are really harmless",
                    (Related(sibling.span_of("padding"), "resets here"),),
                )


def _resets_beside(other: Slot, slot: Slot) -> bool:
    own = other.paddings
    resets = bool(own) and not any(isinstance(padding, KeepPadding) for padding in own)
    return resets and other.axes == slot.axes
