"""``extends``: what is read, what merges, what is refused, and which file a finding is in."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from ppcgc.cli import main
from ppcgc.diagnostics.model import Diagnostic
from ppcgc.driver import Checked, Source, check_source, findings_of
from ppcgc.extend import Extended, extend
from ppcgc.load import load
from ppcgc.load.text import MAX_BYTES
from ppcgc.nodes import Document, Plain, plain
from ppcgc.sources import origin_of

HEAD = "version: 1\nfamily: base\n"


def document(text: str, file: str) -> Document:
    read, found = load(text, file)
    assert read is not None, found
    return read


def extended(folder: Path, child: str, **parents: str) -> Extended:
    """``child.yaml`` of a folder called ``s`` in findings, over the parents beside it."""
    for name, text in parents.items():
        (folder / f"{name}.yaml").write_text(text)
    return extend(document(child, "s/child.yaml"), folder)


def merged(folder: Path, child: str, **parents: str) -> Plain:
    done = extended(folder, child, **parents)
    assert done.document is not None, done.findings
    return plain(done.document.root)


def only(done: Extended) -> Diagnostic:
    (finding,) = done.findings
    assert done.document is None
    return finding


def places(finding: Diagnostic) -> list[str]:
    return [str(place.span) for place in finding.related]


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


# ---------------------------------------------------------------- finding the parent


@pytest.mark.parametrize(
    ("name", "message", "help"),
    [
        ("bsae", "bsae.yaml does not exist beside child.yaml", "did you mean `base`?"),
        ("zzz", "zzz.yaml does not exist", "specs beside it: base"),
        ("old", "old.yaml does not exist", "rename old.yml to old.yaml"),
        ("folder", "folder.yaml is not a file beside", "specs beside it"),
        ("base.yaml", "`base.yaml` is not the name of a spec", "write `extends: base`"),
        ("../base", "`../base` is not the name of a spec", "write `extends: base`"),
        ("..", "`..` is not the name", "letters, digits"),
        ("/etc/passwd", "`/etc/passwd` is not the name", "write `extends: passwd`"),
        (r"..\base", "is not the name", "write `extends: base`"),
        ('"ba\\nse"', "is not the name of a spec", "letters, digits"),
        ('""', "`` is not the name", "letters, digits"),
        ("", "`extends` is no text", "without `.yaml`"),
        ("12", "`extends` is `12`, not the name", "without `.yaml`"),
        ("[base]", "`extends` is no text", "without `.yaml`"),
    ],
)
def test_no_such_parent(tmp_path: Path, name: str, message: str, help: str) -> None:
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "old.yml").write_text(HEAD)
    finding = only(extended(tmp_path, f"version: 1\nextends: {name}\n", base=HEAD))
    assert finding.rule.code == "PPC021"
    assert str(finding.span).startswith("s/child.yaml:2:")
    assert message in finding.message
    assert help in (finding.help or "")


def test_the_name_of_a_file_may_have_dots_and_lead_through_a_link(tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    (away / "real.yaml").write_text("doc: there\n")
    (tmp_path / "s").mkdir()
    (tmp_path / "s/qwen2.5-vl.yaml").symlink_to(away / "real.yaml")
    assert merged(tmp_path / "s", "extends: qwen2.5-vl\n") == {"doc": "there"}


def test_an_unreadable_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "base.yaml").write_text(HEAD)

    def refuse(self: Path, *args: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    finding = only(extended(tmp_path, "extends: base\n"))
    assert finding.message == "base.yaml cannot be read: Permission denied"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    assert "is not a file" in only(extended(tmp_path, "extends: pipe\n")).message


def test_standard_input_extends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"extends: llama\n")))
    out = io.StringIO()
    assert main(["validate", "-", "--format", "concise"], out, io.StringIO()) == 1
    assert out.getvalue().startswith("<stdin>:1:10: error[PPC021] a spec from standard input")


@pytest.mark.parametrize(
    ("base", "place"), [("[1]\n", "s/base.yaml:1:1"), ("text\n", "s/base.yaml:1:1")]
)
def test_a_parent_that_is_no_map(tmp_path: Path, base: str, place: str) -> None:
    finding = only(extended(tmp_path, "extends: base\n", base=base))
    assert (finding.rule.code, str(finding.span)) == ("PPC021", "s/child.yaml:1:10")
    assert places(finding) == [place]


# ---------------------------------------------------------------- circles, version, family


@pytest.mark.parametrize(
    ("parents", "place", "circle", "related"),
    [
        ({}, "s/child.yaml:1:10", "child.yaml -> child.yaml", []),
        (
            {"base": "extends: other\n", "other": "extends:   base\n"},
            "s/other.yaml:1:12",
            "base.yaml -> other.yaml -> base.yaml",
            ["s/base.yaml:1:10", "s/child.yaml:1:10"],
        ),
    ],
)
def test_circles(
    tmp_path: Path, parents: dict[str, str], place: str, circle: str, related: list[str]
) -> None:
    first = "base" if parents else "child"
    done = extended(tmp_path, f"extends: {first}\n", **parents)
    finding = only(done)
    assert (finding.rule.code, str(finding.span)) == ("PPC022", place)
    assert finding.message == f"`extends` leads back here: {circle}"
    assert places(finding) == related


def test_versions_agree(tmp_path: Path) -> None:
    done = extended(tmp_path, "extends: base\nversion: 1\n", base="version: 2\n")
    finding = only(done)
    assert (finding.rule.code, str(finding.span)) == ("PPC025", "s/child.yaml:2:10")
    assert places(finding) == ["s/base.yaml:1:10"]


@pytest.mark.parametrize("middle", ["family: other\n", "family: base\n"])
def test_a_family_is_new_to_its_whole_chain(tmp_path: Path, middle: str) -> None:
    child = "family: base\nextends: middle\n"
    done = extended(tmp_path, child, middle=f"extends: base\n{middle}", base="family: base\n")
    assert {finding.rule.code for finding in done.findings} == {"PPC018"}
    assert "s/child.yaml:1:9" in {str(finding.span) for finding in done.findings}


# ---------------------------------------------------------------- whose place is it


def checked(folder: Path, name: str) -> Checked:
    path = folder / f"{name}.yaml"
    return check_source(Source(file=f"s/{name}.yaml", data=path.read_bytes(), folder=folder))


def test_spans_keep_their_file(tmp_path: Path) -> None:
    done = extended(
        tmp_path,
        "extends: base\nlist:\n  - {name: a, v: 2}\n",
        base="doc: x\nlist:\n  - {name: a, w: 1}\n  - {name: b}\n",
    )
    assert done.document is not None
    spans = {
        path: str(done.document.span_at(path))
        for path in (("doc",), ("list", 0), ("list", 0, "v"), ("list", 0, "w"), ("list", 1))
    }
    assert spans == {
        ("doc",): "s/base.yaml:1:6",
        ("list", 0): "s/child.yaml:3:5",
        ("list", 0, "v"): "s/child.yaml:3:18",
        ("list", 0, "w"): "s/base.yaml:3:18",
        ("list", 1): "s/base.yaml:4:5",
    }


def test_a_parent_that_does_not_load_is_shown_with_its_own_text(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text("version: 1\nextends: middle\n")
    (tmp_path / "middle.yaml").write_text("extends: base\n")
    (tmp_path / "base.yaml").write_text("doc: [\n")
    one = checked(tmp_path, "child")
    (finding,) = one.findings
    assert (finding.rule.code, finding.span.file) == ("PPC005", "s/base.yaml")
    assert places(finding)[-2:] == ["s/middle.yaml:1:10", "s/child.yaml:2:10"]
    assert one.texts["s/base.yaml"] == "doc: [\n"
    assert set(one.texts) == {"s/child.yaml", "s/middle.yaml", "s/base.yaml"}


@pytest.mark.parametrize(
    ("data", "code"), [(b"\xff", "PPC001"), (b" " * (MAX_BYTES + 1), "PPC004"), (b"", "PPC007")]
)
def test_bytes_of_a_parent(tmp_path: Path, data: bytes, code: str) -> None:
    (tmp_path / "child.yaml").write_text("extends: base\n")
    (tmp_path / "base.yaml").write_bytes(data)
    (finding,) = checked(tmp_path, "child").findings
    assert (finding.span.file, places(finding)) == ("s/base.yaml", ["s/child.yaml:1:10"])
    assert finding.rule.code.startswith("PPC0")


def broken_parent(folder: Path) -> None:
    (folder / "base.yaml").write_text(BASE.replace("dtype: int64", "dtype: int9", 1))
    (folder / "a.yaml").write_text("version: 1\nextends: base\nfamily: a\n")
    (folder / "b.yaml").write_text("version: 1\nextends: base\nfamily: b\n")


def test_a_finding_of_a_parent_shows_all_who_extend_it_once(tmp_path: Path) -> None:
    broken_parent(tmp_path)
    alone = checked(tmp_path, "a").findings
    assert {finding.span.file for finding in alone} == {"s/base.yaml"}
    assert all("s/a.yaml:2:10" in places(finding) for finding in alone)
    together = findings_of(checked(tmp_path, name) for name in ("a", "b", "base"))
    assert len(together) == len(alone) > 0
    assert places(together[0]) == ["s/a.yaml:2:10", "s/b.yaml:2:10"]


def test_validate_prints_the_line_of_the_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_parent(tmp_path)
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    assert main(["validate", "a.yaml"], out, io.StringIO()) == 1
    assert "--> base.yaml:" in out.getvalue()
    assert "{name: ids, axis: tokens, dtype: int9" in out.getvalue()
    assert "::: a.yaml:2:10" in out.getvalue()
    assert "extended here" in out.getvalue()


# ---------------------------------------------------------------- the whole compiler

WIDE = """\
version: 1
extends: small
family: wide
axes: {tokens: {max: 64}}
drop: {runners: [prefill, {decode: {slots: [{positions: [role]}]}}]}
runners:
  decode:
    buckets: {tokens: [16, 32, 64]}
    slots:
      - {name: positions, dtype: int32, padding: {fill: 1}}
      - {name: ages, axis: tokens, dtype: int32, padding: zero, source: batch.ages}
    forward: {first: {ages: slot.ages}, later: {ages: slot.ages}}
