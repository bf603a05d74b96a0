"""Parity: a replay against the stage's own Python, and all stages against the unsplit model."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ppcgc.runtime.verification import unsplit
from ppcgc.runtime.verification.cases import Case
from ppcgc.runtime.verification.comparing import Tensors, bits, blanked, differing, listed
from ppcgc.runtime.verification.session import Outcome, Session
from ppcgc.runtime.verification.stages import Result, StageUnderTest, state_name
from ppcgc.runtime.verification.verdicts import Finding


def check(session: Session) -> Outcome:
    """Every case on every stage; declared state compared too."""
    findings: list[Finding] = []
    count = 0
    for stage, case in session.each("parity"):
        count += 1
        replayed = stage.replay(case)
        stage.restore()
        padded = stage.eager_at_padded_shape(case)
        found = list(_at_padded_shape(stage, case, padded, replayed))
        findings += found
        if not found:
            stage.restore()
            findings += _at_live_shape(
                session, stage, case, stage.eager_at_live_shape(case), replayed
            )
    tolerance = tolerance_of(session)
    evidence = (
        f"{count} replays equal eager at the padded shape to the bit, at the live shape to "
        f"{tolerance:g}"
    )
    if session.whole is not None and not findings:
        findings += unsplit.findings_of(session, session.whole, tolerance)
        evidence += f"; {len(session.cases)} steps of all stages equal the unsplit model"
    return Outcome(evidence, findings)


def tolerance_of(session: Session) -> float:
    if session.subject.tolerance is not None:
        return session.subject.tolerance
    return 1e-4 if session.runners[0].dtype in (torch.float32, torch.float64) else 5e-2


def _at_padded_shape(
    stage: StageUnderTest, case: Case, eager: Result, replayed: Result
) -> Iterator[Finding]:
    wrong = differing(eager.outputs, replayed.outputs)
    for name, how in wrong.items():
        yield _finding(stage, case, f"output {name}", how)
    if wrong:
        return
    for name, tensor in eager.state.items():
        reserved = sorted(stage.reserved_rows(case, state_name(name)))
        apart = differing(
            {name: blanked(bits(tensor), reserved)},
            {name: blanked(bits(replayed.state[name]), reserved)},
        )
        if apart:
            yield _finding(stage, case, name, apart[name])


def _finding(stage: StageUnderTest, case: Case, subject: str, how: str) -> Finding:
    return Finding(
        where=stage.where(case),
        subject=subject,
        what=f"the replay is not what the model computes at the same shape: {how}"
        f"{frozen_line(stage, case)}",
        mend="what the forward decides in Python is frozen at capture: decide on the device, or "
        "make it part of the graph key",
    )


def frozen_line(stage: StageUnderTest, case: Case) -> str:
    """Where a second capture records another op than the graph holds; CPU graphs only."""
    graph = stage.runner.table[case.padded].graph
    if not hasattr(graph, "listing"):
        return ""
    stage.restore()
    stage.begin(case)
    again = stage.runner.backend.capture(stage.runner.body(stage.runner.table[case.padded]))
    then, now = graph.listing(), again.listing()
    again.close()
    for left, right in zip(then, now, strict=False):
        if left != right:
            return f"; the graph holds `{left.strip()}`, now the model does `{right.strip()}`"
    if len(then) != len(now):
        more = max(then, now, key=len)[min(len(then), len(now))]
        return f"; the graph has {len(then)} steps, now {len(now)}: `{more.strip()}`"
    return ""


def _at_live_shape(
    session: Session, stage: StageUnderTest, case: Case, eager: Result, replayed: Result
) -> Iterator[Finding]:
    tolerance = tolerance_of(session)
    for name, how in differing(eager.outputs, replayed.outputs, relative=tolerance).items():
        yield _apart(stage, case, f"output {name}", how)
    yield from _no_numbers(stage, case, eager.outputs)
    for name, tensor in eager.state.items():
        rows = stage.written_rows(case, state_name(name))
        if rows is None:
            continue
        mine = sorted(rows[0])
        left, right = {name: tensor[mine]}, {name: replayed.state[name][mine]}
        for how in differing(left, right, relative=tolerance).values():
            yield _apart(stage, case, f"{name}, rows of live tokens", how)


def _no_numbers(stage: StageUnderTest, case: Case, outputs: Tensors) -> Iterator[Finding]:
    """Live rows that hold NaN are equal to anything that holds NaN there."""
    for name, tensor in outputs.items():
        rows = bits(tensor.isnan()).any(dim=1).nonzero().flatten().tolist()
        if rows:
            yield Finding(
                where=stage.where(case),
                subject=f"output {name}",
                what=f"live rows {listed(rows)} hold NaN, eagerly at their own shape too",
                mend="look for 0 / 0, or for a softmax of nothing but -inf, in the model; where "
                "NaN is meant, give the stage an output that has none",
            )


def _apart(stage: StageUnderTest, case: Case, subject: str, how: str) -> Finding:
    return Finding(
        where=stage.where(case),
        subject=subject,
        what=f"the padded step is not the live one: {how}",
        mend="where `padding` fails too, mask by the live counts in the model, not by shapes; else "
        "look for what is kept from one step to the next (a plan, a value by size), or for a row "
        "that another request's counts decide",
    )
