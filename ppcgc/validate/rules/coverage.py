"""What the buckets of a runner reach together: coverage, gaps, limits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ppcgc.expr.tree import Ref, Symbol
from ppcgc.ir import Family, ListedBuckets
from ppcgc.plan.intervals import impossible
from ppcgc.plan.reach import SearchError
from ppcgc.validate.rules.buckets import mended
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import (
    in_order,
    listed,
    lowered,
    scalar_box,
)
from ppcgc.validate.rules.settling import settled
from ppcgc.validate.rules.tables import table_of

WIDEST_GAP = 4.0  # padded / live that is worth a warning where no max_padding bounds it


@checked("PPC320", "capacity-uncovered", cases=(25, 26, 27, 28, 38))
def capacity_uncovered(family: Family) -> Iterator[Finding]:
    """The largest bucket is below the capacity, and nothing says what larger batches do.

    **What.** A list reaches `max` of its axis, or `over_capacity` is stated.

    **Why it hurts.** The busiest batches run eagerly, or raise, and nobody chose so: service
    slows exactly under load.
    Seen in: sgl-project/sglang#21005, vllm-project/vllm#40734, vllm-project/vllm#37865,
    vllm-project/vllm-ascend#16049, sgl-project/sglang#33483, lightseekorg/tokenspeed#611.

    **Bad**

    ```yaml
    axes: {requests: {max: 100, live: batch.num_requests}}
    # in a runner
    buckets: {requests: [16, 32, 64, 96]}
    ```

    **Good**

    ```yaml
    buckets: {requests: [16, 32, 64, 96, 100]}
    ```
    """
    for runner in family.runners:
        if "over_capacity" in runner.dispatch.spans:
            continue
        for rule in runner.buckets:
            axis = lowered(family, runner).axis(rule.axis)
            if isinstance(rule, ListedBuckets) and 0 < max(rule.sizes, default=0) < axis.max:
                largest = max(rule.sizes)
                yield Finding(
                    rule.size_spans[rule.sizes.index(largest)] if rule.size_spans else rule.span,
                    f"buckets of {rule.axis} end at {largest}, its capacity is {axis.max}: "
                    f"{largest + 1} to {axis.max} have no graph",
                    f"write {mended(rule.sizes, axis)}, lower 'max', "
                    "or state dispatch: {over_capacity: eager or error}",
                )


@checked("PPC321", "bucket-gap", cases=(39, 40), warning=True)
def bucket_gap(family: Family) -> Iterator[Finding]:
    """Two neighbouring buckets are so far apart that batches between them lose.

    **What.** A batch just above one bucket is padded to the next. The ratio is compared with
    `max_padding` of the axis, or with 4 where none is stated.

    **Why it hurts.** 3,208 tokens padded to 8,192 cost more than an eager step; with
    `max_padding` they never replay at all.
    Seen in: sgl-project/sglang#31487, lightseekorg/tokenspeed#936.

    **Bad**

    ```yaml
    buckets: {tokens: [2816, 3072, 8192]}
    dispatch: {max_padding: {tokens: 2.0}}
    ```

    **Good**

    ```yaml
    buckets: {tokens: [2816, 3072, 4096, 6144, 8192]}
    dispatch: {max_padding: {tokens: 2.0}}
    ```
    """
    for runner in family.runners:
        stated = dict(runner.dispatch.max_padding)
        for rule in runner.buckets:
            if not isinstance(rule, ListedBuckets) or not in_order(rule.sizes):
                continue
            limit = stated.get(rule.axis, WIDEST_GAP)
            for number, (low, high) in enumerate(pairwise(rule.sizes), start=1):
                if limit >= 1 and high > limit * (low + 1):
                    yield _gap(rule, number, limit, rule.axis in stated)


def _gap(rule: ListedBuckets, number: int, limit: float, stated: bool) -> Finding:
    low, high = rule.sizes[number - 1], rule.sizes[number]
    last = int((high - 1) / limit)
    fate = f"over max_padding {limit:g}: they run eagerly" if stated else "that many rows"
    return Finding(
        rule.size_spans[number] if number < len(rule.size_spans) else rule.span,
        f"{low + 1} to {max(last, low + 1)} {rule.axis} are padded to {high}, "
        f"up to {high / (low + 1):.1f} times {fate}",
        f"add a bucket between {low} and {high}",
    )


@checked("PPC322", "limit-unmet")
def limit_unmet(family: Family) -> Iterator[Finding]:
    """No batch can meet a limit, or all of them together.

    **What.** Within the capacities of the axes the condition is never true; or each is, and no
    bucket has a batch that meets all.

    **Why it hurts.** Every bucket would be pruned and every step refused.

    **Bad**

    ```yaml
    axes: {tokens: {max: 64, live: batch.num_tokens}}
    # in a runner
    limits: ["tokens > 64"]
    ```

    **Good**

    ```yaml
    limits: ["tokens >= 1"]
    ```
    """
    box = {Ref(Symbol.LIVE, axis.name): (0, axis.max) for axis in family.axes}
    for runner in family.runners:
        limits = settled(family, runner).limits
        alone = [each for each in limits if impossible(each.expr, box | scalar_box(runner))]
        if not alone and table_of(family, runner) == ():
            yield Finding(
                limits[0].span if limits else runner.span,
                f"no batch of runner '{runner.name}' meets "
                + listed(f"'{limit.text}'" for limit in limits)
                + " in any bucket",
                "change a limit, a capacity or the buckets",
            )
        for limit in alone:
            yield Finding(
                limit.span,
                f"no batch can meet '{limit.text}' within the capacities "
                + listed(f"{axis.name} {axis.max}" for axis in family.axes),
                "change the limit or a capacity",
            )


@checked("PPC323", "bucket-unreachable", cases=(31,))
def bucket_unreachable(family: Family) -> Iterator[Finding]:
    """The limits leave no batch for a listed bucket.

    **What.** A size is reachable when some live counts within `limits` and within the other
    axes' buckets need it.

    **Why it hurts.** Its graph would be captured with an illegal batch, or never: a list means
    what it says, so a size that is dropped in silence is a mistake.
    Seen in: sgl-project/sglang#30206.

    **Bad**

    ```yaml
    axes: {requests: {max: 2, live: batch.num_requests}, tokens: {max: 8192, live: batch.n}}
    # in a runner
    buckets: {tokens: [2048, 8192], requests: max}
    limits: ["tokens <= requests * 2048"]
    ```

    **Good**

    ```yaml
    buckets: {tokens: [2048, 4096], requests: max}
    limits: ["tokens <= requests * 2048"]
    dispatch: {over_capacity: error}
    ```
    """
    for runner in family.runners:
        table = table_of(family, runner)
        if isinstance(table, SearchError) or not table:
            continue
        for place, rule in enumerate(runner.buckets):
            reached = {bucket.padded[place] for bucket in table}
            for number, size in enumerate(rule.sizes if isinstance(rule, ListedBuckets) else ()):
                if size not in reached and isinstance(rule, ListedBuckets):
                    yield Finding(
                        rule.size_spans[number] if rule.size_spans else rule.span,
                        f"no batch within the limits needs bucket {size} of {rule.axis}",
                        f"write [{listed(each for each in rule.sizes if each in reached)}], "
                        "or change the limits",
                    )