"""

FLAT = """\
version: 1
family: wide
axes: {tokens: {max: 64, live: batch.num_tokens}}
pipeline:
  layers: {count: 4}
  boundary: [{name: x, axis: tokens, shape: [tokens, 4], dtype: model, padding: zero}]
runners:
  decode:
    buckets: {tokens: [16, 32, 64]}
    slots:
      - {name: ids, axis: tokens, dtype: int64, padding: zero, source: batch.ids}
      - {name: positions, axis: tokens, dtype: int32, padding: {fill: 1}, source: batch.positions}
      - {name: ages, axis: tokens, dtype: int32, padding: zero, source: batch.ages}
    forward:
      first: {ids: slot.ids, positions: slot.positions, ages: slot.ages}
      later: {ids: slot.ids, positions: slot.positions, x: boundary, ages: slot.ages}
    outputs: {last: [{name: out, axis: tokens, shape: [tokens, 4], dtype: model}]}
"""

BASE = """\
version: 1
family: small
axes: {tokens: {max: 8, live: batch.num_tokens}}
pipeline:
  layers: {count: 4}
  boundary: [{name: x, axis: tokens, shape: [tokens, 4], dtype: model, padding: zero}]
runners:
  prefill: &runner
    buckets: {tokens: max}
    slots:
      - {name: ids, axis: tokens, dtype: int64, padding: zero, source: batch.ids}
      - {name: positions, axis: tokens, dtype: int64, padding: zero, source: batch.positions,
         role: data}
    forward:
      first: {ids: slot.ids, positions: slot.positions}
      later: {ids: slot.ids, positions: slot.positions, x: boundary}
    outputs: {last: [{name: out, axis: tokens, shape: [tokens, 4], dtype: model}]}
  decode: *runner
