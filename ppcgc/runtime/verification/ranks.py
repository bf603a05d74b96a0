"""Ranks: stages and other ranks, as built here in one process, agree before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from ppcgc.runtime.errors import PpcgcError
from ppcgc.runtime.verification.cases import with_group_counts
from ppcgc.runtime.verification.session import Outcome, Session
from ppcgc.runtime.verification.verdicts import Finding

MOST_CHOICES = 2000


def check(session: Session) -> Outcome:
    """Fingerprints, bucket lists, sizes and choices of all stages and of ``subject.peers``."""
    findings: list[Finding] = []
    own: Sequence[Any] = session.runners
    rows = [
        ("stage", own),
        *((f"rank {n}, stage", row) for n, row in enumerate(session.subject.peers, 1)),
    ]
    grid = list(live_counts(own[0]))
    compared = 0
    for title, runners in rows:
        session.say(f"ranks: {title}s")
        for number, runner in enumerate(runners):
            if runner is own[0]:
                continue
            compared += 1
            findings += _disagreements(f"{title} {number}", own[0], runner, grid)
    if not compared:
        return Outcome("one stage on one rank", findings, skipped=True)
    return Outcome(f"{compared + 1} runners agree on {len(grid)} choices", findings)


def _disagreements(
    where: str, mine: Any, other: Any, grid: list[tuple[int, ...]]
) -> Iterator[Finding]:
    facts = (
        ("fingerprint", "generate every rank's runners from one spec"),
        ("buckets", "give every rank the same bucket list"),
        ("axes", "generate every rank's runners from one spec"),
        ("dims", "build every rank from the same config and sizes"),
        ("dtype", "build every rank with the same dtype"),
    )
    for fact, mend in facts:
        left, right = getattr(mine, fact), getattr(other, fact)
        left, right = (_plain(value) for value in (left, right))
        if left != right:
            yield Finding(
                where=where,
                subject=fact,
                what=f"{_short(right)}, stage 0 of rank 0 has {_short(left)}",
                mend=mend,
            )
    captured = [
        sorted(p for p, b in runner.table.items() if b.graph is not None)
        for runner in (mine, other)
    ]
    if other.captured and captured[0] != captured[1]:
        yield Finding(
            where=where,
            subject="captured buckets",
            what=f"{_short(captured[1])}, stage 0 of rank 0 has {_short(captured[0])}",
            mend="a bucket that one rank could not capture is taken away from all",
        )
    for live in grid:
        left, right = _choice(mine, live), _choice(other, live)
        if left != right:
            yield Finding(
                where=where,
                subject="choice",
                what=f"live {live} runs {right}, on stage 0 of rank 0 {left}",
                mend="choose by counts that every rank has alike",
            )
            return


def _plain(value: Any) -> Any:
    return list(value) if hasattr(value, "keys") else value


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _choice(runner: Any, live: tuple[int, ...]) -> str:
    try:
        choice = runner.choose(live)
    except PpcgcError as problem:
        return f"to {type(problem).__name__}"
    return "eagerly" if choice.padded is None else f"in bucket {tuple(choice.padded)}"


def live_counts(runner: Any) -> Iterator[tuple[int, ...]]:
    """Live counts at and around every padded size, of all axes."""
    kind = type(next(iter(runner.buckets)))
    columns = []
    for at, column in enumerate(zip(*runner.buckets, strict=True)):
        steps = (-1, 0, 1) if at < len(runner.axes) else (0,)  # scalars stand for themselves
        near = {size + step for size in column for step in steps}
        columns.append(sorted(size for size in near if size > 0 or size in column))
    for number, live in enumerate(product(*columns)):
        if number == MOST_CHOICES:
            return
        yield with_group_counts(runner, kind(*live))
