"""Runners of a stage in the same memory: results as with memory of their own, and less of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from spec_tools import SPECS, import_spec, import_text
from test_stage_replays import lengths_of, ranges_of, reference
from torch import Tensor
from toy_model import HIDDEN, through, toy_batch, toy_stages

from ppcgc import runtime as rt
from ppcgc.runtime.errors import BuildError, StaleOutputError, StaleStepError
from ppcgc.runtime.sharing import Shared

TOY = (SPECS / "toy.yaml").read_text(encoding="utf-8")


def both(toy: Any, of: int = 1, *, fed: bool = False, share: bool = True) -> tuple[Any, Any]:
    """Prefill and decode of every stage, captured together."""
    backend = rt.open_backend("cpu")
    prefill, decode = (
        toy_stages(toy, of, runner=name, backend=backend, fed=fed) for name in ("Prefill", "Decode")
    )
    rt.capture([*prefill, *decode], share=share)
    return prefill, decode


def memory(runner: Any) -> Iterator[tuple[str, int, int]]:
    """Every buffer on the device by name: first byte and past-last byte."""
    for name, tensor in (*runner.arena.named(""), ("host block", runner.host_bytes)):
        yield name, tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes


def in_both(one: Any, other: Any) -> set[tuple[str, str]]:
    """Pairs of buffers of two runners that have bytes in common."""
    return {
        (name, other_name)
        for name, start, end in memory(one)
        for other_name, other_start, other_end in memory(other)
        if max(start, other_start) < min(end, other_end)
    }


def poison(shared: Shared) -> None:
    for block in shared.blocks:
        block.fill_(0x5A)  # as int64, int32 and float32: large, and no index of anything


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("of", "fed", "poisoned"),
    [(1, False, True), (2, False, True), (2, True, False), (3, True, True), (3, False, False)],
)
def test_steps_in_any_order_equal_the_reference(
    toy: Any, of: int, fed: bool, poisoned: bool
) -> None:
    shared, apart = both(toy, of, fed=fed), both(toy, of, fed=fed, share=False)
    order = random.Random(of)
    paths = set()
    for number in range(60):
        which = order.randrange(2)
        lengths = [1] * order.randint(1, 4) if which else lengths_of(order.randint(1, 18))
        batch = toy_batch(*lengths, seed=number)
        if poisoned:
            for runner in shared[0]:
                poison(runner.shared)
        found, plain = through(shared[which], batch), through(apart[which], batch)
        wanted, sums = reference(batch, ranges_of(shared[which]))
        assert torch.equal(found.hidden_states, wanted)
        assert torch.equal(plain.hidden_states, wanted)
        if not which:
            assert torch.equal(found.kept, wanted)
            assert torch.equal(found.sums, sums)
        for mine, its in zip(shared[which], apart[which], strict=True):
            assert torch.equal(mine.state.pool[0], its.state.pool[0])
        paths.add((which, str(shared[which][0].last_step).split()[0]))
    assert paths == {(0, "replay"), (0, "eager"), (1, "replay")}


def test_what_one_runner_gave_may_be_what_the_other_is_loaded_from(toy: Any) -> None:
    (prefill,), (decode,) = both(toy)
    out = prefill.run(toy_batch(3, 1, 2))
    batch = toy_batch(1, 1, 1, 1)
    batch.scale = out.hidden_states.view(-1)[:4]  # lies in the memory of outputs
    copied = toy_batch(1, 1, 1, 1)
    copied.scale = batch.scale.clone()
    assert torch.equal(decode.run(batch).hidden_states, reference(copied, ranges_of([decode]))[0])


def test_kept_outputs_outlive_the_other_runner_s_steps(toy: Any) -> None:
    (prefill,), (decode,) = both(toy)
    batch = toy_batch(3, 2)
    out = prefill.run(batch)
    for seed in range(3):
        decode.run(toy_batch(1, 1, 1, seed=seed))
    wanted, sums = reference(batch, ranges_of([prefill]))
    assert torch.equal(out.kept, wanted)  # keep: clone
    assert torch.equal(out.sums, sums)  # keep: ring(2)


# ---------------------------------------------------------------- addresses


@pytest.mark.parametrize("fed", [False, True])
def test_runners_of_a_stage_share_inputs_with_inputs_and_outputs_with_outputs(
    toy: Any, fed: bool
) -> None:
    prefill, decode = both(toy, 3, fed=fed)
    sides = {"slot": "in", "received": "in", "host block": "in", "output": "out", "handed": "out"}
    for one, other in zip(prefill, decode, strict=True):
        pairs = in_both(one, other)
        assert ("host block", "host block") in pairs
        kinds = {(sides[a.split(".")[0]], sides[b.split(".")[0]]) for a, b in pairs}
        assert kinds <= {("in", "in"), ("out", "out")}
        if not fed or one is prefill[-1]:  # else the outputs lie among the next one's inputs
            assert kinds == {("in", "in"), ("out", "out")}
        assert not {name for pair in pairs for name in pair if name.startswith("ring.")}


def test_the_buffers_of_one_runner_do_not_overlap(toy: Any) -> None:
    for runner in (runner for made in both(toy, 2) for runner in made):
        spans = sorted((start, end) for _, start, end in memory(runner))
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_stages_do_not_share_with_each_other(toy: Any) -> None:
    prefill, decode = both(toy, 3)
    for number, one in enumerate(prefill):
        assert not any(
            in_both(one, other)
            for other in (*prefill, *decode)
            if other is not one and other is not decode[number]
        )


@pytest.fixture(scope="module")
def overlapping(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The toy, whose decode overlaps a third runner like it, and not prefill."""
    decode = TOY[TOY.index("  decode:\n") :]
    lines = {
        name: f"    overlaps: [{name}]\n    buckets: {{requests" for name in ("draft", "decode")
    }
    text = (
        TOY.replace("family: toy", "family: toy_overlaps")[: TOY.index("  decode:\n") + 9]
        + decode.replace("    buckets: {requests", lines["draft"])
        + "\n"
        + decode.replace("  decode:", "  draft:").replace("    buckets: {requests", lines["decode"])
    )
    return import_text(text, tmp_path_factory.mktemp("overlaps"), "toy_overlaps.yaml")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
