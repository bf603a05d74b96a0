"""Neighbours: other content in one request leaves every other request's outputs alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import torch
from torch import Tensor

from ppcgc.runtime.slot_info import Role
from ppcgc.runtime.verification.cases import Case, at_path, same_kind
from ppcgc.runtime.verification.comparing import changed_rows, listed, rows_apart
from ppcgc.runtime.verification.session import Session
from ppcgc.runtime.verification.stages import StageUnderTest
from ppcgc.runtime.verification.tracing import live_part, trace
from ppcgc.runtime.verification.verdicts import Finding

Through: TypeAlias = tuple[Case, list[dict[str, Tensor]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """The rows of each request, by axis: first and past-last."""

    content: str
    rows: Mapping[str, list[tuple[int, int]]]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Rows of the content."""
        return self.rows[self.content]


def neighbour_findings(session: Session) -> list[Finding]:
    """Outputs of all stages by request, with other content in one request and as it was."""
    findings: list[Finding] = []
    tried: set[Any] = set()
    for case in session.cases:
        if case.padded in tried:
            continue
        requests = requests_of(session.stages[0], case)
        given = at_path(case.batch, session.subject.content)
        if requests is None or given is None:
            continue
        lengths = [end - start for start, end in requests.spans]
        if len(lengths) < 2 or not lengths[0] or not any(lengths[1:]):
            continue
        tried.add(case.padded)
        session.say(f"loading: neighbours, {session.stages[-1].where(case)}")
        content = _other_content(given, requests.spans[0])
        changed = case.changed(session.subject.content, content)
        plain, other = session.through(case), session.through(changed)
        findings += _differences(session, plain, other, requests)
    return findings


def requests_of(stage: StageUnderTest, case: Case) -> Requests | None:
    """Read from the offsets of a packed batch; one row each where all axes are of one size."""
    for info in stage.table:
        value = None if info.batch is None else at_path(case.batch, info.batch)
        if value is None or info.of_axis is None or info.role is not Role.OFFSETS:
            continue
        ends = [int(end) for end in torch.as_tensor(value).flatten().tolist()]
        if len(info.axes) == 1 and len(ends) > 1:
            single = [(row, row + 1) for row in range(len(ends) - 1)]
            rows = {info.axes[0]: single, info.of_axis: list(pairwise(ends))}
            return Requests(content=info.of_axis, rows=rows)
    axes = stage.runner.axes
    live = case.live[: len(axes)]
    if len(set(live)) == 1:
        single = [(row, row + 1) for row in range(live[0])]
        return Requests(content=axes[0], rows=dict.fromkeys(axes, single))
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
    session: Session, plain: Through, other: Through, requests: Requests
) -> Iterator[Finding]:
    """The first stage whose outputs differ for another request."""
    case, changed = plain[0], other[0]
    for stage, left, right in zip(session.stages, plain[1], other[1], strict=True):
        axes = stage.output_axes(case)
        for name, tensor in left.items():
            axis, dim = axes.get(name, ("", 0))
            if axis not in requests.rows:
                continue
            sides = (tensor.movedim(dim, 0), right[name].movedim(dim, 0))
            rows = rows_apart(*sides, session.subject.padding_tolerance)
            own = range(*requests.rows[axis][0])
            leaked = [row for row in rows if row not in own]
            if leaked:
                yield Finding(
                    where=stage.where(case),
                    subject=f"output {name}",
                    what=f"other content in request 0 changed rows {listed(leaked)} of other "
                    f"requests{_first_op(stage, case, changed, requests.spans)}",
                    mend="mask by request: a row may see rows of its own request only",
                )
                return


def _first_op(
    stage: StageUnderTest, case: Case, changed: Case, spans: list[tuple[int, int]]
) -> str:
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
            if not by_token or a.shape != b.shape or a.shape[1] == tokens:
                continue  # scores of rows with rows are masked later, where they are legal
            if any(row >= end for row in changed_rows(a, b)):
                return f"; first in {op}"
    return ""
