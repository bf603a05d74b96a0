"""Inputs: every tensor that the captured region reads is declared somewhere."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.runtime.verification.cases import Case
from ppcgc.runtime.verification.memory_map import MemoryMap, Use, uses_of
from ppcgc.runtime.verification.session import Outcome, Session
from ppcgc.runtime.verification.stages import StageUnderTest
from ppcgc.runtime.verification.verdicts import Finding


def check(session: Session) -> Outcome:
    """Slots, parameters, registered buffers, state, boundary, outputs; all else is named."""
    findings: list[Finding] = []
    seen = 0
    for stage, case in session.one_a_bucket("inputs"):
        stage.begin(case)
        uses = uses_of(stage, case)
        seen += len(uses)
        findings += _undeclared(stage, case, uses)
        findings += _escaped(stage, case)
    return Outcome(f"{seen} accesses to memory older than the graph, all declared", findings)


def _undeclared(stage: StageUnderTest, case: Case, uses: list[Use]) -> Iterator[Finding]:
    memory = MemoryMap(stage, case)
    told: set[str] = set()
    for use in uses:
        if use.start == use.end or memory.find(use.start, use.end) is not None:
            continue
        if use.place in told:
            continue
        told.add(use.place)
        does = "writes" if use.written else "reads"
        if memory.is_block(use.start):
            yield Finding(
                where=stage.where(case),
                subject="host block",
                what=f"{use.op} {does} bytes that belong to no slot of this bucket, at {use.place}",
                mend="read slots through the bucket's own view, as the forward is given it",
            )
        else:
            yield Finding(
                where=stage.where(case),
                subject=f"unregistered tensor {use.dtype} {list(use.shape)}",
                what=f"{use.op} {does} it at {use.place}",
                mend="declare it as a slot or state, or register it: nn.Parameter, "
                "register_buffer; a constant too (no torch.tensor in the forward)",
            )


def _escaped(stage: StageUnderTest, case: Case) -> Iterator[Finding]:
    graph = stage.runner.table[case.padded].graph
    for escaped in getattr(graph, "escaped", ()):
        yield Finding(
            where=stage.where(case),
            subject=f"tensor kept from the capture {escaped.dtype} {list(escaped.shape)}",
            what=f"{escaped.op} made it at {escaped.line}, and the model holds it still",
            mend="make it before the capture (register_buffer), or keep nothing across forwards: "
            "only this graph's replays write it",
        )
