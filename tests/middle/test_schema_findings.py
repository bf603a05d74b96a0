"""The JSON Schema and its translation into findings with exact places."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ppcgc.diagnostics.model import Diagnostic
from ppcgc.load import load
from ppcgc.schema_file import load_schema
from ppcgc.validate.schema import check

SPEC = """\
version: 1
family: small
axes:
  tokens: {max: 64, live: batch.num_tokens}
pipeline:
  layers: {count: 4}
runners:
  prefill:
    buckets: {tokens: [16, 64]}
    slots:
      - {name: ids, axis: tokens, dtype: int64, padding: zero, source: batch.ids}
    forward:
      first: {ids: slot.ids}
    outputs:
      last: [{name: logits, axis: tokens, dtype: float32}]
"""


def findings(old: str = "", new: str = "") -> list[Diagnostic]:
    assert SPEC.count(old) >= 1
    document, found = load(SPEC.replace(old, new, 1) if old else SPEC, "spec.yaml")
    assert document is not None, found
    return check(document)


def test_schema_is_a_valid_schema() -> None:
    Draft202012Validator.check_schema(load_schema())


def test_sound_spec_has_no_findings() -> None:
    assert findings() == []


def test_schema_key_is_allowed_at_the_top() -> None:
    assert findings("version: 1", "version: 1\n$schema: ../schemas/ppcgc-spec.schema.json") == []


@pytest.mark.parametrize(
    ("old", "new", "code", "place", "words"),
    [
        ("padding: zero", "pading: zero", "PPC101", (11, 49), "unknown key 'pading'"),
        ("family: small\n", "", "PPC102", (1, 1), "missing key 'family'"),
        ("dtype: int64, ", "", "PPC102", (11, 9), "missing key 'dtype'"),
        ("max: 64", "max: 64.0", "PPC103", (4, 17), "64.0 (a number), not an integer"),
        ("max: 64", "max: true", "PPC103", (4, 17), "true (a boolean), not an integer"),
        ("max: 64", "max: '64'", "PPC103", (4, 17), "'64' (text), not an integer"),
        ("{count: 4}", "[4]", "PPC103", (6, 11), "a list, not a mapping"),
        ("int64", "int46", "PPC104", (11, 42), "'int46' is not a value"),
        ("padding: zero", "padding: zeros", "PPC104", (11, 58), "'zeros'"),
        ("[16, 64]", "min", "PPC104", (9, 23), "'min'"),
        ("version: 1", "version: 2", "PPC104", (1, 10), "version 2 is not known"),
        ("  tokens: {", "  to-kens: {", "PPC105", (4, 3), "key 'to-kens'"),
        ("batch.ids", "batch.", "PPC105", (11, 72), "'batch.' is malformed"),
        ("name: ids", 'name: "ids\\n"', "PPC105", (11, 16), "is malformed"),
        ("max: 64", "max: 0", "PPC106", (4, 17), "it is at least 1"),
        ("max: 64", "max: 9999999999", "PPC106", (4, 17), "it is at most 2147483647"),
        ("[{name: logits, axis: tokens, dtype: float32}]", "[]", "PPC107", (15, 13), "0 items"),
        ("padding: zero", "padding: {fill: 1, keep: x}", "PPC101", (11, 59), "unknown key 'fill'"),
        ("batch.ids}", "{const: 1, compute: 2}}", "PPC101", (11, 83), "unknown key 'compute'"),
        ("[16, 64]", "{equal: tokens}", "PPC101", (9, 24), "unknown key 'equal'"),
    ],
)
def test_violation_becomes_a_finding_at_its_place(
    old: str, new: str, code: str, place: tuple[int, int], words: str
) -> None:
    found = findings(old, new)
    match = [f for f in found if f.rule.code == code and words in f.message]
    assert [(f.span.line, f.span.column) for f in match] == [place], found


def test_all_findings_come_at_once() -> None:
    text = SPEC.replace("int64", "int46").replace("max: 64", "max: 0").replace("first:", "frst:")
    document, _ = load(text.replace("family: small\n", ""), "spec.yaml")
    assert document is not None
    assert [f.rule.code for f in check(document)] == ["PPC102", "PPC106", "PPC104", "PPC101"]


def test_root_of_another_kind() -> None:
    document, _ = load("- 1\n- 2\n", "spec.yaml")
    assert document is not None
    (found,) = check(document)
    assert (found.rule.code, found.message) == ("PPC103", "the spec is a list, not a mapping")


def _subschemas(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        yield path, schema
        for key, value in schema.items():
            if key not in ("default", "enum"):
                yield from _subschemas(value, f"{path}/{key}")
    if isinstance(schema, list):
        for number, value in enumerate(schema):
            yield from _subschemas(value, f"{path}/{number}")


def test_every_property_is_described() -> None:
    bare = [
        f"{path}/{name}"
        for path, schema in _subschemas(load_schema())
        if isinstance(schema.get("properties"), dict) and "/$defs/complete" not in path
        for name, value in schema["properties"].items()
        if not value.get("description")
    ]
    assert bare == []


CHILD = """\
version: 1
family: child
extends: small
pipeline:
  boundary: [{name: hidden_states, dtype: float32}]
