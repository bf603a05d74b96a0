"""The folders of ``tests/cases``: a spec in, a generated package or findings out.

``expected/`` holds the package of a spec that is sound, ``findings.txt`` what the command line
says about one that is not.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from ppcgc.driver import Source, check_source, compile_sources
from ppcgc.ir import Family

CASES = Path(__file__).parent.parent / "cases"
SPEC = "spec.yaml"

FOLDERS = sorted(path.parent for path in CASES.glob(f"*/{SPEC}"))
SOUND = [folder for folder in FOLDERS if not folder.name.startswith("refused_")]
REFUSED = [folder for folder in FOLDERS if folder.name.startswith("refused_")]


def source_of(case: Path) -> Source:
    return Source(file=SPEC, data=(case / SPEC).read_bytes())


@cache
def generated(case: Path) -> dict[str, str]:
    """The files of a case by path, as the compiler makes them now."""
    compiled = compile_sources([source_of(case)])
    assert not [finding for finding in compiled.findings if finding.is_error], compiled.findings
    return compiled.files


@cache
def family_of(case: Path) -> Family:
    family = check_source(source_of(case)).family
    assert family is not None
    return family


def committed(case: Path) -> dict[str, str]:
    """The files of a case by path, as they are committed."""
    folder = case / "expected"
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.py"))
    }


def commit(case: Path, files: dict[str, str]) -> None:
    """Make the committed files of a case these, and no others."""
    for path in (case / "expected").rglob("*.py"):
        if path.relative_to(case / "expected").as_posix() not in files:
            path.unlink()
    for name, text in files.items():
        path = case / "expected" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@cache
def package(case: Path) -> Any:
    """The committed package of a case, imported."""
    folder = str(case / "expected")
    sys.path.insert(0, folder)
    try:
        made: ModuleType = importlib.import_module(family_of(case).name)
    finally:
        sys.path.remove(folder)
    return made
