"""The graphs of a runner: how many there are, and whether their limits can be told."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ppcgc.ir import Family
from ppcgc.plan.reach import SearchError
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import (
    ladder,
    scalar_values,
)
from ppcgc.validate.rules.tables import known_late, table_of


@checked("PPC324", "too-many-graphs", cases=(43,))
def too_many_graphs(family: Family) -> Iterator[Finding]:
    """A runner would capture more graphs than `max_graphs`.

    **What.** Each reachable combination of sizes, and of the values of scalars in the key, is
    one graph on each stage.

    **Why it hurts.** Capture time and memory grow with the product of the lists.
    Seen in: pytorch/pytorch#119640, pytorch/pytorch#131387.

    **Bad**

    ```yaml
    buckets: {tokens: [8, 16, 24, 32, 40, 48, 56, 64], requests: [1, 2, 3, 4, 5, 6, 7, 8, 9]}
    ```

    **Good**

    ```yaml
    buckets: {tokens: [8, 16, 24, 32, 40, 48, 56, 64], requests: max}
    ```
    """
    for runner in family.runners:
        counts = [(rule.axis, len(ladder(family, rule))) for rule in runner.buckets]
        counts += [(scalar.name, len(scalar_values(scalar))) for scalar in runner.scalars]
        product = [(axis, count) for axis, count in counts if count > 1]
        table = table_of(family, runner)
        if table is None and known_late(family, runner):
            continue  # the build counts them
        known = isinstance(table, tuple)
        graphs = len(table) if isinstance(table, tuple) else prod(count for _, count in product)
        if graphs > runner.max_graphs:
            shown = " x ".join(f"{count} {axis}" for axis, count in product)
            reachable = f", {graphs} of them reachable" if known else ""
            yield Finding(
                runner.span,
                f"runner '{runner.name}' has {shown} buckets{reachable}: "
                f"{graphs} graphs, at most {runner.max_graphs}",
                "shorten a list, use max or {equals: e} on one axis, or raise 'max_graphs'",
            )


@checked("PPC325", "limit-too-intricate")
def limit_too_intricate(family: Family) -> Iterator[Finding]:
    """Nobody can tell within reason whether a batch meets the limits.

    **What.** For each combination of sizes ppcgc looks for live counts within the limits: they
    prune what no batch reaches, and a graph is captured with a legal batch. The search is
    exact, and gives up after some ten thousand steps.

    **Why it hurts.** A graph captured with an illegal batch may fault; one that is left out by
    mistake is missing in service.

    **Bad**

    ```yaml
    limits: ["tokens * tokens % 1000003 == 17"]
    ```

    **Good**

    ```yaml
    limits: ["tokens % 16 == 0"]
    ```
    """
    for runner in family.runners:
        problem = table_of(family, runner)
        if isinstance(problem, SearchError):
            yield Finding(
                runner.limits[0].span if runner.limits else runner.span,
                f"whether a batch meets the limits of runner '{runner.name}' is not known: "
                f"{problem}",
                "use linear conditions, or check this one where batches are made",
            )
