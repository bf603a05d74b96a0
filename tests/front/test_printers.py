"""The five formats, held against text written by hand."""

from __future__ import annotations

import json

import pytest

from ppcgc.diagnostics.model import Diagnostic, Related, Rule, Severity, Span
from ppcgc.diagnostics.printers import MACHINE_FORMATS, PRINTERS, render
from ppcgc.diagnostics.printers.visible import visible, width

TWICE = Rule("PPC901", "given-twice", "A key is given once.\n\nMore.")
ODD = Rule("PPC902", "odd-size", "Sizes are even.", severity=Severity.WARNING)
TEXT = "family: llama\naxes: {tokens: 3}\nfamily: qwen\n"
FILE = "specs/llama.yaml"


def at(line: int, column: int, end_column: int, end_line: int | None = None) -> Span:
    return Span(FILE, line, column, end_line or line, end_column)


FOUND = [
    Diagnostic(
        TWICE, at(3, 1, 7), "key `family` is given twice", "keep one",
        (Related(at(1, 1, 7), "first given here"),),
    ),
    Diagnostic(ODD, at(2, 16, 17), "3 is odd"),
]  # fmt: skip


def one(span: Span, text: str, message: str = "m") -> str:
    return render("full", [Diagnostic(TWICE, span, message)], {FILE: text})


def test_full() -> None:
    assert render("full", FOUND, {FILE: TEXT}) == (
        "warning[PPC902] odd-size: 3 is odd\n"
        " --> specs/llama.yaml:2:16\n"
        "  |\n"
        "2 | axes: {tokens: 3}\n"
        "  |                ^\n"
        "\n"
        "error[PPC901] given-twice: key `family` is given twice\n"
        " --> specs/llama.yaml:3:1\n"
        "  |\n"
        "3 | family: qwen\n"
        "  | ^^^^^^\n"
        " ::: specs/llama.yaml:1:1\n"
        "  |\n"
        "1 | family: llama\n"
        "  | ------ first given here\n"
        "  = help: keep one\n"
    )


def test_concise() -> None:
    assert render("concise", FOUND, {FILE: TEXT}) == (
        "specs/llama.yaml:2:16: warning[PPC902] 3 is odd\n"
        "specs/llama.yaml:3:1: error[PPC901] key `family` is given twice (help: keep one)\n"
    )


def test_json_is_versioned_and_complete() -> None:
    data = json.loads(render("json", FOUND, {}))
    assert data["version"] == 1
    assert data["findings"][1] == {
        "code": "PPC901",
        "name": "given-twice",
        "severity": "error",
        "message": "key `family` is given twice",
        "help": "keep one",
        "file": "specs/llama.yaml",
        "line": 3,
        "column": 1,
        "end_line": 3,
        "end_column": 7,
        "related": [
            {
                "note": "first given here",
                "file": "specs/llama.yaml",
                "line": 1,
                "column": 1,
                "end_line": 1,
                "end_column": 7,
            }
        ],
    }


def test_github() -> None:
    assert render("github", FOUND, {}) == (
        "::warning file=specs/llama.yaml,line=2,endLine=2,col=16,endColumn=17,"
        "title=PPC902 odd-size::3 is odd\n"
        "::error file=specs/llama.yaml,line=3,endLine=3,col=1,endColumn=7,"
        "title=PPC901 given-twice::key `family` is given twice"
        "%0Aspecs/llama.yaml:1:1: first given here%0Ahelp: keep one\n"
    )


def test_github_escapes_what_would_start_another_command() -> None:
    finding = Diagnostic(TWICE, Span("a,b:c%.yaml", 1, 1, 2, 1), "100%\n::error::x\r")
    assert render("github", [finding], {}) == (
        "::error file=a%2Cb%3Ac%25.yaml,line=1,endLine=2,title=PPC901 given-twice"
        "::100%25%0A::error::x%0D\n"
    )


