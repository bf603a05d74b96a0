"""Neighbours: what one request holds, in the batch or in the state, reaches no other's outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from ppcgc.runtime.slot_info import Role
from ppcgc.runtime.verification.by_request import Requests, by_row, content_of, requests_of
from ppcgc.runtime.verification.cases import Case, at_path, same_kind
from ppcgc.runtime.verification.comparing import (
    changed_rows,
    differing,
    listed,
    rows_apart,
    same_bits,
)
from ppcgc.runtime.verification.session import Session, holds_numbers
from ppcgc.runtime.verification.spec_rules import Unread, expected_rows
from ppcgc.runtime.verification.stages import StageUnderTest, state_name
from ppcgc.runtime.verification.tracing import live_part, trace
from ppcgc.runtime.verification.verdicts import Finding

Through: TypeAlias = tuple[Case, list[dict[str, Tensor]]]


@dataclass(slots=True)
class Tried:
    """What the probe could try, by bucket, and what it could not."""

    buckets: set[Any] = field(default_factory=set)
    reasons: dict[Any, str] = field(default_factory=dict)  # why not, of the last batch
    unread: set[str] = field(default_factory=set)  # content whose change nothing showed

    def remark(self) -> str:
        """What was not seen, for the evidence; empty where all was."""
        left = {padded: why for padded, why in self.reasons.items() if padded not in self.buckets}
        said = [f"requests were not told apart: {why}" for why in dict.fromkeys(left.values())]
        if self.buckets and left:
            said = [
                f"in {len(left)} of {len(left) + len(self.buckets)} buckets {' and '.join(said)}"
            ]
        said += [
            f"other {content} of a request changed no output, its own included: is it what the "
            "model reads?"
            for content in sorted(self.unread)
        ]
        return "; ".join(said)


def neighbour_findings(session: Session) -> tuple[list[Finding], str]:
    """Outputs of all stages by request: as it was, and with one request's rows changed.

    Beside the findings, a remark on what could not be tried; empty where nothing is to be said.
    """
    named = session.subject.content
    if named is not None and all(at_path(case.batch, named) is None for case in session.cases):
        return [_unknown_content(session, named)], ""
    findings: list[Finding] = []
    tried = Tried()
    for case in session.cases:
        if case.padded in tried.buckets:
            continue
        requests = requests_of(session.stages[0], case)
        if requests is None:
            tried.reasons[case.padded] = "no offsets tell whose rows are whose"
            continue
        found = content_of(session, case, requests)
        if found is None:
            tried.reasons[case.padded] = (
                "nothing says which path of a batch is a request's own data, its words: name it, "
                "as in Subject(content='input_ids')"
            )
            continue
        content, axis = found
        requests = replace(requests, content=axis)
        filled = [number for number, (start, end) in enumerate(requests.spans) if end > start]
        if len(filled) < 2:
            tried.reasons.setdefault(case.padded, "no batch has two requests with rows")
            continue
        tried.buckets.add(case.padded)
        session.say(f"loading: neighbours, {session.stages[-1].where(case)}")
        findings += _of_case(session, case, content, requests, (filled[0], filled[-1]), tried)
    return findings, tried.remark()


def _unknown_content(session: Session, named: str) -> Finding:
    return Finding(
        where=session.subject.title,
        subject="content",
        what=f"no batch has {named!r}, which the subject names as a request's own data",
        mend="give the batch path of the words, or leave `content` out",
    )


def _of_case(
    session: Session,
    case: Case,
    content: str,
    requests: Requests,
    numbers: tuple[int, ...],
    tried: Tried,
) -> list[Finding]:
    """Of each of these requests: other content, then other values in its rows of the state."""
    plain, states = session.through(case), _states(session)
    for number in numbers:
        changed = _with_other_rows(case, {content: requests.content}, requests, number)
        other = session.through(changed)
        if all(map(_same, plain[1], other[1])):
            tried.unread.add(content)
        floats = _floats(session, case, requests, content)
        if floats:
            other = session.through(_with_other_rows(changed, floats, requests, number))
        found = list(_written_elsewhere(session, plain[0], states, requests, number))
        found += _differences(session, plain, other, requests, number)
        if found:
            again = session.through(case)
            return list(_unsteady(session, plain, again)) or found
    for number in numbers:
        other = session.through(case, partial(_other_state, case, requests, number))
        found = list(_differences(session, plain, other, requests, number, "state"))
        if found:
            return found
    return []


def _same(left: Mapping[str, Tensor], right: Mapping[str, Tensor]) -> bool:
    return all(same_bits(tensor, right[name]) for name, tensor in left.items())


def _with_other_rows(case: Case, axes: Mapping[str, str], requests: Requests, number: int) -> Case:
    """Other values in the rows of one request, of each of these paths of the batch."""
    for path, axis in axes.items():
        given = at_path(case.batch, path)
        case = case.changed(path, _other_content(given, requests.rows[axis][number]))
    return case


def _floats(session: Session, case: Case, requests: Requests, content: str) -> dict[str, str]:
    """The axis of each other float of the batch that has rows: it is content as well."""
    axes: dict[str, str] = {}
    for stage in session.stages:
        for info in stage.table:
            value = None if info.batch is None else at_path(case.batch, info.batch)
            is_data = info.role is Role.DATA and by_row(info, requests)
            if info.batch and info.batch != content and is_data and _is_float(value):
                axes.setdefault(info.batch, info.axes[0])
    return axes


def _is_float(value: Any) -> bool:
    """Whether other values of it surely are legal: integers may be counts, or name something."""
    if isinstance(value, Tensor):
        return value.is_floating_point()
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return kind == "f"


def _other_state(case: Case, requests: Requests, number: int, stage: StageUnderTest) -> None:
    """The rows of the state that one request alone reads or writes hold their negatives."""
    for state in {state_name(name) for name in stage.state}:
        rows = _rows_by_request(stage, case, requests, state)
        others = set().union(*(own for at, own in enumerate(rows) if at != number))
        mine = sorted(rows[number] - others) if rows else []
        for name, tensor in stage.state.items():
            if state_name(name) == state and holds_numbers(tensor) and mine:
                tensor[mine] = _negative(tensor[mine])


def _negative(rows: Tensor) -> Tensor:
    """Other legal numbers; torch has no operation on eight bits of a float."""
    return (-rows.float()).to(rows.dtype) if rows.is_floating_point() else ~rows


def _states(session: Session) -> list[dict[str, Tensor]]:
    """The state of each stage as its step has left it."""
    return [
        {name: tensor.clone() for name, tensor in stage.state.items()} for stage in session.stages
    ]


def _written_elsewhere(
    session: Session,
    case: Case,
    states: list[dict[str, Tensor]],
    requests: Requests,
    number: int,
) -> Iterator[Finding]:
    """Rows of the state that changed with one request's content, and that it does not name."""
    for stage, before in zip(session.stages, states, strict=True):
        for name, tensor in before.items():
            state = state_name(name)
            rows = _rows_by_request(stage, case, requests, state)
            if not rows:
                continue
            allowed = rows[number] | stage.reserved_rows(case, state)
            tolerance = session.subject.padding_tolerance
            changed = rows_apart(tensor, stage.state[name], tolerance)
            wrong = [row for row in changed if row not in allowed]
            if wrong:
                yield Finding(
                    where=stage.where(case),
                    subject=name,
                    what=f"other content in request {number} changed rows {listed(wrong)}, which "
                    "it does not name",
                    mend="write the state by each row's own index",
                )
                return


