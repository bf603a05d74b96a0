"""Tensor parallelism at the boundary: what ranks hold decides how it may travel."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from ppcgc.diagnostics.model import Related
from ppcgc.ir import BoundaryKey, BoundarySource, Family, RepeatLastPadding, Runner
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import boundary_of, bucket_of, ladder, listed, lowered


@checked("PPC417", "ranks-undeclared", cases=(46, 89))
def ranks_undeclared(family: Family) -> Iterator[Finding]:
    """A boundary key speaks of tensor-parallel ranks that the spec does not declare.

    **What.** `content: {sharded: tp}`, `content: per_rank` and `wire: scatter_gather` need
    `parallel: {tp: build}`.

    **Why it hurts.** Nothing would say into how many parts the rows are split; the mistake
    would show as a collective that fails or never ends.
    Seen in: vllm-project/vllm#24021, pie-project/pie#499.

    **Bad**

    ```yaml
    {name: residual, axis: tokens, shape: [tokens, hidden], dtype: model, padding: zero,
     content: {sharded: tp}}
    ```

    **Good**

    ```yaml
    parallel: {tp: build}
    ```
    """
    if "tp" in family.parallel:
        return
    for _, key in _keys(family):
        for word, used in (
            ("content", key.content != "replicated"),
            ("wire", key.wire == "scatter_gather"),
        ):
            if used:
                message = f"'{word}' of boundary key '{key.name}' speaks of ranks of tp"
                yield Finding(key.span_of(word), message, "add 'parallel: {tp: build}'")


def _keys(family: Family) -> Iterator[tuple[Runner, BoundaryKey]]:
    for runner in family.runners:
        yield from ((runner, key) for key in boundary_of(family, runner))


@checked("PPC418", "wire-of-unequal-rows", cases=(46,))
def wire_of_unequal_rows(family: Family) -> Iterator[Finding]:
    """Rows that differ from rank to rank travel as if they were equal.

    **What.** `wire: scatter_gather` sends one part from each rank and joins them on the other
    side, so it is for `content: replicated` only.

    **Why it hurts.** Parts of unequal tensors are joined into one that no rank ever had: the
    residual is wrong and nothing complains.
    Seen in: vllm-project/vllm#24021, vllm-project/vllm#18243.

    **Bad**

    ```yaml
    {name: residual, axis: tokens, shape: [tokens, hidden], dtype: model, padding: zero,
     content: {sharded: tp}, wire: scatter_gather}
    ```

    **Good**

    ```yaml
    {name: residual, axis: tokens, shape: [tokens, hidden], dtype: model, padding: zero,
     content: {sharded: tp}, wire: whole}
    ```
    """
    for _, key in _keys(family):
        if key.wire == "scatter_gather" and key.content != "replicated":
            held = "its part" if key.content == "sharded" else "other rows"
            yield Finding(
                key.span_of("wire"),
                f"boundary key '{key.name}' is joined from parts, but each rank holds {held}",
                "write wire: whole",
            )


@checked("PPC419", "rows-do-not-divide", cases=(34,))
def rows_do_not_divide(family: Family) -> Iterator[Finding]:
    """Rows are split over ranks, and no number of ranks divides every bucket.

    **What.** The rows of a sharded key are split into `tp.size` equal parts, so each bucket of
    its axis is a multiple of that number. The size is compared when a runner is built; here the
    buckets need a common divisor at least.

    **Why it hurts.** A gather inside the stage fails at capture, or pads in silence.
    Seen in: sgl-project/sglang#33200, PaddlePaddle/FastDeploy#4183.

    **Bad**

    ```yaml
    buckets: {tokens: [4, 9, 16]}
    ```

    **Good**

    ```yaml
    buckets: {tokens: [4, 8, 16]}
    ```
    """
    for runner, key in _keys(family):
        sharded = key.content == "sharded" and bool(key.axes)
        rule = bucket_of(runner, key.axes[0]) if sharded else None
        sizes = () if rule is None else ladder(lowered(family, runner), rule)
        extent = next((extent for extent in key.shape if extent.axis in key.axes), None)
        if rule is None or extent is None or not sizes:
            continue
        rows = [extent.scale * size + extent.offset for size in sizes]
        if gcd(*rows) == 1:
            yield Finding(
                rule.span,
                f"boundary key '{key.name}' is split over ranks of tp, "
                f"and no number of ranks above 1 divides {listed(rows)} rows",
                "list multiples of the ranks that you run with",
            )


@checked("PPC420", "split-rows-form")
def split_rows_form(family: Family) -> Iterator[Finding]:
    """Rows that ranks hold in parts are declared as only whole rows can be.

    **What.** A sharded key has an axis, whose rows are split. Its padding is no `repeat_last`, and
    no slot shows it: bind `boundary.<key>` in `forward`.

    **Why it hurts.** The last live row lies on one rank, and those after it have only padded rows
    to repeat it in. A slot is declared with all rows, a rank has a part of them.

    **Bad**

    ```yaml
    boundary:
      - {name: hidden_states, axis: tokens, shape: [tokens, hidden], dtype: model,
         padding: repeat_last, content: {sharded: tp}}
    ```

    **Good**

    ```yaml
    boundary:
      - {name: hidden_states, axis: tokens, shape: [tokens, hidden], dtype: model,
         padding: zero, content: {sharded: tp}}
    ```
    """
    seen: set[int] = set()  # keys that several runners hand over
    for runner, key in _keys(family):
        if key.content != "sharded":
            continue
        for slot in runner.slots:
            if isinstance(slot.source, BoundarySource) and slot.source.key == key.name:
                message = f"slot '{slot.qualified}' shows all rows of boundary key '{key.name}'"
                yield Finding(
                    slot.span_of("source"),
                    f"{message}, of which a rank of tp holds a part",
                    f"bind boundary.{key.name} in 'forward'",
                    (Related(key.span_of("content"), "split here"),),
                )
        if id(key) in seen:
            continue
        seen.add(id(key))
        if not key.axes:
            message = f"boundary key '{key.name}' is split over ranks of tp and has no rows"
            yield Finding(key.span_of("content"), message, "give it an axis, or content: per_rank")
        if isinstance(key.padding, RepeatLastPadding):
            yield Finding(
                key.span_of("padding"),
                f"boundary key '{key.name}' is split over ranks of tp, "
                "and most of them do not have its last live row",
                "use padding: zero or {fill: v}",
            )
