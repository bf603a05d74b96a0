"""Purity: a forward leaves nothing behind but its outputs and its rows of the state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from ppcgc.runtime.addresses import model_tensors
from ppcgc.runtime.backends.model_line import ModelLine, line_of_call
from ppcgc.runtime.capturing import label
from ppcgc.runtime.slot_info import SlotInfo
from ppcgc.runtime.verification.cases import Case
from ppcgc.runtime.verification.comparing import changed_rows, listed, same_bits
from ppcgc.runtime.verification.memory_map import MemoryMap, uses_of
from ppcgc.runtime.verification.recapturing import attributes_of, modules_of
from ppcgc.runtime.verification.session import Outcome, Session
from ppcgc.runtime.verification.stages import StageUnderTest, state_name
from ppcgc.runtime.verification.verdicts import Finding

_PYTHON = "Python runs at capture only: move it to the caller, or onto the device as state"


def check(session: Session) -> Outcome:
    findings: list[Finding] = [
        _registered(str(stage), name)
        for stage in session.stages
        for name in _new_tensors(stage, session.tensors_before_capture.get(stage.number))
    ]
    runs = 0
    for stage, case in session.one_a_bucket("purity"):
        runs += 1
        findings += _attributes(stage, case)
        stage.restore()
        findings += _writes(stage, case)
        stage.restore()
        findings += _replay_writes(stage, case)
        stage.restore()
        findings += _warm_up(stage, case)
        stage.restore()
        findings += _random(stage, case)
    return Outcome(
        f"{runs} forwards set no attribute, wrote no immutable slot, drew no random number",
        findings,
    )


def _attributes(stage: StageUnderTest, case: Case) -> Iterator[Finding]:
    """Attributes set, counters moved, lists and dicts that grew."""
    stage.begin(case)
    before = attributes_of(stage.runner.model)
    tensors = {name for name, _ in model_tensors(stage.runner.model)}
    with attributes_watched(stage.runner.model) as lines:
        stage.run_body(case)
    for name in _new_tensors(stage, tensors):
        yield _registered(stage.where(case), name)
    after = attributes_of(stage.runner.model)
    for module, held in after.items():
        for name, value in held.items():
            old = before.get(module, {}).get(name, _ABSENT)
            path = ".".join(part for part in (module, name) if part)
            line = lines.get((module, name))
            if not _same(old, value) or line is not None:
                yield Finding(
                    where=stage.where(case),
                    subject=f"attribute {path}",
                    what=f"the forward set it{f' at {line}' if line else ''}{_from_to(old, value)}",
                    mend=_PYTHON,
                )


def _new_tensors(stage: StageUnderTest, before: set[str] | None) -> list[str]:
    """Parameters and buffers that were not there; none where nobody knows."""
    if before is None:
        return []
    return [name for name, _ in model_tensors(stage.runner.model) if name not in before]


def _registered(where: str, name: str) -> Finding:
    return Finding(
        where=where,
        subject=name,
        what="the forward registered it: what the first run put there, graphs read for ever",
        mend="register it where the model is made; what depends on a step is computed in the step",
    )


_ABSENT = object()


def _same(old: object, new: object) -> bool:
    if old is new:
        return True
    if isinstance(old, Tensor) or isinstance(new, Tensor) or type(old) is not type(new):
        return False
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        return len(old) == len(new) and all(map(_same, old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_same(old[key], new[key]) for key in old)
    return bool(old == new)


def _from_to(old: object, new: object) -> str:
    plain = (int, float, str, bool)
    if isinstance(new, plain) and isinstance(old, plain):
        return f", from {old!r} to {new!r}"
    if isinstance(new, list | dict) and isinstance(old, list | dict):
        return f", from {len(old)} to {len(new)} items"
    return ""


@contextmanager
def attributes_watched(model: Any) -> Iterator[dict[tuple[str, str], ModelLine]]:
    """Lines of the model that set an attribute of a module, by module and attribute."""
    lines: dict[tuple[str, str], ModelLine] = {}
    paths = {id(module): path for path, module in modules_of(model).items()}
    own = nn.Module.__setattr__

    def note(self: nn.Module, name: str, value: Any) -> None:
        if id(self) in paths:
            lines[paths[id(self)], name] = line_of_call()
        own(self, name, value)

    nn.Module.__setattr__ = note  # type: ignore[method-assign]  # put back below
    try:
        yield lines
    finally:
        nn.Module.__setattr__ = own  # type: ignore[method-assign]  # the class's own


def _writes(stage: StageUnderTest, case: Case) -> Iterator[Finding]:
    """Slots, parameters and buffers that the captured region writes, with the op and line."""
    stage.begin(case)
    memory = MemoryMap(stage, case)
    told: set[str] = set()
    for use in uses_of(stage, case):
        region = memory.find(use.start, use.end)
        if not use.written or region is None or region.writable or region.name in told:
            continue
        told.add(region.name)
        yield Finding(
            where=stage.where(case),
            subject=f"{region.kind} {region.name}",
            what=f"{use.op} writes it in place at {use.place}",
            mend="declare the slot `mutable: true`, or work on a copy"
            if region.kind == "slot"
            else "work on a copy, or declare it as state",
        )


def _replay_writes(stage: StageUnderTest, case: Case) -> Iterator[Finding]:
    """Immutable slots and undeclared buffers whose bytes a replay changed, by whatever kernel."""
    step = stage.begin(case)
    slots: list[tuple[SlotInfo, Tensor, Tensor]] = []
    received = [(key, rows, rows.clone()) for key, rows in stage.received(case)]

    def note() -> None:  # not before: the step itself pads what hooks and the caller wrote
        slots.extend((info, tensor, tensor.clone()) for info, tensor in stage.slots(case))

    buffers = [
        (name, tensor, tensor.clone())
        for name, tensor in stage.memory()
        if name.startswith("buffer ") and not _is_state(tensor, stage)
    ]
    with stage.before_replay(case, note):
        stage.finish(step)
    for info, tensor, before in slots:
        if not (info.mutable or info.source == "graph") and not same_bits(before, tensor):
            yield Finding(
                where=stage.where(case),
                subject=f"slot {info.name} ({info.line})",
                what=f"a replay changed rows {listed(changed_rows(before, tensor))} of it",
                mend="declare the slot `mutable: true`, or work on a copy",
            )
    for key, rows, before in received:
        if not stage.subject.boundary_in_place and not same_bits(before, rows):
            yield Finding(
                where=stage.where(case),
                subject=f"boundary.{key}",
                what=f"a replay changed rows {listed(changed_rows(before, rows))} of what it had "
                f"received{_last_write(stage, case, key)}",
                mend="work on a copy: in place it changes the sender's tensor, and a second step "
                "with it gives other numbers. Where a fused kernel has to, say "
                "Subject(boundary_in_place=True) and give each boundary to one step",
            )
    for name, tensor, before in buffers:
        if not same_bits(before, tensor):
            yield Finding(
                where=stage.where(case),
                subject=name,
                what="a replay changed it: each replay moves it on",
                mend="declare it as state, or keep the count in the caller",
            )


def _last_write(stage: StageUnderTest, case: Case, key: str) -> str:
    """Who wrote a received key last; its padded rows are reset before the model has it."""
    stage.restore()
    stage.begin(case)
    memory = MemoryMap(stage, case)
    last = ""
    for read in stage.watched(case).reads:
        region = memory.find(read.address, read.address + read.nbytes)
        if read.written and region is not None and (region.kind, region.name) == ("boundary", key):
            last = f"; last by {read.op}"
    return last


def _is_state(buffer: Tensor, stage: StageUnderTest) -> bool:
    """Whether a buffer of the model is declared state, or lies in it: a cache is often both."""
    start, end = buffer.data_ptr(), buffer.data_ptr() + buffer.nbytes
    return any(
        state.data_ptr() <= start and end <= state.data_ptr() + state.nbytes
        for state in stage.state.values()
    )


def _warm_up(stage: StageUnderTest, case: Case) -> Iterator[Finding]:
    """Warm-up and capture write reserved rows of the state alone."""
    runner, bucket = stage.runner, stage.runner.table[case.padded]
    before = {name: tensor.clone() for name, tensor in stage.state.items()}
    runner.load_for_capture(bucket)
    runner.backend.warm_up(runner.body(bucket))
    for name, tensor in stage.state.items():
        state = state_name(name)
        reserved = stage.reserved_rows(case, state)
        rows = [row for row in changed_rows(before[name], tensor) if row not in reserved]
        if rows and not stage.names_rows(state):
            yield Finding(
                where=label(runner, bucket),
                subject=f"state {state}",
                what=f"it is written, rows {listed(rows)} at warm-up, and no slot names its rows",
                mend=f"give the slot that names them `role: write_index, of: state.{state}`; a "
                "second slot of the same source where it names another state's rows too",
            )
            return
        if rows:
            yield Finding(
                where=label(runner, bucket),
                subject=name,
                what=f"warm-up wrote rows {listed(rows)}, which belong to requests",
                mend="write the state by the write index only: at warm-up and capture it names "
                "reserved rows",
            )


def _random(stage: StageUnderTest, case: Case) -> Iterator[Finding]:
    """Numbers drawn from the default generator."""
    stage.begin(case)
    for op in stage.watched(case).random[:1]:
        yield Finding(
            where=stage.where(case),
            subject="random numbers",
            what=f"{op.name} draws from the default generator at {op.line}",
            mend="draw outside of the stage and pass the numbers in a slot, or give the op a "
            "generator that is registered with the graph; switch dropout off (model.eval())",
        )
