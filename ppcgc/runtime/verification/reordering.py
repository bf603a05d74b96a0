"""Reordering: the requests of a batch in another order give the same numbers, each at its place.

What one request holds may reach another through its counts as well: a length, a position or an
adapter that is read at the first request, or a number that is a row's own. Other values of those
would be other batches, so the requests change places instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any, TypeAlias

import torch
from torch import Tensor

from ppcgc.runtime.slot_info import Role, SlotInfo
from ppcgc.runtime.verification.by_request import Requests, requests_of
from ppcgc.runtime.verification.cases import Case, at_path, same_kind
from ppcgc.runtime.verification.comparing import blanked, differing, listed
from ppcgc.runtime.verification.parity import tolerance_of
from ppcgc.runtime.verification.session import Session
from ppcgc.runtime.verification.stages import StageUnderTest, state_name
from ppcgc.runtime.verification.verdicts import Finding

Order: TypeAlias = Mapping[str, list[int]]  # by axis: which row stands where


class Unclear(Exception):
    """Nobody says what this batch is with its requests in another order."""


def reordering_findings(session: Session) -> tuple[list[Finding], str]:
    """One case of each bucket, its requests in reverse; and a remark where that cannot be."""
    if session.subject.ordered:
        return [], "requests were left in their order, which means something"
    tried: set[Any] = set()
    unclear: dict[str, None] = {}
    for case in session.cases:
        requests = requests_of(session.stages[0], case)
        if case.padded in tried or requests is None or len(requests.spans) < 2:
            continue
        try:
            order = _reversed(session, case, requests)
            turned = _turned(session, case, requests, order)
        except Unclear as why:
            unclear[str(why)] = None
            continue
        tried.add(case.padded)
        session.say(f"loading: requests in reverse, {session.stages[-1].where(case)}")
        found = list(_findings(session, case, turned, order))
        if found:
            return found, ""
    if tried or not unclear:
        return [], ""
    return [], f"requests were left in their order: {'; '.join(unclear)}"


def _reversed(session: Session, case: Case, requests: Requests) -> Order:
    """The rows of each axis with the requests in reverse. Raises Unclear."""
    for stage in session.stages:
        if stage.runner.hook_calls.states or session.subject.before_finish is not None:
            raise Unclear("hooks and callers may read of the batch what no slot names")
        present = {info.presence for info in stage.table}
        known = {*stage.runner.axes, *stage.runner.groups, *present}
        scalars = [column for column in stage.runner.columns if column not in known]
        if scalars:
            raise Unclear(f"{scalars[0]} may speak of the order")
        for info in stage.table:
            if info.source == "compute" and any(f"row.{axis}" in info.rule for axis in info.axes):
                raise Unclear(f"slot {info.name} is computed from numbers of rows")
    order = {}
    for axis, spans in requests.rows.items():
        live = getattr(case.live, axis)
        if [row for start, end in spans for row in range(start, end)] != list(range(live)):
            raise Unclear(f"not all rows of {axis} are a request's")
        order[axis] = [row for start, end in reversed(spans) for row in range(start, end)]
    return order


def _turned(session: Session, case: Case, requests: Requests, order: Order) -> Case:
    """The batch with its requests in this order. Raises Unclear."""
    paths: dict[str, Any] = {}
    for stage in session.stages:
        shapes = stage.runner.inputs.shapes(case.live)
        for info in stage.table:
            for path in filter(None, (info.batch, info.mirror)):
                given = at_path(case.batch, path)
                if given is None or path in paths:
                    continue
                rows = _rows(info, given, shapes[info.name], case, requests, order)
                paths[path] = same_kind(rows, given)
    for path, rows in paths.items():
        case = case.changed(path, rows)
    return case


def _rows(
    info: SlotInfo,
    given: Any,
    shape: tuple[int, ...],
    case: Case,
    requests: Requests,
    order: Order,
) -> Tensor:
    """A source's rows in this order. Raises Unclear."""
    rows = torch.as_tensor(given)
    of_axis = info.of_axis or ""
    if info.role is Role.OFFSETS and of_axis in order and info.axes[0] in order:
        lengths = [end - start for start, end in reversed(requests.rows[of_axis])]
        ends = [0, *accumulate(lengths)]
        return torch.tensor(ends[: len(rows)], dtype=rows.dtype, device=rows.device)
    dims = info.dims if info.dims is not None else (info.dim,) * len(info.axes)
    turned = [(axis, dim) for axis, dim in zip(info.axes, dims, strict=True) if axis in order]
    if turned and info.role is Role.DATA and not rows.is_floating_point() and rows.dim():
        raise Unclear(f"slot {info.name} may hold numbers of rows")
    behind = len(shape) - rows.dim()  # dimensions that a broadcast source leaves out
    for axis, dim in turned:
        if dim < behind:
            continue
        if rows.shape[dim - behind] != getattr(case.live, axis):
            raise Unclear(f"slot {info.name} has more than a row for each of {axis}")
        places = torch.tensor(order[axis], device=rows.device)
        rows = rows.index_select(dim - behind, places)
    if info.role is Role.INDEX and of_axis in order:
        new = {old: place for place, old in enumerate(order[of_axis])}
        moved = [new.get(int(row), int(row)) for row in rows.flatten().tolist()]
        rows = torch.tensor(moved, dtype=rows.dtype, device=rows.device).view(rows.shape)
    return rows


def _findings(session: Session, case: Case, turned: Case, order: Order) -> Iterator[Finding]:
    """The first stage whose outputs or state are others."""
    plain = session.through(case)
    states = [_without_reserved(stage, case) for stage in session.stages]
    other = session.through(turned)
    after = [_without_reserved(stage, case) for stage in session.stages]
    again = session.through(case)
    tolerance = tolerance_of(session)
    for at, stage in enumerate(session.stages):
        axes = stage.output_axes(case)
        wanted = {name: _placed(rows, axes.get(name), order) for name, rows in plain[1][at].items()}
        unsteady = differing(plain[1][at], again[1][at], relative=tolerance)
        apart = differing(wanted, other[1][at], relative=tolerance)
        apart |= differing(states[at], after[at], relative=tolerance)
        for name, how in apart.items():
            if unsteady:
                return  # of a step that does not repeat itself, others tell
            yield Finding(
                where=stage.where(case),
                subject=name if name in states[at] else f"output {name}",
                what=f"with the requests of the batch in reverse, {listed(order)} with them, each "
                f"has other numbers: {how}",
                mend="read what a row needs (a length, a position, an adapter) at the row's own "
                "request, never at the first one or by the row's number; where the order means "
                "something to the kernels, say Subject(ordered=True)",
            )
        if apart:
            return


def _placed(rows: Tensor, cut: tuple[str, int] | None, order: Order) -> Tensor:
    """An output's rows where this order puts them."""
    if cut is None or cut[0] not in order:
        return rows
    axis, dim = cut
    return rows.index_select(dim, torch.tensor(order[axis], device=rows.device))


def _without_reserved(stage: StageUnderTest, case: Case) -> dict[str, Tensor]:
    """The state, but for rows that padding writes."""
    return {
        name: blanked(tensor, stage.reserved_rows(case, state_name(name)))
        for name, tensor in stage.state.items()
    }
