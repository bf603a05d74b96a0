"""A sample of what the compiler generates for drawn specs, before mypy and ruff, strictly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from fuzz_compiler import answered
from fuzz_mutations import ROOT, good_specs, mutated_trees, stock_of, written
from fuzz_profile import DEEP, examples
from fuzz_small import text_of, with_slots
from fuzz_specs import drawn_specs
from hypothesis import given

# a boundary of no axis, rows that are their own numbers, comparisons with a literal in front
EDGES = with_slots(
    "{name: numbers, axis: tokens, dtype: int32, source: {compute: row.tokens}}",
    "{name: wide, axis: tokens, dtype: int32, padding: zero, source: batch.wide, when: 3 < hidden}",
)
EDGES["pipeline"]["boundary"][0] |= {"axis": "none", "shape": ["hidden"]}
PACKAGES = 60 if DEEP else 14
GOOD = good_specs()
STOCK = stock_of(GOOD)


def sample() -> list[dict[str, str]]:
    """Generated files by path: half of them of drawn specs, half of mutated ones."""
    drawn: list[dict[str, str]] = []
    mutated: list[dict[str, str]] = []

    @examples(PACKAGES * 3)
    @given(drawn_specs())
    def draw(tree: dict[str, Any]) -> None:
        if len(drawn) < PACKAGES // 2 and (files := answered(written(tree)).files):
            drawn.append(files)

    @examples(PACKAGES * 5)
    @given(mutated_trees(GOOD, STOCK))
    def mutate(spec: tuple[str, Path]) -> None:
        if len(mutated) < PACKAGES // 2 and (files := answered(*spec).files):
            mutated.append(files)

    draw()
    mutate()
    return [answered(text_of(EDGES)).files, *drawn, *mutated]


def test_generated_code_is_typed_linted_and_formatted(tmp_path: Path) -> None:
    packages = sample()
    assert len(packages) == PACKAGES + 1
    for number, files in enumerate(packages):
        for path, text in files.items():
            place = tmp_path / f"package_{number}" / path.split("/", 1)[1]
            place.parent.mkdir(exist_ok=True)
            place.write_text(text, encoding="utf-8")
    ruff = (ROOT / "generated" / "ruff.toml").read_text(encoding="utf-8")
    (tmp_path / "ruff.toml").write_text(ruff.replace("../", f"{ROOT}/"), encoding="utf-8")
    config = str(ROOT / "pyproject.toml")
    check(tmp_path, "ruff", "check", "--no-cache", ".")
    check(tmp_path, "ruff", "format", "--no-cache", "--check", ".")
    check(
        tmp_path,
        "mypy",
        "--strict",
        "--config-file",
        config,
        "--cache-dir",
        str(tmp_path / ".m"),
        ".",
    )


def check(folder: Path, *command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT)},  # an editable install is hidden from mypy
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
