"""The fingerprint: equal for the same meaning, different for another one."""

from __future__ import annotations

import re

import pytest
from plan_specs import SPEC, family_of

from ppcgc.plan.fingerprint import fingerprint

BASE = fingerprint(family_of())

# another spelling, prose, place or free order: what is written, what instead
SAME = {
    "doc": ("doc: A family of tests.", "doc: Something else."),
    "doc of a slot": ("source: batch.scale}", "source: batch.scale, doc: A scale.}"),
    "comments and blank lines": ("runners:\n", "\n# a comment\n\nrunners:\n"),
    "default written out": ("source: batch.scale}", "source: batch.scale, residency: device}"),
    "default shape": ("requests, dtype: float32", "requests, shape: [requests], dtype: float32"),
    "default stages": ("  boundary:", "  stages: even\n  boundary:"),
    "spaces in a limit": ('"tokens >= requests"', '"tokens  >=  requests"'),
    "brackets": ("pages * 16", "(pages) * (16)"),
    "the prefix of a dim": ("pages * 16", "dims.pages * 16"),
    "reason to keep": ("keep: unread", "keep: nobody reads them"),
    "order of dims": (
        "hidden: config.hidden_size, vocab: config.vocab_size",
        "vocab: config.vocab_size, hidden: config.hidden_size",
    ),
    "order of axes": (
        "  requests: {max: 4, live: batch.num_requests}\n"
        "  images: {max: 8, live: batch.num_images}\n",
        "  images: {max: 8, live: batch.num_images}\n"
        "  requests: {max: 4, live: batch.num_requests}\n",
    ),
    "order of keywords": (
        "first: {input_ids: slot.input_ids, batch: view}",
        "first: {batch: view, input_ids: slot.input_ids}",
    ),
    "order of places": (
        "      first: {input_ids: slot.input_ids}\n      later: {hidden: boundary}",
        "      later: {hidden: boundary}\n      first: {input_ids: slot.input_ids}",
    ),
    "places written out": (
        "      later: {hidden: boundary}",
        "      middle: {hidden: boundary}\n      last: {hidden: boundary}",
    ),
}

# another meaning
DIFFERENT = {
    "family": ("family: small", "family: large"),
    "dim": ("config.vocab_size", "config.padded_vocab_size"),
    "kind of dim": ("pages: build", "pages: 64"),
    "capacity": ("tokens: {max: 16", "tokens: {max: 32"),
    "live count": ("batch.num_images", "batch.mm.num_images"),
    "rows of a state": ("pages * 16", "pages * 32"),
    "reserved row": ("pages * 16, reserved: [0]", "pages * 16, reserved: [1]"),
    "layers": ("config.num_hidden_layers", "config.num_layers"),
    "stages": ("  boundary:", "  stages: [[0, 2], [2, 4]]\n  boundary:"),
    "boundary dtype": (
        "name: residual, axis: tokens, shape: [tokens, hidden], dtype: model",
        "name: residual, axis: tokens, shape: [tokens, hidden], dtype: float32",
    ),
    "runner": ("  decode:", "  decode_more:"),
    "bucket": ("[4, 8, 16]", "[4, 16]"),
    "kind of bucket": ("requests: max", "requests: [4]"),
    "order of extents": (
        "{tokens: [4, 8, 16], requests: max}",
        "{requests: max, tokens: [4, 8, 16]}",
    ),
    "derived axis": ("{equals: requests}", "{equals: requests * 2}"),
    "limit": ('"tokens >= requests"', '"tokens > requests"'),
    "dispatch": ("over_capacity: eager", "over_capacity: error"),
    "slot": ("name: positions", "name: places"),
    "group": ("name: pp.scale", "name: scale"),
    "dtype": ("dtype: float32", "dtype: float64"),
    "padding": ("{fill: 1.0}", "{fill: 2.0}"),
    "first content": ("initial: 0", "initial: 1"),
    "source": ("batch.scale", "batch.scales"),
    "residency": ("residency: host, ", ""),
    "stages of a slot": ("residency: host, stages: first", "residency: host, stages: all"),
    "absent": ("source: batch.scale}", "source: batch.scale, absent: eager}"),
    "mutable": ("source: batch.scale}", "source: batch.scale, mutable: true}"),
    "cast": ("source: batch.scale}", "source: batch.scale, cast: true}"),
    "capture": ("source: batch.scale}", "source: batch.scale, capture: {fill: 2}}"),
    "keyword": ("{hidden: boundary}", "{hidden_states: boundary}"),
    "binding": ("{hidden: boundary}", "{hidden: boundary.hidden_states}"),
    "output": ("dtype: model}]\n  decode", "dtype: float32}]\n  decode"),
    "part of the result": ("dtype: model}]\n  decode", "dtype: model, from: result.x}]\n  decode"),
    "keep": ("dtype: model}]\n  decode", "dtype: model, keep: clone}]\n  decode"),
}


def changed(change: tuple[str, str]) -> str:
    before, after = change
    assert before in SPEC, "the change would change nothing"
    return fingerprint(family_of(SPEC.replace(before, after, 1)))


def test_form() -> None:
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", BASE)


@pytest.mark.parametrize("change", SAME.values(), ids=list(SAME))
def test_spelling_changes_nothing(change: tuple[str, str]) -> None:
    assert changed(change) == BASE


@pytest.mark.parametrize("change", DIFFERENT.values(), ids=list(DIFFERENT))
def test_meaning_changes_it(change: tuple[str, str]) -> None:
    assert changed(change) != BASE


def test_no_two_changes_collide() -> None:
    assert len({changed(change) for change in DIFFERENT.values()}) == len(DIFFERENT)


def test_the_file_changes_nothing() -> None:
    assert fingerprint(family_of(SPEC, file="elsewhere/other.yaml")) == BASE


def test_rows_of_an_axis_have_one_spelling() -> None:
    before = "name: positions, axis: tokens"
    one, two = (
        fingerprint(family_of(SPEC.replace(before, f"{before}, shape: [{text}]", 1)))
        for text in ("2 * tokens + 1", "1 + tokens * 2")
    )
    assert one == two != BASE


def test_order_of_boundary_keys_is_the_order_on_the_wire() -> None:
    keys = re.findall(r"(?m)^    - \{name: .*\}\n", SPEC)
    swapped = SPEC.replace("".join(keys), "".join(reversed(keys)))
    assert swapped != SPEC
    assert fingerprint(family_of(swapped)) != BASE


def test_order_of_runners_means_nothing() -> None:
    head, prefill, decode = re.split(r"(?m)^(?=  prefill:|  decode:)", SPEC)
    assert fingerprint(family_of(head + decode + prefill)) == BASE