def test_runners_that_overlap_share_no_byte(overlapping: Any, order: tuple[int, ...]) -> None:
    backend = rt.open_backend("cpu")
    made = [
        toy_stages(overlapping, 2, runner=name, backend=backend)
        for name in ("Prefill", "Decode", "Draft")
    ]
    rt.capture([runner for number in order for runner in made[number]], share=True)
    for prefill, decode, draft in zip(*made, strict=True):
        assert decode.overlaps == ("draft",)
        assert draft.overlaps == ("decode",)
        assert in_both(decode, draft) == set()
        assert sum(bool(in_both(prefill, other)) for other in (decode, draft)) == 1


def test_overlapping_runners_may_be_begun_at_once(overlapping: Any) -> None:
    backend = rt.open_backend("cpu")
    (prefill,), (decode,), (draft,) = (
        toy_stages(overlapping, 1, runner=name, backend=backend)
        for name in ("Prefill", "Decode", "Draft")
    )
    rt.capture([prefill, decode, draft], share=True)
    batches = toy_batch(1, 1, 1, seed=1), toy_batch(1, 1, seed=2)
    steps = decode.begin(batches[0]), draft.begin(batches[1])
    found = decode.finish(steps[0]).hidden_states, draft.finish(steps[1]).hidden_states
    for batch, out in zip(batches, found, strict=True):
        assert torch.equal(out, reference(batch, [(0, 3)])[0])


def test_without_the_word_nothing_is_shared(toy: Any) -> None:
    prefill, decode = both(toy, 2, share=False)
    for one, other in zip(prefill, decode, strict=True):
        assert in_both(one, other) == set()
        assert one.report().shares_with == ()


def test_two_sets_of_runners_pair_up_by_name(toy: Any) -> None:
    backend = rt.open_backend("cpu")
    made = [
        toy_stages(toy, 1, runner=name, backend=backend)[0]
        for name in ("Prefill", "Prefill", "Decode", "Decode")
    ]
    rt.capture(made, share=True)
    pairs = {(a, b) for a in range(4) for b in range(a) if in_both(made[a], made[b])}
    assert pairs == {(2, 0), (3, 1)}


