"""What an import of a generated package loads, and that what it does not load is still there."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from ppcgc import runtime

ROOT = Path(__file__).parents[2]
NOT_AT_IMPORT = {
    f"ppcgc.runtime.{name}"
    for name in (
        "addresses",
        "backends.collectives",
        "backends.cpu",
        "backends.cuda",
        "backends.model_line",
        "bound",
        "calibrating",
        "capturing",
        "cells",
        "collecting",
        "compiling",
        "crossover",
        "eager_rows",
        "kinds",
        "late_buckets",
        "pipeline",
        "recording",
        "report",
        "row_kernel",
        "scalars",
        "verification",
    )
}


def output_of(code: str) -> list[str]:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.split()


def imported_for_types(source: str) -> dict[str, tuple[str, ...]]:
    """What a module imports under TYPE_CHECKING: names by module."""
    blocks = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return {
        (line.module or "").removeprefix("ppcgc.runtime."): tuple(
            alias.name for alias in line.names
        )
        for block in blocks
        for line in block.body
        if isinstance(line, ast.ImportFrom)
    }


def modules_named_like(names: dict[str, tuple[str, ...]], modules: set[str]) -> set[str]:
    """Names that importing a module would replace by that module."""
    return modules & {name for listed in names.values() for name in listed}


def test_a_generated_package_loads_what_a_step_needs() -> None:
    loaded = set(output_of("import generated.llama, sys; print(*sys.modules)"))
    assert {"generated.llama.prefill_first", "ppcgc.runtime.stage"} <= loaded
    assert not loaded & NOT_AT_IMPORT


def test_every_public_name_is_there() -> None:
    code = (
        "from ppcgc import runtime\n"
        "print(*(name for name in runtime.__all__ if hasattr(runtime, name)))"
    )
    assert output_of(code) == list(runtime.__all__)


@pytest.mark.parametrize("name", ["capture", "calibrate", "verify"])
def test_a_name_is_no_module_once_modules_are_loaded(name: str) -> None:
    code = (
        "import ppcgc.runtime.pipeline, ppcgc.runtime.verification\n"
        f"from ppcgc.runtime import {name}\n"
        f"print(type({name}).__name__)"
    )
    assert output_of(code) == ["function"]


def test_no_name_of_a_first_use_is_a_module() -> None:
    modules = {module.name for module in pkgutil.iter_modules(runtime.__path__)}
    assert {"stage", "capturing", "pipeline"} <= modules
    assert modules_named_like(runtime._NAMES, modules) == set()
    assert modules_named_like({"capture": ("capture", "label")}, {"capture", "stage"}) == {
        "capture"
    }


def test_a_type_checker_sees_what_a_first_use_loads() -> None:
    source = Path(runtime.__file__).read_text(encoding="utf-8")
    assert imported_for_types(source) == runtime._NAMES
    assert imported_for_types(
        "if TYPE_CHECKING:\n    from ppcgc.runtime.cells import pad_first\n"
    ) == {"cells": ("pad_first",)}


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match=r"'ppcgc\.runtime' has no attribute 'captured'"):
        _ = runtime.captured  # type: ignore[attr-defined]  # a type checker refuses it too
