"""Resolve of the words beyond the core, from one spec that has them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from ppcgc.diagnostics.model import Diagnostic
from ppcgc.expr.printing import to_text
from ppcgc.expr.tree import Compare, Int, Ref, Symbol
from ppcgc.ir import (
    AbsentKey,
    BatchCount,
    BucketScalar,
    ComputedCount,
    ConstScalar,
    Family,
    FillPadding,
    FreeScalar,
    Group,
    HookSource,
    HookValue,
    KeyScalar,
    KindIds,
    KindIf,
    KindWhere,
    PaddingByAxis,
    Place,
    RepeatLastPadding,
    ScalarValue,
    Slot,
    ZeroPadding,
)
from ppcgc.load import load
from ppcgc.resolve import resolve
from ppcgc.validate import rules, schema

WHOLE = (Path(__file__).parent / "whole.yaml").read_text(encoding="utf-8")


def resolved(text: str) -> tuple[Family | None, list[Diagnostic]]:
    document, found = load(text, "whole.yaml")
    assert document is not None, found
    assert schema.check(document) == []
    return resolve(document)


def findings(old: str, new: str) -> list[tuple[str, str]]:
    """Codes and messages of resolve after one replacement."""
    assert WHOLE.count(old) >= 1
    _, found = resolved(WHOLE.replace(old, new, 1))
    return [(finding.rule.code, finding.message) for finding in found]


@pytest.fixture(scope="module")
def whole() -> Family:
    family, found = resolved(WHOLE)
    assert family is not None, found
    return family


def slot(family: Family, name: str) -> Slot:
    return next(slot for slot in family.runners[0].slots if slot.qualified == name)


def test_whole_passes_every_rule(whole: Family) -> None:
    assert rules.check(whole) == []


def test_options_in_both_spellings(whole: Family) -> None:
    assert [(o.name, o.type, o.default, o.choices) for o in whole.options] == [
        ("use_lora", "bool", True, ()),
        ("block", "int", 4, ()),
        ("layout", "enum", "nhd", ("nhd", "hnd")),
    ]
    assert whole.parallel == {"tp", "dp"}


def test_axes_with_groups_and_zero(whole: Family) -> None:
    assert whole.axis("tokens").group == Group(over="dp", path=("global_num_tokens",))
    assert [axis.name for axis in whole.axes if axis.zero_key] == ["chunks"]


def test_kinds(whole: Family) -> None:
    reuses, full, hashed = whole.pipeline.kinds
    assert reuses.rule == KindIds(ids=(1, 3, 5, 7))
    assert isinstance(full.rule, KindIf)
    assert to_text(full.rule.expr) == "layer % 4 == 3"
    assert hashed.rule == KindWhere(path=("layer_types",), value="hash")


def test_boundary_at_a_cut(whole: Family) -> None:
    keys = {key.name: key for key in whole.pipeline.boundary}
    shapes = {name: [to_text(e.expr) for e in key.shape] for name, key in keys.items()}
    assert shapes["blocks"][1] == "ceil(cut.layer / options.block)"
    assert shapes["topk"][1] == "kinds.full.below(cut.layer) + 1"
    when = keys["topk"].when
    assert when is not None
    assert to_text(when) == "cut.layer in kinds.reuses"
    assert (keys["residual"].content, keys["hidden_states"].content) == ("sharded", "replicated")
    assert [name for name, key in keys.items() if key.by_runtime] == ["aux"]


def test_runner_overrides_some_fields_of_some_keys(whole: Family) -> None:
    own, shared = whole.runners[0].boundary, whole.pipeline.boundary
    assert own is not None
    assert [key.name for key in own] == [key.name for key in shared]
    assert [(k.name, k.dtype, k.content) for k in own if k not in shared] == [
        ("residual", "float32", "replicated")
    ]
    assert whole.runners[1].boundary is None


def test_scalars_are_inherited(whole: Family) -> None:
    prefill, decode = whole.runners
    modes = {scalar.name: scalar.mode for scalar in decode.scalars}
    assert modes == {
        "width": KeyScalar(values=(1, 4)),
        "longest": BucketScalar(sizes=(1024, 8192)),
        "epoch": FreeScalar(),
        "half": FreeScalar(),
        "one": ConstScalar(value=1),
    }
    sources = {scalar.name: scalar.source for scalar in decode.scalars}
    assert sources["width"] == BatchCount(path=("width",))
    assert isinstance(sources["half"], ComputedCount)
    assert [scalar.name for scalar in prefill.scalars] == [*modes, "has_mm_places"]


def test_absent_key_is_a_scalar_of_the_key(whole: Family) -> None:
    places = slot(whole, "mm.places")
    scalar = whole.runners[0].scalars[-1]
    assert places.absent == AbsentKey(scalar="has_mm_places")
    assert (scalar.mode, scalar.source) == (KeyScalar(values=(0, 1)), None)
    assert scalar.presence_of == "mm.places"
    assert places.when is not None
    assert to_text(places.when) == (
        "scalar.width == 4 and options.layout == 'nhd' and scalar.has_mm_places == 1"
    )


def test_a_scalar_alone_is_a_condition(whole: Family) -> None:
    wanted = Compare("!=", Ref(Symbol.SCALAR, "width"), Int(0))
    assert slot(whole, "draft").when == wanted


def test_two_axes_have_a_padding_each_or_one_for_both(whole: Family) -> None:
    # the padding names its axes in another order than the slot does
    assert slot(whole, "table").padding == PaddingByAxis(
        first=ZeroPadding(), second=RepeatLastPadding()
    )
    both = slot(whole, "table2")
    assert (both.axes, both.padding) == (("requests", "chunks"), ZeroPadding())
    assert [extent.axis for extent in both.shape] == ["requests", "chunks"]


def test_stages_by_kind(whole: Family) -> None:
    ids = slot(whole, "input_ids")
    assert (ids.stages, ids.owns) == (frozenset({Place.ONLY, Place.FIRST}), ("hashed",))


def test_twins_hosts_and_broadcasts(whole: Family) -> None:
    mirror = slot(whole, "seq_lens").mirror
    assert mirror is not None
    assert (mirror.path, mirror.optional) == (("seq_lens_cpu",), True)
    assert slot(whole, "lens_host").host_only
    assert slot(whole, "mm.places").broadcast


def test_scalars_and_ranks_in_values(whole: Family) -> None:
    padding = slot(whole, "seq_lens").padding
    assert isinstance(padding, FillPadding) and not isinstance(padding.value, float)
    assert to_text(padding.value) == "1 if scalar.epoch > 0 else 0"
    assert slot(whole, "scratch").source == HookSource(hook="fill")


def test_runner_words(whole: Family) -> None:
    prefill, decode = whole.runners
    plan, fill = prefill.hooks
    assert (plan.at, plan.reads, plan.staging) == (frozenset({"key", "plan"}), ("seq_lens",), 2)
    assert plan.workspace is not None
    assert to_text(plan.workspace) == "128 * 1024 * tp.size"
    assert (fill.at, fill.writes, fill.workspace) == (frozenset({"load"}), ("scratch",), None)
    assert prefill.axis_max == (("tokens", 512),)
    assert (prefill.transport, prefill.compile) == ("captured", "inductor")
    assert (prefill.overlaps, decode.overlaps) == (("decode",), ("prefill",))
    assert (prefill.uneven, decode.uneven) == (None, "eager")
    assert decode.places == frozenset(Place)


def test_eligibility(whole: Family) -> None:
    conditions = {c.reason: c for c in whole.runners[0].eager_when}
    assert {reason: c.kind for reason, c in conditions.items()} == {
        "has_images": "present",
        "greedy": "is_true",
        "slow": "is_false",
        "long": "above",
        "odd": "hook",
    }
    assert conditions["long"].path == ("max_len",)
    assert conditions["odd"].hook == "plan"


def test_forward_binds_scalars_and_hooks(whole: Family) -> None:
    bound = {binding.keyword: binding.value for binding in whole.runners[0].forward.first}
    assert bound["width"] == ScalarValue(name="width")
    assert bound["plan"] == HookValue(name="plan")


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        ("shape: [3, tokens]", "shape: [cut.layer, tokens]", "PPC121", "cut.layer"),
        ("layer % 4 == 3", "cut.layer == 3", "PPC121", "cut.layer"),
        ("tp.rank + dp", "live.dp + dp", "PPC121", "live.dp"),
        ("shape: [3, tokens]", "shape: [tp.rank, tokens]", "PPC121", "tp.rank"),
        ("parallel: {tp: build, dp: build}", "parallel: {dp: build}", "PPC121", "tp.rank"),
        ("kinds.full.below", "kinds.ful.below", "PPC121", "kinds.ful.below"),
        ("in kinds.reuses", "in kinds.reuse", "PPC121", "kinds.reuse"),
        ("when: cut.layer in kinds.reuses", "when: cut.layer == kinds.reuses", "PPC122", "layers"),
        ("options.layout == 'nhd'", "options.layout == 'ndh'", "PPC122", "no value of options"),
        ("options.layout == 'nhd'", "options.layout == 3", "PPC122", "a quoted word"),
        ("when: options.use_lora", "when: options.block", "PPC122", "is an integer"),
        ("{owns: hashed}", "{owns: hash}", "PPC123", "layer kind 'hash'"),
        ("source: hook.fill", "source: hook.filler", "PPC123", "hook 'filler'"),
        ("odd: hook.plan", "odd: hook.plans", "PPC123", "hook 'plans'"),
        ("width: scalar.width", "width: scalar.wide", "PPC123", "scalar 'wide'"),
        ("overlaps: [decode]", "overlaps: [decoder]", "PPC123", "runner 'decoder'"),
        ("reads: [seq_lens]", "reads: [seq_len]", "PPC123", "no slot 'seq_len'"),
        ("{name: residual, dtype: f", "{name: residuals, dtype: f", "PPC123", "'residuals'"),
        ("width: {source: batch.width", "tokens: {source: batch.width", "PPC126", "scalar and"),
        ("one: {source", "has_mm_places: {source", "PPC124", "has_mm_places"),
        ("[requests, chunks], shape", "[requests, requests], shape", "PPC124", "axis 'requests'"),
        ("chunks: repeat_last,", "tokens: zero,", "PPC129", "padding names tokens, requests"),
        ("has_images: {pres", "over_capacity: {pres", "PPC125", "the runtime's own reasons"),
        ("[batch.max_len, ", "[max_len, ", "PPC120", "no path of the batch"),
        ("128 * 1024 * tp.size", "128 * live.tokens", "PPC121", "live.tokens"),
        ("{equals: requests * 2}", "{equals: requests * tp.rank}", "PPC121", "'tp.rank' cannot"),
    ],
)
def test_what_resolve_refuses(old: str, new: str, code: str, words: str) -> None:
    found = findings(old, new)
    assert code in {c for c, message in found if words in message}, found


def test_capacity_that_a_runner_lowers_is_its_max() -> None:
    text = WHOLE.replace(
        "    max_graphs: 512\n", "    max_graphs: 512\n    limits: [tokens < tokens.max]\n"
    )
    family, found = resolved(text)
    assert family is not None, found
    assert to_text(family.runners[0].limits[0].expr) == "live.tokens < 512"


def test_hook_of_every_runner_needs_its_slots_in_each() -> None:
    text = WHOLE.replace(
        "\nscalars:\n", "\nhooks: {all: {at: plan, reads: [seq_lens]}}\nscalars:\n", 1
    )
    _, found = resolved(text)
    assert [finding.message for finding in found] == ["runner 'decode' has no slot 'seq_lens'"]


def test_a_scalar_is_declared_once() -> None:
    text = WHOLE.replace(
        "    uneven: eager\n", "    uneven: eager\n    scalars: {width: {source: batch.w}}\n"
    )
    _, found = resolved(text)
    assert [finding.rule.code for finding in found] == ["PPC124"]
