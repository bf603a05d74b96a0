"""Dispatch: words that contradict each other or can never apply."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.ir import AbsentEager, Family, ListedBuckets, Runner
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import bucket_of, lowered


@checked("PPC611", "max-padding-below-one", cases=(40,))
def max_padding_below_one(family: Family) -> Iterator[Finding]:
    """`max_padding` is below 1.

    **What.** It bounds padded / live, which is never below 1. 1.0 replays exact sizes only.

    **Why it hurts.** No step would ever replay.
    Seen in: lightseekorg/tokenspeed#936.

    **Bad**

    ```yaml
    dispatch: {max_padding: {tokens: 0.5}}
    ```

    **Good**

    ```yaml
    dispatch: {max_padding: {tokens: 1.5}}
    ```
    """
    for runner in family.runners:
        for axis, ratio in runner.dispatch.max_padding:
            if not ratio >= 1:
                yield Finding(
                    runner.dispatch.span_of("max_padding"),
                    f"max_padding of {axis} is {ratio:g}; padded / live is at least 1",
                    "write a ratio of 1.0 or more",
                )


@checked("PPC612", "dispatch-axis")
def dispatch_axis(family: Family) -> Iterator[Finding]:
    """A word of dispatch names an axis that the runner does not choose sizes for.

    **What.** `max_padding` and `always_replay_below` speak of axes in the runner's `buckets`.

    **Why it hurts.** The bound would never apply.

    **Bad**

    ```yaml
    buckets: {requests: [1, 2, 4]}
    dispatch: {max_padding: {tokens: 2.0}}
    ```

    **Good**

    ```yaml
    buckets: {requests: [1, 2, 4]}
    dispatch: {max_padding: {requests: 2.0}}
    ```
    """
    for runner in family.runners:
        for word, axis in _words(runner):
            if bucket_of(runner, axis) is None:
                yield Finding(
                    runner.dispatch.span_of(word),
                    f"{word} names axis '{axis}', for which runner '{runner.name}' has no buckets",
                    f"remove it, or add '{axis}' to 'buckets'",
                )


def _words(runner: Runner) -> Iterator[tuple[str, str]]:
    yield from (("max_padding", axis) for axis, _ in runner.dispatch.max_padding)
    yield from (("always_replay_below", axis) for axis, _ in runner.dispatch.always_replay_below)


@checked("PPC613", "always-replay-below-idle", cases=(39,), warning=True)
def always_replay_below_idle(family: Family) -> Iterator[Finding]:
    """`always_replay_below` can never decide anything.

    **What.** It excuses live counts below it from `max_padding` of the same axis, and counts
    start at 0.

    **Why it hurts.** The author expects small batches to replay and nothing arranges it.
    Seen in: sgl-project/sglang#40253.

    **Bad**

    ```yaml
    dispatch: {always_replay_below: {tokens: 16}}
    ```

    **Good**

    ```yaml
    dispatch: {max_padding: {tokens: 2.0}, always_replay_below: {tokens: 16}}
    ```
    """
    for runner in family.runners:
        bounded = {axis for axis, _ in runner.dispatch.max_padding}
        for axis, below in runner.dispatch.always_replay_below:
            reason = _idle_reason(lowered(family, runner), runner, axis, below, bounded)
            if reason is not None:
                yield Finding(
                    runner.dispatch.span_of("always_replay_below"),
                    f"always_replay_below {below} of {axis} has no effect: {reason}",
                    "change or remove it",
                )


def _idle_reason(
    family: Family, runner: Runner, axis: str, below: int, bounded: set[str]
) -> str | None:
    if axis not in bounded:
        return f"no max_padding bounds {axis}"
    if below == 0:
        return "no count is below 0"
    bucket = bucket_of(runner, axis)
    largest = family.axis(axis).max
    if isinstance(bucket, ListedBuckets) and bucket.sizes:
        largest = max(bucket.sizes)
    if below > largest:
        return f"every count up to the largest bucket {largest} is below it, so max_padding is idle"
    return None


@checked("PPC614", "graph-required-and-eager", cases=(101,))
def graph_required_and_eager(family: Family) -> Iterator[Finding]:
    """A graph is required, and an eager step is asked for.

    **What.** `require_graph: true` makes eager steps errors; `over_capacity: eager`,
    `absent: eager`, `uneven: eager` and `eager_when` choose them.

    **Why it hurts.** The two sentences contradict each other, and the step that meets both is
    the busiest one.
    Seen in: sgl-project/sglang#23842, vllm-project/vllm#23739.

    **Bad**

    ```yaml
    dispatch: {require_graph: true, over_capacity: eager}
    ```

    **Good**

    ```yaml
    dispatch: {require_graph: true, over_capacity: error}
    ```
    """
    for runner in family.runners:
        if not runner.dispatch.require_graph:
            continue
        if runner.dispatch.over_capacity == "eager":
            yield Finding(
                runner.dispatch.span_of("over_capacity"),
                f"runner '{runner.name}' requires a graph and runs eagerly over capacity",
                "write over_capacity: error, or drop require_graph",
            )
        if runner.uneven == "eager":
            yield Finding(
                runner.span_of("uneven"),
                f"runner '{runner.name}' requires a graph and runs uneven batches eagerly",
                "write uneven: error, or drop require_graph",
            )
        for condition in runner.eager_when:
            yield Finding(
                condition.span,
                f"runner '{runner.name}' requires a graph and runs eagerly for reason "
                f"'{condition.reason}'",
                "remove the condition, or drop require_graph",
            )
        for slot in runner.slots:
            if isinstance(slot.absent, AbsentEager):
                yield Finding(
                    slot.span_of("absent"),
                    f"runner '{runner.name}' requires a graph and runs eagerly "
                    f"without slot '{slot.qualified}'",
                    "write absent: error or {fill: v}, or drop require_graph",
                )
