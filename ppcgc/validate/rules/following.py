"""Axes that equal others: a batch never has more rows than the bucket that it chooses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from ppcgc.expr.evaluate import EvaluationError
from ppcgc.expr.tree import Ref, Symbol
from ppcgc.ir import Axis, ComputedCount, EqualsBuckets, Family, FreeScalar, Runner
from ppcgc.plan.buckets import combinations, space_of
from ppcgc.plan.intervals import Interval
from ppcgc.plan.reach import SearchError, Space, fullest, patience
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import MOST_COMBINATIONS, follows, scalars_in, scalars_of
from ppcgc.validate.rules.settling import settled, settled_axes
from ppcgc.validate.rules.tables import is_sound

_ANY = 2**62  # beyond every count


@checked("PPC318", "size-below-count", cases=(15, 29))
def size_below_count(family: Family) -> Iterator[Finding]:
    """An axis that equals others can have more live rows than its bucket, or fewer than none.

    **What.** `equals` gives the live rows from live counts and the padded rows from padded
    ones: where more of one means less of the other, or a remainder counts, the live rows can be
    more than the padded ones. Only batches within `limits` count.

    **Why it hurts.** A batch of 3 requests takes the bucket of 4, and brings more rows than the
    graph was captured for.
    Seen in: vllm-project/vllm#15269, xLLM-AI/xllm#1939.

    **Bad**

    ```yaml
    buckets: {requests: [4, 8], tokens: {equals: 16 - requests}}
    ```

    **Good**

    ```yaml
    buckets: {requests: [4, 8], tokens: {equals: requests * 4}}
    ```
    """
    for runner in family.runners:
        known, axes = settled(family, runner), settled_axes(family)
        equals = [rule for rule in known.buckets if isinstance(rule, EqualsBuckets)]
        if not equals or not is_sound(known, axes):
            continue
        for rule in equals:
            found = _first_misfit(known, {axis.name: axis for axis in axes}, rule)
            if found is not None:
                yield found


def _first_misfit(runner: Runner, axes: dict[str, Axis], rule: EqualsBuckets) -> Finding | None:
    """The first bucket for which a legal batch has live rows that it has no room for."""
    cuts = patience()
    here = Ref(Symbol.LIVE, rule.axis)
    try:
        for padded, served in islice(combinations(runner, axes), MOST_COMBINATIONS):
            space = space_of(runner, axes, served)
            for wrong in ((padded[rule.axis] + 1, _ANY), (-_ANY, -1)):
                counts = fullest(_where(space, runner, here, wrong), cuts)
                if counts is not None:
                    return _misfit(runner, rule, counts, padded)
    except (EvaluationError, SearchError):
        return None  # other rules say so
    return None


def _where(space: Space, runner: Runner, here: Ref, wrong: Interval) -> Space:
    """The batches of a bucket in which one axis has a wrong count."""
    equal = {Ref(Symbol.LIVE, r.axis) for r in runner.buckets if isinstance(r, EqualsBuckets)}
    following = tuple(
        (ref, expr, wrong if ref == here else (-_ANY, _ANY) if ref in equal else legal)
        for ref, expr, legal in space.following
    )
    return replace(space, following=following)


def _misfit(
    runner: Runner, rule: EqualsBuckets, counts: dict[Ref, int], padded: dict[str, int]
) -> Finding:
    names, scalars = sorted(follows(rule)), sorted(scalars_in(rule))
    batch = [f"{counts[Ref(Symbol.LIVE, name)]} live {name}" for name in names]
    batch += [f"{name} {counts[Ref(Symbol.SCALAR, name)]}" for name in scalars]
    bucket = " and ".join(f"{name} {padded[name]}" for name in (*names, *scalars))
    live = counts[Ref(Symbol.LIVE, rule.axis)]
    return Finding(
        rule.span,
        f"a batch of {' and '.join(batch)} has {live} live {rule.axis}, "
        f"its bucket {bucket} has {padded[rule.axis]}",
        "use an expression that grows with what it follows, say {padded: e} where the axis has a "
        "count of its own, or rule such batches out in 'limits'",
    )


@checked("PPC623", "scalar-decides-size", cases=(79,))
def scalar_decides_size(family: Family) -> Iterator[Finding]:
    """A size or a limit names a scalar that has no graphs of its own, or is computed itself.

    **What.** Scalars in `equals`, `padded` and `limits` have `const`, `key` or `buckets`, and
    their value comes from the batch.

    **Why it hurts.** How many rows a graph has is fixed when it is captured: a number that is no
    part of its key could be another one at each step. One that is computed from live counts
    would be asked for before they are known.
    Seen in: huggingface/transformers#45323.

    **Bad**

    ```yaml
    scalars: {num_draft: {source: batch.num_draft}}
    # in a runner
    buckets: {requests: [1, 2, 4], tokens: {equals: requests * scalar.num_draft}}
    ```

    **Good**

    ```yaml
    scalars: {num_draft: {source: batch.num_draft, key: [2, 4]}}
    # in a runner
    buckets: {requests: [1, 2, 4], tokens: {equals: requests * scalar.num_draft}}
    ```
    """
    for runner in family.runners:
        scalars = {scalar.name: scalar for scalar in runner.scalars}
        places = [(r.span, scalars_in(r), f"the size of {r.axis}") for r in runner.buckets]
        places += [(x.span, scalars_of(x.expr), f"the limit '{x.text}'") for x in runner.limits]
        for span, names, what in places:
            for name in sorted(names & scalars.keys()):
                scalar = scalars[name]
                if isinstance(scalar.mode, FreeScalar):
                    fault, help = "is no part of the graph key", "give it const, key or buckets"
                elif isinstance(scalar.source, ComputedCount):
                    fault, help = "is computed from live counts", "write its expression here"
                else:
                    continue
                yield Finding(span, f"{what} names scalar '{name}', which {fault}", help)