"""


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    folder = tmp_path / "specs"
    folder.mkdir()
    for name, text in (("wide", WIDE), ("flat", FLAT), ("small", BASE)):
        (folder / f"{name}.yaml").write_text(text)
    return folder


def test_a_child_is_the_spec_that_it_would_be_written_out(specs: Path) -> None:
    wide, flat = checked(specs, "wide"), checked(specs, "flat")
    assert wide.family is not None
    assert wide.family == flat.family
    assert wide.family.source == "wide.yaml"
    spans = {slot.name: slot.span.file for slot in wide.family.runners[0].slots}
    assert spans == {"ids": "s/small.yaml", "positions": "s/wide.yaml", "ages": "s/wide.yaml"}


def run(*argv: str) -> tuple[int, str]:
    out = io.StringIO()
    return main(list(argv), out, io.StringIO()), out.getvalue()


def test_generate_makes_the_child_alone(specs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(specs.parent)
    assert run("generate", "specs/wide.yaml")[0] == 0
    assert [path.name for path in Path("generated").iterdir()] == ["wide"]
    header = Path("generated/wide/decode.py").read_text().split("\n", 1)[0]
    assert header.startswith("# ppcgc: generated from specs/wide.yaml by ppcgc ")
    assert run("generate", "specs/wide.yaml", "--check") == (0, "")
    (specs / "small.yaml").write_text(BASE.replace("dtype: int64", "dtype: int32", 1))
    code, out = run("generate", "specs/wide.yaml", "--check")
    assert code == 1
    assert "int32" in out


def test_a_folder_of_parents_and_children(specs: Path) -> None:
    (specs / "flat.yaml").unlink()
    assert run("validate", str(specs), "--format", "concise") == (0, "")
    assert run("generate", str(specs), "--out", str(specs / "out"))[0] == 0
    assert sorted(path.name for path in (specs / "out").iterdir()) == ["small", "wide"]


def test_two_specs_of_one_name_do_not_remove_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, family in (("a", "first"), ("b", "second")):
        (tmp_path / folder).mkdir()
        text = BASE.replace("family: small", f"family: {family}")
        (tmp_path / folder / "model.yaml").write_text(text)
        assert run("generate", f"{folder}/model.yaml")[0] == 0
    made = tmp_path / "generated"
    assert sorted(path.name for path in made.iterdir()) == ["first", "second"]
    (tmp_path / "a/model.yaml").write_text(BASE.replace("family: small", "family: renamed"))
    monkeypatch.chdir(tmp_path / "a")
    assert run("generate", "model.yaml", "--out", "../generated")[0] == 0
    assert sorted(path.name for path in made.iterdir()) == ["renamed", "second"]


@pytest.mark.parametrize(
    ("spec", "out", "origin"),
    [
        ("specs/a.yaml", "generated", "specs/a.yaml"),
        ("a.yaml", "generated", "./a.yaml"),
        ("specs/a.yaml", "specs/out", "./a.yaml"),
        ("specs/a.yaml", "out/deep", "a.yaml"),
        ("specs/../a.yaml", "./generated/", "./a.yaml"),
    ],
)
def test_the_origin_of_a_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, out: str, origin: str
) -> None:
    (tmp_path / "specs").mkdir()
    monkeypatch.chdir(tmp_path)
    assert origin_of(Path(spec), Path(out)) == origin
    assert origin_of(tmp_path / spec, tmp_path / out) == origin
    monkeypatch.chdir(tmp_path / "specs")
    assert origin_of(Path("..") / spec, Path("..") / out) == origin
