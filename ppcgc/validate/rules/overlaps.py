"""Runners that run at the same time."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.diagnostics.model import Related
from ppcgc.ir import Family
from ppcgc.validate.rules.checks import Finding, checked


@checked("PPC650", "one-sided-overlap", cases=(73,))
def one_sided_overlap(family: Family) -> Iterator[Finding]:
    """A runner overlaps itself, or one that does not overlap it.

    **What.** `overlaps` names other runners, and each of those names this one.

    **Why it hurts.** Runners that are captured with `share=True` lie in the same memory unless
    they overlap. Where only one of the two says so, whoever reads the other believes its inputs
    safe while they are overwritten.
    Seen in: sgl-project/sglang#19507.

    **Bad**

    ```yaml
    runners:
      decode: {overlaps: [draft]}
      draft: {}
    ```

    **Good**

    ```yaml
    runners:
      decode: {overlaps: [draft]}
      draft: {overlaps: [decode]}
    ```
    """
    runners = {runner.name: runner for runner in family.runners}
    for runner in family.runners:
        for name in dict.fromkeys(runner.overlaps):
            if name == runner.name:
                message = f"runner '{name}' overlaps itself: its next step writes its own buffers"
                yield Finding(runner.span_of("overlaps"), message, f"remove '{name}'")
            elif runner.name not in runners[name].overlaps:
                yield Finding(
                    runner.span_of("overlaps"),
                    f"runner '{runner.name}' overlaps '{name}', which does not overlap it",
                    f"add 'overlaps: [{runner.name}]' to runner '{name}'",
                    (Related(runners[name].span, "the other runner"),),
                )