def _rows_by_request(
    stage: StageUnderTest, case: Case, requests: Requests, state: str
) -> list[set[int]]:
    """Rows of a state that the batch names for each request; none where it does not tell."""
    rows: list[set[int]] = [set() for _ in requests.spans]
    if stage.subject.owned is not None:  # it knows of rows that no slot names
        return []
    for info in stage.table:
        if info.of_state != state or info.role not in (Role.INDEX, Role.WRITE_INDEX):
            continue
        if not by_row(info, requests):
            return []
        try:
            named = expected_rows(stage.runner, info, case).live_part
        except Unread:
            return []
        for own, (start, end) in zip(rows, requests.rows[info.axes[0]], strict=True):
            own |= set(named[start:end].flatten().tolist())
    return rows if any(rows) else []


def _other_content(given: Any, span: tuple[int, int]) -> Any:
    """The content with other legal values in the rows of one request."""
    values = torch.as_tensor(given).clone()
    start, end = span
    if values.dtype.is_floating_point:
        values[start:end] = -values[start:end]
    else:
        low, high = int(values.min()), int(values.max())
        values[start:end] = low + (values[start:end] - low + 1) % max(1, high - low + 1)
    return same_kind(values, given)


def _differences(
    session: Session,
    plain: Through,
    other: Through,
    requests: Requests,
    number: int,
    what: str = "content",
) -> Iterator[Finding]:
    """The first stage whose outputs differ for another request than this one."""
    case, changed = plain[0], other[0]
    for stage, left, right in zip(session.stages, plain[1], other[1], strict=True):
        axes = stage.output_axes(case)
        for name, tensor in left.items():
            axis, dim = axes.get(name, ("", 0))
            if axis not in requests.rows:
                continue
            sides = (tensor.movedim(dim, 0), right[name].movedim(dim, 0))
            rows = rows_apart(*sides, session.subject.padding_tolerance)
            own = range(*requests.rows[axis][number])
            leaked = [row for row in rows if row not in own]
            if leaked:
                op = _first_op(stage, case, changed, requests.spans, number)
                yield Finding(
                    where=stage.where(case),
                    subject=f"output {name}",
                    what=f"other {what} in request {number} changed rows {listed(leaked)} of other "
                    f"requests{op if what == 'content' else ''}",
                    mend=_MENDS[what],
                )
                return


_MENDS = {
    "content": "mask by request: a row may see rows of its own request only",
    "state": "read the state by each row's own index: a row may see its own request's only",
}


def _unsteady(session: Session, plain: Through, again: Through) -> Iterator[Finding]:
    """The first stage whose outputs differ when the same step is run again from the same memory."""
    for stage, left, right in zip(session.stages, plain[1], again[1], strict=True):
        for name, how in differing(left, right).items():
            yield Finding(
                where=stage.where(plain[0]),
                subject=f"output {name}",
                what=f"the same step gives other numbers when it is run again: {how}",
                mend="a hook, the caller or the model keeps something from one step to the next: "
                "plan each step from its own batch alone",
            )
            return


def _first_op(
    stage: StageUnderTest, case: Case, changed: Case, spans: list[tuple[int, int]], number: int
) -> str:
    """The op where rows of other requests first differ, each token's row standing first."""
    traces = []
    for one in (case, changed):
        stage.restore()
        stage.begin(one)
        traces.append(trace(stage, one))
    tokens, own = spans[-1][1], range(*spans[number])
    for (op, left), (_, right) in zip(*traces, strict=False):
        for a, b in zip(left, right, strict=False):
            a, b = live_part(a, case.live, case.padded), live_part(b, case.live, case.padded)
            by_token = a.is_floating_point() and a.dim() > 1 and a.shape[0] == tokens
            if not by_token or a.shape != b.shape or a.shape[1] == tokens:
                continue  # scores of rows with rows are masked later, where they are legal
            if any(row not in own for row in changed_rows(a, b)):
                return f"; first in {op}"
    return ""