def test_sarif() -> None:
    run = json.loads(render("sarif", FOUND, {}))["runs"][0]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["PPC901", "PPC902"]
    assert run["tool"]["driver"]["rules"][0]["shortDescription"]["text"] == "A key is given once."
    warning, error = run["results"]
    assert (warning["level"], warning["ruleId"], warning["ruleIndex"]) == ("warning", "PPC902", 1)
    assert error["message"]["text"] == "key `family` is given twice\nhelp: keep one"
    location = error["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "specs/llama.yaml"
    assert location["region"] == {"startLine": 3, "startColumn": 1, "endLine": 3, "endColumn": 7}
    assert error["relatedLocations"][0]["message"]["text"] == "first given here"
    assert "relatedLocations" not in warning


def test_sarif_quotes_file_names() -> None:
    data = json.loads(render("sarif", [Diagnostic(TWICE, Span("a b.yaml", 1, 1, 1, 1), "m")], {}))
    location = data["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "a%20b.yaml"


@pytest.mark.parametrize("form", sorted(PRINTERS))
def test_findings_are_sorted_and_unique_in_each_format(form: str) -> None:
    assert render(form, [*FOUND, *FOUND], {FILE: TEXT}) == render(form, FOUND[::-1], {FILE: TEXT})


@pytest.mark.parametrize("form", sorted(PRINTERS))
def test_nothing_found(form: str) -> None:
    text = render(form, [], {})
    assert text == "" if form not in {"json", "sarif"} else json.loads(text)


def test_a_file_that_is_not_at_hand_gets_no_excerpt() -> None:
    assert render("full", FOUND[:1], {}) == (
        "error[PPC901] given-twice: key `family` is given twice\n"
        " --> specs/llama.yaml:3:1\n"
        " ::: specs/llama.yaml:1:1\n"
        "  = note: first given here (specs/llama.yaml:1:1)\n"
        "  = help: keep one\n"
    )


@pytest.mark.parametrize(
    ("span", "text", "excerpt"),
    [
        # at the end of the text, with and without a last line feed, and past it
        (at(1, 5, 6), "a: 1\n", "1 | a: 1\n  |     ^\n"),
        (at(2, 1, 2), "a: 1\n", "2 |\n  | ^\n"),
        (at(9, 4, 5), "a: 1\n", "9 |\n  | ^\n"),
        (at(1, 1, 1), "", "1 |\n  | ^\n"),
        # an empty place is still marked
        (at(1, 3, 3), "a: 1", "1 | a: 1\n  |   ^\n"),
        # tabs take four columns, wide characters two, combining ones none
        (at(1, 4, 5), "a\t: x", "1 | a    : x\n  |       ^\n"),
        (at(1, 4, 6), "a: 日本", "1 | a: 日本\n  |    ^^^^\n"),
        (at(1, 6, 7), "a: e\u0301x", "1 | a: e\u0301x\n  |     ^\n"),
        # several lines: the first one, to its end
        (at(1, 4, 3, end_line=3), "a: [1,\n2\n]", "1 | a: [1,\n  |    ^^^ (to line 3)\n"),
        (at(1, 1, 2), "a: 1\r\nb: 2", "1 | a: 1\n  | ^\n"),
    ],
)
def test_odd_places(span: Span, text: str, excerpt: str) -> None:
    assert one(span, text).split("  |\n", 1)[1] == excerpt


def test_line_numbers_are_aligned() -> None:
    text = "x\n" * 9 + "family: a\n"
    finding = Diagnostic(TWICE, at(10, 1, 7), "m", None, (Related(at(2, 1, 2), "here"),))
    assert render("full", [finding], {FILE: text}) == (
        "error[PPC901] given-twice: m\n"
        "  --> specs/llama.yaml:10:1\n"
        "   |\n"
        "10 | family: a\n"
        "   | ^^^^^^\n"
        "  ::: specs/llama.yaml:2:1\n"
        "   |\n"
        " 2 | x\n"
        "   | - here\n"
    )


@pytest.mark.parametrize("column", [1, 60, 150, 290])
def test_a_long_line_is_cut_around_the_place(column: int) -> None:
    words = "".join(f"{number:09d} " for number in range(30))
    text = f"{words[: column - 1]}HERE{words[column + 3 :]}"
    shown, mark = one(at(1, column, column + 4), text).split("\n")[3:5]
    assert shown[mark.index("^") : mark.rindex("^") + 1] == "HERE"
    assert len(shown) <= 110


def test_a_mark_over_a_long_line_is_cut_too() -> None:
    shown, mark = one(at(1, 1, 5000), "x" * 5000).split("\n")[3:5]
    assert shown.endswith("x…")
    assert len(mark) <= 110


def test_a_spec_cannot_write_to_the_terminal() -> None:
    text = one(at(1, 1, 2), "\x1b[31mred", "value \x1b[0m\nsecond line")
    assert "\x1b" not in text
    assert "\\x1b[31mred" in text
    assert "value \\x1b[0m\\nsecond line" in text


def test_lone_surrogates_can_be_printed() -> None:
    text = one(at(1, 1, 2), "\udc80", "bad \udc80")
    assert "bad \\udc80" in text
    assert text.encode()


def test_colour_only_when_asked_for() -> None:
    assert "\x1b" not in render("full", FOUND, {FILE: TEXT})
    coloured = render("full", FOUND, {FILE: TEXT}, colour=True)
    assert "\x1b[1;31merror[PPC901]\x1b[0m" in coloured
    assert "  | \x1b[1;31m^^^^^^\x1b[0m" in coloured
    for form in MACHINE_FORMATS:
        assert "\x1b" not in render(form, FOUND, {FILE: TEXT}, colour=True)


def test_visible_and_width() -> None:
    assert visible("a\tb\x00\u202e") == "a    b\\x00\\u202e"
    assert width("a\tb\x00") == 10