def test_runners_of_two_backends_share_nothing(toy: Any) -> None:
    (prefill,), (decode,) = toy_stages(toy, 1), toy_stages(toy, 1, runner="Decode")
    rt.capture([prefill, decode], share=True)
    assert in_both(prefill, decode) == set()
    assert prefill.shared is None


# ---------------------------------------------------------------- bytes


def test_the_memory_is_the_larger_of_both(toy: Any) -> None:
    (prefill,), (decode,) = both(toy)
    (alone, other) = (runners[0].report() for runners in both(toy, share=False))
    report, its = prefill.report(), decode.report()
    ring = 2 * 4 * HIDDEN * 4  # ring(2) of [requests, hidden] float32
    assert (report.slot_bytes, report.host_block_bytes) == (ring, 0)
    assert (its.slot_bytes, its.host_block_bytes) == (0, 0)
    assert report.shared_bytes == its.shared_bytes
    assert (report.shares_with, its.shares_with) == (("decode",), ("prefill",))
    own = alone.slot_bytes + alone.host_block_bytes
    assert own <= report.shared_bytes + ring < own + 6 * 64  # each buffer is aligned
    assert report.shared_bytes + ring < own + other.slot_bytes + other.host_block_bytes
    line = f"memory shared with decode: {report.shared_bytes:,} bytes"
    assert line in str(report)
    assert "shared with" not in str(alone)


# ---------------------------------------------------------------- steps and views in time


@pytest.mark.parametrize("how", ["begin", "run"])
def test_a_step_begun_before_the_other_runner_s_is_stale(toy: Any, how: str) -> None:
    (prefill,), (decode,) = both(toy)
    begun = prefill.begin(toy_batch(3, 2))
    getattr(decode, how)(toy_batch(1, 1))
    with pytest.raises(StaleStepError, match="by a runner that shares the memory"):
        prefill.finish(begun)
    batch = toy_batch(2, 2)
    assert torch.equal(prefill.run(batch).hidden_states, reference(batch, [(0, 3)])[0])


def test_a_step_belongs_to_the_runner_that_began_it(toy: Any) -> None:
    (prefill,), (decode,) = both(toy)
    batch = toy_batch(1, 1)
    for begin in (prefill.begin, prefill.begin_eager):
        step = begin(batch)
        with pytest.raises(StaleStepError, match="another runner's"):
            decode.finish(step)
        assert torch.equal(prefill.finish(step).hidden_states, reference(batch, [(0, 3)])[0])


def test_a_guarded_view_is_stale_after_the_other_runner_s_step(toy: Any) -> None:
    (prefill,), (decode,) = both(toy)
    prefill.guard_views()
    out = prefill.run(toy_batch(3, 2))
    assert out.hidden_states.shape == (5, HIDDEN)
    its = decode.run(toy_batch(1, 1)).hidden_states
    with pytest.raises(StaleOutputError, match=r"prefill .*, toy\.decode"):
        out.hidden_states.sum()
    assert out.kept.sum() > 0
    prefill.run(toy_batch(2))
    with pytest.raises(StaleOutputError):
        its.sum()
    decode.guard_views(False)
    out = prefill.run(toy_batch(3, 2))
    decode.run(toy_batch(1, 1))
    assert out.hidden_states.sum() != 0


# ---------------------------------------------------------------- life cycle


def test_a_closed_runner_leaves_the_other_at_work(toy: Any) -> None:
    (prefill,), (decode,) = both(toy)
    prefill.close()
    decode.drop(next(iter(decode.table)), "for the test")
    for seed in range(3):
        batch = toy_batch(*[1] * (seed + 1), seed=seed)
        wanted = reference(batch, [(0, 3)])[0]
        assert torch.equal(prefill.eager(batch).hidden_states, wanted)
        assert torch.equal(decode.run(batch).hidden_states, wanted)
    assert str(decode.last_step) == "replay 3→4"


def test_addresses_stay_over_another_capture(toy: Any) -> None:
    (prefill,), (decode,) = both(toy)
    before = [list(memory(runner)) for runner in (prefill, decode)]
    rt.capture([prefill, decode], share=True)
    rt.capture([decode])
    assert [list(memory(runner)) for runner in (prefill, decode)] == before
    assert prefill.check_addresses() == decode.check_addresses() == ()
    batch = toy_batch(4, 1)
    assert torch.equal(prefill.run(batch).hidden_states, reference(batch, [(0, 3)])[0])


