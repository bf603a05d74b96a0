"""The command line: exit codes, streams, and that nothing ends in a traceback."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Result

from ppcgc import __version__
from ppcgc.cli import main
from ppcgc.diagnostics import catalogue
from ppcgc.diagnostics.model import Rule

GOOD = "family: llama\nbody: one\n"


@pytest.fixture
def spec(tmp_path: Path, passes: list[str], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "llama.yaml"
    path.write_text(GOOD)
    return path


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


# ---------------------------------------------------------------- validate


def test_a_clean_spec(spec: Path) -> None:
    result = Result("validate", "llama.yaml")
    assert (result.code, result.out, result.err) == (0, "", "1 spec: 0 errors, 0 warnings\n")


def test_findings_go_to_standard_output_and_exit_with_1(spec: Path) -> None:
    spec.write_text("family: llama\nodd: 1\n")
    result = Result("validate", "llama.yaml", "--format", "concise")
    assert result.code == 1
    assert result.out == "llama.yaml:2:1: error[PPC997] key `odd` is odd\n"
    assert result.err == "1 spec: 1 error, 0 warnings\n"


def test_warnings_alone_are_clean(spec: Path) -> None:
    spec.write_bytes(b"family: llama\r\n")
    result = Result("validate", "llama.yaml", "--format", "concise")
    assert result.code == 0
    assert "warning[PPC003]" in result.out
    assert result.err == "1 spec: 0 errors, 1 warning\n"


def test_a_folder_means_its_specs_in_order_without_hidden_ones(spec: Path) -> None:
    for name in ("z.yaml", "sub/b.yml", ".cache/c.yaml", "notes.txt"):
        path = spec.parent / "specs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a: [\n")
    result = Result("validate", "specs", "specs/z.yaml", "--format", "json")
    files = [finding["file"] for finding in json.loads(result.out)["findings"]]
    assert files == ["specs/sub/b.yml", "specs/z.yaml"]
    assert result.code == 1


def test_standard_input(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a: [\n")))
    result = Result("validate", "-", "--format", "concise")
    assert result.code == 1
    assert result.out.startswith("<stdin>:2:1: error[PPC005]")


@pytest.mark.parametrize("form", ["full", "concise", "json", "github", "sarif"])
def test_each_format_prints_the_finding(spec: Path, form: str) -> None:
    spec.write_text("odd: 1\n")
    result = Result("validate", "llama.yaml", "--format", form)
    assert result.code == 1
    assert "PPC997" in result.out


@pytest.mark.parametrize("value", [None, "", "1"])
def test_colour_on_a_terminal_unless_no_color(
    spec: Path, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if value is not None:
        monkeypatch.setenv("NO_COLOR", value)
    spec.write_text("odd: 1\n")
    terminal = Terminal()
    main(["validate", "llama.yaml"], terminal, io.StringIO())
    assert ("\x1b[" in terminal.getvalue()) == (value != "1")
    assert "\x1b[" not in Result("validate", "llama.yaml").out


# ---------------------------------------------------------------- generate


def test_generate_then_check(spec: Path) -> None:
    first = Result("generate", "llama.yaml")
    assert (first.code, first.out) == (0, "")
    assert "wrote generated/llama/decode.py" in first.err
    assert (spec.parent / "generated/llama/decode.py").read_text().endswith("BODY = 'one'\n")
    assert Result("generate", "llama.yaml", "--check").code == 0
    assert "0 written, 0 removed, 2 as they were" in Result("generate", "llama.yaml").err


def test_check_prints_a_diff_and_writes_nothing(spec: Path) -> None:
    Result("generate", "llama.yaml", "--out", "out")
    spec.write_text("family: llama\nbody: two\n")
    result = Result("generate", "llama.yaml", "--out", "out", "--check")
    assert result.code == 1
    assert "--- a/llama/decode.py\n+++ b/llama/decode.py\n" in result.out
    assert "-BODY = 'one'\n+BODY = 'two'\n" in result.out
    assert "'one'" in (spec.parent / "out/llama/decode.py").read_text()


def test_check_of_what_was_never_generated(spec: Path) -> None:
    result = Result("generate", "llama.yaml", "--check")
    assert result.code == 1
    assert "--- /dev/null\n+++ b/llama/decode.py\n" in result.out
    assert not (spec.parent / "generated").exists()


def test_check_for_programs_gives_drift_as_findings(spec: Path) -> None:
    result = Result("generate", "llama.yaml", "--check", "--format", "json")
    found = json.loads(result.out)["findings"]
    assert [(f["code"], f["file"]) for f in found] == [
        ("PPC020", "generated/llama/__init__.py"),
        ("PPC020", "generated/llama/decode.py"),
    ]
    assert result.code == 1


def test_a_spec_with_errors_writes_nothing_of_any_spec(spec: Path) -> None:
    (spec.parent / "bad.yaml").write_text("family: bad\n")
    result = Result("generate", "llama.yaml", "bad.yaml")
    assert result.code == 1
    assert "PPC998" in result.out
    assert not (spec.parent / "generated").exists()


def test_the_same_family_twice(spec: Path) -> None:
    (spec.parent / "other.yaml").write_text(GOOD)
    result = Result("generate", "llama.yaml", "other.yaml", "--format", "concise")
    assert result.code == 1
    assert "PPC018" in result.out


def test_a_file_of_others_is_a_finding(spec: Path) -> None:
    target = spec.parent / "generated/llama/decode.py"
    target.parent.mkdir(parents=True)
    target.write_text("MINE = 1\n")
    result = Result("generate", "llama.yaml", "--format", "concise")
    assert result.code == 1
    assert result.out.startswith("generated/llama/decode.py:1:1: error[PPC019]")
    assert [path.name for path in target.parent.iterdir()] == ["decode.py"]


@pytest.mark.parametrize("extra", [(), ("--check",)])
def test_the_output_folder_is_a_file(spec: Path, extra: tuple[str, ...]) -> None:
    (spec.parent / "generated").write_text("")
    result = Result("generate", "llama.yaml", *extra)
    assert result.code == 2
    assert result.err == "ppcgc: generated: the output folder is a file\n"


def test_an_output_folder_that_cannot_be_written(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    result = Result("generate", "llama.yaml")
    assert result.code == 2
    assert result.err == "ppcgc: generated/llama: Permission denied; left as it was\n"


# ---------------------------------------------------------------- could not run


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["validate", "nothing.yaml"], "nothing.yaml: no such file or folder"),
        (["validate", "llama.yaml", "nothing.yaml"], "nothing.yaml: no such file or folder"),
        (["generate", "nothing.yaml"], "nothing.yaml: no such file or folder"),
        (["validate", "empty"], "empty: holds no .yaml or .yml file"),
        (["generate", "-"], "standard input"),
        (["validate"], "Missing argument 'PATH...'"),
        (["validate", "llama.yaml", "--format", "xml"], "Invalid value for '--format'"),
        (["validat"], "No such command 'validat'"),
        (["generate", "llama.yaml", "--chek"], "No such option"),
        ([], "Usage: ppcgc"),
        (["explain"], "give a code or a name, or --all"),
        (["explain", "PPC001", "--all"], "give a code or a name, or --all"),
    ],
)
def test_exit_code_2(spec: Path, argv: list[str], words: str) -> None:
    (spec.parent / "empty").mkdir()
    result = Result(*argv)
    assert (result.code, result.out) == (2, "")
    assert words in result.err


def test_an_unreadable_file(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *args: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    result = Result("validate", "llama.yaml")
    assert (result.code, result.err) == (2, "ppcgc: llama.yaml: Permission denied\n")


@pytest.mark.parametrize("debug", [False, True])
def test_an_internal_error_asks_for_a_report(
    spec: Path, monkeypatch: pytest.MonkeyPatch, debug: bool
) -> None:
    def break_down(source: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("ppcgc.driver.check_source", break_down)
    monkeypatch.setenv("PPCGC_DEBUG", "1" if debug else "")
    result = Result("validate", "llama.yaml")
    assert result.code == 2
    assert "internal error: RuntimeError: a bug" in result.err
    assert "Please report it" in result.err
    assert ("Traceback" in result.err) == debug


def test_an_interrupt_is_not_a_traceback(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(source: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ppcgc.driver.check_source", interrupt)
    result = Result("validate", "llama.yaml")
    assert (result.code, result.err.strip()) == (2, "ppcgc: interrupted")


# ---------------------------------------------------------------- explain, schema, version


@pytest.fixture
def few_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = (
        Rule("PPC009", "duplicate-key", "A key is given once.\n\n**What.** Twice.", cases=(3, 14)),
        Rule("PPC017", "split-text", "Text is quoted."),
    )
    monkeypatch.setattr(catalogue, "all_rules", lambda: rules)
    monkeypatch.setattr("ppcgc.explain.all_rules", lambda: rules)


@pytest.mark.parametrize("word", ["PPC009", "ppc009", "duplicate-key"])
def test_explain_by_code_and_name(few_rules: None, word: str) -> None:
    result = Result("explain", word)
    assert result.code == 0
    assert result.out == (
        "# PPC009 duplicate-key (error)\n\nA key is given once.\n\n**What.** Twice.\n\n"
        "Answers the public cases 3, 14 of docs/cases.md.\n"
    )


@pytest.mark.parametrize("word", ["duplicate-keys", "PPC008"])
def test_explain_suggests_the_nearest(few_rules: None, word: str) -> None:
    result = Result("explain", word)
    assert result.code == 2
    assert f"no rule `{word}`; did you mean PPC009 duplicate-key" in result.err


def test_a_retired_code_says_why_and_stays_taken() -> None:
    assert "PPC204 is retired: late rows may repeat the last one" in Result("explain", "ppc204").err
    with pytest.raises(ValueError, match="PPC204 late-rows: the code is retired"):
        catalogue.rule("PPC204", "late-rows", "Something else.")


def test_explain_of_nothing_like_it(few_rules: None) -> None:
    assert "`ppcgc explain --all` lists them" in Result("explain", "!").err


def test_explain_all(few_rules: None) -> None:
    text = Result("explain", "--all").out
    assert text.index("# PPC009") < text.index("# PPC017")
    data = json.loads(Result("explain", "--all", "--format", "json").out)
    assert data["version"] == 1
    assert data["rules"][0] == {
        "code": "PPC009",
        "name": "duplicate-key",
        "severity": "error",
        "summary": "A key is given once.",
        "text": "A key is given once.\n\n**What.** Twice.",
        "cases": [3, 14],
    }


def test_every_rule_can_be_explained() -> None:
    """Also imports every pass: two rules of one code or name cannot be defined."""
    rules = catalogue.all_rules()
    assert {"PPC001", "PPC009", "PPC017", "PPC018", "PPC019", "PPC020"} <= {r.code for r in rules}
    for rule in rules:
        for heading in ("**What", "**Why it hurts", "**Bad", "**Good"):
            assert heading in rule.doc, (rule.code, heading)
        assert len(rule.summary) <= 100


def test_schema_prints_the_schema() -> None:
    result = Result("schema")
    assert result.code == 0
    assert json.loads(result.out)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_version_and_help() -> None:
    assert Result("--version").out == f"ppcgc {__version__}\n"
    result = Result("--help")
    assert result.code == 0
    for verb in ("validate", "generate", "plan", "init", "explain", "schema"):
        assert f"  {verb}" in result.out


# ---------------------------------------------------------------- as a process


def run(*argv: str, text: str = "", **env: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "ppcgc", *argv]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=False, env=env)


def test_as_a_process() -> None:
    done = run("validate", "-", "--format", "concise", text="a: {b: 1, b: 2}\n")
    assert done.returncode == 1
    assert done.stdout == (
        b"<stdin>:1:11: error[PPC009] key `b` is given twice "
        b"(help: keep one of the two; the first is on line 1)\n"
    )


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("ascii", "→".encode()), ("latin-1", b"\\u2192"), ("utf-8", "→".encode())],
)
def test_any_terminal_gets_the_text(encoding: str, shown: bytes) -> None:
    """An ASCII terminal is taken for a misconfigured UTF-8 one."""
    done = run("validate", "-", text="→: 1\n→: 2\n", PYTHONIOENCODING=encoding)
    assert done.returncode == 1
    assert b"key `" + shown + b"` is given twice" in done.stdout


def test_a_reader_that_went_away_is_not_a_traceback() -> None:
    command = f"{sys.executable} -m ppcgc schema | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert done.stderr == b""
