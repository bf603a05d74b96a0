"""Planted: memory that moved, outputs that are wrong or stale, ranks that disagree."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from probe_family import CONFIG, build, captured, caught, family, prefill_batch, subject
from torch import nn

from ppcgc.runtime import Choice, Reason
from ppcgc.runtime.errors import AddressError, BuildError, NotCapturedError, StaleOutputError


def reload_weight(runner: Any) -> None:
    runner.model.mix.weight = nn.Parameter(runner.model.mix.weight.clone(), requires_grad=False)


def reload_data(runner: Any) -> None:
    runner.model.position.weight.data = runner.model.position.weight.clone()


def replace_buffer(runner: Any) -> None:
    runner.model.slope = runner.model.slope.clone()


def transpose(runner: Any) -> None:
    weight = runner.model.mix.weight
    weight.data = weight.data.t()


def other_dtype(runner: Any) -> None:
    runner.model.double()


def grow_state(runner: Any) -> None:
    runner.state.kv[0] = torch.zeros(64, 8)


def replace_slot(runner: Any) -> None:
    bucket = next(iter(runner.table.values()))
    object.__setattr__(bucket.slots, "weights", bucket.slots.weights.clone())


def drop_module(runner: Any) -> None:
    del runner.model.mix


MOVES = [
    (reload_weight, "parameter mix.weight"),
    (reload_data, "parameter position.weight"),
    (replace_buffer, "buffer slope"),
    (transpose, "parameter mix.weight"),
    (other_dtype, "torch.float64"),
    (grow_state, "state kv[0]"),
    (replace_slot, "slot weights of (4, 4)"),
    (drop_module, "parameter mix.bias"),
]


@pytest.mark.parametrize(("move", "name"), MOVES)
def test_what_moved_since_capture_is_named(move: Callable[[Any], None], name: str) -> None:
    runners = captured(build())
    move(runners[1])
    caught(subject(runners), "addresses", "stage 1", name, "at capture")
    with pytest.raises(AddressError, match=re.escape(name)):
        runners[1].check_addresses()
    assert runners[0].check_addresses() == ()


def test_recapture_after_a_reload_gives_the_new_weights() -> None:
    runners = captured(build(stages=1))
    batch = prefill_batch(runners[0].full._replace(tokens=6, requests=2), 3)
    before = runners[0].run(batch).hidden.clone()
    runners[0].model.mix.weight = nn.Parameter(runners[0].model.mix.weight * 2, requires_grad=False)
    assert torch.equal(runners[0].run(batch).hidden, before)  # old memory, and nothing says so
    moved = runners[0].check_addresses(policy="recapture")
    assert [move.name for move in moved] == ["parameter mix.weight"]
    assert not torch.equal(runners[0].run(batch).hidden, before)
    assert runners[0].check_addresses() == ()


def test_check_addresses_wants_a_policy_and_graphs() -> None:
    runners = build()
    with pytest.raises(NotCapturedError):
        runners[0].check_addresses()
    with pytest.raises(BuildError, match="one of error, recapture"):
        runners[0].check_addresses(policy="ignore")


# ---------------------------------------------------------------- outputs


def untrimmed(runner: Any) -> None:
    runner.outputs.trim = lambda buffers, live: buffers


def one_row_less(runner: Any) -> None:
    trim = runner.outputs.trim
    runner.outputs.trim = lambda buffers, live: trim(buffers, live._replace(tokens=live.tokens - 1))


def first_row_only(runner: Any) -> None:
    def store(result: Any, buffers: Any, *_: Any) -> None:
        buffers.hidden[:1].copy_(result[:1])

    runner.outputs.store = store


@pytest.mark.parametrize(
    ("spoil", "texts"),
    [
        (untrimmed, ["output hidden", "a replay gives [4, 8], live rows are [3, 8]"]),
        (one_row_less, ["output hidden", "a replay gives [2, 8], live rows are [3, 8]"]),
        (first_row_only, ["output hidden", "did not write rows 1, 2"]),
    ],
)
def test_outputs(spoil: Callable[[Any], None], texts: list[str]) -> None:
    runners = build()
    spoil(runners[1])
    caught(subject(runners), "outputs", "prefill last", *texts)


def test_a_view_kept_across_runs_raises_where_views_are_guarded() -> None:
    (runner,) = captured(build(stages=1))
    runner.guard_views()
    sizes = runner.full._replace(tokens=6, requests=2)
    kept = runner.run(prefill_batch(sizes, 1)).hidden
    row = kept[2]
    assert torch.equal(kept.clone()[2], row)
    runner.run(prefill_batch(sizes, 2))
    for view in (kept, row):
        with pytest.raises(StaleOutputError, match=r"output hidden .* is of run 1, and run 2"):
            view.sum()
    with pytest.raises(StaleOutputError):
        torch.cat([torch.zeros(1, 8), kept])
    runner.guard_views(False)
    assert type(runner.run(prefill_batch(sizes, 2)).hidden) is torch.Tensor


def test_a_guarded_boundary_feeds_the_next_stage() -> None:
    first, last = captured(build())
    first.guard_views()
    batch = prefill_batch(first.full._replace(tokens=6, requests=2), 1)
    guarded = last.run(batch, first.run(batch)).hidden.clone()
    first.guard_views(False)
    assert torch.equal(last.run(batch, first.run(batch)).hidden, guarded)


# ---------------------------------------------------------------- ranks


def fewer_buckets(runner: Any) -> None:
    type_ = type(runner)
    buckets = dict(list(type_.buckets.items())[:2])
    runner.__class__ = type(type_.__name__, (type_,), {"buckets": buckets})


def other_spec(runner: Any) -> None:
    type_ = type(runner)
    runner.__class__ = type(type_.__name__, (type_,), {"fingerprint": "sha256:other"})


def eager_choice(runner: Any) -> None:
    choose = runner.choose
    runner.choose = lambda live: (
        Choice(None, Reason.MAX_PADDING, "tokens") if live.tokens == 5 else choose(live)
    )


def one_graph_less(runner: Any) -> None:
    captured([runner])
    next(iter(runner.table.values())).graph = None


@pytest.mark.parametrize(
    ("spoil", "texts"),
    [
        (fewer_buckets, ["rank 1, stage 0", "buckets", "the same bucket list"]),
        (other_spec, ["rank 1, stage 0", "fingerprint", "sha256:other"]),
        (eager_choice, ["rank 1, stage 0", "choice", "runs eagerly", "in bucket (8, 4)"]),
        (one_graph_less, ["rank 1, stage 0", "captured buckets"]),
    ],
)
def test_ranks_that_disagree(spoil: Callable[[Any], None], texts: list[str]) -> None:
    peers = build()
    spoil(peers[0])
    caught(subject(build(), peers=[peers]), "ranks", *texts)


def test_stages_built_for_other_sizes() -> None:
    longer = family().Dims.from_config(CONFIG, kv_rows=80, context=6)
    caught(subject([build()[0], build(dims=longer)[1]]), "ranks", "stage 1", "dims", "kv_rows=80")


def test_a_subject_in_the_wrong_order() -> None:
    first, last = build()
    with pytest.raises(BuildError, match="in pipeline order"):
        subject([last, first])
