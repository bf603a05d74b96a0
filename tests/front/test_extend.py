"""``extends``: what merges, and what ``drop`` takes away before."""

from __future__ import annotations

from pathlib import Path

import pytest
from extend_files import HEAD, document, extended, merged, only, places

from ppcgc.extend import extend
from ppcgc.nodes import plain

# ---------------------------------------------------------------- merging


def test_a_spec_without_extends_is_itself(tmp_path: Path) -> None:
    for text in ("version: 1\n", "[1, 2]\n"):
        done = extend(document(text, "s.yaml"), tmp_path)
        assert done.document == document(text, "s.yaml")
        assert (done.findings, done.texts, done.ways) == ((), {}, {})


def test_maps_merge_key_by_key_in_the_inherited_order(tmp_path: Path) -> None:
    result = merged(
        tmp_path,
        "extends: base\nversion: 1\nfamily: child\ndims: {z: 9, b: 5}\n",
        base=HEAD + "doc: all\ndims: {a: 1, b: 2, c: 3}\n",
    )
    assert result == {
        "doc": "all",
        "dims": {"a": 1, "b": 5, "c": 3, "z": 9},
        "version": 1,
        "family": "child",
    }
    assert isinstance(result, dict) and isinstance(result["dims"], dict)
    assert list(result["dims"]) == ["a", "b", "c", "z"]


def test_named_entries_merge_by_name_field_by_field(tmp_path: Path) -> None:
    result = merged(
        tmp_path,
        "extends: base\nlist:\n  - {name: c, v: 3}\n  - {name: b, w: 7}\n",
        base="list:\n  - {name: a, v: 1}\n  - {name: b, v: 2, w: 2}\n",
    )
    assert result == {
        "list": [{"name": "a", "v": 1}, {"name": "b", "v": 2, "w": 7}, {"name": "c", "v": 3}]
    }


def test_a_name_given_twice_stays_for_the_rule_that_refuses_it(tmp_path: Path) -> None:
    result = merged(
        tmp_path,
        "extends: base\nlist: [{name: a, v: 2}, {name: a, v: 3}]\n",
        base="list: [{name: a, w: 1}]\n",
    )
    assert result == {"list": [{"name": "a", "w": 1, "v": 2}, {"name": "a", "v": 3}]}


@pytest.mark.parametrize(
    ("own", "inherited"),
    [
        ("[3]", "[1, 2]"),
        ("[]", "[{name: a}]"),
        ("[{name: a}]", "[1]"),
        ("[{name: a}]", "[]"),
        ("even", "[[0, 1]]"),
        ("[[0, 1]]", "even"),
        ("{a: 1}", "text"),
        ("null", "1"),
    ],
)
def test_other_values_replace(tmp_path: Path, own: str, inherited: str) -> None:
    result = merged(tmp_path, f"extends: base\nx: {own}\n", base=f"x: {inherited}\n")
    assert result == plain(document(f"x: {own}\n", "x").root)


@pytest.mark.parametrize(
    ("path", "own", "inherited"),
    [
        (["runners", "r", "buckets", "tokens"], "{equals: a}", "[1, 2]"),
        (["runners", "r", "buckets", "tokens"], "max", "{equals: a}"),
        (["runners", "r", "forward", "first", "x"], "slot.x", "{literal: 1}"),
        (["runners", "r", "eager_when", "x"], "hook.x", "{present: batch.x}"),
        (["runners", "r", "scalars", "x"], "{const: 1}", "{key: [1]}"),
        (["options", "x"], "true", "{type: bool, default: true}"),
        (["scalars", "x"], "{const: 1}", "{key: [1]}"),
        (["pipeline", "layers", "kinds", "k"], "{ids: [1]}", "{if: layer > 1}"),
    ],
)
def test_a_value_of_several_forms_is_replaced_whole(
    tmp_path: Path, path: list[str], own: str, inherited: str
) -> None:
    head, tail = "".join(f"{{{key}: " for key in path), "}" * len(path)
    result = merged(
        tmp_path,
        f"{{extends: base, {head[1:]}{own}{tail}\n",
        base=f"{head}{inherited}{tail}\n",
    )
    assert result == plain(document(f"{head}{own}{tail}\n", "x").root)


@pytest.mark.parametrize("word", ["padding", "source", "absent", "capture"])
def test_words_of_a_slot_are_replaced_whole(tmp_path: Path, word: str) -> None:
    spec = "runners: {r: {slots: [{name: g.s, dtype: int8, %s: %s}]}}\n"
    result = merged(
        tmp_path,
        "extends: base\n" + spec % (word, "{fill: 1}"),
        base=spec % (word, "{keep: why, initial: 0}"),
    )
    assert result == plain(document(spec % (word, "{fill: 1}"), "x").root)


