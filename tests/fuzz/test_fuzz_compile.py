"""The compiler answers any text with findings or with code, and never with an exception."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from fuzz_compiler import answered
from fuzz_mutations import good_specs, mutated_texts, mutated_trees, stock_of, written
from fuzz_profile import examples
from fuzz_specs import drawn_specs
from hypothesis import given, note

GOOD = good_specs()
STOCK = stock_of(GOOD)


def test_good_specs_compile() -> None:
    for spec in GOOD:
        assert answered(spec.text, spec.folder).files, spec.name


@examples(900)
@given(mutated_trees(GOOD, STOCK))
def test_values_of_good_specs_are_changed(spec: tuple[str, Path]) -> None:
    check_answer(*spec)


@examples(300)
@given(mutated_texts(GOOD))
def test_text_of_good_specs_is_damaged(spec: tuple[str, Path]) -> None:
    check_answer(*spec)


@examples(500)
@given(drawn_specs())
def test_whole_specs_are_drawn(tree: dict[str, Any]) -> None:
    check_answer(written(tree), None)


def check_answer(text: str, folder: Path | None) -> None:
    note(text)
    for path, code in answered(text, folder).files.items():
        ast.parse(code, path)
