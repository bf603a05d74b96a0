"""Neighbours: other content in one request leaves every other request's outputs alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import torch
from torch import Tensor

from ppcgc.runtime.slot_info import Role
from ppcgc.runtime.verification.cases import Case, at_path, same_kind
from ppcgc.runtime.verification.comparing import changed_rows, listed
from ppcgc.runtime.verification.session import Session
from ppcgc.runtime.verification.stages import StageUnderTest
from ppcgc.runtime.verification.tracing import live_part, trace
from ppcgc.runtime.verification.verdicts import Finding

Spans: TypeAlias = list[tuple[int, int]]
Through: TypeAlias = tuple[Case, list[dict[str, Tensor]]]


def neighbour_findings(session: Session) -> list[Finding]:
    """The last stage's outputs (through all stages) by request, one request changed."""
    findings: list[Finding] = []
    for case in session.cases:
        spans = request_rows(session.stages[0], case)
        given = at_path(case.batch, session.subject.content)
        if spans is None or given is None or len(spans) < 2:
            continue
        session.say(f"loading: neighbours, {session.stages[-1].where(case)}")
        changed = case.changed(session.subject.content, _other_content(given, spans[0]))
        findings += _differences(session, session.through(case), session.through(changed), spans)
    return findings


def request_rows(stage: StageUnderTest, case: Case) -> list[tuple[int, int]] | None:
    """First and past-last token row of each request; None where the slots do not say."""
    for info in stage.table:
        value = None if info.batch is None else at_path(case.batch, info.batch)
        if value is None or info.of_axis is None or len(info.axes) != 1:
            continue
        rows = torch.as_tensor(value).flatten().tolist()
        if info.role is Role.OFFSETS and len(rows) > 1:
            return list(zip(rows, rows[1:], strict=False))
    live = set(case.live[: len(stage.runner.axes)])
    if len(live) == 1:  # one row a request
        return [(row, row + 1) for row in range(live.pop())]
    return None


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
    session: Session, plain: Through, other: Through, spans: Spans
) -> Iterator[Finding]:
    """The first stage whose outputs differ for another request."""
    case, changed = plain[0], other[0]
    for stage, left, right in zip(session.stages, plain[1], other[1], strict=True):
        for name, tensor in left.items():
            own = 1 if tensor.shape[0] == len(spans) else spans[0][1]  # rows of request 0
            if tensor.shape[0] not in (len(spans), spans[-1][1]):
                continue
            leaked = [row for row in changed_rows(tensor, right[name]) if row >= own]
            if leaked:
                yield Finding(
                    where=stage.where(case),
                    subject=f"output {name}",
                    what=f"other content in request 0 changed rows {listed(leaked)} of other "
                    f"requests{_first_op(stage, case, changed, spans)}",
                    mend="mask by request: a row may see rows of its own request only",
                )
                return


def _first_op(stage: StageUnderTest, case: Case, changed: Case, spans: Spans) -> str:
    """The op where rows of other requests first differ, each token's row standing first."""
    traces = []
    for one in (case, changed):
        stage.restore()
        stage.begin(one)
        traces.append(trace(stage, one))
    tokens, end = spans[-1][1], spans[0][1]
    for (op, left), (_, right) in zip(*traces, strict=False):
        for a, b in zip(left, right, strict=False):
            a, b = live_part(a, case.live, case.padded), live_part(b, case.live, case.padded)
            by_token = a.is_floating_point() and a.dim() > 1 and a.shape[0] == tokens
            if by_token and a.shape == b.shape and a.shape[1] != tokens:
                if any(row >= end for row in changed_rows(a, b)):
                    return f"; first in {op}"
    return ""
