"""``extends``: which files are read, which are refused, and which file a finding is in."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest
from extend_files import BASE, HEAD, checked, extended, merged, only, places

from ppcgc.cli import main
from ppcgc.driver import findings_of
from ppcgc.load.text import MAX_BYTES

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
