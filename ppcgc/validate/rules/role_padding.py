"""Padding by role: what padded rows of indices, offsets and lengths may hold."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.expr.tree import Ref, Symbol
from ppcgc.ir import (
    Family,
    FillPadding,
    KeepPadding,
    ListedBuckets,
    OneAxisPadding,
    RepeatLastPadding,
    Role,
    Runner,
    Slot,
    ZeroPadding,
)
from ppcgc.plan.intervals import Interval, bounds
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import (
    Literal,
    bucket_of,
    fixed,
    fixed_dims,
    ladder,
    listed,
    literal,
    lowered,
    slots,
)


@checked("PPC242", "write-index-padding", cases=(1, 6))
def write_index_padding(family: Family) -> Iterator[Finding]:
    """Padded rows of a write index do not point at a reserved row of its state.

    **What.** Padding is `zero` or `{fill: n}` where that row is reserved, or a negative number
    where the slot says `consumer_skips_negative: true`.

    **Why it hurts.** The graph computes padded rows like any other and writes them where the
    index says: a stale or repeated index overwrites live rows, and -1 wraps around to the last
    row in tensor indexing.
    Seen in: sgl-project/sglang#24743, vllm-project/vllm#43869.

    **Bad**

    ```yaml
    {name: slot_mapping, axis: tokens, dtype: int64, padding: {fill: -1}, role: write_index,
     of: state.kv, source: batch.slot_mapping}
    ```

    **Good**

    ```yaml
    {name: slot_mapping, axis: tokens, dtype: int64, padding: zero, role: write_index,
     of: state.kv, source: batch.slot_mapping}
    ```
    """
    for _, slot in slots(family):
        if slot.role.role is not Role.WRITE_INDEX or slot.role.of_kind != "state":
            continue
        state = family.state(slot.role.of or "")
        problems = (_write_problem(slot, padding, state.reserved) for padding in slot.paddings)
        problem = next((found for found in problems if found), None)
        if problem is not None:
            yield Finding(
                slot.span_of("padding"),
                f"padded rows of write index '{slot.qualified}' {problem}",
                f"pad with a reserved row of state '{state.name}': {listed(state.reserved)}",
            )


def _write_problem(slot: Slot, padding: OneAxisPadding, reserved: tuple[int, ...]) -> str | None:
    if isinstance(padding, KeepPadding):
        return "keep the locations of an earlier batch"
    if isinstance(padding, RepeatLastPadding):
        return "write over the last live row"
    row = _padding_row(padding)
    if isinstance(padding, FillPadding) and row is None:
        return "are computed and cannot be shown to be reserved"
    if row is None or row in reserved or (row < 0 and slot.role.consumer_skips_negative):
        return None
    wraps = ", which wraps around to live rows where its reader does not skip negatives"
    return f"point at row {row}{wraps if row < 0 else ', which is not reserved'}"


def _padding_row(padding: OneAxisPadding) -> Literal | None:
    if isinstance(padding, ZeroPadding):
        return 0
    return literal(padding.value) if isinstance(padding, FillPadding) else None


@checked("PPC243", "index-padding", cases=(6, 96))
def index_padding(family: Family) -> Iterator[Finding]:
    """Padded rows of an index point outside of what it indexes.

    **What.** A filled index lies in [0, size) of its `of`, for every bucket when that is an
    axis; a negative one needs `consumer_skips_negative: true`. Known sizes are compared now, as
    are fills that name axes; those that name sizes when a runner is built (`DimError`).

    **Why it hurts.** Padded rows are computed: an index out of range reads foreign memory or
    faults, and -1 reads the last row.
    Seen in: vllm-project/vllm#43869, vllm-project/vllm#15090.

    **Bad**

    ```yaml
    {name: adapter, axis: tokens, dtype: int64, padding: {fill: -1}, role: index, of: adapters,
     source: batch.adapter}
    ```

    **Good**

    ```yaml
    {name: adapter, axis: tokens, dtype: int64, padding: {fill: -1}, role: index, of: adapters,
     source: batch.adapter, consumer_skips_negative: true}
    ```
    """
    for runner, slot, row in _padded_indices(family):
        size = _size_of_subject(family, runner, slot)
        if row < 0 and not slot.role.consumer_skips_negative:
            message = f"padded rows of index '{slot.qualified}' are {row}, below 0"
            help = "pad with a row in range, or state consumer_skips_negative: true"
            yield Finding(slot.span_of("padding"), message, help)
        elif size is not None and row >= size:
            message = f"padded rows of index '{slot.qualified}' are {row}, past the last of {size}"
            help = f"pad with a row of '{slot.role.of}': 0 to {size - 1}"
            yield Finding(slot.span_of("padding"), message, help)
    for runner, slot in slots(family):
        if slot.role.role is Role.INDEX and slot.role.of_kind == "axis":
            yield from _past_its_axis(lowered(family, runner), runner, slot)


def _past_its_axis(family: Family, runner: Runner, slot: Slot) -> Iterator[Finding]:
    """Computed fills of an index of an axis, in each of its buckets."""
    axis = slot.role.of or ""
    for padding in slot.paddings:
        if not isinstance(padding, FillPadding) or _padding_row(padding) is not None:
            continue
        for size in _sizes_of(family, runner, axis):
            fill = _fill_bounds(family, slot, padding, axis, size)
            if fill is None or fill[1] >= size or fill[0] < 0:
                spoken = "is not known" if fill is None else f"may be {fill[0]} to {fill[1]}"
                yield Finding(
                    slot.span_of("padding"),
                    f"padded rows of index '{slot.qualified}' are computed: in the bucket of "
                    f"{size} {axis} the value {spoken}, its rows are 0 to {size - 1}",
                    "pad with zero, or with what is always a row of that axis",
                )
                break


def _sizes_of(family: Family, runner: Runner, axis: str) -> tuple[int, ...]:
    """The sizes of an axis that are known; of one that follows others, none are."""
    rule = bucket_of(runner, axis)
    return () if rule is None else ladder(family, rule)


def _fill_bounds(
    family: Family, slot: Slot, padding: FillPadding, axis: str, size: int
) -> Interval | None:
    """The least and the greatest fill in a bucket. Rows of the axis itself are padded only where
    it is not full.
    """
    if isinstance(padding.value, float):
        return None
    box: dict[Ref, Interval] = {ref: (value, value) for ref, value in fixed_dims(family).items()}
    for other in family.axes:
        box[Ref(Symbol.LIVE, other.name)] = (0, other.max)
        box[Ref(Symbol.PADDED, other.name)] = (1, other.max)
    full = size - 1 if slot.axes == (axis,) else size
    box[Ref(Symbol.LIVE, axis)], box[Ref(Symbol.PADDED, axis)] = (0, full), (size, size)
    return bounds(padding.value, box)


def _padded_indices(family: Family) -> Iterator[tuple[Runner, Slot, Literal]]:
    """Each index with a literal padding, and that padding."""
    for runner, slot in slots(family):
        for padding in slot.paddings:
            row = _padding_row(padding)
            if slot.role.role is Role.INDEX and row is not None:
                yield runner, slot, row


def _size_of_subject(family: Family, runner: Runner, slot: Slot) -> int | None:
    """The fewest rows that ``of`` can have, where known."""
    of, known = slot.role.of or "", fixed_dims(family)
    if slot.role.of_kind == "dim":
        return known.get(Ref(Symbol.DIM, of))
    if slot.role.of_kind == "state":
        return fixed(family.state(of).rows, known)
    if slot.role.of_kind == "axis":
        bucket = bucket_of(runner, of)
        if isinstance(bucket, ListedBuckets) and bucket.sizes:
            return min(bucket.sizes)
        return family.axis(of).max
    return None


@checked("PPC244", "offsets-padding", cases=(5,))
def offsets_padding(family: Family) -> Iterator[Finding]:
    """Padded rows of offsets would decrease.

    **What.** Offsets do not decrease and end at the live rows of `of`. The n + 1 form
    (`shape: [requests + 1]`) pads with `repeat_last`, the form of starts (`[requests]`) with
    `{fill: live.<of>}`.

    **Why it hurts.** Zero or a sentinel after the last offset gives a sequence of negative
    length, which an eager kernel skips and a captured one reads.
    Seen in: vllm-project/vllm#19321.

    **Bad**

    ```yaml
    {name: cu_seqlens, axis: requests, shape: [requests + 1], dtype: int32, padding: {fill: -1},
     role: offsets, of: tokens, source: batch.cu_seqlens}
    ```

    **Good**

    ```yaml
    {name: cu_seqlens, axis: requests, shape: [requests + 1], dtype: int32,
     padding: repeat_last, role: offsets, of: tokens, source: batch.cu_seqlens}
    ```
    """
    for _, slot in slots(family):
        if slot.role.role is not Role.OFFSETS or slot.padding is None:
            continue
        if slot.role.of_kind != "axis" or _pads_offsets(slot):
            continue
        closed = "repeat_last" if _closed(slot) else f"{{fill: live.{slot.role.of}}}"
        yield Finding(
            slot.span_of("padding"),
            f"padded rows of offsets '{slot.qualified}' do not continue its last live offset",
            f"use padding: {closed}",
        )


def _pads_offsets(slot: Slot) -> bool:
    if isinstance(slot.padding, RepeatLastPadding):
        return _closed(slot)
    total = Ref(Symbol.LIVE, slot.role.of or "")
    return isinstance(slot.padding, FillPadding) and slot.padding.value == total


def _closed(slot: Slot) -> bool:
    """The n + 1 form, whose last live row is the total."""
    return any(extent.axis is not None and extent.offset == 1 for extent in slot.shape)


@checked("PPC246", "lengths-padding", cases=(3,))
def lengths_padding(family: Family) -> Iterator[Finding]:
    """Padded rows of lengths are stale, negative, repeated or too long.

    **What.** Lengths pad with `zero` or a fill that is not negative and at most their `of`.
    Lengths of an axis sum to its live rows, so a repeated one is wrong.

    **Why it hurts.** A stale length sends the kernel past the rows that the padding request
    owns; the value that a backend wants differs, so it is stated.
    Seen in: sgl-project/sglang#1469.

    **Bad**

    ```yaml
    padding: {keep: the kernel skips them, initial: 0}
    ```

    **Good**

    ```yaml
    padding: {fill: 1}
    ```
    """
    for runner, slot in slots(family):
        if slot.role.role is not Role.LENGTHS:
            continue
        size = _size_of_subject(family, runner, slot)
        problems = (_length_problem(slot, padding, size) for padding in slot.paddings)
        problem = next((found for found in problems if found), None)
        if problem is not None:
            yield Finding(
                slot.span_of("padding"),
                f"padded rows of lengths '{slot.qualified}' {problem}",
                "use padding: zero, or a fill that the kernels accept",
            )


def _length_problem(slot: Slot, padding: OneAxisPadding, size: int | None) -> str | None:
    if isinstance(padding, KeepPadding):
        return "keep the lengths of an earlier batch"
    if isinstance(padding, RepeatLastPadding) and slot.role.of_kind == "axis":
        return f"repeat a length, so the sum exceeds the live {slot.role.of}"
    length = _padding_row(padding)
    if length is None or (length >= 0 and (size is None or length <= size)):
        return None
    return f"are {length}, below 0" if length < 0 else f"are {length}, above {size}"
