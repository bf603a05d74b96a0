"""The compiler answers any text with findings or with code, and never with an exception."""

from __future__ import annotations

import ast
from pathlib import Path

from fuzz_mutations import good_specs, mutated_texts, mutated_trees, stock_of
from fuzz_profile import examples
from hypothesis import given

from ppcgc.driver import Compiled, Source, compile_sources

GOOD = good_specs()
STOCK = stock_of(GOOD)


def answered(text: str, folder: Path | None = None) -> Compiled:
    """Compile a text as the command line does, and check the answer as far as any answer goes."""
    data = text.encode("utf-8", "surrogatepass")
    compiled = compile_sources([Source(file="fuzzed.yaml", data=data, folder=folder)])
    errors = [finding for finding in compiled.findings if finding.is_error]
    assert bool(errors) != bool(compiled.files)
    return compiled


def test_good_specs_compile() -> None:
    for spec in GOOD:
        assert answered(spec.text, spec.folder).files, spec.name


@examples(900)
@given(mutated_trees(GOOD, STOCK))
def test_values_of_good_specs_are_changed(spec: tuple[str, Path]) -> None:
    for path, text in answered(*spec).files.items():
        ast.parse(text, path)


@examples(300)
@given(mutated_texts(GOOD))
def test_text_of_good_specs_is_damaged(spec: tuple[str, Path]) -> None:
    for path, text in answered(*spec).files.items():
        ast.parse(text, path)
