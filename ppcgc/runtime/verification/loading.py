"""Loading: every slot against its policy, rows of the state written, neighbours left alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ppcgc.runtime.errors import PpcgcError
from ppcgc.runtime.slot_info import SlotInfo
from ppcgc.runtime.verification.cases import Case, cases_of, untried
from ppcgc.runtime.verification.comparing import (
    bits,
    changed_rows,
    difference,
    listed,
    same_bits,
    value_difference,
)
from ppcgc.runtime.verification.neighbours import neighbour_findings
from ppcgc.runtime.verification.poison import POISON_BYTE, poison_bytes
from ppcgc.runtime.verification.reordering import reordering_findings
from ppcgc.runtime.verification.session import Outcome, Session, holds_numbers
from ppcgc.runtime.verification.spec_rules import Unread, expected_rows
from ppcgc.runtime.verification.stages import StageUnderTest, state_name
from ppcgc.runtime.verification.verdicts import Finding
from ppcgc.runtime.verification.written import written_findings


def check(session: Session) -> Outcome:
    """Poison all slots, load once, compare each slot with a second reading of its policy."""
    findings: list[Finding] = []
    loads, slots = 0, 0
    unread: dict[str, str] = {}
    written: dict[int, set[str]] = {}  # tensors of the state, by stage
    for stage, case in session.each("loading"):
        _poison(stage, case)
        before = {name: tensor.clone() for name, tensor in stage.state.items()}
        step = stage.begin(case)
        loads += 1
        found: list[Finding] = []
        for info, tensor in stage.slots(case):
            slots += 1
            try:
                found += _slot_findings(stage, case, info, tensor)
            except Unread as why:
                unread[info.name] = str(why)
        found += _count_findings(stage, case)
        if not found:  # else a wrong index could end the process
            found += _step_findings(stage, case, step, before)
            written.setdefault(stage.number, set()).update(_changed(before, stage.state))
        if not found:
            found += written_findings(stage, case, unread)
        findings += found
    left_out = ""
    if not findings:
        findings = [
            finding
            for stage in session.stages
            for finding in _never_written(stage, written.get(stage.number, set()))
        ]
    if not findings:
        findings, left_out = neighbour_findings(session)
    if not findings:
        findings, in_order = reordering_findings(session)
        left_out = "; ".join(filter(None, (left_out, in_order)))
    reasons = (f"{name} ({why})" for name, why in sorted(unread.items()))
    skipped = f"; not read again: {', '.join(reasons)}" if unread else ""
    skipped += f"; {left_out}" if left_out else ""
    if not session.quick and (missing := untried(session.subject, session.cases)):
        names = ", ".join(map(_sizes, missing))
        skipped += f"; no batch was given that replays {names}: nothing is known of them"
    return Outcome(f"{slots} slots in {loads} loads read again from the spec{skipped}", findings)


def _sizes(padded: Any) -> str:
    """``bucket tokens=16 requests=4``."""
    sizes = (f"{axis}={rows}" for axis, rows in zip(padded._fields, padded, strict=True))
    return f"bucket {' '.join(sizes)}"


def first_loads(session: Session) -> list[Finding]:
    """What the loads of the first stage leave in its slots; nothing is run.

    For a step that fails on what was loaded: the slot says more than the op that tripped on it.
    """
    findings: list[Finding] = []
    stage = session.stages[0]
    for case in cases_of(session.subject, quick=session.quick):
        stage.restore()
        _poison(stage, case)
        try:
            stage.runner.begin(case.batch)
            for info, tensor in stage.slots(case):
                findings += _slot_findings(stage, case, info, tensor)
        except (PpcgcError, Unread):
            continue
    stage.restore()
    return findings


def _poison(stage: StageUnderTest, case: Case) -> None:
    """Every byte that a load or a receiver must write."""
    for info, tensor in stage.slots(case):
        if info.source in ("batch", "compute") and info.padding != "keep":
            poison_bytes(tensor)
    for tensor in stage.boundary(case).values():
        poison_bytes(tensor)


def _slot_findings(
    stage: StageUnderTest, case: Case, info: SlotInfo, tensor: Tensor
) -> Iterator[Finding]:
    rows = expected_rows(stage.runner, info, case)
    found = tensor.detach().cpu()
    live_rows = rows.live_part.shape[info.dim] if info.axes else 0
    live = found.narrow(info.dim, 0, live_rows) if info.axes else found
    if not same_bits(rows.live_part, live):
        yield Finding(
            where=stage.where(case),
            subject=f"slot {info.name} ({info.line})",
            what=f"live rows are not the source's: {difference(rows.live_part, live)}",
            mend="generate the runner again; if its load was edited by hand, drop the edit"
            f"{_or_by_others(stage)}",
        )
    if rows.tail is None or not info.axes:
        return
    tail = found.narrow(info.dim, live_rows, found.shape[info.dim] - live_rows)
    if not same_bits(rows.tail, tail):
        yield Finding(
            where=stage.where(case),
            subject=f"slot {info.name} ({info.line})",
            what=f"rows past live are not `padding: {info.padding}`: "
            f"{value_difference(rows.tail, tail)}",
            mend="reset the rows past live in every load, as the declared padding does",
        )


def _or_by_others(stage: StageUnderTest) -> str:
    """Who else may have written a slot by the end of ``begin``."""
    others = [
        *(["a hook's `load`"] if stage.runner.hook_calls.states else []),
        *(["`before_finish`"] if stage.subject.before_finish is not None else []),
    ]
    return f"; or {' or '.join(others)} wrote it: each writes its own slots alone" if others else ""


def _step_findings(
    stage: StageUnderTest, case: Case, step: Any, before: dict[str, Tensor]
) -> Iterator[Finding]:
    """What the step does with what was loaded and received; ``before`` is the state until then."""
    late: list[Finding] = []

    def look_again() -> None:
        for info, tensor in stage.slots(case):
            with suppress(Unread):
                late.extend(_slot_findings(stage, case, info, tensor))

    with stage.before_replay(case, look_again):
        stage.finish(step)
    for finding in late:
        yield replace(
            finding,
            what=f"it was loaded, and when the replay begins {finding.what}",
            mend="a hook's `plan`, or the caller, wrote it after the load: they may write their "
            "own slots alone",
        )
    yield from _boundary_findings(stage, case)
    yield from _write_findings(stage, case, before)


def _count_findings(stage: StageUnderTest, case: Case) -> Iterator[Finding]:
    counts = stage.runner.table[case.padded].live_counts.tolist()
    live = list(case.live[: len(counts)])
    if counts != live:
        yield Finding(
            where=stage.where(case),
            subject="live counts",
            what=f"the device holds {counts}, the batch has {live}",
            mend="write the live counts in every load: receivers reset padded rows by them",
        )


def _boundary_findings(stage: StageUnderTest, case: Case) -> Iterator[Finding]:
    incoming = case.incoming[stage.number]
    for key, tensor in stage.boundary(case).items():
        given = incoming[key]
        dim = next((d for d in range(given.dim()) if given.shape[d] != tensor.shape[d]), None)
        if dim is None:
            continue
        tail = tensor.narrow(dim, given.shape[dim], tensor.shape[dim] - given.shape[dim])
        if _holds_old_bytes(tail):
            yield Finding(
                where=stage.where(case),
                subject=f"boundary.{key}",
                what=f"rows past the {given.shape[dim]} received ones still hold old bytes when "
                "the forward reads them: the reset is left out",
                mend="reset received rows past live inside the captured region, as the "
                "boundary's padding says",
            )


def _holds_old_bytes(tail: Tensor) -> bool:
    """Whether any cell is poison still. A bool has no third value: there all cells must be."""
    if tail.dtype == torch.bool:
        return tail.numel() > 0 and bool(tail.all())
    cells = bits(tail).reshape(-1, tail.element_size())
    return bool((cells == POISON_BYTE).all(dim=1).any())


def _write_findings(
    stage: StageUnderTest, case: Case, before: dict[str, Tensor]
) -> Iterator[Finding]:
    for state in sorted({state_name(name) for name in stage.state}):
        rows = stage.written_rows(case, state)
        if rows is None:
            continue
        live, padding = rows
        mine = [name for name in stage.state if state_name(name) == state]
        changed = {name: set(changed_rows(before[name], stage.state[name])) for name in mine}
        for name, found in changed.items():
            if found - live - padding:
                yield Finding(
                    where=stage.where(case),
                    subject=name,
                    what=f"rows {listed(sorted(found - live - padding))} were written, which "
                    f"neither live rows nor padding own{_written_by(stage, case, state)}",
                    mend="write only the rows that the write index names, and let its padding "
                    "name a reserved row",
                )
        for name in mine:
            yield from _not_finite(stage, case, name, sorted(padding - live))
        missed = live - set().union(*changed.values())
        if missed:
            yield Finding(
                where=stage.where(case),
                subject=f"state {state}",
                what=f"rows {listed(sorted(missed))} of live tokens were not "
                f"written{_written_by(stage, case, state)}",
                mend="write every live row of the write index",
            )


def _changed(before: dict[str, Tensor], after: dict[str, Tensor]) -> set[str]:
    """The tensors whose bytes a step changed."""
    return {name for name, tensor in before.items() if not same_bits(tensor, after[name])}


def _never_written(stage: StageUnderTest, written: set[str]) -> Iterator[Finding]:
    """Tensors of a state, one for each layer of the stage, that no step wrote.

    A state that has tensors of other layers too, or of some layers alone, does not tell.
    """
    layers = stage.runner.layers
    for state in sorted({state_name(name) for name in stage.state}):
        mine = [name for name in stage.state if state_name(name) == state]
        numbers = all(holds_numbers(stage.state[name]) for name in mine)  # else noise is not in it
        left = [name for name in mine if name not in written]
        if not numbers or not stage.names_rows(state) or len(mine) != layers.end - layers.start:
            continue
        if left and len(left) < len(mine):
            yield Finding(
                where=str(stage),
                subject=", ".join(left),
                what=f"no step wrote it; {listed(sorted(set(mine) - set(left)))} were written",
                mend="let each layer write the tensor of its own place in the state, or leave out "
                "of the state what no layer of the stage writes",
            )


def _not_finite(
    stage: StageUnderTest, case: Case, name: str, reserved: list[int]
) -> Iterator[Finding]:
    """Reserved rows that cannot be read any more: a masked read multiplies them by 0."""
    tensor = stage.state[name]
    if not tensor.is_floating_point() or tensor.element_size() < 2:  # of 8 bits torch cannot tell
        return
    rows = [row for row in reserved if row < tensor.shape[0]]
    broken = [row for row in rows if not bool(tensor[row].isfinite().all())]
    if broken:
        yield Finding(
            where=stage.where(case),
            subject=name,
            what=f"padded rows left infinities or NaN in the reserved rows {listed(broken)}: a "
            "live row that reads them with weight 0 becomes NaN",
            mend="keep padded rows finite: a softmax over nothing is NaN, let each padded row see "
            "itself",
        )


def _written_by(stage: StageUnderTest, case: Case, state: str) -> str:
    names = [
        info.name
        for info in stage.table
        if info.of_state == state and info.role.value == "write_index"
    ]
    return f" (by slot {', '.join(names)})"
