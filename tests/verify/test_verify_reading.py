"""The second reading of slot policies, and the watch that stands in for a CPU graph's own list."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
from probe_family import build, captured, subject
from test_verify_inputs import PlainAttribute

from ppcgc.runtime import SlotInfo
from ppcgc.runtime.verification import memory_map
from ppcgc.runtime.verification.cases import Case
from ppcgc.runtime.verification.session import Session
from ppcgc.runtime.verification.spec_rules import Names, Unread, expected_rows, value_of


class Rows(NamedTuple):
    requests: int
    tokens: int


NAMES = Names(dims=SimpleNamespace(hidden=12), live=Rows(3, 5), padded=Rows(4, 8))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("-1.5", -1.5),
        ("true", True),
        ("dims.hidden", 12),
        ("live.tokens * 10 + padded.tokens", 58),
        ("ceil(live.tokens / 2)", 3),
        ("padded.tokens // 3 % 2", 0),
        ("min(live.tokens, live.requests, 9)", 3),
        ("max(live.tokens, 9)", 9),
        ("1 if row.tokens < live.tokens else 0", 1),
        ("live.tokens in (1, 5) and not live.requests == 5", True),
        ("1 < live.requests <= 2", False),
        ("scalar.tokens + 1", 6),  # a scalar is a column of the live extents
    ],
)
def test_an_expression_of_the_spec(text: str, value: object) -> None:
    assert value_of(text, NAMES, row={"tokens": 4}) == value


@pytest.mark.parametrize(
    "text", ["__import__('os')", "live.pages", "config.x.y", "[1]", "2 **", "f(1)"]
)
def test_what_is_not_of_the_language_is_not_read(text: str) -> None:
    with pytest.raises(Unread):
        value_of(text, NAMES)


def rows_of(info: SlotInfo, shape: Any, **batch: Any) -> list[Any]:
    """The whole slot by the second reading, for 3 live requests of 4 and 5 live tokens of 8."""
    runner = SimpleNamespace(
        inputs=SimpleNamespace(shapes=lambda rows: {info.name: shape(rows)}),
        dims=NAMES.dims,
        dtype=torch.float32,
    )
    case = Case(batch=SimpleNamespace(**batch), live=NAMES.live, padded=NAMES.padded)
    live, tail = expected_rows(runner, info, case)
    whole = live if tail is None else torch.cat([live, tail], dim=info.dim)
    values: list[Any] = whole.tolist()
    return values


def slot(padding: str, **facts: Any) -> SlotInfo:
    given = {"axes": ("requests",), "dtype": torch.int64, "batch": "x", **facts}
    return SlotInfo(name="x", line="s.yaml:1", padding=padding, **given)


def by_request(rows: Rows) -> tuple[int, ...]:
    return (rows.requests,)


@pytest.mark.parametrize(
    ("info", "values"),
    [
        (slot("zero"), [4, 6, 9, 0]),
        (slot("fill", fill="-1"), [4, 6, 9, -1]),
        (slot("fill", fill="live.tokens"), [4, 6, 9, 5]),
        (slot("repeat_last"), [4, 6, 9, 9]),
        (slot("keep"), [4, 6, 9]),
        (slot("none", source="compute", rule="row.requests * 2"), [0, 2, 4, 6]),
        (slot("none", source="const", rule="dims.hidden"), [12, 12, 12, 12]),
    ],
)
def test_one_axis(info: SlotInfo, values: list[int]) -> None:
    assert rows_of(info, by_request, x=torch.tensor([4, 6, 9])) == values


def test_an_absent_source_with_a_value() -> None:
    assert rows_of(slot("zero", absent=7.0), by_request, x=None) == [7, 7, 7, 0]


def test_a_list_from_the_host() -> None:
    assert rows_of(slot("repeat_last"), by_request, x=[1, 2, 3]) == [1, 2, 3, 3]


def test_the_second_dimension() -> None:
    info = slot("repeat_last", dim=1)
    values = rows_of(info, lambda rows: (2, rows.requests), x=[[1, 2, 3], [4, 5, 6]])
    assert values == [[1, 2, 3, 3], [4, 5, 6, 6]]


@pytest.mark.parametrize(
    ("padding", "fills", "values"),
    [
        ("zero,zero", {}, [[1, 2, 0], [3, 4, 0], [0, 0, 0]]),
        ("fill,repeat_last", {"fill": "9"}, [[1, 2, 2], [3, 4, 4], [9, 9, 9]]),
        ("repeat_last,fill", {"fill_second": "8"}, [[1, 2, 8], [3, 4, 8], [3, 4, 8]]),
    ],
)
def test_two_axes(padding: str, fills: dict[str, str], values: list[list[int]]) -> None:
    def shape(rows: Rows) -> tuple[int, int]:
        return (rows.requests - 1, rows.requests - 1)

    info = slot(padding, axes=("requests", "tokens"), dims=(0, 1), **fills)
    live = {3: 2, 4: 3}  # 2 of 3 on both dimensions

    assert live[3] == shape(NAMES.live)[0]
    assert rows_of(info, shape, x=[[1, 2], [3, 4]]) == values


@pytest.mark.parametrize("source", ["caller", "graph", "hook", "boundary"])
def test_what_others_write_is_not_read(source: str) -> None:
    with pytest.raises(Unread, match=source):
        rows_of(slot("zero", source=source, batch=None), by_request)


def test_the_watch_sees_what_the_graph_holds() -> None:
    """On CUDA the accesses of an eager run stand in for the graph's: compare them on a CPU."""
    runners = captured(build(models=(PlainAttribute,)))
    session = Session(subject(runners), quick=True, say=lambda line: None)
    session.prepare()
    stage, case = session.stages[0], session.cases[0]
    stage.begin(case)
    memory = memory_map.MemoryMap(stage, case)

    def names(uses: list[memory_map.Use]) -> set[tuple[str, str]]:
        regions = [(memory.find(use.start, use.end), use) for use in uses]
        return {(r.kind, r.name) if r else ("unregistered", use.place) for r, use in regions}

    held = names(memory_map.uses_of(stage, case))
    bucket = runners[0].table[case.padded]
    graph, bucket.graph = bucket.graph, SimpleNamespace()
    try:
        watched = names(memory_map.uses_of(stage, case))
    finally:
        bucket.graph = graph
    assert ("slot", next(iter(n for k, n in held if k == "slot" and "weights" in n))) in watched
    assert {name for name in watched if name[0] != "unregistered"} == {
        name for name in held if name[0] != "unregistered"
    }
    (place,) = {name for kind, name in watched if kind == "unregistered"}
    assert "return hidden + self.table" in place
