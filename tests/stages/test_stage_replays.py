"""Replays of the toy's stages: live rows and state, over stale rows, against a reference by hand.

All of its sums are exact, so a replay must equal the reference bit by bit at every padded shape.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor
from toy_model import (
    EMPTY,
    HIDDEN,
    LAYERS,
    RESERVED,
    VOCAB,
    place_of,
    through,
    toy_batch,
    toy_stages,
)

from ppcgc import runtime as rt
from ppcgc.runtime.host_block import BucketHost
from ppcgc.runtime.host_rows import HostRows

BUCKETS = (4, 8, 16)
LIVE = [(n, b) for b in BUCKETS for n in (1, b - 1, b, b + 1)]


def lengths_of(tokens: int) -> list[int]:
    """Requests of unequal lengths, four at most."""
    return [tokens] if tokens < 3 else [1, tokens - 2, 1]


def reference(batch: Any, ranges: list[tuple[int, int]]) -> tuple[Tensor, Tensor]:
    """Final hidden states and sums a request, token by token, without a padded row anywhere."""
    table = [
        [float(word * HIDDEN + column + 1) for column in range(HIDDEN)] for word in range(VOCAB)
    ]
    hidden = [list(table[word]) for word in batch.ids.tolist()]
    residual = [[0.0] * HIDDEN for _ in hidden]
    owner = [r for r, (a, b) in enumerate(pairwise(batch.offsets.tolist())) for _ in range(a, b)]
    loose = sum(batch.positions.tolist()) + sum(batch.scale.tolist()) + len(hidden)
    for stage, (start, end) in enumerate(ranges):
        everything = [loose] * HIDDEN
        if stage:
            for row in (*hidden, *residual):
                everything = [total + value for total, value in zip(everything, row, strict=True)]
        for layer in range(start, end):
            sums = [[0.0] * HIDDEN for _ in range(batch.num_requests)]
            for request, row in zip(owner, hidden, strict=True):
                sums[request] = [a + b for a, b in zip(sums[request], row, strict=True)]
            for token, request in enumerate(owner):
                residual[token] = [
                    a + b for a, b in zip(residual[token], hidden[token], strict=True)
                ]
                hidden[token] = [
                    h + s + e + layer
                    for h, s, e in zip(hidden[token], sums[request], everything, strict=True)
                ]
    out = torch.tensor(hidden) + torch.tensor(residual)
    per_request = [out[a:b].sum(0) for a, b in pairwise(batch.offsets.tolist())]
    return out, torch.stack(per_request)


def ranges_of(runners: list[Any]) -> list[tuple[int, int]]:
    return [(runner.layers.start, runner.layers.end) for runner in runners]


SPLITS = [(1, False), (2, False), (2, True), (3, False), (3, True)]


@pytest.fixture(scope="module", params=SPLITS, ids=lambda p: f"{p[0]} stages{', fed' * p[1]}")
def runners(request: pytest.FixtureRequest, toy: Any) -> list[Any]:
    """A captured pipeline of one, two or three stages."""
    of, fed = request.param
    made = toy_stages(toy, of, fed=fed)
    rt.capture(made)
    return made


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(("tokens", "bucket"), LIVE)
def test_a_replay_over_a_fuller_batch_equals_the_reference(
    runners: list[Any], tokens: int, bucket: int
) -> None:
    through(runners, toy_batch(*[bucket // 4] * 4, seed=1))  # stale contents in every row
    batch = toy_batch(*lengths_of(tokens), seed=tokens)
    out = through(runners, batch)
    wanted, sums = reference(batch, ranges_of(runners))
    assert torch.equal(out.hidden_states, wanted)
    assert torch.equal(out.kept, wanted)
    assert torch.equal(out.sums, sums)
    graph = next((size for size in BUCKETS if size >= tokens), None)
    path = f"replay {tokens}→{graph}" if graph else f"eager {tokens} (over capacity)"
    assert {str(runner.last_step) for runner in runners} == {path}


@pytest.mark.parametrize(("tokens", "bucket"), LIVE)
def test_a_replay_equals_the_model_s_own_python_over_the_same_slots(
    runners: list[Any], tokens: int, bucket: int
) -> None:
    through(runners, toy_batch(*[bucket // 4] * 4, seed=2))
    batch = toy_batch(*lengths_of(tokens), seed=tokens)
    replayed = through(runners, batch)
    pools = [runner.state.pool[0].clone() for runner in runners]
    if runners[0].last_step.path == "eager":
        again = through(runners, batch, "eager")
        assert torch.equal(replayed.hidden_states, again.hidden_states)
        return
    found = replayed.hidden_states.clone()
    for runner in runners:
        loaded = runner.table[runner.last_step.choice.padded]
        with torch.no_grad():
            runner.body(loaded)()
    assert torch.equal(loaded.outputs.hidden_states[:tokens], found)
    for runner, pool in zip(runners, pools, strict=True):
        assert torch.equal(runner.state.pool[0], pool)


def test_a_boundary_that_another_rank_hands_over_arrives_before_its_reset(
    runners: list[Any],
) -> None:
    batch = toy_batch(2, 1, seed=4)
    found = through(runners, batch).hidden_states.clone()
    last = runners[-1]
    loaded = last.table[last.last_step.choice.padded]
    arrivals = []

    def arrive() -> None:
        for rows in last.boundary_tensors(loaded):
            rows[3:] = float("nan")
            arrivals.append(rows)

    with torch.no_grad():
        last.body(loaded, arrive=arrive)()
    assert len(arrivals) == (2 if len(runners) > 1 else 0)
    assert all(rows[3:].count_nonzero() == 0 for rows in arrivals)
    assert torch.equal(loaded.outputs.hidden_states[:3], found)


def test_buckets_in_any_order(runners: list[Any]) -> None:
    order = random.Random(0)
    for step in range(40):
        batch = toy_batch(*lengths_of(order.randint(1, 18)), seed=step)
        out = through(runners, batch)
        wanted, sums = reference(batch, ranges_of(runners))
        assert torch.equal(out.hidden_states, wanted)
        assert torch.equal(out.sums, sums)


def test_no_request_and_no_token_is_a_batch(runners: list[Any]) -> None:
    out = through(runners, toy_batch())
    assert out.hidden_states.shape == (0, HIDDEN)
    assert out.sums.shape == (0, HIDDEN)
    batch = toy_batch(2, 2)
    assert torch.equal(
        through(runners, batch).hidden_states, reference(batch, ranges_of(runners))[0]
    )


# ---------------------------------------------------------------- the checks see what they look for


def forget_boundary_reset(patch: pytest.MonkeyPatch, runners: list[Any]) -> None:
    patch.setattr(runners[-1], "reset_boundary", lambda bucket: None)


def forget_host_padding(patch: pytest.MonkeyPatch, runners: list[Any]) -> None:
    # with whatever the batch before left there
    patch.setattr(BucketHost, "begin", lambda host: host._rows)


def forget_repeat_last(patch: pytest.MonkeyPatch, runners: list[Any]) -> None:
    patch.setattr(HostRows, "pad_repeat_last", lambda rows, live: None)


def forget_device_padding(patch: pytest.MonkeyPatch, runners: list[Any]) -> None:
    patch.setattr("ppcgc.runtime.row_moves.pad_fill", lambda slot, live, value: None)


@pytest.mark.parametrize(
    "forget",
    [forget_boundary_reset, forget_host_padding, forget_repeat_last, forget_device_padding],
)
def test_a_forgotten_reset_shows(toy: Any, forget: Any) -> None:
    made = toy_stages(toy, 2)
    with pytest.MonkeyPatch.context() as patch:
        forget(patch, made)
        rt.capture(made)
        for _ in range(2):  # each entry of the host ring
            through(made, toy_batch(2, 2, 2, 2, seed=1))
        batch = toy_batch(2, 3, seed=2)
        out = through(made, batch)
    wanted, sums = reference(batch, ranges_of(made))
    assert not (torch.equal(out.hidden_states, wanted) and torch.equal(out.sums, sums))


# ---------------------------------------------------------------- memory


def test_a_step_writes_its_live_rows_and_the_reserved_one(runners: list[Any]) -> None:
    through(runners, toy_batch(4, 4, 4, 4, seed=3))
    for runner in runners:
        runner.state.pool[0].fill_(EMPTY)
    batch = toy_batch(3, 2, seed=4)
    through(runners, batch)
    for runner in runners:
        (pool,) = runner.state.pool
        written = (pool != EMPTY).any(1).nonzero().flatten().tolist()
        assert written == sorted([*batch.mapping.tolist(), RESERVED[0]])


def test_outputs_lie_at_one_address_for_all_buckets(runners: list[Any]) -> None:
    found = set()
    for tokens in (2, 4, 5, 9, 16, 3):
        out = through(runners, toy_batch(*lengths_of(tokens)))
        found.add(out.hidden_states.data_ptr())
    assert len(found) == 1
    handed = {
        first.table[padded].outputs.hidden_states.data_ptr()
        for first in runners[:-1]
        for padded in first.table
    }
    assert len(handed) == len(runners) - 1


def test_a_fed_stage_receives_in_place(toy: Any) -> None:
    for fed in (False, True):
        first, last = toy_stages(toy, 2, fed=fed)
        rt.capture([first, last])
        handed = first.run(toy_batch(3, 2))
        received = last.table[(8, 4)].boundary
        assert (handed.hidden_states.data_ptr() == received.hidden_states.data_ptr()) is fed
        assert (handed.residual.data_ptr() == received.residual.data_ptr()) is fed
        wanted, _ = reference(toy_batch(3, 2), ranges_of([first, last]))
        assert torch.equal(last.run(toy_batch(3, 2), handed).hidden_states, wanted)
        if fed:  # an eager sender's boundary lies elsewhere and is copied
            assert torch.equal(
                last.run(toy_batch(3, 2), first.eager(toy_batch(3, 2))).hidden_states, wanted
            )


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_stages_may_be_fed_and_captured_in_any_order(toy: Any, order: tuple[int, ...]) -> None:
    made = toy_stages(toy, 3)
    for stage in order:
        if stage < 2:
            made[stage].feed(made[stage + 1])
    rt.capture([made[stage] for stage in order])
    batch = toy_batch(4, 1)
    assert torch.equal(through(made, batch).hidden_states, reference(batch, ranges_of(made))[0])


def test_intermediates_take_the_most_of_any_graph_and_not_the_sum(runners: list[Any]) -> None:
    graphs = [bucket.graph for runner in runners for bucket in runner.table.values()]
    needed = [graph.pool_bytes for graph in graphs]
    assert runners[0].backend.pool_bytes() == max(needed) < sum(needed)


def test_a_poisoned_pool_changes_nothing(runners: list[Any]) -> None:
    runners[0].backend.poison_pool()
    batch = toy_batch(5, 2, seed=5)
    assert torch.equal(
        through(runners, batch).hidden_states, reference(batch, ranges_of(runners))[0]
    )


def test_nan_past_the_live_rows_of_a_boundary_is_reset(toy: Any) -> None:
    first, last = toy_stages(toy, 2)
    rt.capture([first, last])
    batch = toy_batch(3, 2)
    for key in ("hidden_states", "residual"):
        last.table[(8, 4)].boundary[key].fill_(float("nan"))
    out = last.run(batch, first.run(batch))
    assert torch.equal(out.hidden_states, reference(batch, ranges_of([first, last]))[0])


# ---------------------------------------------------------------- words of outputs and forward


def test_a_clone_survives_a_ring_holds_two_a_view_does_not(toy: Any) -> None:
    (runner,) = toy_stages(toy, 1)
    rt.capture([runner])
    batches = [toy_batch(5, 2, seed=seed) for seed in range(3)]
    outs = [runner.run(batch) for batch in batches]
    wanted = [reference(batch, [(0, LAYERS)]) for batch in batches]
    for out, (hidden, _) in zip(outs, wanted, strict=True):
        assert torch.equal(out.kept, hidden)
        assert torch.equal(out.hidden_states, wanted[-1][0])
    assert torch.equal(outs[1].sums, wanted[1][1])
    assert torch.equal(outs[2].sums, wanted[2][1])
    assert outs[0].sums.data_ptr() == outs[2].sums.data_ptr()


def test_every_place_gets_its_own_keywords(runners: list[Any]) -> None:
    through(runners, toy_batch(3, 2), "eager")
    for stage, runner in enumerate(runners):
        assert runner.place is place_of(stage, len(runners))
        assert [call["padded"] for call in runner.model.seen[:6]] == [16, 8, 4] * 2  # captured
        eager = runner.model.seen[-1]
        assert eager["padded"] == 5  # the padded extent of an eager step is its live one
        assert eager["mode"] == "packed"
        assert (eager["ids"] is None) is (stage > 0)
        assert (eager["boundary"] is None) is (stage == 0)


def test_replays_run_no_python_of_the_model(runners: list[Any]) -> None:
    calls = [len(runner.model.seen) for runner in runners]
    for tokens in BUCKETS:
        through(runners, toy_batch(*lengths_of(tokens)))
    assert [len(runner.model.seen) for runner in runners] == calls


# ---------------------------------------------------------------- two runners of one model


@pytest.mark.parametrize("requests", [1, 2, 3, 4, 5])
def test_decode_buckets_follow_requests(toy: Any, requests: int) -> None:
    backend = rt.open_backend("cpu")
    prefill = toy_stages(toy, 2, backend=backend)
    decode = toy_stages(toy, 2, runner="Decode", backend=backend)
    rt.capture([*prefill, *decode])
    for batch, made in (
        (toy_batch(4, 4, 4, 4), prefill),
        (toy_batch(1, 1, 1, 1), decode),
        (toy_batch(*[1] * requests, seed=requests), decode),
    ):
        out = through(made, batch)
        assert torch.equal(out.hidden_states, reference(batch, ranges_of(made))[0])
    padded = {1: 1, 2: 2, 3: 4, 4: 4}.get(requests)
    wanted = f"replay {requests}→{padded}" if padded else f"eager {requests} (over capacity)"
    assert str(decode[0].last_step) == wanted
