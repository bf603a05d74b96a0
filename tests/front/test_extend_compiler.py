"""``extends`` through the whole compiler: a child is what it would be written out."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from extend_files import BASE, checked

from ppcgc.cli import main
from ppcgc.sources import origin_of

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


@pytest.mark.parametrize(
    ("drop", "code", "at", "message"),
    [
        ("{runners: [prefill, decode]}", "PPC107", "decode]",
         "'runners' has 0 entries; it has at least 1: `drop` leaves out 'prefill', 'decode'"),
        ("{runners: {decode: [slots]}}", "PPC102", "slots]",
         "missing key 'slots' in 'runners.decode': `drop` leaves out 'slots'"),
        ("[pipeline]", "PPC102", "pipeline]",
         "missing key 'pipeline': `drop` leaves out 'pipeline'"),
        ("{runners: {decode: {outputs: {last: [out]}}}}", "PPC107", "out]",
         "'runners.decode.outputs.last' has 0 items; it has at least 1: `drop` leaves out 'out'"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("more", ["", "runners: {}\n"])
def test_what_drop_is_to_blame_for_is_found_at_it(
    specs: Path, drop: str, code: str, at: str, message: str, more: str
) -> None:
    line = f"drop: {drop}"
    text = f"version: 1\nextends: small\nfamily: heir\n{line}\n{more}"
    (specs / "heir.yaml").write_text(text)
    (finding,) = [each for each in checked(specs, "heir").findings if each.is_error]
    assert (finding.rule.code, finding.message) == (code, message)
    assert str(finding.span) == f"s/heir.yaml:4:{line.index(at) + 1}"
    assert [related.note for related in finding.related] == ["what is inherited"]
