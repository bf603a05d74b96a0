"""Choice: each step goes to a bucket that exists, holds its rows, and is the smallest that does.

Note [what the choice is held against]
    Everything here follows from the bucket table and the live counts, never from the generated
    choice. Axes whose count no batch states follow the others, so they are left out; of axes that
    a group shares, the largest count decides. A scalar has a graph for its value, or for the next
    larger one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ppcgc.runtime.choice import Reason
from ppcgc.runtime.errors import CapacityError, PpcgcError
from ppcgc.runtime.verification.ranks import live_counts
from ppcgc.runtime.verification.session import Outcome, Session
from ppcgc.runtime.verification.verdicts import Finding

_MEND = "generate the runner again; if its choice was edited by hand, drop the edit"


def check(session: Session) -> Outcome:
    """Every stage, at and around every padded size."""
    findings: list[Finding] = []
    tried = 0
    for stage in session.stages:
        session.say(f"choice: {stage}")
        for live in live_counts(stage.runner):
            tried += 1
            wrong = _wrong(stage.runner, live)
            if wrong is not None:
                findings.append(
                    Finding(
                        where=str(stage), subject=f"live {_shown(live)}", what=wrong, mend=_MEND
                    )
                )
                break
    return Outcome(f"{tried} choices take the smallest bucket that holds the step", findings)


def _wrong(runner: Any, live: Any) -> str | None:
    """What is wrong with the choice for these live counts; None where nothing is."""
    stated = list(_stated(runner))
    fitting = [padded for padded in runner.buckets if _holds(padded, live, stated)]
    first: Any = min(fitting, key=lambda padded: [padded[at] for at, _ in stated], default=None)
    axes = range(len(runner.axes))
    wasted = first is not None and all(first[at] >= live[at] for at in axes)
    try:
        choice = runner.choose(live)
    except CapacityError:
        return f"is refused, bucket {_shown(first)} holds it" if wasted else None
    except PpcgcError:
        return None  # no step may have such a batch
    if choice.padded is None:
        if choice.reason is Reason.NO_KEY:
            first = next((one for one in fitting if _has_values(runner, one, live)), None)
            wasted = first is not None
        elif choice.reason is not Reason.OVER_CAPACITY:
            return None
        if not wasted:
            return None
        return f"runs eagerly ({choice.reason.value}), bucket {_shown(first)} holds it"
    chosen = tuple(choice.padded)
    if choice.padded not in runner.buckets:
        return f"goes to bucket {_shown(chosen)}, which is none of the runner's"
    if choice.padded not in fitting:
        return f"goes to bucket {_shown(chosen)}, which is too small for it"
    smaller = [padded for padded in fitting if _is_smaller(padded, chosen, stated)]
    if smaller:
        return f"goes to bucket {_shown(chosen)}, though {_shown(smaller[0])} holds it"
    return None


def _stated(runner: Any) -> Iterator[tuple[int, int]]:
    """Columns of a bucket that a batch states, each with the column of live counts to hold."""
    fields: Sequence[str] = next(iter(runner.buckets))._fields
    for at, name in enumerate(fields):
        if name in runner.counts:
            of_group = f"{name}_most"
            yield at, fields.index(of_group if of_group in fields else name)


def _has_values(runner: Any, padded: Any, live: Any) -> bool:
    """Whether the bucket is for these very values of the scalars."""
    axes = set(runner.axes)
    return all(
        padded[at] == live[of] for at, of in _stated(runner) if padded._fields[at] not in axes
    )


def _holds(padded: Any, live: Any, stated: Sequence[tuple[int, int]]) -> bool:
    return all(padded[at] >= live[of] for at, of in stated)


def _is_smaller(padded: Any, chosen: tuple[int, ...], stated: Sequence[tuple[int, int]]) -> bool:
    sizes = [(padded[at], chosen[at]) for at, _ in stated]
    return all(mine <= other for mine, other in sizes) and any(a < b for a, b in sizes)


def _shown(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes))
