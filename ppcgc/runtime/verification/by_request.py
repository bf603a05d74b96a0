"""Whose rows of a batch are whose, and which of them are a request's own data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch

from ppcgc.runtime.slot_info import Role, SlotInfo
from ppcgc.runtime.verification.cases import Case, at_path
from ppcgc.runtime.verification.session import Session
from ppcgc.runtime.verification.stages import StageUnderTest

KNOWN_CONTENT = ("input_ids", "ids", "token_ids", "tokens")  # what engines call a request's words


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """The rows of each request, by axis: first and past-last."""

    content: str
    rows: Mapping[str, list[tuple[int, int]]]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Rows of the content."""
        return self.rows[self.content]


def requests_of(stage: StageUnderTest, case: Case) -> Requests | None:
    """Read from the offsets of a packed batch; one row each where all axes are of one size."""
    rows: dict[str, list[tuple[int, int]]] = {}
    content = ""
    for info in stage.table:
        value = None if info.batch is None else at_path(case.batch, info.batch)
        if value is None or info.of_axis is None or info.role is not Role.OFFSETS:
            continue
        if len(info.axes) != 1 or (rows and info.axes[0] not in rows):
            continue  # offsets of other things than these requests
        ends = [int(end) for end in torch.as_tensor(value).flatten().tolist()]
        if len(ends) > 1:
            single = [(row, row + 1) for row in range(len(ends) - 1)]
            rows.setdefault(info.axes[0], single)
            rows.setdefault(info.of_axis, list(pairwise(ends)))
            content = content or info.of_axis
            for axis in stage.runner.axes:
                if _follows(stage, case, axis, info.axes[0]):
                    rows.setdefault(axis, single)
    if rows:
        return Requests(content=content, rows=rows)
    axes = stage.runner.axes
    live = case.live[: len(axes)]
    if len(set(live)) == 1:
        single = [(row, row + 1) for row in range(live[0])]
        return Requests(content=axes[0], rows=dict.fromkeys(axes, single))
    return None


def _follows(stage: StageUnderTest, case: Case, axis: str, leader: str) -> bool:
    """Whether an axis has one row for each of another's, in this batch and in every bucket."""
    sizes = (case.live, *stage.runner.buckets)
    return all(getattr(size, axis) == getattr(size, leader) for size in sizes)


def content_of(session: Session, case: Case, requests: Requests) -> tuple[str, str] | None:
    """The batch path of what a request itself brings, and its axis; None where nothing says so.

    Named by the subject; or by a name that the field has for it, where a slot has it row by row; or
    the one index of a dim that the first stage takes and no later one (words, where positions go to
    all); or by such a name where no slot reads it, for hooks and callers that embed words.
    """
    paths = {
        info.batch: info.axes[0]
        for stage in session.stages
        for info in stage.table
        if by_row(info, requests) and info.batch and at_path(case.batch, info.batch) is not None
    }
    named = session.subject.content
    if named is not None:
        present = at_path(case.batch, named) is not None
        return (named, paths.get(named, requests.content)) if present else None
    known = next((name for name in KNOWN_CONTENT if name in paths), None)
    if known is not None:
        return known, paths[known]
    first, *later = session.stages
    elsewhere = {info.batch for stage in later for info in stage.table}
    found = {
        info.batch
        for info in first.table
        if info.role is Role.INDEX and info.of_state is None and info.batch in paths
    } - elsewhere
    if later and len(found) == 1:
        (path,) = found
        return str(path), paths[path]
    rows = requests.spans[-1][1]
    unread = (name for name in KNOWN_CONTENT if _is_words(at_path(case.batch, name), rows))
    return next(((name, requests.content) for name in unread), None)


def by_row(info: SlotInfo, requests: Requests) -> bool:
    """Whether a slot's rows, on its first dimension, are told apart by request."""
    return info.dim == 0 and len(info.axes) == 1 and info.axes[0] in requests.rows


def _is_words(value: Any, rows: int) -> bool:
    """Whether a value is a row of so many integers."""
    if value is None or isinstance(value, int | str):
        return False
    try:
        tensor = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        return False
    return tensor.shape == (rows,) and not tensor.is_floating_point() and not tensor.is_complex()
