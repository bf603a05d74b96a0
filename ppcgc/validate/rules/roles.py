"""Roles: what the values mean decides their dtype, their padding and their range."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.expr.tree import Expr, Ref, Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import (
    INTEGER_DTYPES,
    ComputeSource,
    ConstSource,
    Extent,
    Family,
    Role,
    Slot,
)
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.dtypes import INTEGER_RANGES
from ppcgc.validate.rules.facts import fixed, fixed_dims, slots

_INTEGER_ROLES = (Role.INDEX, Role.WRITE_INDEX, Role.OFFSETS, Role.LENGTHS, Role.COUNT)
_INDICES = (Role.INDEX, Role.WRITE_INDEX)


@checked("PPC240", "role-dtype")
def role_dtype(family: Family) -> Iterator[Finding]:
    """A slot of indices, offsets, lengths or counts has a dtype that is not an integer's.

    **What.** These roles need uint8, int8, int16, int32 or int64, stated in the spec: `model`
    is chosen when a runner is built.

    **Why it hurts.** Float indices are rounded: bfloat16 cannot tell row 257 from row 258.

    **Bad**

    ```yaml
    {name: seq_lens, axis: requests, dtype: model, padding: zero, role: lengths, of: tokens,
     source: batch.seq_lens}
    ```

    **Good**

    ```yaml
    {name: seq_lens, axis: requests, dtype: int32, padding: zero, role: lengths, of: tokens,
     source: batch.seq_lens}
    ```
    """
    for _, slot in slots(family):
        if slot.role.role in _INTEGER_ROLES and slot.dtype not in INTEGER_DTYPES:
            yield Finding(
                slot.span_of("dtype"),
                f"slot '{slot.qualified}' has role {slot.role.role.value} and dtype {slot.dtype}",
                "use an integer dtype: int32 or int64",
            )


@checked("PPC241", "role-subject")
def role_subject(family: Family) -> Iterator[Finding]:
    """A role does not say what it speaks of, or speaks of the wrong kind of thing.

    **What.** An index is `of` a dim, an axis or a state; a write index `of` a state; offsets
    `of` an axis other than their own; lengths `of` an axis or a dim; a count `of` an axis, if
    of anything. Data and masks have no `of`.

    **Why it hurts.** Without it nobody knows which rows are in range, which row belongs to
    padding, or what the offsets must end at.

    **Bad**

    ```yaml
    {name: slot_mapping, axis: tokens, dtype: int64, padding: zero, role: write_index,
     source: batch.slot_mapping}
    ```

    **Good**

    ```yaml
    {name: slot_mapping, axis: tokens, dtype: int64, padding: zero, role: write_index,
     of: state.kv, source: batch.slot_mapping}
    ```
    """
    for _, slot in slots(family):
        kinds = _SUBJECTS[slot.role.role]
        name, role = slot.qualified, slot.role.role.value
        if slot.role.of is None and kinds and None not in kinds:
            message = f"slot '{name}' has role {role} and does not say of what"
            yield Finding(slot.role.span, message, f"add 'of', which names: {_choice(kinds)}")
        elif slot.role.of is not None and slot.role.of_kind not in kinds:
            message = f"slot '{name}' has role {role} of {slot.role.of_kind} '{slot.role.of}'"
            help = f"here 'of' names: {_choice(kinds)}" if kinds else "remove 'of'"
            yield Finding(slot.span_of("of"), message, help)
        elif slot.role.role is Role.OFFSETS and slot.role.of in slot.axes:
            message = f"offsets '{name}' count rows of their own axis '{slot.role.of}'"
            yield Finding(slot.span_of("of"), message, "'of' names the axis that they cut")


_SUBJECTS: dict[Role, tuple[str | None, ...]] = {
    Role.DATA: (),
    Role.MASK: (),
    Role.INDEX: ("dim", "axis", "state"),
    Role.WRITE_INDEX: ("state",),
    Role.OFFSETS: ("axis",),
    Role.LENGTHS: ("axis", "dim"),
    Role.COUNT: ("axis", None),
}


_ARTICLES = {"axis": "an", "dim": "a"}


def _choice(kinds: tuple[str | None, ...]) -> str:
    return " or ".join(
        "a state (state.<name>)" if kind == "state" else f"{_ARTICLES[kind]} {kind}"
        for kind in kinds
        if kind
    )


@checked("PPC245", "offsets-form")
def offsets_form(family: Family) -> Iterator[Finding]:
    """Offsets have a shape that is neither n nor n + 1 rows.

    **What.** One dimension, `[AXIS]` or `[AXIS + 1]`.

    **Why it hurts.** Nothing else says where each sequence starts and ends.

    **Bad**

    ```yaml
    shape: [requests * 2]
    ```

    **Good**

    ```yaml
    shape: [requests + 1]
    ```
    """
    for _, slot in slots(family):
        if slot.role.role is Role.OFFSETS and not _has_offsets_form(slot.shape):
            yield Finding(
                slot.span_of("shape"),
                f"offsets '{slot.qualified}' have a shape other than [axis] or [axis + 1]",
                "write one dimension: the axis, or the axis + 1",
            )


def _has_offsets_form(shape: tuple[Extent, ...]) -> bool:
    return (
        len(shape) == 1
        and shape[0].axis is not None
        and shape[0].scale == 1
        and shape[0].offset in (0, 1)
    )


@checked("PPC247", "narrow-index", cases=(24,), warning=True)
def narrow_index(family: Family) -> Iterator[Finding]:
    """An index is narrower than int64.

    **What.** A hint: indexing tensors converts narrower indices each time. Kernels that read
    int32 themselves (paged attention) are right to ask for it.

    **Why it hurts.** The conversion runs once a layer, inside the graph.
    Seen in: sgl-project/sglang#3039.

    **Bad**

    ```yaml
    {name: out_cache_loc, axis: tokens, dtype: int32, padding: zero, role: write_index,
     of: state.kv, source: batch.out_cache_loc}
    ```

    **Good**

    ```yaml
    {name: out_cache_loc, axis: tokens, dtype: int64, padding: zero, role: write_index,
     of: state.kv, source: batch.out_cache_loc}
    ```
    """
    for _, slot in slots(family):
        narrow = slot.dtype in INTEGER_DTYPES and slot.dtype != "int64"
        if slot.role.role in _INDICES and narrow:
            yield Finding(
                slot.span_of("dtype"),
                f"index '{slot.qualified}' is {slot.dtype}: tensor indexing converts it to int64",
                "use int64 where the slot indexes tensors",
            )


@checked("PPC248", "role-range")
def role_range(family: Family) -> Iterator[Finding]:
    """A dtype cannot hold the largest value that its role allows.

    **What.** Offsets and counts reach the capacity of their axis, indices the last row of their
    `of`, lengths all of it. Sizes known when code is generated are compared.

    **Why it hurts.** int16 offsets of 65,536 tokens turn negative in the busiest step only.

    **Bad**

    ```yaml
    axes: {tokens: {max: 65536, live: batch.num_tokens}}
    # in a runner
    {name: starts, axis: requests, dtype: int16, padding: {fill: live.tokens}, role: offsets,
     of: tokens, source: batch.starts}
    ```

    **Good**

    ```yaml
    {name: starts, axis: requests, dtype: int32, padding: {fill: live.tokens}, role: offsets,
     of: tokens, source: batch.starts}
    ```
    """
    for _, slot in slots(family):
        largest = _largest(family, slot)
        limits = INTEGER_RANGES.get(slot.dtype)
        if largest is not None and limits is not None and largest > limits[1]:
            yield Finding(
                slot.span_of("dtype"),
                f"slot '{slot.qualified}' may hold {largest}, but {slot.dtype} ends at {limits[1]}",
                "use a wider dtype",
            )


@checked("PPC249", "count-of-padded-rows")
def count_of_padded_rows(family: Family) -> Iterator[Finding]:
    """A count of an axis is not computed from live counts.

    **What.** A slot with `role: count` and `of: AXIS` says how many rows of the axis are live. It
    comes from the batch, or is computed, and then from live counts.

    **Why it hurts.** A kernel that masks by the padded rows masks nothing: padding reaches live
    rows.

    **Bad**

    ```yaml
    {name: num_tokens, axis: none, shape: [1], dtype: int32, role: count, of: tokens,
     source: {compute: padded.tokens}}
    ```

    **Good**

    ```yaml
    {name: num_tokens, axis: none, shape: [1], dtype: int32, role: count, of: tokens,
     source: {compute: live.tokens}}
    ```
    """
    for _, slot in slots(family):
        if slot.role.role is not Role.COUNT or slot.role.of_kind != "axis":
            continue
        if _counts_no_live_rows(slot.source):
            yield Finding(
                slot.span_of("source"),
                f"slot '{slot.qualified}' counts live rows of '{slot.role.of}' and is not computed "
                "from live counts",
                f"use {{compute: live.{slot.role.of}}}",
            )


def _counts_no_live_rows(source: object) -> bool:
    if isinstance(source, ComputeSource):
        return Symbol.LIVE not in {ref.symbol for ref in refs(source.expr)}
    return isinstance(source, ConstSource)


def _largest(family: Family, slot: Slot) -> int | None:
    if slot.role.role not in _INTEGER_ROLES or slot.role.of is None:
        return None
    known = fixed_dims(family)
    sizes: dict[str | None, Expr] = {
        "axis": Ref(Symbol.AXIS_MAX, slot.role.of),
        "dim": Ref(Symbol.DIM, slot.role.of),
    }
    if slot.role.of_kind == "state":
        sizes["state"] = family.state(slot.role.of).rows
    size = fixed(sizes[slot.role.of_kind], known)
    return size if size is None or slot.role.role not in _INDICES else size - 1
