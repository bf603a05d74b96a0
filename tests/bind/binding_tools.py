"""Compiles specs for one config, and imports what comes out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spec_tools import import_files

from ppcgc.bind import Binding
from ppcgc.diagnostics.model import Diagnostic
from ppcgc.driver import Compiled, Source, compile_sources
from ppcgc.expr.evaluate import Value

SPECS = Path(__file__).parents[2] / "specs"


def binding_of(
    config: Mapping[str, object],
    *,
    stages: int | None = None,
    given: Mapping[str, Value] | None = None,
) -> Binding:
    text = json.dumps(config, indent=2)
    return Binding(file="config.json", text=text, config=config, given=given or {}, stages=stages)


def compiled(text: str, binding: Binding | None = None) -> Compiled:
    source = Source(file="small.yaml", data=text.encode())
    return compile_sources([source], binding)


def errors(found: tuple[Diagnostic, ...]) -> list[tuple[str, int, str]]:
    """Code, line and message of each error."""
    return [(f.rule.code, f.span.line, f.message) for f in found if f.is_error]


def bound_package(name: str, binding: Binding, folder: Path) -> Any:
    """The package of ``specs/<name>.yaml``, for one config."""
    path = SPECS / f"{name}.yaml"
    source = Source(file=path.name, data=path.read_bytes(), folder=SPECS)
    made = compile_sources([source], binding)
    assert errors(made.findings) == []
    return import_files(made.files, folder)
