"""What fuzzing found, each as a plain spec of its kind. `ran` checks every slot and every step."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from fuzz_compiler import ran
from fuzz_mutations import LOADER
from fuzz_small import small, text_of, with_slots

SEEDS = range(2)


def check_runs(tree: dict[str, Any]) -> None:
    for seed in SEEDS:
        assert ran(text_of(tree), seed), f"seed {seed} replayed nothing"


@pytest.mark.parametrize(
    "padding",
    [
        "{requests: zero, tokens: {fill: 3}}",
        "{requests: {fill: live.tokens}, tokens: repeat_last}",
        "{requests: {keep: nobody reads it, initial: 2}, tokens: {fill: 1}}",
    ],
)
def test_each_of_two_axes_has_a_padding_of_its_own(padding: str) -> None:
    check_runs(
        with_slots(
            "{name: cells, axis: [requests, tokens], dtype: int32, source: batch.cells, "
            f"padding: {padding}}}"
        )
    )


@pytest.mark.parametrize("where", ["", "residency: host,", "residency: host, place: host,"])
@pytest.mark.parametrize("absent", ["error", "eager", "key", "{fill: 2}"])
@pytest.mark.parametrize(
    "axis",
    [
        "axis: tokens, shape: [3, tokens], padding: zero",
        "axis: none, shape: [2, 3]",
        "axis: [requests, tokens], shape: [2, requests, tokens], padding: zero",
    ],
)
def test_any_slot_may_broadcast(axis: str, absent: str, where: str) -> None:
    check_runs(
        with_slots(
            f"{{name: wide, {axis}, dtype: int32, {where} absent: {absent}, broadcast: true, "
            "source: batch.wide}"
        )
    )


@pytest.mark.parametrize("absent", ["eager", "key", "{fill: 2}"])
def test_a_slot_that_stays_on_the_host_may_be_absent(absent: str) -> None:
    check_runs(
        with_slots(
            "{name: twin, axis: tokens, dtype: int32, residency: host, place: host, "
            f"padding: zero, absent: {absent}, source: batch.twin}}"
        )
    )


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "bool", "uint8", "bfloat16"])
@pytest.mark.parametrize("padding", ["zero", "repeat_last", {"fill": 1}])
def test_every_dtype_crosses_a_cut(dtype: str, padding: Any) -> None:
    tree = small()
    if dtype == "bool" and isinstance(padding, dict):
        padding = {"fill": True}
    tree["pipeline"]["boundary"][0] |= {"dtype": dtype, "padding": padding}
    check_runs(tree)


@pytest.mark.parametrize("limit", ["tokens >= requests", "tokens <= requests * 4"])
def test_ranks_of_a_group_ask_for_buckets_that_no_rank_would_alone(limit: str) -> None:
    tree = small(limits=[limit], buckets={"tokens": [1, 4, 8], "requests": [1, 4]})
    tree["parallel"] = {"dp": "build"}
    for axis in ("requests", "tokens"):
        tree["axes"][axis]["group"] = {"over": "dp", "live": f"batch.all_{axis}"}
        check_runs(tree)


@pytest.mark.parametrize("role", ["role: index, of: tokens", "role: index, of: hidden"])
def test_an_idle_step_has_no_index_to_check(role: str) -> None:
    check_runs(
        with_slots(
            "{name: last_token, axis: requests, dtype: int64, padding: zero, residency: host, "
            f"{role}, source: batch.last_token}}"
        )
    )


def test_a_middle_stage_need_not_read_what_the_runtime_hands_on() -> None:
    tree = small()
    tree["pipeline"]["boundary"].append(
        yaml.load("{name: embeds, axis: tokens, dtype: int32, padding: zero, by: runtime}", LOADER)
    )
    tree["runners"]["step"]["forward"] = {
        "first": {"view": "view"},
        "middle": {"view": "view", "hidden": "boundary.hidden_states"},
        "last": {"view": "view", "received": "boundary"},
    }
    check_runs(tree)


@pytest.mark.parametrize("source", ["caller", "hook.filler"])
def test_rows_written_after_the_load_are_repeated(source: str) -> None:
    tree = with_slots(
        f"{{name: late, axis: tokens, dtype: int32, padding: repeat_last, source: {source}}}"
    )
    tree["runners"]["step"]["hooks"] = {"filler": {"at": "load", "writes": ["late"]}}
    if source == "caller":
        del tree["runners"]["step"]["hooks"]
    check_runs(tree)


def test_an_optional_source_does_not_count_the_rows_of_its_axis() -> None:
    tree = with_slots("{name: sure, axis: tokens, dtype: int32, padding: zero, source: batch.sure}")
    tree["axes"]["tokens"]["live"] = "rows"
    first = tree["runners"]["step"]["slots"][0]
    first |= {"absent": {"fill": 1}}
    check_runs(tree)


def test_cells_of_two_axes_are_numbered_by_both() -> None:
    cells = "{{name: cells, axis: [requests, tokens], dtype: int32, source: {{compute: {}}}}}"
    for rows in ("row.tokens", "row.requests + row.tokens * 3"):
        check_runs(with_slots(cells.format(rows)))
    check_runs(with_slots(cells.format("live.tokens * 100 + padded.requests")))
