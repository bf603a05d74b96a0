"""Publishing: only what changed, nothing of others, all of a package or nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ppcgc.publish import PublishError, difference, drift_findings, publish
from ppcgc.publish.ownership import known_origin, origin


def header(spec: str = "specs/llama.yaml") -> str:
    return f"# ppcgc: generated from {spec} by ppcgc 0; do not edit\n"


def package(value: int, family: str = "llama", spec: str = "specs/llama.yaml") -> dict[str, str]:
    """Two modules that must be of the same generation to be imported together."""
    return {
        f"{family}/__init__.py": f"{header(spec)}from .core import VALUE_{value}\n",
        f"{family}/core.py": f"{header(spec)}VALUE_{value} = {value}\n",
    }


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def as_bytes(files: dict[str, str]) -> dict[str, bytes]:
    return {name: text.encode() for name, text in files.items()}


def imports(out: Path) -> bool:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import llama"
    command = [sys.executable, "-B", "-c", code, str(out)]
    return subprocess.run(command, check=False).returncode == 0


def test_writes_only_what_changed(tmp_path: Path) -> None:
    out = tmp_path / "generated"
    first = publish(package(1), out)
    assert first.written == ("llama/__init__.py", "llama/core.py")
    os.utime(out / "llama/core.py", ns=(1, 1))
    changed = package(1) | {"llama/__init__.py": header() + "# new\n"}
    second = publish(changed, out)
    assert (second.written, second.unchanged) == (("llama/__init__.py",), ("llama/core.py",))
    assert (out / "llama/core.py").stat().st_mtime_ns == 1
    assert snapshot(out) == as_bytes(changed)
    assert difference(changed, out) == ""


def test_text_is_written_as_utf8_with_line_feeds(tmp_path: Path) -> None:
    publish({"a/b.py": header() + "é→\n"}, tmp_path)
    assert (tmp_path / "a/b.py").read_bytes() == (header() + "é→\n").encode("utf-8")


def test_removes_stale_modules_of_its_packages(tmp_path: Path) -> None:
    publish(package(1) | {"llama/old.py": header()}, tmp_path)
    (tmp_path / "llama/mine.py").write_text("MINE = 1\n")
    done = publish(package(1), tmp_path)
    assert done.removed == ("llama/old.py",)
    assert set(snapshot(tmp_path)) == {"llama/__init__.py", "llama/core.py", "llama/mine.py"}


def test_removes_the_package_of_a_family_that_was_renamed(tmp_path: Path) -> None:
    publish(package(1) | package(1, "qwen", "qwen.yaml"), tmp_path)
    (tmp_path / "llama/__pycache__").mkdir()
    (tmp_path / "llama/__pycache__/core.pyc").write_bytes(b"")
    done = publish(package(1, "llama3"), tmp_path)
    assert done.removed == ("llama/__init__.py", "llama/core.py")
    assert not (tmp_path / "llama").exists()
    assert (tmp_path / "qwen/core.py").exists()


@pytest.mark.parametrize("other", ["b/llama.yaml", "./llama.yaml", "llama.yaml"])
@pytest.mark.parametrize("first", ["a/llama.yaml", "llama.yaml"])
def test_a_spec_of_the_same_name_elsewhere_removes_nothing(
    tmp_path: Path, first: str, other: str
) -> None:
    """Nor do two of unknown places, which may be one and the same: nobody can tell."""
    publish(package(1, spec=first), tmp_path)
    assert publish(package(1, "llama3", other), tmp_path).removed == ()
    assert publish(package(1, spec=first), tmp_path).written == ()
    assert {"llama/core.py", "llama3/core.py"} <= set(snapshot(tmp_path))


def test_a_renamed_family_leaves_the_files_of_others_in_its_folder(tmp_path: Path) -> None:
    publish(package(1), tmp_path)
    (tmp_path / "llama/mine.py").write_text("MINE = 1\n")
    publish(package(1, "llama3"), tmp_path)
    assert {name for name in snapshot(tmp_path) if name.startswith("llama/")} == {"llama/mine.py"}


def test_refuses_to_write_over_a_file_of_others(tmp_path: Path) -> None:
    (tmp_path / "llama").mkdir()
    (tmp_path / "llama/core.py").write_text("# by hand\n")
    before = snapshot(tmp_path)
    done = publish(package(1) | package(1, "qwen", "qwen.yaml"), tmp_path)
    assert [finding.rule.code for finding in done.findings] == ["PPC019"]
    assert done.findings[0].span.file == (tmp_path / "llama/core.py").as_posix()
    assert (done.written, done.removed) == ((), ())
    assert snapshot(tmp_path) == before


def test_refuses_to_write_over_the_package_of_another_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("specs/llama.yaml", "other/llama.yaml"):
        Path(name).parent.mkdir()
        Path(name).write_text("family: llama\n")
    out = tmp_path / "generated"
    publish(package(1, spec="specs/llama.yaml"), out)
    before = snapshot(out)
    done = publish(package(2, spec="other/llama.yaml"), out)
    (finding,) = done.findings
    assert (finding.rule.code, finding.span.file) == ("PPC026", (out / "llama").as_posix())
    assert "generated from specs/llama.yaml, which is still there" in finding.message
    assert snapshot(out) == before
    # by another path to the same spec, and from where it was moved to
    assert publish(package(2, spec="other/../specs/llama.yaml"), out).findings == ()
    Path("specs/llama.yaml").rename("specs/moved.yaml")
    assert publish(package(3, spec="other/../specs/moved.yaml"), out).findings == ()
    Path("specs/moved.yaml").unlink()
    assert publish(package(4, spec="other/llama.yaml"), out).findings == ()


def test_a_file_of_others_with_the_same_text_is_left(tmp_path: Path) -> None:
    files = {"llama/core.py": "VALUE = 1\n"}
    (tmp_path / "llama").mkdir()
    (tmp_path / "llama/core.py").write_text("VALUE = 1\n")
    assert publish(files, tmp_path).unchanged == ("llama/core.py",)


@pytest.mark.parametrize("fail_at", [1, 2, 3])
def test_a_failure_midway_leaves_the_old_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fail_at: int
) -> None:
    """Two modules are replaced and one removed: whichever step fails, the old package stays."""
    old = package(1) | {"llama/stale.py": header()}
    publish(old, tmp_path)
    steps = 0
    replace, unlink = Path.replace, Path.unlink

    def step(path: Path) -> None:
        nonlocal steps
        steps += 1
        if steps == fail_at:
            raise OSError(28, "No space left on device", str(path))

    def failing_replace(self: Path, target: Path) -> Path:
        step(self)
        return replace(self, target)

    def failing_unlink(self: Path, missing_ok: bool = False) -> None:
        if not missing_ok:
            step(self)
        unlink(self, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "replace", failing_replace)
    monkeypatch.setattr(Path, "unlink", failing_unlink)
    with pytest.raises(PublishError, match="llama: No space left on device"):
        publish(package(2), tmp_path)
    monkeypatch.undo()
    assert snapshot(tmp_path) == as_bytes(old)
    assert imports(tmp_path)
    publish(package(2), tmp_path)
    assert snapshot(tmp_path) == as_bytes(package(2))
    assert imports(tmp_path)


def test_a_failure_while_writing_the_new_texts_touches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(package(1), tmp_path)
    write_bytes = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if "core" in self.name:
            write_bytes(self, data[:5])
            raise OSError(28, "No space left on device")
        return write_bytes(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(PublishError, match="left as it was"):
        publish(package(2), tmp_path)
    monkeypatch.undo()
    assert snapshot(tmp_path) == as_bytes(package(1))


def test_a_failed_first_publish_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(KeyboardInterrupt):
        publish(package(1), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_output_folder_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(PublishError, match="the output folder is a file"):
        publish(package(1), tmp_path / "out")


def test_a_folder_of_the_output_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "llama").write_text("")
    with pytest.raises(PublishError, match="llama: is a file"):
        publish(package(1), tmp_path)


def test_a_module_of_the_output_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "llama/core.py").mkdir(parents=True)
    with pytest.raises(PublishError, match=r"core\.py: is a folder"):
        publish(package(1), tmp_path)


@pytest.mark.parametrize("link", ["llama", "llama/core.py"])
def test_links_are_not_written_through(tmp_path: Path, link: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    out = tmp_path / "out"
    elsewhere.mkdir()
    (elsewhere / "core.py").write_text(header())
    if link == "llama":
        out.mkdir()
        (out / "llama").symlink_to(elsewhere)
    else:
        (out / "llama").mkdir(parents=True)
        (out / "llama/core.py").symlink_to(elsewhere / "core.py")
    with pytest.raises(PublishError, match="is a link"):
        publish(package(1), out)
    assert snapshot(elsewhere) == {"core.py": header().encode()}


def test_a_linked_module_is_never_stale(tmp_path: Path) -> None:
    (tmp_path / "llama").mkdir()
    (tmp_path / "real.txt").write_text(header())
    (tmp_path / "llama/other.py").symlink_to(tmp_path / "real.txt")
    assert publish(package(1), tmp_path).removed == ()


@pytest.mark.parametrize("name", ["../evil.py", "/evil.py", "a/../../evil.py", ""])
def test_generated_paths_stay_below_the_output(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="leaves the output folder"):
        publish({name: header()}, tmp_path / "out")


def test_the_difference_shows_changed_missing_and_stale_files(tmp_path: Path) -> None:
    publish(package(1) | {"llama/old.py": header()}, tmp_path)
    before = snapshot(tmp_path)
    wanted = {
        "llama/__init__.py": package(1)["llama/__init__.py"],
        "llama/core.py": package(2)["llama/core.py"],
        "llama/new.py": header(),
    }
    assert difference(wanted, tmp_path) == (
        "--- a/llama/core.py\n"
        "+++ b/llama/core.py\n"
        "@@ -1,2 +1,2 @@\n"
        " # ppcgc: generated from specs/llama.yaml by ppcgc 0; do not edit\n"
        "-VALUE_1 = 1\n"
        "+VALUE_2 = 2\n"
        "--- /dev/null\n"
        "+++ b/llama/new.py\n"
        "@@ -0,0 +1 @@\n"
        "+# ppcgc: generated from specs/llama.yaml by ppcgc 0; do not edit\n"
        "--- a/llama/old.py\n"
        "+++ /dev/null\n"
        "@@ -1 +0,0 @@\n"
        "-# ppcgc: generated from specs/llama.yaml by ppcgc 0; do not edit\n"
    )
    assert [f.message for f in drift_findings(wanted, tmp_path)] == [
        "llama/new.py is missing",
        "llama/core.py differs from what its spec generates",
        "llama/old.py is no longer generated by any of the specs",
    ]
    assert snapshot(tmp_path) == before


def test_line_ends_on_disk_count_as_drift(tmp_path: Path) -> None:
    publish(package(1), tmp_path)
    path = tmp_path / "llama/core.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert difference(package(1), tmp_path) != ""


@pytest.mark.parametrize(
    ("line", "spec", "known"),
    [
        (header("specs/a.yaml").strip(), "specs/a.yaml", "specs/a.yaml"),
        (header("./a.yaml").strip(), "./a.yaml", "./a.yaml"),
        (header("a.yaml").strip(), "a.yaml", None),
        (header("s/my, a; by ppcgc b.yaml").strip(), *["s/my, a; by ppcgc b.yaml"] * 2),
        ("# ppcgc: something else", None, None),
        ("# generated from s/a.yaml by ppcgc 0", None, None),
        ("", None, None),
    ],
)
def test_the_spec_of_a_header(line: str, spec: str | None, known: str | None) -> None:
    assert (origin(line), known_origin(line)) == (spec, known)
