"""Padding: what rows beyond live hold reaches no live row.

Note [no single probe sees all]
    Old bytes before the load show a reset that is left out. Other legal values in the padded
    rows after the load show a model that mixes rows. Large values in rows of the state that no
    request owns show a mask without lengths. Each fault escapes the other probes.

Note [poison of the state is large, not NaN]
    A correct masked attention still multiplies a masked row by 0, and 0 * NaN is NaN. A large
    finite number passes there and shows everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import torch
from torch import Tensor

from ppcgc.runtime.slot_info import Role, SlotInfo
from ppcgc.runtime.verification import unfilled
from ppcgc.runtime.verification.cases import Case
from ppcgc.runtime.verification.comparing import differing
from ppcgc.runtime.verification.narrowing import Target, difference_of, narrowed
from ppcgc.runtime.verification.owned import owned_rows
from ppcgc.runtime.verification.session import Outcome, Session, holds_numbers
from ppcgc.runtime.verification.stages import Result, StageUnderTest, state_name
from ppcgc.runtime.verification.tracing import live_part, trace
from ppcgc.runtime.verification.verdicts import Finding

LARGE = 1e4
Owned: TypeAlias = Mapping[str, set[int] | None]  # rows by state; None where nobody says


def check(session: Session) -> Outcome:
    """Compare live outputs and live state with and without poison, then narrow down."""
    findings: list[Finding] = []
    unprobed: set[str] = set()
    probes = 0
    for stage, case in session.one_a_bucket("padding"):
        tolerance = session.subject.padding_tolerance
        _clean(stage)
        expected = stage.finish(stage.begin(case))
        unsteady = _again(stage, case, expected, tolerance)
        if unsteady:
            findings.append(unsteady)
            continue
        owned = _owned(stage, case)
        unprobed |= {state for state, rows in owned.items() if rows is None}
        for poison in POISONS:
            probes += 1
            found = list(_old_bytes(stage, case, expected, poison, tolerance))
            findings += found
            if found:
                break
        findings += _after_load(stage, case, expected, tolerance, owned)
        findings += unfilled.findings(stage, case, expected.outputs, tolerance)
        probes += 3
    if not any(case.is_padded for case in session.cases):
        what = "every batch that was given fills its bucket: nothing is known of padded rows"
        return Outcome(what, findings, skipped=True)
    evidence = f"{probes} poisons of rows beyond live left live outputs and state alone"
    if unprobed:
        names = ", ".join(sorted(unprobed))
        evidence += (
            f"; not probed: rows of {names} that nobody owns, for no slot says which a batch reads "
            "(`owned` of the subject does)"
        )
    return Outcome(evidence, findings)


def _clean(stage: StageUnderTest) -> None:
    """The state as it was, and nothing of an earlier replay among the intermediates.

    A probe must not see what an earlier one has left: see ``_old_bytes``.
    """
    stage.restore()
    blank = getattr(stage.runner.backend, "blank_pool", None)
    if blank is not None:
        blank()


def _again(stage: StageUnderTest, case: Case, expected: Result, tolerance: float) -> Finding | None:
    """The same step twice more: whatever a probe changed, it would get the blame."""
    for _ in range(2):
        _clean(stage)
        how = difference_of(stage, case, expected, lambda: stage.begin(case), tolerance)
        if how is not None:
            return Finding(
                where=stage.where(case),
                subject="the step itself",
                what=f"gives other numbers when it is run again: {how}",
                mend="a hook, the caller or the model keeps something from one step to the next, "
                "or draws at random: make each step from its own batch and state alone",
            )
    return None


# ---------------------------------------------------------------- before the load

POISONS = ("nan", "large", "small")


def poison_value(tensor: Tensor, poison: str) -> float | int | bool:
    """A value for every cell. Indices leave their range on a CPU alone: a GPU would die of it."""
    if tensor.dtype == torch.bool:
        return poison != "small"
    if tensor.is_floating_point():
        return {"nan": float("nan"), "large": LARGE, "small": -3.0}[poison]
    if tensor.device.type != "cpu":
        return 1
    return {"nan": -1, "large": 2**30 if tensor.element_size() > 2 else 99, "small": 1}[poison]


def _old_bytes(
    stage: StageUnderTest, case: Case, expected: Result, poison: str, tolerance: float
) -> Iterator[Finding]:
    """All slots hold poison before the load, the shared pool holds NaN before the replay."""

    def run(targets: Sequence[Target]) -> str | None:
        _clean(stage)
        for target in targets:
            target.change()
        return difference_of(stage, case, expected, lambda: stage.begin(case), tolerance)

    yield from narrowed(stage, case, run, list(_before_load_targets(stage, case, poison)), None)


def _before_load_targets(stage: StageUnderTest, case: Case, poison: str) -> Iterator[Target]:
    for info, tensor in stage.slots(case):
        if info.source in ("batch", "caller", "hook") and info.padding != "keep":
            yield _fill(
                f"slot {info.name} ({info.line})",
                tensor,
                poison,
                f"its rows past live keep old bytes: reset them, `padding: {info.padding}` says so",
            )
    for key, tensor in stage.boundary(case).items():
        yield _fill(
            f"boundary.{key}",
            tensor,
            poison,
            "reset the rows past live inside the captured region",
        )
    backend = stage.runner.backend
    if hasattr(backend, "poison_pool"):
        yield Target(
            subject="shared pool of intermediates",
            change=backend.poison_pool,
            mend="an op reads memory that the replay did not write: fill `torch.empty` tensors",
        )


def _fill(subject: str, tensor: Tensor, poison: str, mend: str) -> Target:
    def change() -> None:
        tensor.fill_(poison_value(tensor, poison))

    return Target(subject=subject, change=change, mend=mend)


# ---------------------------------------------------------------- after the load


def _after_load(
    stage: StageUnderTest, case: Case, expected: Result, tolerance: float, owned: Owned
) -> Iterator[Finding]:
    """Legal values in padded rows and workspaces; large ones in rows of the state not owned."""
    for targets in (
        list(_tail_targets(stage, case)),
        list(_workspace_targets(stage)),
        list(_state_targets(stage, owned)),
    ):

        def run(chosen: Sequence[Target]) -> str | None:
            _clean(stage)
            step = stage.begin(case)
            with _changed(stage, case, chosen):
                return difference_of(stage, case, expected, lambda: step, tolerance)

        def traced(chosen: Sequence[Target]) -> str:
            return _first_op(stage, case, chosen)

        yield from narrowed(stage, case, run, targets, traced)


@contextmanager
def _changed(stage: StageUnderTest, case: Case, targets: Sequence[Target]) -> Iterator[None]:
    """The targets changed in a loaded step: now, or when the step has padded the late ones."""
    for target in targets:
        if not target.late:
            target.change()

    def change_late() -> None:
        for target in targets:
            if target.late:
                target.change()

    with stage.before_replay(case, change_late):
        yield


def _tail_targets(stage: StageUnderTest, case: Case) -> Iterator[Target]:
    for info, tensor in stage.slots(case):
        if info.source not in ("batch", "caller", "hook") or len(info.axes) != 1:
            continue
        keeps = info.padding == "keep"
        if info.role not in (Role.DATA, Role.INDEX) and not keeps:
            continue  # offsets, lengths, masks and write indices say what padding is
        live = stage.runner.inputs.shapes(case.live)[info.name][info.dim]
        if not 0 < live < tensor.shape[info.dim]:
            continue
        yield Target(
            subject=f"slot {info.name} ({info.line})",
            change=_other_tail(info, tensor, live),
            mend="declare `padding: zero` for it: what it keeps reaches live rows"
            if keeps
            else "a live row sees padded ones: mask them by the live count",
            late=info.source != "batch",
        )


def _other_tail(info: SlotInfo, tensor: Tensor, live: int) -> Callable[[], None]:
    def change() -> None:
        rows = tensor.narrow(info.dim, 0, live)
        tail = tensor.narrow(info.dim, live, tensor.shape[info.dim] - live)
        if tensor.is_floating_point():
            tail.fill_(LARGE)
        else:  # live values are legal wherever they stand
            largest = rows.amax() if tensor.dtype != torch.bool else rows.any()
            tail.fill_(largest)

    return change


def _workspace_targets(stage: StageUnderTest) -> Iterator[Target]:
    written = {info.name for info in stage.table if info.source == "graph" and not info.mutable}
    for name in sorted(written):
        for found, tensor in stage.runner.arena.named(f"slot.{name}"):
            if not found:
                yield _fill(f"slot {name}", tensor, "large", "write a workspace before reading it")


def _state_targets(stage: StageUnderTest, owned: Owned) -> Iterator[Target]:
    for name, tensor in stage.state.items():
        rows = owned.get(state_name(name))
        if rows is not None and holds_numbers(tensor):
            yield Target(
                subject=f"{name}, rows that no live request owns",
                change=_flood(tensor, rows),
                mend="mask by lengths: a request may read its own rows of the state only",
            )


def _owned(stage: StageUnderTest, case: Case) -> Owned:
    """Of each state that holds numbers."""
    states = {state_name(name) for name, tensor in stage.state.items() if holds_numbers(tensor)}
    return {state: owned_rows(stage, case, state) for state in states}


def _flood(tensor: Tensor, owned: set[int]) -> Callable[[], None]:
    rows = [row for row in range(tensor.shape[0]) if row not in owned]

    def change() -> None:
        tensor[rows] = LARGE if tensor.is_floating_point() else torch.iinfo(tensor.dtype).max

    return change


def _first_op(stage: StageUnderTest, case: Case, targets: Sequence[Target]) -> str:
    """The first op whose live part differs between a clean and a poisoned eager run."""
    traces = []
    for chosen in ([], targets):
        stage.restore()
        stage.begin(case)
        try:
            with _changed(stage, case, chosen):
                traces.append(trace(stage, case))
        except (IndexError, RuntimeError):
            return ""
    for (op, left), (_, right) in zip(*traces, strict=False):
        cut = [[live_part(x, case.live, case.padded) for x in side] for side in (left, right)]
        named = [{str(n): x for n, x in enumerate(side)} for side in cut]
        if differing(named[0], named[1]):
            return f"; first in {op}"
    return ""
