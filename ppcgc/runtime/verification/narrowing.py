"""Poison put everywhere at once, then on one thing at a time to name the one that leaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ppcgc.runtime.errors import PpcgcError
from ppcgc.runtime.verification.cases import Case
from ppcgc.runtime.verification.comparing import differing
from ppcgc.runtime.verification.stages import Result, StageUnderTest, state_name
from ppcgc.runtime.verification.verdicts import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One thing that a probe changes, so that a leak can be narrowed down to it.

    ``late`` says that the step itself resets it before its replay: change it after that.
    """

    subject: str
    change: Callable[[], None]
    mend: str
    late: bool = False


def difference_of(
    stage: StageUnderTest,
    case: Case,
    expected: Result,
    begin: Callable[[], object],
    tolerance: float,
) -> str | None:
    """How the step differs from the expected one; None when live rows are the same."""
    try:
        result = stage.finish(begin())
    except (IndexError, RuntimeError, PpcgcError) as problem:
        return f"the step fails: {str(problem).splitlines()[0]}"
    found = differing(expected.outputs, result.outputs, relative=tolerance)
    if found:
        return "; ".join(f"output {name}: {how}" for name, how in found.items())
    for name, tensor in expected.state.items():
        rows = stage.written_rows(case, state_name(name))
        if rows is not None:
            live = sorted(rows[0])
            left, right = {name: tensor[live]}, {name: result.state[name][live]}
            for how in differing(left, right, relative=tolerance).values():
                return f"{name}, rows of live tokens: {how}"
    return None


def narrowed(
    stage: StageUnderTest,
    case: Case,
    run: Callable[[Sequence[Target]], str | None],
    targets: list[Target],
    traced: Callable[[Sequence[Target]], str] | None,
) -> Iterator[Finding]:
    """All targets at once; on a difference each alone, to name the one that leaks."""
    together = run(targets) if targets else None
    if together is None:
        return
    alone = [(target, how) for target in targets if (how := run([target])) is not None]
    if not alone:  # only the combination leaks
        names = ", ".join(target.subject for target in targets)
        yield Finding(where=stage.where(case), subject=names, what=together, mend=targets[0].mend)
    for target, how in alone:
        line = traced([target]) if traced is not None else ""
        yield Finding(
            where=stage.where(case),
            subject=target.subject,
            what=f"what its rows beyond live hold reaches live rows: {how}{line}",
            mend=target.mend,
        )
