"""Derived buckets: sizes that follow another axis."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from ppcgc.expr.evaluate import EvaluationError, MissingValueError
from ppcgc.ir import (
    BucketRule,
    EqualsBuckets,
    Family,
    ListedBuckets,
    MaxBucket,
    PaddedBuckets,
    Runner,
)
from ppcgc.plan.buckets import derived_rows, follow_order
from ppcgc.resolve.sizes import circles
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import (
    MOST_COMBINATIONS,
    asks_unkeyed,
    bucket_of,
    follows,
    ladder,
    lowered,
    scalar_values,
    scalars_in,
)
from ppcgc.validate.rules.settling import settled


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

    **What.** `equals` and `padded` follow another axis, or a scalar that differs between graphs.

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
            if derived and not follows(rule) and not _varying(runner, rule):
                yield Finding(
                    rule.span,
                    f"buckets of '{rule.axis}' follow no other axis",
                    "write a list of sizes",
                )


def _varying(runner: Runner, rule: BucketRule) -> list[str]:
    """The scalars that a size follows and that have more than one value in the key."""
    names = scalars_in(rule)
    return [s.name for s in runner.scalars if s.name in names and len(scalar_values(s)) > 1]


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
        yield from _derived_over(lowered(family, runner), settled(family, runner))


def _derived_over(family: Family, runner: Runner) -> Iterator[Finding]:
    """For each derived axis the first combination of sizes that gives too many rows, or none."""
    uses = {rule.axis: sorted(follows(rule)) for rule in runner.buckets}
    if circles(uses) or any(set(names) - set(uses) for names in uses.values()):
        return
    if asks_unkeyed(runner):
        return
    found: set[str] = set()
    own = (rule for rule in runner.buckets if isinstance(rule, ListedBuckets | MaxBucket))
    bases = {rule.axis: ladder(family, rule) for rule in own}
    bases |= {scalar.name: scalar_values(scalar) for scalar in runner.scalars}
    for sizes in islice(product(*bases.values()), MOST_COMBINATIONS):
        rows = dict(zip(bases, sizes, strict=True))
        for rule in follow_order(runner):
            problem = _size_problem(family, rule, rows)
            if problem is None:
                continue
            if rule.axis not in found:
                found.add(rule.axis)
                yield Finding(rule.span, *problem)
            break


def _size_problem(family: Family, rule: BucketRule, rows: dict[str, int]) -> tuple[str, str] | None:
    """What is wrong with the size that ``rows`` give the axis; adds the size to them."""
    axis, names = family.axis(rule.axis), sorted(follows(rule))
    scalars = sorted(scalars_in(rule))
    try:
        size = rows[rule.axis] = derived_rows(rule, rows)
    except MissingValueError:  # only a build knows it
        rows[rule.axis] = 1
        return None
    except EvaluationError as problem:
        help = "change the expression, so that every size it follows gives one"
        return f"buckets of {rule.axis} have no size: {problem}", help
    if 1 <= size <= axis.max:
        return None
    causes = [f"bucket {rows[name]} of {name}" for name in names]
    causes += [f"value {rows[name]} of scalar {name}" for name in scalars]
    gives = f"{' and '.join(causes)} give{'s' * (len(causes) == 1)} {size} rows of {rule.axis}"
    if size < 1:
        return gives, "a bucket has at least one row"
    return (
        f"{gives}, over its capacity {axis.max}",
        f"raise 'max' of {rule.axis} to {size}, "
        f"or shorten the {'buckets' if names else 'values'} of {' or '.join(names or scalars)}",
    )