def test_a_runner_with_buffers_of_its_own_cannot_share(toy: Any) -> None:
    (prefill,), (decode,) = both(toy, share=False)
    with pytest.raises(BuildError, match="has its buffers already"):
        rt.capture([prefill, decode], share=True)


# ---------------------------------------------------------------- what is never shared

OWN = {"kept", "noise", "gain", "given", "hooked", "scratch"}


class Fill:
    """The hook: what it writes is of the step."""

    def load(self, slots: Any, batch: Any, live: Any) -> None:
        slots.hooked[: live.tokens] = 3.0


class KeepingModel:
    """Adds up every slot; a slot with `keep` counts its padded rows too."""

    def forward(self, *, ids: Any, view: Any, boundary: Any = None) -> Any:
        view.noise.add_(1)
        view.scratch.copy_(view.plain * 2)
        sums = ids + view.plain + view.kept.sum() + view.noise + view.gain + view.given
        sums = sums + view.hooked + view.scratch
        if boundary is None:
            return sums[:, None].expand(-1, HIDDEN)
        return sums + boundary.hidden_states.sum(1)


@pytest.fixture(scope="module")
def keeping(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return import_spec("keeping", tmp_path_factory.mktemp("keeping"))


def keeping_runners(keeping: Any, *, share: bool) -> tuple[list[Any], list[Any]]:
    backend = rt.open_backend("cpu")
    dims = keeping.Dims.from_config({"hidden": HIDDEN})
    made: tuple[list[Any], list[Any]] = [], []
    for runners, name in zip(made, ("One", "Two"), strict=True):
        hooks = SimpleNamespace(fill=Fill())
        for stage, place in enumerate(("First", "Last")):
            runners.append(
                getattr(keeping, name + place)(
                    model=KeepingModel(),
                    layers=keeping.stage_layers(dims, stage=stage, of=2),
                    dims=dims,
                    dtype=torch.float32,
                    backend=backend,
                    hooks=hooks,
                )
            )
    rt.capture([*made[0], *made[1]], share=share)
    return made


def keeping_step(runners: list[Any], tokens: int, seed: int) -> Tensor:
    make = torch.Generator().manual_seed(seed)
    rows = torch.randint(1, 9, (3, tokens), generator=make).float()

    class Batch:
        num_tokens = tokens
        ids = torch.arange(tokens) + 1
        plain, kept, noise = rows

    handed: Any = None
    for runner in runners:
        step = runner.begin(Batch) if handed is None else runner.begin(Batch, handed)
        step.slots.given[:tokens] = seed
        handed = runner.finish(step)
    sums: Tensor = handed.sums
    return sums.clone()


def test_what_keeps_a_value_has_memory_of_its_own(keeping: Any) -> None:
    one, two = keeping_runners(keeping, share=True)
    for mine, its in zip(one, two, strict=True):
        names = {name for pair in in_both(mine, its) for name in pair}
        assert {"slot.plain", "host block"} <= names
        assert not names & {f"slot.{name}" for name in OWN}
    assert "received.hidden_states" in {name for pair in in_both(one[1], two[1]) for name in pair}


def test_what_is_kept_is_kept_over_the_other_runner_s_steps(keeping: Any) -> None:
    shared, apart = (keeping_runners(keeping, share=share) for share in (True, False))
    order = random.Random(4)
    for seed in range(40):
        which, tokens = order.randrange(2), order.randint(1, 8)
        found = keeping_step(shared[which], tokens, seed)
        assert torch.equal(found, keeping_step(apart[which], tokens, seed))
    assert not in_both(apart[0][0], apart[1][0])


def test_memory_is_lent_before_it_is_used() -> None:
    """A buffer that is there already stays where it is."""
    arena = rt.DeviceArena(torch.device("cpu"))
    first = arena.rows("slot.a", (2,), (4,), torch.float32)
    arena.lend("slot.b", torch.zeros(64, dtype=torch.uint8))
    second = arena.rows("slot.b", (2,), (4,), torch.float32)
    assert arena.nbytes == 16  # of slot.a alone
    assert arena.is_placed("slot.a") and first.data_ptr() != second.data_ptr()
