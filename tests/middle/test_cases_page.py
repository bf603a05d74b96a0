"""``docs/cases.md``: every public case has an answer, and the tests that it names exist."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from ppcgc.diagnostics.catalogue import all_rules
from ppcgc.docs_cases import CASES_PAGE, Case, answers_of, cases_page, read_groups

TESTS = Path(__file__).parents[1]
CASES = [case for group in read_groups() for case in group.cases]


@cache
def functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def exists(test: str) -> bool:
    """Is there a test function, or the folder of a rule?"""
    file, _, function = test.partition("::")
    path = TESTS / file
    if not function:
        return (path / "bad.yaml").is_file()
    return path.is_file() and function in functions(path)


def test_page_is_current(update_golden: bool) -> None:
    page = cases_page(all_rules())
    if update_golden:
        CASES_PAGE.write_text(page, encoding="utf-8")
    assert CASES_PAGE.read_text(encoding="utf-8") == page, "run: python -m ppcgc.docs"


def test_every_case_is_there_once() -> None:
    names = [str(number) for number in range(1, 105)] + [f"T{number}" for number in range(1, 11)]
    assert [case.name for case in CASES] == names


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_every_case_is_answered(case: Case) -> None:
    answers = answers_of(case, all_rules())
    assert answers
    missing = [answer.test for answer in answers if not exists(answer.test)]
    assert missing == []


def test_a_case_of_a_rule_is_a_case_of_the_table() -> None:
    numbers = {number for rule in all_rules() for number in rule.cases}
    assert numbers <= set(range(1, 105))


@pytest.mark.parametrize(
    "test",
    [
        "middle/test_cases_page.py::test_that_is_not_there",
        "middle/test_no_such_file.py::test_page_is_current",
        "rules/PPC999-no-such-rule",
    ],
)
def test_a_test_that_is_not_there_is_found(test: str) -> None:
    assert not exists(test)


def test_links_and_rules_of_a_row() -> None:
    page = cases_page(all_rules())
    assert "[sgl-project/sglang#24743](https://github.com/sgl-project/sglang/issues/24743)" in page
    assert "[PPC621](rules.md#ppc621-scalar-not-in-key)" in page