axes:
  tokens: {max: 32}
runners:
  prefill:
    slots:
      - {name: ids, dtype: int32}
      - {name: rows, padding: {tokens: zero, pages: repeat_last}}
    outputs:
      last: [{name: logits, dtype: float32}]
"""


def test_an_editor_lets_a_child_leave_out_what_its_parent_says() -> None:
    """An editor sees the child alone; without `extends` all of it is missing."""
    document, _ = load(CHILD, "child.yaml")
    assert document is not None
    assert check(document) == []
    document, _ = load(CHILD.replace("extends: small\n", ""), "child.yaml")
    assert document is not None
    missing = {(each.rule.code, each.message, each.help) for each in check(document)}
    assert {(code, message) for code, message, _ in missing} == {
        ("PPC102", f"missing key '{key}' in '{place}'")
        for key, place in (
            ("layers", "pipeline"),
            ("axis", "pipeline.boundary[0]"),
            ("padding", "pipeline.boundary[0]"),
            ("live", "axes.tokens"),
            ("buckets", "runners.prefill"),
            ("forward", "runners.prefill"),
            ("axis", "runners.prefill.slots[0]"),
            ("source", "runners.prefill.slots[0]"),
            ("axis", "runners.prefill.slots[1]"),
            ("dtype", "runners.prefill.slots[1]"),
            ("source", "runners.prefill.slots[1]"),
            ("axis", "runners.prefill.outputs.last[0]"),
        )
    }
    assert None not in {help for _, _, help in missing}  # each says what the key is


def test_a_child_is_still_checked_word_by_word() -> None:
    wrong = CHILD.replace("max: 32", "max: 0").replace("dtype: int32", "dtype: int33")
    document, _ = load(wrong.replace("name: ids, ", ""), "child.yaml")
    assert document is not None
    assert [each.rule.code for each in check(document)] == ["PPC106", "PPC102", "PPC104"]


def test_schema_keeps_to_what_editors_know() -> None:
    words = {word for _, schema in _subschemas(load_schema()) for word in schema}
    assert not words & {"oneOf", "prefixItems", "unevaluatedProperties", "dependentRequired"}


def test_every_pattern_says_what_it_expects() -> None:
    silent = [
        path
        for path, schema in _subschemas(load_schema())
        if isinstance(schema.get("pattern"), str) and "x-expected" not in schema
    ]
    assert silent == []


@pytest.mark.parametrize("junk", [None, 7, -1, True, 2.5, "", "x y", [], {}, [[]], {"a": {}}])
def test_no_junk_anywhere_escapes_as_another_error(junk: object) -> None:
    """Each value of a sound spec is replaced in turn: findings, never an exception."""
    sound = {"version": 1, "family": "small"}
    document, _ = load(SPEC, "spec.yaml")
    assert document is not None
    for key in ("version", "family", "axes", "pipeline", "runners"):
        broken = copy.deepcopy(sound) | {key: junk}
        text = json.dumps(broken)
        loaded, _ = load(text, "spec.yaml")
        if loaded is not None:
            assert all(finding.rule.code.startswith("PPC1") for finding in check(loaded))
