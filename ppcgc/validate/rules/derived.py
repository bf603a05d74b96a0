"""Derived buckets: sizes that follow another axis."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.expr.evaluate import EvaluationError
from ppcgc.ir import EqualsBuckets, Family, PaddedBuckets, Runner
from ppcgc.plan.buckets import derived_rows
from ppcgc.resolve.sizes import circles
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import bucket_of, follows, ladder


@checked("PPC314", "circular-buckets")
def circular_buckets(family: Family) -> Iterator[Finding]:
    """Derived buckets follow each other in a circle, or none but themselves.

    **What.** `equals` and `padded` lead to an axis with a list or `max` in the end.

    **Why it hurts.** None of the sizes would ever be known.

    **Bad**

    ```yaml
    buckets: {tokens: {equals: requests}, requests: {equals: tokens}}
    ```

    **Good**

    ```yaml
    buckets: {tokens: {equals: requests}, requests: [1, 2, 4, 8]}
    ```
    """
    for runner in family.runners:
        uses = {rule.axis: sorted(follows(rule)) for rule in runner.buckets}
        for circle in circles(uses):
            shown = " -> ".join([*circle, circle[0]])
            rule = bucket_of(runner, circle[0])
            yield Finding(
                runner.span if rule is None else rule.span,
                f"buckets of '{circle[0]}' follow themselves: {shown}",
                "give one of them a list or max",
            )


@checked("PPC315", "derived-from-nothing")
def derived_from_nothing(family: Family) -> Iterator[Finding]:
    """A derived bucket names no other axis.

    **What.** `equals` and `padded` follow another axis.

    **Why it hurts.** A fixed number for live rows claims that every batch has that many.

    **Bad**

    ```yaml
    buckets: {tokens: {equals: 16}}
    ```

    **Good**

    ```yaml
    buckets: {tokens: [16]}
    ```
    """
    for runner in family.runners:
        for rule in runner.buckets:
            derived = isinstance(rule, EqualsBuckets | PaddedBuckets)
            if derived and not follows(rule):
                yield Finding(
                    rule.span,
                    f"buckets of '{rule.axis}' follow no other axis",
                    "write a list of sizes",
                )


@checked("PPC316", "derived-over-capacity", cases=(15, 29, 35))
def derived_over_capacity(family: Family) -> Iterator[Finding]:
    """A derived bucket is larger than the capacity of its axis, or has no size.

    **What.** Each size of the axis that is followed gives a size within `max`.

    **Why it hurts.** The buffers have `max` rows: the larger graph runs past them.
    Seen in: xLLM-AI/xllm#1939, vllm-project/vllm#15269.

    **Bad**

    ```yaml
    axes:
      requests: {max: 16, live: batch.num_requests}
      tokens: {max: 32, live: batch.num_tokens}
    # in a runner
    buckets: {requests: [8, 16], tokens: {equals: requests * 4}}
    ```

    **Good**

    ```yaml
    axes:
      requests: {max: 16, live: batch.num_requests}
      tokens: {max: 64, live: batch.num_tokens}
    ```
    """
    for runner in family.runners:
        yield from _derived_over(family, runner)


def _derived_over(family: Family, runner: Runner) -> Iterator[Finding]:
    """The first size of the axis followed that gives too many rows, for rules of one base axis."""
    for rule in runner.buckets:
        base = follows(rule)
        source = bucket_of(runner, next(iter(base))) if len(base) == 1 else None
        axis = family.axis(rule.axis)
        for size in ladder(family, source) if source is not None else ():
            try:
                rows = derived_rows(rule, {next(iter(base)): size})
            except EvaluationError as problem:
                yield Finding(rule.span, f"buckets of {rule.axis} have no size: {problem}")
                break
            if rows > axis.max:
                name = next(iter(base))
                yield Finding(
                    rule.span,
                    f"bucket {size} of {name} gives {rows} rows of {rule.axis}, "
                    f"over its capacity {axis.max}",
                    f"raise 'max' of {rule.axis} to {rows}, or shorten the buckets of {name}",
                )
                break
