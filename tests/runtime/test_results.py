"""What a forward returned: picked, checked, stored, reset past the live rows, kept."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from views_of_tests import Handed

from ppcgc.runtime.arena import DeviceArena
from ppcgc.runtime.errors import OutputError, SourceError
from ppcgc.runtime.receiving import (
    axis_count,
    check_received,
    receive_rows,
    reset_fill,
    reset_repeat_last,
)
from ppcgc.runtime.results import (
    OutputRing,
    boundary_values,
    check_result,
    handed_on,
    pick_index,
    pick_key,
    store,
)

CPU = torch.device("cpu")
NAN = float("nan")


# ---------------------------------------------------------------- picking


def test_a_key_is_an_entry_or_an_attribute() -> None:
    assert pick_key({"logits": 1}, "logits") == 1
    assert pick_key(SimpleNamespace(logits=2), "logits") == 2
    with pytest.raises(OutputError, match=r"the keys \['hidden'\], not 'logits'"):
        pick_key({"hidden": 1}, "logits")
    for result in (SimpleNamespace(logits=None), SimpleNamespace()):
        with pytest.raises(OutputError, match="SimpleNamespace without 'logits'"):
            pick_key(result, "logits")


def test_an_index_is_an_item_of_a_tuple() -> None:
    pair = namedtuple("pair", "a b")
    assert pick_index((1, 2), 1) == 2
    assert pick_index([1, 2], 0) == 1
    assert pick_index(pair(3, 4), 1) == 4
    with pytest.raises(OutputError, match="returned 2 values, the spec wants item 2"):
        pick_index((1, 2), 2)
    for result in (torch.ones(3), {0: 1}, "ab"):
        with pytest.raises(OutputError, match="not a tuple"):
            pick_index(result, 0)


def test_boundary_keys_must_be_exactly_the_declared_ones() -> None:
    one, two = torch.ones(1), torch.zeros(1)
    keys = ("hidden_states", "residual")
    exact: list[Any] = [
        {"residual": two, "hidden_states": one},
        Handed(hidden_states=one, residual=two),
    ]
    for result in exact:
        values = boundary_values(result, keys)
        assert values["hidden_states"] is one
        assert values["residual"] is two
    with pytest.raises(OutputError, match=r"lacks \['residual'\] and has \[\]"):
        boundary_values({"hidden_states": one}, keys)
    with pytest.raises(OutputError, match=r"lacks \[\] and has \['topk'\]"):
        boundary_values({"hidden_states": one, "residual": two, "topk": one}, keys)
    for result in (one, (one, two), None):
        with pytest.raises(OutputError, match=r"a mapping with the keys \['hidden_states'"):
            boundary_values(result, keys)


def test_a_bare_tensor_serves_for_one_key() -> None:
    one = torch.ones(1)
    assert boundary_values(one, ("hidden_states",))["hidden_states"] is one


def test_forwarded_keys_come_from_the_boundary_that_came_in() -> None:
    one, two = torch.ones(1), torch.zeros(1)
    keys, forwarded = ("hidden_states", "residual"), ("residual",)
    came = Handed(hidden_states=two, residual=two)
    assert handed_on({"hidden_states": one}, came, keys, forwarded) == {
        "residual": two,
        "hidden_states": one,
    }
    # a first stage has nothing to hand on: its forward gives every key
    with pytest.raises(OutputError, match=r"lacks \['residual'\]"):
        handed_on({"hidden_states": one}, None, keys, forwarded)
    # and a later stage's forward must not give what the runtime hands on
    with pytest.raises(OutputError, match=r"has \['residual'\] beyond"):
        handed_on({"hidden_states": one, "residual": one}, came, keys, forwarded)


# ---------------------------------------------------------------- checks and store


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, r"gave a NoneType \(is its `return` missing\?\), not a tensor"),
        ((torch.ones(2),), r"gave a tuple of 1 \(`from: result.0` under outputs .*, not a tensor"),
        ({"b": 1, "a": 2}, r"gave a dict of \['a', 'b'\] \(`from: result.KEY` .*, not a tensor"),
        (torch.ones(3), r"gave shape \[3\], the spec says \[2\]"),
        (torch.ones(2, 1), r"gave shape \[2, 1\], the spec says \[2\]"),
        (torch.ones(2).half(), "gave torch.float16, the spec says torch.float32"),
        (torch.ones(2, device="meta"), "on meta, the stage is on cpu"),
    ],
)
def test_a_wrong_result_is_an_output_error(value: Any, message: str) -> None:
    with pytest.raises(OutputError, match=f"output logits: .*{message}"):
        check_result(value, (2,), torch.float32, CPU, "logits")
    with pytest.raises(OutputError, match=message):
        store(torch.zeros(2), value, "logits")


def test_store_copies_and_leaves_in_place_results_alone() -> None:
    buffer = torch.zeros(2)
    store(buffer, torch.ones(2), "logits")
    assert buffer.tolist() == [1, 1]
    store(buffer, buffer[:], "logits")
    assert buffer.tolist() == [1, 1]


def test_received_rows_are_checked() -> None:
    source = torch.ones(2, 3)
    assert check_received(source, (2, 3), torch.float32, CPU, "boundary.h") is source
    for wrong, message in [
        (None, "received a NoneType"),
        (torch.ones(1, 3), r"\[1, 3\] on cpu, the live rows need torch.float32 \[2, 3\]"),
        (torch.ones(2, 3).half(), "received torch.float16"),
        (torch.ones(2, 3, device="meta"), "on meta"),
        (torch.ones(2, 3, requires_grad=True), "requires grad"),
    ]:
        with pytest.raises(SourceError, match=f"boundary.h: .*{message}"):
            check_received(wrong, (2, 3), torch.float32, CPU, "boundary.h")


def test_receiving_takes_the_live_rows_and_nothing_more() -> None:
    slot = torch.full((4, 2), 77.0)
    receive_rows(slot, torch.ones(1, 2), (1, 2), "boundary.h")
    assert slot.tolist() == [[1, 1], [77, 77], [77, 77], [77, 77]]
    receive_rows(slot, slot[:2], (2, 2), "boundary.h")  # sent in place
    assert slot[0].tolist() == [1, 1]
    turned = torch.full((2, 3), 77.0)
    receive_rows(turned, torch.ones(2, 1), (2, 1), "boundary.h")
    assert turned.tolist() == [[1, 77, 77]] * 2
    with pytest.raises(SourceError, match=r"\[5, 2\] live rows, the bucket has \[4, 2\]"):
        receive_rows(slot, torch.ones(5, 2), (5, 2), "boundary.h")
    with pytest.raises(SourceError, match=r"the live rows need torch.float32 \[2, 2\]"):
        receive_rows(slot, torch.ones(3, 2), (2, 2), "boundary.h")


def test_the_same_memory_in_another_order_is_not_in_place() -> None:
    slot = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(
        SourceError, match=r"in another order, strides \[1, 2\], the slot has \[2, 1\]"
    ):
        receive_rows(slot, slot.T, (2, 2), "boundary.h")
    receive_rows(
        slot, slot[:1].as_strided((1, 2), (7, 1)), (1, 2), "boundary.h"
    )  # one row has none
    assert slot.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(SourceError, match="requires grad"):
        receive_rows(slot, slot.requires_grad_(), (2, 2), "boundary.h")


# ---------------------------------------------------------------- resets on the device


def counts(tokens: int, requests: int) -> Tensor:
    return torch.tensor([tokens, requests], dtype=torch.int32)


def test_the_count_of_an_axis_is_read_where_it_lies() -> None:
    live = counts(5, 2)
    count = axis_count(live, ("tokens", "requests"), "requests")
    assert count.tolist() == [2]
    assert count.data_ptr() == live[1:].data_ptr()  # the next load changes what is read


@pytest.mark.parametrize("live", [0, 1, 3, 4])
@pytest.mark.parametrize("dim", [0, 1])
def test_rows_past_live_are_reset_even_from_nan(live: int, dim: int) -> None:
    rows = torch.arange(1.0, 17.0).view(4, 4)
    wanted = rows.clone()
    rows.narrow(dim, live, 4 - live).fill_(NAN)
    wanted.narrow(dim, live, 4 - live).fill_(2.5)
    reset_fill(rows, counts(live, 0)[:1], 2.5, dim=dim)
    assert torch.equal(rows, wanted)


@pytest.mark.parametrize("live", [0, 1, 3, 4])
@pytest.mark.parametrize("dim", [0, 1])
def test_rows_past_live_repeat_the_last_one_even_from_nan(live: int, dim: int) -> None:
    rows = torch.arange(1.0, 17.0).view(4, 4)
    last = rows.narrow(dim, max(live - 1, 0), 1).clone() * (live > 0)
    wanted = torch.cat([rows.narrow(dim, 0, live), *[last] * (4 - live)], dim)
    rows.narrow(dim, live, 4 - live).fill_(NAN)
    reset_repeat_last(rows, counts(live, 0)[:1], dim=dim)
    assert torch.equal(rows, wanted)


def test_resets_of_integer_rows() -> None:
    rows = torch.tensor([5, 6, 7], dtype=torch.int32)
    reset_fill(rows, counts(1, 0)[:1], 9)
    assert rows.tolist() == [5, 9, 9]
    reset_repeat_last(rows, counts(1, 0)[:1])
    assert rows.tolist() == [5, 5, 5]


# ---------------------------------------------------------------- rings


def test_a_ring_copies_the_live_rows_into_the_next_buffer() -> None:
    arena = DeviceArena(CPU)
    ring = OutputRing(arena, "logits", (4, 2), torch.float32, 2)
    assert arena.nbytes == 2 * 4 * 2 * 4
    live = torch.ones(3, 2)
    first = ring.keep(live)
    live.fill_(2)
    second = ring.keep(live)
    assert first.tolist() == [[1, 1]] * 3
    assert second.tolist() == [[2, 2]] * 3
    third = ring.keep(torch.full((1, 2), 3.0))
    assert third.data_ptr() == first.data_ptr()
    assert first.tolist() == [[3, 3], [1, 1], [1, 1]]
    assert second.tolist() == [[2, 2]] * 3
