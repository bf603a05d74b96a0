"""Sizes that only a build knows: what is checked before it, and with a binding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ppcgc.bind import Binding, read_binding
from ppcgc.driver import Source, check_source, compile_sources
from ppcgc.known.sizes import gather
from ppcgc.overview import describe
from ppcgc.plan import plan

SPEC = """\
version: 1
family: small
dims: {vocab: 32, entries: len(config.blocks)}
options: {drafts: 3}
parallel: {tp: build}
axes:
  requests: {max: 4, live: batch.num_requests}
  tokens: {max: 32, live: batch.num_tokens}
pipeline:
  layers: {count: len(config.layer_types)}
  boundary:
    - {name: hidden_states, axis: tokens, shape: [tokens, entries], dtype: model, padding: zero}
runners:
  verify:
    buckets: {requests: [1, 2, 4], tokens: {equals: requests * (options.drafts + tp.size)}}
    limits: ["tokens >= requests"]
    max_graphs: 3
    slots:
      - {name: ids, axis: tokens, dtype: int64, padding: zero, source: batch.ids}
    forward:
      first: {ids: slot.ids}
      later: {ids: slot.ids, hidden_states: boundary.hidden_states}
    outputs:
      last: [{name: logits, axis: tokens, shape: [tokens, vocab], dtype: float32}]
"""
BY_CONFIG = SPEC.replace("options.drafts + tp.size", "options.drafts + tp.size + entries")


def source(text: str) -> Source:
    return Source(file="small.yaml", data=text.encode())


def found(text: str, binding: Binding | None = None) -> list[tuple[str, str]]:
    findings = compile_sources([source(text)], binding).findings
    return [(each.rule.code, each.message) for each in findings]


def bound(config: Path, drafts: int, tp: int) -> Binding:
    return read_binding(config, {"options.drafts": drafts, "tp.size": tp}, None)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"layer_types": ["full", "sliding"], "blocks": [1, 2, 3]}))
    return path


def test_options_count_by_their_default_and_groups_by_one_rank() -> None:
    assert found(SPEC) == []
    assert found(SPEC.replace("drafts: 3", "drafts: 8")) == [
        ("PPC316", "bucket 4 of requests gives 36 rows of tokens, over its capacity 32")
    ]
    assert found(SPEC.replace("max_graphs: 3", "max_graphs: 2"))[0][0] == "PPC324"
    codes = {code for code, _ in found(SPEC.replace("drafts: 3", "drafts: -1"))}
    assert "PPC316" in codes  # no rows at all


def test_what_follows_from_a_config_waits_for_it(config: Path) -> None:
    assert found(BY_CONFIG.replace("max_graphs: 3", "max_graphs: 2")) == []
    assert found(BY_CONFIG, bound(config, 3, 1)) == []
    assert found(BY_CONFIG, bound(config, 6, 1)) == [
        ("PPC316", "bucket 4 of requests gives 40 rows of tokens, over its capacity 32")
    ]
    limited = BY_CONFIG.replace("tokens >= requests", "tokens < requests * tp.size")
    assert found(limited, bound(config, 3, 1)) == [
        ("PPC322", "no batch of runner 'verify' meets 'tokens < requests * tp.size' in any bucket")
    ]


def test_a_binding_makes_the_table_a_constant(config: Path) -> None:
    given = bound(config, 2, 2)
    files = compile_sources([source(BY_CONFIG)], given).files
    assert "{(1, 7): (1, 7), (2, 14): (2, 14), (4, 28): (4, 28)}" in files["small/verify.py"]
    assert "layer_count: int = 2" in files["small/family.py"]
    late = compile_sources([source(BY_CONFIG)]).files["small/verify.py"]
    assert "rows.requests * (self.dims.options.drafts + self.dims.tp.size + self.dims.entries)" in (
        " ".join(late.split())
    )


def test_the_plan_has_the_table_once_its_numbers_are_known() -> None:
    family = check_source(source(BY_CONFIG)).family
    assert family is not None
    planned = plan(family)
    open_, known = (
        describe(planned, gather(family, config, {"tp.size": 2}))
        for config in (None, {"layer_types": ["full"], "blocks": [0]})
    )
    runner = open_["runners"][0]  # type: ignore[index] # plain data
    assert (runner["graphs"], runner["buckets"]) == (None, [])
    runner = known["runners"][0]  # type: ignore[index] # plain data
    padded = [bucket["padded"] for bucket in runner["buckets"]]
    assert padded == [{"requests": n, "tokens": n * 6} for n in (1, 2, 4)]


def test_limits_that_no_batch_meets_together() -> None:
    text = SPEC.replace('["tokens >= requests"]', '["tokens >= 6", "requests <= 1"]')
    message = "no batch of runner 'verify' meets 'tokens >= 6', 'requests <= 1' in any bucket"
    assert found(text) == [("PPC322", message)]


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (
            "20 - requests",
            "a batch of 0 live requests has 20 live tokens, its bucket requests 1 has 19",
        ),
        ("requests * 4 - 2", "a batch of 0 live requests has -2 live tokens"),
        ("requests % 4 + 1", "a batch of 3 live requests has 4 live tokens, its bucket requests 4"),
    ],
)
def test_sizes_that_do_not_grow(size: str, words: str) -> None:
    text = SPEC.replace("requests * (options.drafts + tp.size)", size)
    text = text.replace("tokens >= requests", "requests <= 4")
    ((code, message),) = [each for each in found(text) if each[0] == "PPC318"]
    assert (code, words in message) == ("PPC318", True), message
    mended = text.replace("requests <= 4", "requests in (1, 2, 4)")
    assert "PPC318" not in {code for code, _ in found(mended)}
