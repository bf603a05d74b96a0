"""Compiles a spec of this folder through the passes, and imports what comes out."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from ppcgc.emit import emit
from ppcgc.load import load
from ppcgc.plan import plan
from ppcgc.resolve import resolve
from ppcgc.validate import schema
from ppcgc.validate.rules import check

SPECS = Path(__file__).parent / "specs"


def compile_text(text: str, file: str = "spec.yaml") -> dict[str, str]:
    """The generated files by path. Fails on any error that a pass finds."""
    document, found = load(text, file)
    assert document is not None, found
    findings = [*found, *schema.check(document)]
    family, later = resolve(document)
    findings += later
    assert family is not None, findings
    findings += check(family)
    assert [finding.message for finding in findings if finding.is_error] == []
    return emit(plan(family))


def import_spec(name: str, folder: Path) -> Any:
    """The generated package of ``specs/<name>.yaml``, written below ``folder``."""
    file = SPECS / f"{name}.yaml"
    return import_text(file.read_text(encoding="utf-8"), folder, file.name)


def import_text(text: str, folder: Path, file: str = "spec.yaml") -> Any:
    """The generated package of a spec's text."""
    return import_files(compile_text(text, file), folder)


def import_files(files: dict[str, str], folder: Path) -> Any:
    """The package of generated files, written below ``folder``."""
    for path, content in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(content, encoding="utf-8")
    family = next(iter(files)).partition("/")[0]
    return _imported(family, folder)


def _imported(package: str, folder: Path) -> ModuleType:
    """Import a package, or the newer one of the same name."""
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(package)
    finally:
        sys.path.remove(str(folder))
