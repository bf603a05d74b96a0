"""The unsplit model: stages, one after another, give what one stage of all layers gives.

Note [what a stage alone cannot show]
    A stage that hands over two keys in each other's place, or whose later stages start a layer too
    late, computes the same in a replay and eagerly. Only the model without cuts tells.

Note [state of the unsplit model]
    Each of its states has the tensors of the stages in order, as a list of one tensor a layer has
    where stages own layers. It gets the stages' numbers before each step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torch import Tensor

from ppcgc.runtime.verification.cases import Case
from ppcgc.runtime.verification.comparing import differing
from ppcgc.runtime.verification.session import Session
from ppcgc.runtime.verification.stages import StageUnderTest, state_name
from ppcgc.runtime.verification.verdicts import Finding

_MEND = (
    "let each stage run its own layers, give every key under its name, and read what it received; "
    "the first stage whose output is wrong is the place to look"
)


def findings_of(session: Session, whole: StageUnderTest, tolerance: float) -> Iterator[Finding]:
    """Outputs and rows of live tokens in the state, for every case."""
    pairs = _paired(session, whole)
    if pairs is None:
        yield _not_paired(session, whole)
        return
    for case in session.cases:
        session.say(f"parity: the unsplit model, {whole.where(case)}")
        yield from _step(session, whole, case, pairs, tolerance)


Pair = tuple[StageUnderTest, str, str]  # a stage, the name of its tensor, the name in the whole


def _paired(session: Session, whole: StageUnderTest) -> list[Pair] | None:
    """The tensors of the stages with those of the whole; None where the lists do not line up."""
    pairs: list[Pair] = []
    for state in dict.fromkeys(map(state_name, whole.state)):
        theirs = [name for name in whole.state if state_name(name) == state]
        mine = [
            (stage, name)
            for stage in session.stages
            for name in stage.state
            if state_name(name) == state
        ]
        shapes = [stage.state[name].shape for stage, name in mine]
        if shapes != [whole.state[name].shape for name in theirs]:
            return None
        pairs += [(*own, name) for own, name in zip(mine, theirs, strict=True)]
    return pairs


def _not_paired(session: Session, whole: StageUnderTest) -> Finding:
    mine = sum(len(stage.state) for stage in session.stages)
    return Finding(
        where=str(whole),
        subject="state of the unsplit model",
        what=f"its {len(whole.state)} tensors are not the {mine} of the stages, one after another",
        mend="build it with the stages' tensors in order: one list a state, layer after layer",
    )


def _step(
    session: Session, whole: StageUnderTest, case: Case, pairs: list[Pair], tolerance: float
) -> Iterator[Finding]:
    whole.restore()
    for stage in session.stages:
        stage.restore()
    for stage, mine, theirs in pairs:
        whole.state[theirs].copy_(stage.state[mine])
    expected = whole.replay(replace(case, incoming=(None,)))
    outputs = session.through(case)[1][-1]
    for name, how in differing(expected.outputs, outputs, relative=tolerance).items():
        yield _finding(session, case, f"output {name}", how)
    for stage, mine, theirs in pairs:
        rows = stage.written_rows(case, state_name(mine))
        if rows is None:
            continue
        live = sorted(rows[0])
        sides: tuple[Tensor, Tensor] = (expected.state[theirs][live], stage.state[mine][live])
        for how in differing({mine: sides[0]}, {mine: sides[1]}, relative=tolerance).values():
            yield _finding(session, case, f"{mine} of stage {stage.number}, live rows", how)


def _finding(session: Session, case: Case, subject: str, how: str) -> Finding:
    last = session.stages[-1]
    return Finding(
        where=f"{len(session.stages)} stages, {last.where(case)}",
        subject=subject,
        what=f"the stages one after another are not the unsplit model: {how}",
        mend=_MEND,
    )
