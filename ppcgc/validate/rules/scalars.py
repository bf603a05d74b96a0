"""Scalars: host numbers that a graph freezes are part of its key."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ppcgc.expr.tree import Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import (
    BucketScalar,
    ConstScalar,
    Family,
    FreeScalar,
    KeyScalar,
    Place,
    Runner,
    Scalar,
    ScalarValue,
)
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.conditions import may_hold
from ppcgc.validate.rules.facts import listed


@checked("PPC620", "scalar-values", cases=(32, 36))
def scalar_values(family: Family) -> Iterator[Finding]:
    """The values of a keyed scalar are empty, repeated or out of order.

    **What.** `buckets` and `key` ascend, each value once. The help shows the mended list.

    **Why it hurts.** "The first that is large enough" of an unsorted list is the wrong one, and
    a repeated value is a second graph that never replays.
    Seen in: vllm-project/vllm#26016, vllm-project/vllm#29559.

    **Bad**

    ```yaml
    scalars: {longest: {source: batch.longest, buckets: [8192, 1024]}}
    ```

    **Good**

    ```yaml
    scalars: {longest: {source: batch.longest, buckets: [1024, 8192]}}
    ```
    """
    for _, scalar in _scalars(family):
        values = _values(scalar)
        if values is None or (values and all(a < b for a, b in pairwise(values))):
            continue
        mended = sorted(set(values))
        yield Finding(
            scalar.mode_span or scalar.span,
            f"values of scalar '{scalar.name}' "
            + ("do not ascend" if values else "are empty: no graph would serve any batch"),
            f"write [{listed(mended)}]" if values else "list at least one",
        )


def _scalars(family: Family) -> Iterator[tuple[Runner, Scalar]]:
    for runner in family.runners:
        yield from ((runner, scalar) for scalar in runner.scalars)


def _values(scalar: Scalar) -> tuple[int, ...] | None:
    match scalar.mode:
        case BucketScalar(sizes=values) | KeyScalar(values=values):
            return values
        case _:
            return None


@checked("PPC621", "scalar-not-in-key", cases=(79,))
def scalar_not_in_key(family: Family) -> Iterator[Finding]:
    """The forward is given a host number that is no part of the graph key.

    **What.** A scalar that `forward` binds is `const`, bucketed or `key`.

    **Why it hurts.** A kernel records the number of the batch that was captured. Two batches of
    equal padded sizes and other numbers then replay one graph: a longest key of 8,192 read with
    the limit of 1,024 loses most of its attention.
    Seen in: huggingface/transformers#45323.

    **Bad**

    ```yaml
    scalars: {longest: {source: batch.longest}}
    # in a runner
    forward:
      first: {input_ids: slot.input_ids, max_seqlen: scalar.longest}
    ```

    **Good**

    ```yaml
    scalars: {longest: {source: batch.longest, buckets: [1024, 8192]}}
    ```
    """
    for runner in family.runners:
        free = {s.name for s in runner.scalars if isinstance(s.mode, FreeScalar)}
        bound = dict.fromkeys(
            (binding.span, binding.keyword, binding.value.name)
            for place in Place
            for binding in runner.forward.at(place)
            if isinstance(binding.value, ScalarValue)
        )
        for span, keyword, name in bound:
            if name in free:
                yield Finding(
                    span,
                    f"'{keyword}' binds scalar '{name}', which is no part of the graph key: "
                    "the graph would keep the number of the batch it was captured with",
                    f"give '{name}' a 'const', 'buckets' or 'key', or a slot that computes it",
                )


@checked("PPC622", "condition-not-in-key", cases=(20, 52))
def condition_not_in_key(family: Family) -> Iterator[Finding]:
    """Whether a slot exists depends on a scalar that does not select the graph.

    **What.** `when` of a slot names scalars with `key` or `const` only.

    **Why it hurts.** A graph is captured with the slot or without it. A bucketed number serves
    a range of values in one graph, and a free one serves all of them.
    Seen in: vllm-project/vllm#9546, vllm-project/vllm#48648.

    **Bad**

    ```yaml
    scalars: {images: {source: batch.num_images}}
    # in a runner
    {name: mm_places, axis: tokens, dtype: int64, padding: zero, source: batch.mm_places,
     when: scalar.images > 0}
    ```

    **Good**

    ```yaml
    scalars: {has_images: {source: batch.has_images, key: [0, 1]}}
    # in a runner
    {name: mm_places, axis: tokens, dtype: int64, padding: zero, source: batch.mm_places,
     when: scalar.has_images}
    ```
    """
    for runner in family.runners:
        exact = {s.name for s in runner.scalars if isinstance(s.mode, KeyScalar | ConstScalar)}
        for slot in runner.slots:
            named = refs(slot.when) if slot.when is not None else frozenset()
            for name in sorted({r.name for r in named if r.symbol is Symbol.SCALAR} - exact):
                yield Finding(
                    slot.span_of("when"),
                    f"slot '{slot.qualified}' exists by scalar '{name}', "
                    "which does not select the graph",
                    f"give scalar '{name}' a 'key' with its values",
                )


@checked("PPC226", "slot-never-exists", cases=(54,))
def slot_never_exists(family: Family) -> Iterator[Finding]:
    """The condition of a slot holds for no graph.

    **What.** For some values of the scalars in the key `when` is true.

    **Why it hurts.** The slot is declared and never there; the forward gets None at each step.
    Seen in: vllm-project/vllm#52230.

    **Bad**

    ```yaml
    scalars: {width: {source: batch.width, key: [1, 4]}}
    # in a runner
    {name: mask, axis: tokens, dtype: bool, padding: zero, source: batch.mask,
     when: scalar.width == 2}
    ```

    **Good**

    ```yaml
    when: scalar.width == 4
    ```
    """
    for runner in family.runners:
        for slot in runner.slots:
            if slot.when is not None and not may_hold(runner, [slot.when]):
                yield Finding(
                    slot.span_of("when"),
                    f"slot '{slot.qualified}' exists in no graph of runner '{runner.name}'",
                    "compare with values that the scalars have",
                )