@pytest.mark.parametrize(
    ("own", "inherited", "place", "what"),
    [
        ("{a: 1}", "[1]", "2:4", "`x`: a map over a list"),
        ("[1]", "{a: 1}", "2:4", "`x`: a list over a map"),
        ("one", "{a: 1}", "2:4", "`x`: a single value over a map"),
        ("", "{a: 1}", "2:3", "`x`: a single value over a map"),
        ("[{name: a}, {b: 1}]", "[{name: a}]", "2:16", "`x`: an entry without a name over"),
        ("{y: [1]}", "{y: {a: 1}}", "2:8", "`x.y`: a list over a map"),
    ],
)
def test_nodes_of_different_build_conflict(
    tmp_path: Path, own: str, inherited: str, place: str, what: str
) -> None:
    finding = only(extended(tmp_path, f"extends: base\nx: {own}\n", base=f"x: {inherited}\n"))
    assert finding.rule.code == "PPC023"
    assert str(finding.span) == f"s/child.yaml:{place}"
    assert finding.message.startswith(what)
    assert places(finding)[0].startswith("s/base.yaml:1:")


def test_chains_apply_from_the_far_end(tmp_path: Path) -> None:
    result = merged(
        tmp_path,
        "extends: middle\nfamily: c\ndims: {a: 3}\n",
        middle="extends: base\nfamily: b\ndims: {a: 2, b: 2}\ndrop: {dims: [d]}\n",
        base="family: a\ndims: {a: 1, b: 1, c: 1, d: 1}\n",
    )
    assert result == {"dims": {"a": 3, "b": 2, "c": 1}, "family": "c"}


def test_version_and_family_are_not_inherited(tmp_path: Path) -> None:
    assert merged(tmp_path, "extends: base\n", base=HEAD + "doc: d\n") == {"doc": "d"}


# ---------------------------------------------------------------- drop


def test_drop_goes_before_the_merge(tmp_path: Path) -> None:
    result = merged(
        tmp_path,
        "extends: base\n"
        "drop: {state: [kv], runners: {decode: {slots: [g.a], dispatch: [over]}, prefill: [doc]}}\n"
        "runners: {decode: {slots: [{name: g.a, v: 2}]}}\n",
        base="state: {kv: 1, ssm: 2}\n"
        "runners:\n"
        "  decode: {slots: [{name: g.a, v: 1, w: 1}, {name: b}], dispatch: {over: 1, p: 2}}\n"
        "  prefill: {doc: text, max: 1}\n",
    )
    assert result == {
        "state": {"ssm": 2},
        "runners": {
            "decode": {"slots": [{"name": "b"}, {"name": "g.a", "v": 2}], "dispatch": {"p": 2}},
            "prefill": {"max": 1},
        },
    }


def test_drop_leads_through_entries_and_may_take_whole_keys(tmp_path: Path) -> None:
    base = "doc: x\nstate: {kv: 1}\nlist: [{name: drop, v: 1, w: 2}]\n"
    assert merged(tmp_path, "extends: base\ndrop: [doc, state]\n", base=base) == {
        "list": [{"name": "drop", "v": 1, "w": 2}]
    }
    assert merged(tmp_path, "extends: base\ndrop: {list: {drop: [w]}}\n", base=base) == {
        "doc": "x",
        "state": {"kv": 1},
        "list": [{"name": "drop", "v": 1}],
    }


@pytest.mark.parametrize(
    ("drop", "place", "message", "help"),
    [
        ("{dims: [hiden]}", "2:15", "`dims` of base.yaml has no `hiden` to", "mean `hidden`?"),
        ("{dim: [hidden]}", "2:8", "base.yaml has no `dim` to drop", "mean `dims`?"),
        ("[family]", "2:8", "base.yaml has no `family` to drop", "it has: dims"),
        ("{dims: {hidden: [x]}}", "2:24", "`dims.hidden` of base.yaml has no `x`", "nothing"),
        ("{dims: [hidden, hidden]}", "2:23", "`dims` of base.yaml has no `hidden`", "nothing"),
        ("dims", "2:7", "`dims` where a list of names must stand", "a list of names"),
        ("", "2:6", "nothing where a list of names must stand", "a list of names"),
        ("{dims: hidden}", "2:14", "`hidden` where a list of names", "a list of names"),
        ("[[dims]]", "2:8", "a list in `drop` holds names", "name a key"),
    ],
)
def test_a_bad_drop(tmp_path: Path, drop: str, place: str, message: str, help: str) -> None:
    child = f"extends: base\ndrop: {drop}\n"
    finding = only(extended(tmp_path, child, base="family: a\ndims: {hidden: 1}\n"))
    assert (finding.rule.code, str(finding.span)) == ("PPC024", f"s/child.yaml:{place}")
    assert finding.message.startswith(message)
    assert help in (finding.help or "")


def test_drop_without_extends(tmp_path: Path) -> None:
    finding = only(extended(tmp_path, "version: 1\ndrop: [dims]\n"))
    assert (finding.rule.code, str(finding.span)) == ("PPC024", "s/child.yaml:2:1")
    base = extended(tmp_path, "extends: base\n", base="drop: [x]\n")
    assert str(only(base).span) == "s/base.yaml:1:1"
