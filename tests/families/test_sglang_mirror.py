"""The buffers of SGLang's decode and prefill graphs: same inputs, same contents, slot for slot.

Its registry resets padded rows of some slots and leaves those of others as an earlier step wrote
them; there, ours are reset all the same. What else differs is what it accepts in silence and
ppcgc refuses: one test for each trap, named as in the catalogue of cases (T1 to T10). Tests that
need its code are skipped where neither its wheel nor an installation is at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from sglang_pair import (
    HIDDEN,
    Setting,
    batch_of,
    boundary_of,
    build,
    fill,
    registry_of,
    slot_of,
)
from sglang_wheel import Field, find, loaded

from generated import sglang_decode, sglang_prefill
from ppcgc.driver import Source, compile_sources
from ppcgc.runtime import Choice, LayerRange, Ranks, Reason
from ppcgc.runtime.errors import AbsentSourceError, LayerError, PpcgcError, SourceError
from ppcgc.runtime.layers import GlobalLayerId

PACKAGES = {"decode": sglang_decode, "prefill": sglang_prefill}

DECODE = [
    Setting(kind="decode"),
    Setting(
        kind="decode",
        options=frozenset(
            [
                "mrope",
                "mamba_track",
                "encoder_decoder",
                "expert_parallel",
                "ngram_embedding",
                "canary",
                "topk_handed_on",
            ]
        ),
    ),
    Setting(
        kind="decode",
        options=frozenset(["expert_parallel", "sequence_sharded"]),
        tp=Ranks(size=2, rank=1),
    ),
    Setting(
        kind="decode",
        options=frozenset(["gathered_buffer", "mlp_tp_gather", "mrope"]),
        dp=Ranks(size=3, rank=1),
    ),
]
PREFILL = [
    Setting(kind="prefill"),
    Setting(
        kind="prefill",
        options=frozenset(["multimodal", "mamba_track", "expert_parallel", "topk_handed_on"]),
    ),
    Setting(
        kind="prefill",
        options=frozenset(["expert_parallel", "sequence_sharded"]),
        tp=Ranks(size=4, rank=2),
    ),
    Setting(kind="prefill", dp=Ranks(size=2, rank=0)),
]

# requests and tokens of each step, a full bucket first so that stale rows show
STEPS = {
    "decode": [(8, 8), (3, 3), (1, 1), (5, 5), (8, 8), (7, 7)],
    "prefill": [(16, 64), (2, 9), (1, 1), (5, 33), (3, 64), (2, 17)],
}
ONLY_DECODE, ONLY_PREFILL = DECODE[0], PREFILL[0]


@pytest.fixture(scope="module")
def field() -> Iterator[Field]:
    read, why = find()
    if read is None:
        pytest.skip(why)
    with loaded(read) as field:
        yield field


# ---------------------------------------------------------------- equal, slot for slot


@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize(
    "setting", DECODE + PREFILL, ids=lambda s: "-".join([s.kind, *sorted(s.options)])
)
def test_buffers_are_equal_slot_for_slot(field: Field, setting: Setting, first: bool) -> None:
    package = PACKAGES[setting.kind]
    registry = registry_of(field, setting, first=first)
    runner = build(package, setting, first=first)
    names = registry.slot_names()
    if setting.kind == "decode" and not setting.on("mrope"):
        names.remove("mrope_positions")  # it has the buffer for every model, and skips it (T2)
    assert sorted(ours(runner)) == sorted(names)

    for seed, (requests, tokens) in enumerate(STEPS[setting.kind]):
        batch = batch_of(setting, requests, tokens, seed, others=min(tokens + 1, 8))
        given = [batch] if first else [batch, boundary_of(package, batch)]
        step = runner.begin(*given)
        padded = step.choice.padded
        assert padded is not None
        fill(registry, batch, padded, requests=None if setting.kind == "decode" else requests)
        if "input_embeds" in names:  # both leave the live rows to the caller
            embeds = torch.rand(tokens, HIDDEN)
            step.slots.input_embeds[:tokens] = embeds
            registry.get_slot("input_embeds").buffer[:tokens] = embeds
        runner.finish(step)
        for name in names:
            compare(field, registry.get_slot(name), slot_of(step.slots, name), step)


def ours(runner: Any) -> list[str]:
    """The slots that the runner has."""
    slots = next(iter(runner.table.values())).slots
    return [info.name for info in runner.inputs.table() if slot_of(slots, info.name) is not None]


def compare(field: Field, slot: Any, rows: Any, step: Any) -> None:
    """Its slot against ours: all live rows, and padded ones where its policy resets them."""
    policy = field.registry.PaddingPolicy
    resets = slot.padding_policy in (policy.ZERO, policy.FILL_SENTINEL)
    assert slot.buffer.dtype == rows.dtype, slot.name
    extents = step.choice.padded if resets else step.live
    if slot.axis == "none" and "." not in slot.name:
        theirs = slot.buffer
    else:
        axis = axis_of(slot)
        count = getattr(extents, axis)
        dim = 1 if slot.slice_fn is not None else 0
        theirs, rows = slot.buffer.narrow(dim, 0, count), rows.narrow(dim, 0, count)
    assert torch.equal(theirs, rows), f"{slot.name}: {theirs} is not {rows}"


def axis_of(slot: Any) -> str:
    """The axis of a slot. Its dotted ones say `none`, and are as long as their sources."""
    if slot.axis == "none":
        return "requests" if slot.name.startswith("ngram") else "tokens"
    return "requests" if slot.axis == "bs" else "tokens"


# ---------------------------------------------------------------- what it accepts in silence


def after_full(setting: Setting, *, first: bool = False) -> tuple[Any, Any]:
    """Our runner behind a batch that filled the largest bucket, and that batch."""
    package = PACKAGES[setting.kind]
    runner = build(package, setting, first=first)
    full = batch_of(setting, *STEPS[setting.kind][0], seed=50)
    runner.run(*([full] if first else [full, boundary_of(package, full)]))
    return runner, full


def its_registry(field: Field, setting: Setting, *, first: bool = False) -> tuple[Any, Any]:
    """Its registry behind the same batch."""
    registry = registry_of(field, setting, first=first)
    full = batch_of(setting, *STEPS[setting.kind][0], seed=50)
    requests, tokens = STEPS[setting.kind][0]
    fill(registry, full, SimpleNamespace(requests=requests, tokens=tokens))
    return registry, full


FIVE, EIGHT = (5, 5), SimpleNamespace(requests=8, tokens=8)


def test_t1_a_tail_is_never_left_alone() -> None:
    runner, _ = after_full(ONLY_DECODE, first=True)
    step = runner.begin(batch_of(ONLY_DECODE, *FIVE, seed=51))
    assert step.slots.input_ids[5:].tolist() == [0, 0, 0]
    text = "- {name: ids, axis: tokens, dtype: int64, source: batch.ids}"
    assert codes(text) == ["PPC201"]  # nor can a spec leave it unsaid


def test_t1_its_default_leaves_the_tail_alone(field: Field) -> None:
    registry, full = its_registry(field, ONLY_DECODE, first=True)
    fill(registry, batch_of(ONLY_DECODE, *FIVE, seed=51), EIGHT)
    assert torch.equal(registry.get_slot("input_ids").buffer[5:], full.input_ids[5:])


def test_t2_an_absent_source_is_an_error() -> None:
    runner, _ = after_full(ONLY_DECODE)
    batch = batch_of(ONLY_DECODE, *FIVE, seed=51)
    boundary = boundary_of(sglang_decode, batch)
    batch.req_pool_indices = None
    with pytest.raises(AbsentSourceError, match="req_pool_indices"):
        runner.run(batch, boundary)
    good = batch_of(ONLY_DECODE, *FIVE, seed=51)
    with pytest.raises(PpcgcError, match="residual"):
        runner.run(good, replace(boundary_of(sglang_decode, good), residual=None))
    runner.run(good, boundary_of(sglang_decode, good))  # and the runner goes on
    assert runner.last_step.path == "replay"


def test_t2_it_keeps_the_values_of_the_step_before(field: Field) -> None:
    registry, full = its_registry(field, ONLY_DECODE)
    batch = batch_of(ONLY_DECODE, *FIVE, seed=51)
    batch.req_pool_indices, batch.proxy["residual"] = None, None
    fill(registry, batch, EIGHT)
    assert torch.equal(registry.get_slot("req_pool_indices").buffer[:5], full.req_pool_indices[:5])
    stale = registry.get_slot("pp_proxy_tensors.residual").buffer
    assert torch.equal(stale, full.proxy["residual"])


def test_t3_fewer_rows_than_live_are_an_error() -> None:
    runner, _ = after_full(ONLY_DECODE)
    batch = batch_of(ONLY_DECODE, *FIVE, seed=51)
    batch.proxy["hidden_states"] = batch.proxy["hidden_states"][:4]
    with pytest.raises(PpcgcError, match=r"hidden_states.*\[4, 6\].*\[5, 6\]"):
        runner.run(batch, boundary_of(sglang_decode, batch))


def test_t3_it_takes_fewer_rows(field: Field) -> None:
    registry, full = its_registry(field, ONLY_DECODE)
    batch = batch_of(ONLY_DECODE, *FIVE, seed=51)
    batch.proxy["hidden_states"] = batch.proxy["hidden_states"][:4]
    fill(registry, batch, EIGHT)
    stale = registry.get_slot("pp_proxy_tensors.hidden_states").buffer[4]
    assert torch.equal(stale, full.proxy["hidden_states"][4])


def test_t4_rows_are_reset_wherever_their_axis_stands() -> None:
    setting = Setting(kind="prefill", options=frozenset(["multimodal"]))
    runner = build(sglang_prefill, setting, first=True)
    full = runner.begin(batch_of(setting, 16, 64, seed=50))
    full.slots.input_embeds.fill_(7.0)
    step = runner.begin(batch_of(setting, 2, 5, seed=51))
    assert step.slots.input_embeds.eq(0).all()  # live ones too, until the caller writes them
    assert step.slots.mrope_positions[:, 5:].eq(0).all()  # and last here
    assert step.slots.mrope_positions[:, :5].gt(0).all()


def test_t4_a_slice_of_its_own_makes_it_reset_columns(field: Field) -> None:
    registry = registry_of(field, ONLY_PREFILL, first=True)
    registry.register_slot(
        field.registry.GraphSlot(
            "states",
            lambda _, tokens: (tokens, HIDDEN),
            torch.float32,
            padding_policy=field.registry.PaddingPolicy.ZERO,
            slice_fn=lambda rows, n: rows[:n],
        )
    )
    states = registry.get_slot("states").buffer.fill_(7.0)
    fill(registry, batch_of(ONLY_PREFILL, 1, 5, seed=51), SimpleNamespace(requests=1, tokens=8))
    assert states[5:8, :5].eq(7).all()  # rows past the live ones are stale
    assert states[:8, 5:].eq(0).all()  # the last column of all of them is gone


def test_t5_more_live_than_padded_rows_are_an_error() -> None:
    runner, _ = after_full(ONLY_DECODE, first=True)
    batch = batch_of(ONLY_DECODE, *FIVE, seed=51)
    live = runner.extents(batch)
    small = next(padded for padded in runner.table if padded.tokens == 4)
    with pytest.raises(SourceError, match="5 live rows, the bucket has 4"):
        runner.begin_as(batch, None, live, Choice(small, Reason.FITS))


def test_t5_it_writes_rows_past_the_bucket(field: Field) -> None:
    registry = registry_of(field, ONLY_DECODE, first=True)
    batch = batch_of(ONLY_DECODE, *FIVE, seed=51)
    fill(registry, batch, SimpleNamespace(requests=4, tokens=4))
    assert registry.get_slot("positions").buffer[4] == batch.positions[4]


def test_t6_padded_rows_received_are_reset() -> None:
    runner, _ = after_full(ONLY_DECODE)
    batch = batch_of(ONLY_DECODE, *FIVE, seed=51)
    step = runner.begin(batch, boundary_of(sglang_decode, batch))
    runner.finish(step)
    for key in ("hidden_states", "residual"):
        assert getattr(step.slots.pp_proxy_tensors, key)[5:].eq(0).all()


def test_t6_its_padded_rows_hold_an_earlier_batch(field: Field) -> None:
    registry, full = its_registry(field, ONLY_DECODE)
    fill(registry, batch_of(ONLY_DECODE, *FIVE, seed=51), EIGHT)
    for key in ("hidden_states", "residual"):
        stale = registry.get_slot(f"pp_proxy_tensors.{key}").buffer[5:]
        assert torch.equal(stale, full.proxy[key][5:])


def test_t7_a_missing_layer_is_an_error() -> None:
    """Its own half is in the set-up of graphs, which needs a whole engine to run."""
    with pytest.raises(LayerError, match=r"missing: \[2\]"):
        LayerRange(2, 4, 4).align([(GlobalLayerId(3), "L3")])


def test_t8_a_fill_without_a_value_is_refused_in_the_spec() -> None:
    text = "- {name: ids, axis: tokens, dtype: int64, padding: fill, source: batch.ids}"
    assert codes(text) == ["PPC104"]
    text = "- {name: ids, axis: tokens, dtype: int64, padding: {fill: null}, source: batch.ids}"
    assert codes(text) != []


def test_t8_its_sentinel_without_a_value_waits_for_a_padded_step(field: Field) -> None:
    registry = registry_of(field, ONLY_DECODE, first=True)
    policy = field.registry.PaddingPolicy.FILL_SENTINEL
    shape = lambda requests, _: (requests,)  # noqa: E731  # as its own registry is written
    slot = field.registry.GraphSlot("lengths", shape, torch.int64, axis="bs", padding_policy=policy)
    registry.register_slot(slot)
    fill(registry, batch_of(ONLY_DECODE, 8, 8, seed=50), EIGHT)
    with pytest.raises(RuntimeError, match="pad_value"):
        fill(registry, batch_of(ONLY_DECODE, *FIVE, seed=51), EIGHT)


def test_t9_another_dtype_is_an_error_unless_the_spec_says_cast() -> None:
    runner, _ = after_full(ONLY_DECODE, first=True)
    batch = batch_of(ONLY_DECODE, *FIVE, seed=51)
    batch.positions = batch.positions.to(torch.int32)
    with pytest.raises(SourceError, match=r"positions.*int32.*int64"):
        runner.run(batch)


def test_t9_it_casts(field: Field) -> None:
    registry = registry_of(field, ONLY_DECODE, first=True)
    batch = batch_of(ONLY_DECODE, *FIVE, seed=51)
    batch.positions = batch.positions + 0.75
    fill(registry, batch, EIGHT)
    cut_off = batch.positions.long()
    assert torch.equal(registry.get_slot("positions").buffer[:5], cut_off)


def test_t10_a_bucket_above_the_capacity_is_refused_in_the_spec() -> None:
    """Its own half is in the set-up of graphs, which drops such a size in silence."""
    text = "- {name: ids, axis: tokens, dtype: int64, padding: zero, source: batch.ids}"
    assert codes(text, buckets=(4, 8, 16)) == ["PPC313"]


def codes(slot: str, buckets: Sequence[int] = (4, 8)) -> list[str]:
    """The findings of a spec with this one slot, whose tokens are 8 at most."""
    text = f"""
version: 1
family: small
axes: {{tokens: {{max: 8, live: batch.num_tokens}}}}
pipeline: {{layers: {{count: 1}}, stages: [[0, 1]]}}
runners:
  step:
    buckets: {{tokens: {list(buckets)}}}
    slots:
      {slot}
    forward: {{first: {{ids: slot.ids}}}}
    outputs: {{last: [{{name: out, axis: tokens, dtype: int64, from: result}}]}}
"""
    compiled = compile_sources([Source(file="small.yaml", data=text.encode())])
    return [finding.rule.code for finding in compiled.findings]
