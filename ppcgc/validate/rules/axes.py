"""Axes: live counts that have a value, in groups of ranks and with live 0."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.ir import Family, Runner
from ppcgc.plan.counts import counted_from
from ppcgc.resolve.sizes import circles
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import (
    follows,
    live_axes,
)


@checked("PPC301", "circular-live-counts")
def circular_live_counts(family: Family) -> Iterator[Finding]:
    """Live counts are computed from each other in a circle.

    **What.** An axis may count by an expression over other axes, never over itself; `equals`
    of a runner counts too.

    **Why it hurts.** None of the counts would ever have a value.

    **Bad**

    ```yaml
    axes:
      tokens: {max: 64, live: live.requests * 4}
      requests: {max: 16, live: live.tokens // 4}
    ```

    **Good**

    ```yaml
    axes:
      tokens: {max: 64, live: live.requests * 4}
      requests: {max: 16, live: batch.num_requests}
    ```
    """
    uses = {axis.name: sorted(live_axes(family, axis.name)) for axis in family.axes}
    for circle in circles(uses):
        shown = " -> ".join([*circle, circle[0]])
        yield Finding(
            family.axis(circle[0]).span,
            f"the live count of '{circle[0]}' depends on itself: {shown}",
            "count one of them by 'live: batch.<path>'",
        )
        return
    for runner in family.runners:
        yield from _circular_counts(family, runner)


def _circular_counts(family: Family, runner: Runner) -> Iterator[Finding]:
    """Circles that ``equals`` of a runner closes."""
    rules = {rule.axis: rule for rule in runner.buckets}
    needs = {axis: sorted(counted_from(rules[axis], family.axis(axis))) for axis in rules}
    follow = {axis: sorted(follows(rules[axis])) for axis in rules}
    for circle in [] if circles(follow) else circles(needs):
        shown = " -> ".join([*circle, circle[0]])
        yield Finding(
            rules[circle[0]].span,
            f"in runner '{runner.name}' the live count of '{circle[0]}' depends on itself: {shown}",
            "give one of them a list or max, and 'live: batch.<path>'",
        )
