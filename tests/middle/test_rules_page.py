"""``docs/rules.md`` is what the rules say now."""

from __future__ import annotations

from ppcgc.docs import RULES_PAGE, rules_page


def test_rules_page_is_current(update_golden: bool) -> None:
    page = rules_page()
    if update_golden:
        RULES_PAGE.write_text(page, encoding="utf-8")
    assert RULES_PAGE.read_text(encoding="utf-8") == page, "run: python -m ppcgc.docs"


def test_rules_page_lists_each_rule_once() -> None:
    assert rules_page().count("### PPC201 padding-missing\n") == 1
    assert "### PPC247 narrow-index (warning)\n" in rules_page()
