"""Committed generated code is clean for the formatter, the linter and the type checker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from case_files import CASES, SOUND

ROOT = CASES.parent.parent
FOLDERS = [str(case.relative_to(ROOT) / "expected") for case in SOUND]


def run(*command: str) -> str:
    """The complaints of a tool, run at the top of the repository; empty when it has none."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_format() -> None:
    assert run("ruff", "format", "--no-cache", "--diff", *FOLDERS) == ""


def test_lint() -> None:
    assert run("ruff", "check", "--no-cache", *FOLDERS) == ""


def test_types() -> None:
    assert run("mypy", "--strict", "--follow-imports=silent", *FOLDERS) == ""


@pytest.mark.parametrize(
    ("command", "source"),
    [
        (("ruff", "format", "--no-cache", "--diff"), "x = ( 1 )\n"),
        (("ruff", "check", "--no-cache"), "import os\n"),
        (("mypy", "--strict", "--follow-imports=silent"), 'x: int = "a"\n'),
    ],
)
def test_each_tool_complains(command: tuple[str, ...], source: str, tmp_path: Path) -> None:
    path = tmp_path / "unsound.py"
    path.write_text(source, encoding="utf-8")
    assert run(*command, str(path)) != ""
