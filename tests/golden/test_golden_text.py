"""Generated text: what is committed, to the byte; with headers, imports and lines that are true."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from case_files import FOLDERS, REFUSED, SOUND, SPEC, commit, committed, family_of, generated

from ppcgc.cli import main
from ppcgc.plan import plan
from ppcgc.version import ABI, VERSION

each_sound_case = pytest.mark.parametrize("case", SOUND, ids=lambda case: str(case.name))


@each_sound_case
def test_text_is_what_is_committed(case: Path, update_golden: bool) -> None:
    if update_golden:
        commit(case, generated(case))
    assert generated(case) == committed(case)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: str(case.name))
def test_a_refused_spec_says_why_and_writes_nothing(
    case: Path, update_golden: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(case)
    out, err = io.StringIO(), io.StringIO()
    code = main(["generate", SPEC, "--out", str(tmp_path / "out")], out, err)
    if update_golden:
        (case / "findings.txt").write_text(out.getvalue(), encoding="utf-8")
    assert code == 1
    assert out.getvalue() == (case / "findings.txt").read_text(encoding="utf-8")
    assert "error" in err.getvalue()
    assert not (tmp_path / "out").exists()


def test_every_folder_is_a_case() -> None:
    root = FOLDERS[0].parent
    folders = {path for path in root.iterdir() if path.is_dir() and path.name[0] != "."}
    assert folders == set(FOLDERS)
    assert len(SOUND) > 10
    assert len(REFUSED) > 2


@each_sound_case
def test_headers_name_the_spec_the_abi_and_the_fingerprint(case: Path) -> None:
    fingerprint = plan(family_of(case)).fingerprint
    for text in generated(case).values():
        owner, spec, rest = text.split("\n", 2)
        assert owner == f"# ppcgc: generated from {SPEC} by ppcgc {VERSION}, ABI {ABI}; do not edit"
        assert spec == f"# spec: {fingerprint}"
        assert rest.startswith('"""')
    family = generated(case)[f"{family_of(case).name}/family.py"]
    assert f"rt.require_abi({ABI}, __name__)" in family
    assert f'FINGERPRINT = "{fingerprint}"' in family


# ---------------------------------------------------------------- imports


def foreign_imports(source: str) -> list[str]:
    """Imports other than ppcgc.runtime, torch, the standard library and the package's own."""
    wrong = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            wrong += [a.name for a in node.names if not _allowed(a.name)]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            module = node.module or ""
            names = [
                f"{module}.{alias.name}" if module == "ppcgc" else module for alias in node.names
            ]
            wrong += [name for name in names if not _allowed(name)]
    return wrong


def _allowed(name: str) -> bool:
    root = name.partition(".")[0]
    if root == "ppcgc":
        return name == "ppcgc.runtime"
    return root == "torch" or root in sys.stdlib_module_names


@each_sound_case
def test_only_the_runtime_torch_and_the_standard_library(case: Path) -> None:
    foreign = {name: foreign_imports(text) for name, text in generated(case).items()}
    assert {name: found for name, found in foreign.items() if found} == {}


@pytest.mark.parametrize(
    "source",
    ["import numpy", "from ppcgc import ir", "from ppcgc.plan import plan", "import ppcgc"],
)
def test_the_check_of_imports_rejects(source: str) -> None:
    assert len(foreign_imports(source)) == 1


# ---------------------------------------------------------------- spec lines


def named_lines(source: str) -> Iterator[tuple[str, int]]:
    """Each slot, key, output, size or count that generated code gives a line of the spec.

    As a comment in front of or behind a name, as a heading, or as a row of the table of slots.
    """
    lines = source.splitlines()
    line_of = re.compile(rf"{re.escape(SPEC)}:(\d+)")
    for at, line in enumerate(lines):
        found = line_of.search(line)
        if found is None:
            continue
        heading = re.match(r"\s*# ([\w.]+)(?= \()", line)
        field = re.match(r"\s*(?:def )?(\w+)(?=[:(])", line)
        row = re.match(r'\s*line="', line) and re.match(r'\s*name="([\w.]+)"', lines[at - 1])
        if line.lstrip().startswith("# [") or line.lstrip().startswith("# config"):
            below = next(text for text in lines[at + 1 :] if "@" not in text)
            field = re.match(r"\s*(?:def )?(\w+)(?=[:(])", below)
        name = heading or row or field
        if name is not None:
            yield name[1], int(found[1])


def untrue_lines(source: str, spec: list[str]) -> list[tuple[str, int]]:
    """Names whose line of the spec does not hold them."""
    return [
        (name, number)
        for name, number in named_lines(source)
        if name != "layer_count"  # a name of the generated code's own
        and not re.search(rf"\b{re.escape(name.split('.')[-1])}\b", spec[number - 1])
    ]


@each_sound_case
def test_the_lines_named_hold_what_they_are_named_for(case: Path) -> None:
    spec = (case / SPEC).read_text(encoding="utf-8").splitlines()
    found = 0
    for text in generated(case).values():
        assert untrue_lines(text, spec) == []
        found += len(list(named_lines(text)))
    assert found >= 2 * sum(len(runner.slots) for runner in family_of(case).runners)


def test_the_check_of_lines_rejects() -> None:
    spec = ["version: 1", "- {name: ids}"]
    assert untrue_lines("    ids: Tensor  # [tokens] int64, spec.yaml:2", spec) == []
    assert untrue_lines("    ids: Tensor  # [tokens] int64, spec.yaml:1", spec) == [("ids", 1)]
    assert untrue_lines("        # pp.ids (spec.yaml:1): zero", spec) == [("pp.ids", 1)]
    assert untrue_lines('    name="ids",\n    line="spec.yaml:1",', spec) == [("ids", 1)]
    above = "    # [tokens] int64, spec.yaml:1\n    @property\n    def ids(self) -> int: ..."
    assert untrue_lines(above, spec) == [("ids", 1)]


# ---------------------------------------------------------------- determinism

PROGRAM = """
import hashlib, json, sys
from pathlib import Path
from ppcgc.driver import Source, compile_sources
digests = {}
for path in sys.argv[1:]:
    made = compile_sources([Source(file="spec.yaml", data=Path(path).read_bytes())])
    for name, text in made.files.items():
        digests[name] = hashlib.sha256(text.encode()).hexdigest()
print(json.dumps(digests))
"""


@pytest.mark.parametrize("seed", ["0", "4711"])
def test_text_depends_on_nothing_but_the_spec(seed: str, tmp_path: Path) -> None:
    """Not on the order of sets, not on the working directory, not on the environment."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *(str(case / SPEC) for case in SOUND)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C", "COLUMNS": "17"},
        capture_output=True,
        text=True,
        check=True,
    )
    expected = {
        name: hashlib.sha256(text.encode()).hexdigest()
        for case in SOUND
        for name, text in generated(case).items()
    }
    assert json.loads(done.stdout) == expected
