"""What answers each public case: ``docs/cases.md``, from ``docs/cases.yaml`` and from the rules.

A rule names the cases that it answers itself; the file holds every other answer. ``answers_of``
joins the two, and a test looks for each test that is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from ppcgc.diagnostics.model import Rule

CASES_DATA = Path(__file__).parent.parent / "docs" / "cases.yaml"
CASES_PAGE = CASES_DATA.with_suffix(".md")

KINDS = {
    "S": "rule",
    "G": "by construction",
    "C": "check at build or capture",
    "R": "error or report at run time",
    "V": "`ppcgc verify`",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``kind`` is a key of :data:`KINDS`; ``test`` lies below ``tests/``."""

    kind: str
    what: str
    test: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``name`` is a number of the public cases, or ``T1`` to ``T10``."""

    name: str
    text: str
    links: tuple[str, ...]
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    title: str
    cases: tuple[Case, ...]


def read_groups(path: Path = CASES_DATA) -> tuple[Group, ...]:
    """The cases as written. Raises ``ValueError`` for an answer of another form."""
    written = yaml.safe_load(path.read_text(encoding="utf-8"))
    return tuple(
        Group(
            title=group["title"],
            cases=tuple(_case(str(name), case) for name, case in group["cases"].items()),
        )
        for group in written["groups"]
    )


def _case(name: str, written: Mapping[str, object]) -> Case:
    links, answers = written.get("links", ()), written.get("answers", ())
    if not isinstance(links, Sequence) or not isinstance(answers, Sequence):
        raise ValueError(f"case {name}: links and answers are lists")
    return Case(
        name=name,
        text=str(written["case"]),
        links=tuple(str(link) for link in links),
        answers=tuple(_answer(name, answer) for answer in answers),
    )


def _answer(case: str, written: Sequence[object]) -> Answer:
    if len(written) != 3 or written[0] not in KINDS:
        raise ValueError(f"case {case}: {written!r} is not [kind, what, test]")
    kind, what, test = written
    return Answer(kind=str(kind), what=str(what), test=str(test))


def answers_of(case: Case, rules: Sequence[Rule]) -> tuple[Answer, ...]:
    """The rules that name the case, then the other answers."""
    by_rules = (
        Answer(kind="S", what=rule.code, test=f"rules/{rule.code}-{rule.name}")
        for rule in rules
        if case.name.isdigit() and int(case.name) in rule.cases
    )
    return (*by_rules, *case.answers)


_HEAD = """\
# Cases

Public reports of what goes wrong when stages of a model are captured and replayed, retold in a
line each, and what answers them here. **rule**: `ppcgc validate` refuses the spec, or the language
cannot say it. **by construction**: generated code cannot do it. **check at build or capture**,
**error or report at run time**: a typed error or a recorded reason. **`ppcgc verify`**: found by
running the stage on batches made for it; cases that have no other answer say *verify only*.

This page is written by `python -m ppcgc.docs` from `docs/cases.yaml` and from the rules.
"""


def cases_page(rules: Sequence[Rule]) -> str:
    """The Markdown of ``docs/cases.md``."""
    parts = [_HEAD]
    for group in read_groups():
        parts += [f"## {group.title}\n", "| case | what happened | answer | test |"]
        parts.append("| --- | --- | --- | --- |")
        parts += [_row(case, answers_of(case, rules)) for case in group.cases]
        parts.append("")
    return "\n".join(parts)


def _row(case: Case, answers: Sequence[Answer]) -> str:
    only = " *(verify only)*" if {answer.kind for answer in answers} == {"V"} else ""
    links = ", ".join(_link(link) for link in case.links)
    told = f"{case.text} {links}".strip()
    said = "<br>".join(f"**{KINDS[answer.kind]}**: {_what(answer)}" for answer in answers)
    tests = "<br>".join(f"`{answer.test}`" for answer in answers)
    return f"| {case.name} | {told} | {said}{only} | {tests} |"


def _link(reference: str) -> str:
    """``owner/repo#12`` as a link; GitHub leads from an issue's address to a pull request's."""
    place, _, number = reference.partition("#")
    if "/" not in place:
        return reference
    return f"[{reference}](https://github.com/{place}/issues/{number})"


def _what(answer: Answer) -> str:
    if answer.kind != "S" or not answer.what.startswith("PPC"):
        return answer.what
    name = answer.test.removeprefix("rules/").lower()
    return f"[{answer.what}](rules.md#{name})"
