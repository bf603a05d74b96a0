"""Parallel groups: ranks that meet in collectives choose one bucket."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.diagnostics.model import Related
from ppcgc.ir import EqualsBuckets, Family, PaddedBuckets
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import bucket_of, follows, listed


@checked("PPC303", "group-undeclared", cases=(88,))
def group_undeclared(family: Family) -> Iterator[Finding]:
    """An axis groups ranks of a parallel group that the spec does not declare.

    **What.** `group: {over: dp}` needs `parallel: {dp: build}`, which makes the build say how
    many ranks there are.

    **Why it hurts.** The list of live counts would have an unknown length: a rank that is
    missing from it replays another bucket, and the collective inside never ends.
    Seen in: sgl-project/sglang#37933, vllm-project/vllm#25906.

    **Bad**

    ```yaml
    axes: {tokens: {max: 64, live: batch.num_tokens, group: {over: dp, live: batch.all_tokens}}}
    ```

    **Good**

    ```yaml
    parallel: {dp: build}
    axes: {tokens: {max: 64, live: batch.num_tokens, group: {over: dp, live: batch.all_tokens}}}
    ```
    """
    for axis in family.axes:
        if axis.group is not None and axis.group.over not in family.parallel:
            over = axis.group.over
            message = f"axis '{axis.name}' groups ranks of {over}, which the spec does not declare"
            yield Finding(axis.span, message, f"add 'parallel: {{{over}: build}}'")


@checked("PPC304", "ungrouped-ranks", cases=(88,), warning=True)
def ungrouped_ranks(family: Family) -> Iterator[Finding]:
    """Ranks of dp choose their buckets each for itself.

    **What.** Where `parallel` declares dp, an axis states its `group`. Ranks that share no
    collective may do without; then the warning may stand.

    **Why it hurts.** A rank with 8 tokens and one with 256 replay different graphs; a collective
    inside then moves other sizes on each, or one rank never arrives.
    Seen in: sgl-project/sglang#37933, vllm-project/vllm#25906.

    **Bad**

    ```yaml
    parallel: {dp: build}
    axes: {tokens: {max: 256, live: batch.num_tokens}}
    ```

    **Good**

    ```yaml
    axes: {tokens: {max: 256, live: batch.num_tokens, group: {over: dp, live: batch.all_tokens}}}
    ```
    """
    grouped = {axis.group.over for axis in family.axes if axis.group is not None}
    if "dp" in family.parallel and "dp" not in grouped and family.axes:
        axis = next((axis for axis in family.axes if axis.name == "tokens"), family.axes[0])
        yield Finding(
            axis.span,
            "no axis groups the ranks of dp: each chooses its bucket by its own live rows",
            f"add 'group: {{over: dp, live: batch.<list>}}' to {axis.name}",
        )


@checked("PPC306", "group-on-derived-axis", cases=(88,))
def group_on_derived_axis(family: Family) -> Iterator[Finding]:
    """An axis has a group and takes its size from another axis.

    **What.** The largest live count of the group chooses from a list; a size that follows
    another axis is not chosen.

    **Why it hurts.** The ranks would still choose by the axis that is followed, each by its own
    count.
    Seen in: sgl-project/sglang#37933, vllm-project/vllm#25906.

    **Bad**

    ```yaml
    axes: {tokens: {max: 64, live: batch.num_tokens, group: {over: dp, live: batch.all_tokens}}}
    # in a runner
    buckets: {requests: [16, 32, 64], tokens: {equals: requests}}
    ```

    **Good**

    ```yaml
    axes: {requests: {max: 64, live: batch.num_requests, group: {over: dp, live: batch.all}}}
    # in a runner
    buckets: {requests: [16, 32, 64], tokens: {equals: requests}}
    ```
    """
    for runner in family.runners:
        grouped = {axis.name for axis in family.axes if axis.group is not None}
        for rule in runner.buckets:
            followed = follows(rule)
            if rule.axis in grouped and followed and not followed & grouped:
                yield Finding(
                    rule.span,
                    f"buckets of {rule.axis} follow {listed(sorted(followed))}, "
                    "so its group chooses nothing",
                    "give the group to the axis that is followed, or list sizes",
                    (Related(family.axis(rule.axis).span, "the axis with the group"),),
                )


@checked("PPC305", "zero-key-axis")
def zero_key_axis(family: Family) -> Iterator[Finding]:
    """An axis with `zero: key` cannot be left out of a graph.

    **What.** Live 0 selects a graph without the axis' slots. Its size is a list or `max`, and
    neither the boundary nor an output has it.

    **Why it hurts.** A stage without the axis has no rows to hand on, and a size that follows
    another axis is 0 only with it.

    **Bad**

    ```yaml
    axes: {tokens: {max: 64, live: batch.num_tokens, zero: key}}
    boundary: [{name: hidden_states, axis: tokens, shape: [tokens, 8], dtype: model, padding: zero}]
    ```

    **Good**

    ```yaml
    axes:
      tokens: {max: 64, live: batch.num_tokens}
      chunks: {max: 16, live: batch.num_chunks, zero: key}
    ```
    """
    keyed = {axis.name: axis for axis in family.axes if axis.zero_key}
    for key in family.pipeline.boundary:
        for name in keyed.keys() & set(key.axes):
            message = f"axis '{name}' has zero: key, and boundary key '{key.name}' has its rows"
            yield Finding(keyed[name].span, message, "remove 'zero: key'")
    for runner in family.runners:
        for output in runner.outputs:
            for name in keyed.keys() & set(output.axes):
                message = f"axis '{name}' has zero: key, and output '{output.name}' has its rows"
                yield Finding(keyed[name].span, message, "remove 'zero: key'")
        for name, axis in keyed.items():
            rule = bucket_of(runner, name)
            if isinstance(rule, EqualsBuckets | PaddedBuckets):
                message = f"axis '{name}' has zero: key, and its buckets follow another axis"
                yield Finding(rule.span, message, "list its sizes", (Related(axis.span, "here"),))
