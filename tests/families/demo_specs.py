"""Compiles a spec of ``specs/`` beside this file and imports what comes out."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from ppcgc.driver import Source, compile_sources

SPECS = Path(__file__).parent / "specs"


def import_spec(name: str, folder: Path) -> Any:
    """The generated package of ``specs/<name>.yaml``, written below ``folder``."""
    file = SPECS / f"{name}.yaml"
    compiled = compile_sources([Source(file=file.name, data=file.read_bytes(), folder=SPECS)])
    assert [found.message for found in compiled.findings] == []
    for path, text in compiled.files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    for known in [known for known in sys.modules if known.partition(".")[0] == name]:
        del sys.modules[known]
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


class Packages:
    """The package of a spec by its name, made once."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._made: dict[str, Any] = {}

    def __call__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = import_spec(name, Path(self._folders.mktemp(name)))
        return self._made[name]
