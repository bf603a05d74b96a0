"""Staleness: no step shows what an earlier batch, an absent source or another capture left."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

from ppcgc.runtime.collecting import garbage_held
from ppcgc.runtime.errors import PpcgcError
from ppcgc.runtime.verification.cases import Case, another, at_path
from ppcgc.runtime.verification.comparing import differing
from ppcgc.runtime.verification.plans import plan_findings
from ppcgc.runtime.verification.recapturing import attributes_reset, capture_in_order
from ppcgc.runtime.verification.session import Outcome, Session
from ppcgc.runtime.verification.stages import Result, StageUnderTest
from ppcgc.runtime.verification.verdicts import Finding

OLD = "reset what a step leaves behind: a load must write every row of every slot"


def check(session: Session) -> Outcome:
    findings: list[Finding] = []
    steps = 0
    for stage, case in session.one_a_bucket("staleness"):
        findings += _after_others(session, stage, case)
        findings += _absent(stage, case)
        findings += plan_findings(session, stage, case)
        steps += 1
    orders = 0
    if not session.quick:
        with garbage_held():  # collected once: each order captures for itself
            for stage in session.stages:
                for found in _capture_orders(session, stage):
                    findings += found
                    orders += 1
    return Outcome(
        f"{steps} buckets replayed after other batches and without optional sources, "
        f"{orders} capture orders",
        findings,
    )


def _after_others(session: Session, stage: StageUnderTest, case: Case) -> Iterator[Finding]:
    """A full batch then this one; this one, others of all buckets, this one again."""
    expected = stage.replay(case)
    here = [one for one in session.cases if one.padded == case.padded and one is not case]
    others = _beside(session, case)
    second = another(session.subject, case)
    if second is not None:
        here.append(session.with_boundaries(second))
    rounds = [
        ("after other batches of the bucket", here),
        ("after batches of other buckets", others),
    ]
    for when, before in rounds:
        stage.restore()
        for one in before:
            stage.restore_state()
            stage.replay(one)
        stage.restore_state()
        found = differing(expected.outputs, stage.replay(case).outputs)
        for name, how in found.items():
            yield Finding(
                where=stage.where(case), subject=f"output {name}", what=f"{when}: {how}", mend=OLD
            )
        if found:
            return


def _beside(session: Session, case: Case) -> list[Case]:
    """One case of the next smaller and of the next larger bucket."""
    by_bucket = {one.padded: one for one in session.cases}
    buckets = list(by_bucket)
    at = buckets.index(case.padded)
    near = buckets[max(0, at - 1) : at] + buckets[at + 1 : at + 2]
    return [by_bucket[padded] for padded in near]


def _absent(stage: StageUnderTest, case: Case) -> Iterator[Finding]:
    """Each source absent after a batch that had it: filled as declared, or refused."""
    for info, _ in stage.slots(case):
        if info.batch is None or at_path(case.batch, info.batch) is None or info.source != "batch":
            continue
        without = case.changed(info.batch, None)
        stage.restore()
        try:
            fresh = stage.replay(without)
        except PpcgcError:
            continue  # refused, or an eager step that the model refuses
        except (AttributeError, TypeError, RuntimeError):
            continue
        if stage.runner.last_step.choice.padded != case.padded:
            continue  # eager, or a graph of its own: `absent: key`
        subject = f"slot {info.name} ({info.line})"
        if info.absent is None and not _shared(stage, info.batch):
            yield Finding(
                where=stage.where(case),
                subject=subject,
                what="a source that is None was taken without a word",
                mend="raise for an absent source, or declare `absent: {fill: v}`",
            )
            continue
        stage.restore()
        stage.replay(case)
        stage.restore_state()
        for name, how in differing(fresh.outputs, stage.replay(without).outputs).items():
            yield Finding(
                where=stage.where(case),
                subject=subject,
                what=f"absent after a batch that had it, output {name} shows old rows: {how}",
                mend=f"write the declared `absent: {{fill: {info.absent:g}}}` to all live rows",
            )


def _shared(stage: StageUnderTest, path: str) -> bool:
    """Whether another slot of the same source has a value for its absence."""
    return any(info.batch == path and info.absent is not None for info in stage.table)


def _capture_orders(session: Session, stage: StageUnderTest) -> Iterator[list[Finding]]:
    """Every order of three buckets gives the same numbers."""
    cases = list({case.padded: case for case in session.cases}.values())
    cases = cases[:3]  # the cheapest ones show it as well
    if len(cases) < 2:
        return
    expected: dict[Any, Result] = {}
    for case in cases:
        stage.restore()
        expected[case.padded] = stage.replay(case)
    try:
        for order in permutations(cases):
            session.say(f"staleness: {stage}, captured in the order {_order(order)}")
            yield list(_in_order(session, stage, order, expected))
    finally:
        stage.restore()
        attributes_reset(session, stage)
        capture_in_order(stage, sorted(stage.runner.table, reverse=True))
        stage.restore()


def _in_order(
    session: Session, stage: StageUnderTest, order: tuple[Case, ...], expected: dict[Any, Result]
) -> Iterator[Finding]:
    stage.restore()
    attributes_reset(session, stage)
    try:
        capture_in_order(stage, [case.padded for case in order])
    except (PpcgcError, RuntimeError) as problem:
        yield Finding(
            where=str(stage),
            subject=f"capture in the order {_order(order)}",
            what=str(problem),
            mend="give everything its largest size before the first capture; size nothing by the "
            "bucket that happens to come first",
        )
        return
    for case in order:
        stage.restore()
        for name, how in differing(
            expected[case.padded].outputs, stage.replay(case).outputs
        ).items():
            yield Finding(
                where=stage.where(case),
                subject=f"output {name}",
                what=f"captured in the order {_order(order)}: {how}",
                mend="keep nothing from one capture to the next; compute it before",
            )


def _order(order: tuple[Case, ...]) -> str:
    return ", ".join(str(case.padded[0]) for case in order)
