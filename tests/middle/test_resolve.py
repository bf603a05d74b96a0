"""Resolve: what a spec comes to mean, with values written out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from ppcgc.expr.printing import to_text
from ppcgc.expr.tree import Arithmetic, Int, Ref, Symbol
from ppcgc.ir import (
    AbsentError,
    BatchCount,
    BatchSource,
    BoundaryValue,
    BuildDim,
    ComputeSource,
    ConfigDim,
    EqualsBuckets,
    EvenStages,
    Family,
    KeepView,
    ListedBuckets,
    LiteralValue,
    MaxBucket,
    Place,
    RepeatLastPadding,
    Residency,
    Role,
    SlotValue,
    ViewValue,
    ZeroPadding,
)
from ppcgc.load import load
from ppcgc.resolve import resolve
from ppcgc.validate import rules, schema

LLAMA = Path(__file__).parents[2] / "specs" / "llama.yaml"


def family(text: str) -> Family:
    document, found = load(text, "specs/llama.yaml")
    assert document is not None, found
    assert schema.check(document) == []
    resolved, problems = resolve(document)
    assert resolved is not None, problems
    return resolved


@pytest.fixture(scope="module")
def llama() -> Family:
    return family(LLAMA.read_text(encoding="utf-8"))


def test_llama_passes_every_rule(llama: Family) -> None:
    assert rules.check(llama) == []


def test_sizes(llama: Family) -> None:
    assert llama.name == "llama"
    assert llama.source == "llama.yaml"
    sources = {dim.name: dim.source for dim in llama.dims}
    assert sources["hidden"] == ConfigDim(path=("hidden_size",))
    assert sources["kv_rows"] == BuildDim()
    requests, tokens = llama.axes
    assert (requests.name, requests.max, tokens.name, tokens.max) == (
        "requests",
        16,
        "tokens",
        2048,
    )
    assert tokens.live == BatchCount(path=("num_tokens",))
    (kv,) = llama.states
    assert (kv.rows, kv.reserved) == (Ref(Symbol.DIM, "kv_rows"), (0,))


def test_pipeline(llama: Family) -> None:
    assert llama.pipeline.layer_count == ConfigDim(path=("num_hidden_layers",))
    assert isinstance(llama.pipeline.stages, EvenStages)
    hidden, residual = llama.pipeline.boundary
    assert (hidden.name, residual.name) == ("hidden_states", "residual")
    assert (hidden.axes, hidden.dtype, hidden.padding) == (("tokens",), "model", ZeroPadding())
    assert [(e.axis, e.scale, e.offset) for e in hidden.shape] == [("tokens", 1, 0), (None, 1, 0)]


def test_slot_words(llama: Family) -> None:
    slots = {slot.name: slot for slot in llama.runners[0].slots}
    offsets = slots["cu_seqlens"]
    assert offsets.padding == RepeatLastPadding()
    assert offsets.source == BatchSource(path=("cu_seqlens",))
    assert (offsets.role.role, offsets.role.of, offsets.role.of_kind) == (
        Role.OFFSETS,
        "tokens",
        "axis",
    )
    (extent,) = offsets.shape
    assert (extent.axis, extent.scale, extent.offset) == ("requests", 1, 1)
    assert extent.expr == Arithmetic("+", Ref(Symbol.PADDED, "requests"), Int(1))
    assert offsets.residency is Residency.HOST
    assert offsets.absent == AbsentError()
    assert (offsets.mutable, offsets.cast) == (False, False)
    write = slots["slot_mapping"]
    assert (write.role.of, write.role.of_kind) == ("kv", "state")
    count = slots["num_tokens"]
    assert (count.axes, count.padding) == ((), None)
    assert count.source == ComputeSource(expr=Ref(Symbol.LIVE, "tokens"))


def test_default_shape_is_the_axis(llama: Family) -> None:
    positions = llama.runners[0].slots[1]
    assert [(e.axis, e.scale, e.offset) for e in positions.shape] == [("tokens", 1, 0)]


def test_stages_are_sets_of_places(llama: Family) -> None:
    ids, positions = llama.runners[0].slots[:2]
    assert ids.stages == {Place.ONLY, Place.FIRST}
    assert positions.stages == set(Place)


def test_spans_point_at_the_words(llama: Family) -> None:
    ids = llama.runners[0].slots[0]
    lines = LLAMA.read_text(encoding="utf-8").splitlines()
    for word, written in (("dtype", "int64"), ("source", "batch.input_ids"), ("stages", "first")):
        at = ids.span_of(word)
        assert lines[at.line - 1][at.column - 1 : at.end_column - 1] == written
    assert ids.span_of("cast") == ids.span


def test_buckets(llama: Family) -> None:
    prefill, decode = llama.runners
    listed, whole = prefill.buckets
    assert isinstance(listed, ListedBuckets)
    assert listed.sizes == (16, 32, 64, 128, 256, 512, 1024, 2048)
    assert isinstance(whole, MaxBucket)
    follows = decode.buckets[1]
    assert isinstance(follows, EqualsBuckets)
    assert (follows.axis, follows.expr) == ("tokens", Ref(Symbol.LIVE, "requests"))
    assert [limit.text for limit in prefill.limits] == ["tokens >= requests"]
    assert to_text(prefill.limits[0].expr) == "live.tokens >= live.requests"
    assert (prefill.max_graphs, prefill.dispatch.over_capacity) == (64, "eager")
    assert prefill.dispatch.max_padding == (("tokens", 2.0),)


def test_forward_binds_every_keyword_at_every_place(llama: Family) -> None:
    forward = llama.runners[0].forward
    assert forward.only == forward.first
    assert forward.middle == forward.last
    first = {binding.keyword: binding.value for binding in forward.first}
    last = {binding.keyword: binding.value for binding in forward.last}
    assert first == {
        "input_ids": SlotValue(name="input_ids"),
        "positions": SlotValue(name="positions"),
        "batch": ViewValue(),
        "pp_proxy_tensors": LiteralValue(value=None),
    }
    assert last == {
        "positions": SlotValue(name="positions"),
        "batch": ViewValue(),
        "pp_proxy_tensors": BoundaryValue(key=None),
        "input_ids": LiteralValue(value=None),
    }


def test_outputs(llama: Family) -> None:
    (output,) = llama.runners[0].outputs
    assert (output.name, output.axes, output.path) == ("hidden_states", ("tokens",), None)
    assert output.keep == KeepView()


def test_a_place_of_its_own_wins() -> None:
    text = LLAMA.read_text(encoding="utf-8").replace(
        "      later: {positions: slot.positions, batch: view, pp_proxy_tensors: boundary}\n",
        "      later: {batch: view, pp_proxy_tensors: boundary}\n"
        "      last: {logits: {literal: true}, pp_proxy_tensors: boundary.residual}\n",
        1,
    )
    forward = family(text).runners[0].forward
    last = {binding.keyword: binding.value for binding in forward.last}
    assert last["logits"] == LiteralValue(value=True)
    assert last["pp_proxy_tensors"] == BoundaryValue(key="residual")
    assert last["batch"] == LiteralValue(value=None)
    middle = {binding.keyword: binding.value for binding in forward.middle}
    assert middle["batch"] == ViewValue()


def test_constants_are_put_into_limits_and_buckets() -> None:
    text = (
        LLAMA.read_text(encoding="utf-8")
        .replace("  hidden:", "  draft: 4\n  width: draft * 2\n  hidden:", 1)
        .replace("{equals: requests}", "{equals: requests * width}", 1)
        .replace('"tokens >= requests"', '"tokens <= requests * requests.max * draft"', 1)
    )
    resolved = family(text)
    derived = resolved.runners[1].buckets[1]
    assert isinstance(derived, EqualsBuckets)
    assert to_text(derived.expr) == "live.requests * 8"
    assert to_text(resolved.runners[0].limits[0].expr) == "live.tokens <= live.requests * 16 * 4"


def test_a_bad_slot_hides_no_other() -> None:
    text = (
        LLAMA.read_text(encoding="utf-8")
        .replace("of: vocab", "of: vocabs", 1)
        .replace("shape: [requests + 1]", "shape: [requests - 1]", 1)
        .replace("{compute: live.tokens}", "{compute: live.token}", 1)
    )
    document, _ = load(text, "specs/llama.yaml")
    assert document is not None
    resolved, found = resolve(document)
    assert resolved is None
    assert [f.rule.code for f in found] == ["PPC123", "PPC127", "PPC121"]


@pytest.mark.parametrize(
    ("written", "instead", "help"),
    [
        ("live: batch.num_tokens", "live: num_tokens", "write 'batch.num_tokens' or 'rows'; known"),
        ("live: batch.num_tokens", "live: row", "did you mean 'rows'?"),
        ("live: batch.num_tokens", "live: live.request", "did you mean 'live.requests'?"),
        ("hidden: config.hidden_size", "hidden: hidden_size", "write 'config.hidden_size' or"),
        ("hidden: config.hidden_size", "hidden: vocabb", "did you mean 'vocab'?"),
        ("kv_rows: build", "kv_rows: built", "did you mean 'build'?"),
        ("live: batch.num_tokens", "live: num_tokens + 1", "did you mean 'tokens.max'?"),
        ("hidden: config.hidden_size", "hidden: heads * 2", "known here: "),
        ("count: config.num_hidden_layers", "count: build", "known here: "),
        (
            "count: config.num_hidden_layers",
            "count: num_layers",
            "write 'config.num_layers'; known here: ",
        ),
    ],
)
def test_a_word_without_its_head_is_told_which_it_may_have(
    written: str, instead: str, help: str
) -> None:
    text = LLAMA.read_text(encoding="utf-8")
    assert written in text
    document, _ = load(text.replace(written, instead, 1), "specs/llama.yaml")
    assert document is not None
    _, problems = resolve(document)
    assert [problem.rule.code for problem in problems] == ["PPC121"]
    assert (problems[0].help or "").startswith(help)
