"""Addresses: everything that the graphs read is where it was at capture."""

from __future__ import annotations

from ppcgc.runtime.addresses import Move, moves, places_of
from ppcgc.runtime.verification.session import Outcome, Session
from ppcgc.runtime.verification.verdicts import Finding


def check(session: Session) -> Outcome:
    """Pointer, shape, stride and dtype of parameters, buffers, slots, state and outputs."""
    findings: list[Finding] = []
    count = 0
    for stage in session.stages:
        session.say(f"addresses: {stage}")
        then = stage.runner.places_at_capture
        count += len(then)
        findings += [_moved(str(stage), move) for move in moves(then, places_of(stage.runner))]
    return Outcome(f"{count} tensors are where they were at capture", findings)


def _moved(where: str, move: Move) -> Finding:
    return Finding(
        where=where,
        subject=move.name,
        what=str(move),
        mend="copy new values into the old tensor in place, or capture again "
        "(check_addresses(policy='recapture'))",
    )
