"""``ppcgc generate --bind``: findings for configs that do not fit, and the command itself."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from binding_tools import binding_of, compiled, errors
from command_line import Result
from small_spec import CONFIG, SPEC

from ppcgc.expr.evaluate import Value
from ppcgc.known.sizes import NotKnownError


def with_value(path: str, value: object) -> dict[str, Any]:
    """The config with another value at a path; None takes it out."""
    config: dict[str, Any] = deepcopy(CONFIG)
    *steps, last = path.split(".")
    at = config
    for step in steps:
        at = at[step]
    del at[last]
    if value is not None:
        at[last] = value
    return config


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(SPEC.splitlines(), 1) if text in line)


def test_a_config_that_fits_is_bound_without_a_finding() -> None:
    made = compiled(SPEC, binding_of(CONFIG, stages=3))
    assert errors(made.findings) == []
    assert set(made.files) == set(compiled(SPEC).files)


@pytest.mark.parametrize(
    ("path", "value", "code", "line", "message"),
    [
        ("text.hidden", None, "PPC660", "hidden: config", "config.json has no `text.hidden`"),
        ("text", 3, "PPC660", "hidden: config", "config.json has no `text.hidden`"),
        ("text.hidden", "16", "PPC661", "hidden: config", "`text.hidden` of config.json is '16'"),
        ("text.hidden", 16.0, "PPC661", "hidden: config", "`text.hidden` of config.json is 16.0"),
        ("text.hidden", True, "PPC661", "hidden: config", "`text.hidden` of config.json is True"),
        (
            "text.hidden", 10**18, "PPC661", "hidden: config",
            "`text.hidden` of config.json is 1000000000000000000",
        ),
        ("block", -2, "PPC661", "block: config", "`block` of config.json is -2"),
        ("layers", None, "PPC660", "layers: {count", "config.json has no `layers`"),
        ("types", None, "PPC660", "full: {where", "config.json has no `types`"),
        ("types", 6, "PPC661", "full: {where", "`types` of config.json is 6"),
        (
            "types", "fs", "PPC661", "full: {where",
            "kind full: `types` of config.json has 2 entries, the model has 6 layers",
        ),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit(
    path: str, value: object, code: str, line: str, message: str
) -> None:
    made = compiled(SPEC, binding_of(with_value(path, value), stages=2))
    assert errors(made.findings) == [(code, line_of(line), message)]
    assert made.files == {}


def test_a_size_of_too_many_digits_is_told_how_many_there_may_be() -> None:
    made = compiled(SPEC, binding_of(with_value("text.hidden", 10**18), stages=2))
    helps = [finding.help for finding in made.findings if finding.is_error]
    assert helps == ["a size is an integer of at least 1, of 18 digits at most"]


def test_all_keys_that_are_wrong_are_found_at_once_with_their_place() -> None:
    config = with_value("text.hidden", "16") | {"block": 0}
    made = compiled(SPEC, binding_of(config))
    assert [f.rule.code for f in made.findings if f.is_error] == ["PPC661", "PPC661"]
    related = [f.related[0].span for f in made.findings if f.is_error]
    lines = json.dumps(config, indent=2).splitlines()
    assert [lines[span.line - 1].strip() for span in related] == ['"hidden": "16"', '"block": 0,']


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[tokens, hidden], dtype: model, padding: zero}\n    - {name: blocks",
         "[tokens, hidden - 20], dtype: model, padding: zero}\n    - {name: blocks",
         "dims.hidden - 20 is -4 (with dims.hidden = 16); an extent is >= 0 "
         "at the cut before layer 2"),
        ("wide: hidden * 2", "wide: 2 // (block - 2)",
         "dims.wide: 2 // (dims.block - 2) divides by zero (with dims.block = 2)"),
        ("wide: hidden * 2", "wide: hidden * 999999999999999999",
         "dims.wide: dims.hidden * 999999999999999999 is 15999999999999999984 "
         "(with dims.hidden = 16); at most 9223372036854775807 fit"),
        ('"ceil(cut.layer / block)"', '"3 - cut.layer"',
         "3 - cut.layer is -1 (with cut.layer = 4); an extent is >= 0 at the cut before layer 4"),
        ('"wide // tp.size"', '"hidden - wide"',
         "dims.hidden - dims.wide is -16 (with dims.hidden = 16, dims.wide = 32); "
         "an extent is >= 0"),
    ],
)  # fmt: skip
def test_a_size_without_a_value(old: str, new: str, message: str) -> None:
    text = SPEC.replace(old, new)
    assert text != SPEC
    made = compiled(text, binding_of(CONFIG, stages=3))
    assert [(code, found) for code, _, found in errors(made.findings)] == [("PPC662", message)]


def test_a_key_that_crosses_no_such_cut_may_have_no_size_there() -> None:
    text = SPEC.replace('"kinds.even.below(cut.layer)"', "2 - cut.layer % 2 * 9")
    made = compiled(text, binding_of(CONFIG | {"layers": 4, "types": "fsfs"}, stages=4))
    assert errors(made.findings) == []


def test_more_stages_than_layers() -> None:
    found = errors(compiled(SPEC, binding_of(CONFIG, stages=7)).findings)
    message = "--stages 7: 6 layers make 1 to 6 stages"
    assert [(code, text) for code, _, text in found] == [("PPC663", message)]


def test_explicit_ranges_that_end_before_the_last_layer() -> None:
    text = SPEC.replace("  boundary:", "  stages: [[0, 2], [2, 5]]\n  boundary:", 1)
    found = errors(compiled(text, binding_of(CONFIG)).findings)
    message = "the stages end at layer 5, the model at 6"
    assert [(code, text) for code, _, text in found] == [("PPC663", message)]


def test_a_kind_of_layers_that_the_model_has_not() -> None:
    text = SPEC.replace("{if: layer % 2 == 0}", "{ids: [0, 6]}")
    found = errors(compiled(text, binding_of(CONFIG)).findings)
    message = "kind even lists layers 6, the model has 6 layers"
    assert [(code, text) for code, _, text in found] == [("PPC663", message)]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"kv": 4}, "small has no `kv` to set"),
        ({"kv_rows": 0}, "kv_rows is 0; a size is an integer of at least 1"),
        ({"options.mode": "loud"}, "options.mode is loud; it is plain or wide"),
        ({"options.lora": 1}, "options.lora is 1; it is of type bool"),
    ],
)
def test_what_the_command_line_gives_is_no_finding_of_the_spec(
    given: dict[str, Value], problem: str
) -> None:
    with pytest.raises(NotKnownError, match=problem):
        compiled(SPEC, binding_of(CONFIG, given=given))


# ---------------------------------------------------------------- the command


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SPEC)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


BIND = ("generate", "small.yaml", "--bind", "config.json", "--stages", "3", "--set", "kv_rows=64")


def test_generate_then_check(folder: Path) -> None:
    assert Result(*BIND).code == 0
    assert Result(*BIND, "--check").code == 0
    family = (folder / "generated/small/family.py").read_text()
    assert "STAGES = ((0, 2), (2, 4), (4, 6))" in family
    assert family.splitlines()[2].startswith("# bound: config.json sha256:")


@pytest.mark.parametrize(
    "other",
    [BIND[:2], (*BIND[:5], "2", *BIND[6:]), (*BIND[:6], "--set", "kv_rows=65")],
    ids=["no binding", "other stages", "other sizes"],
)
def test_check_tells_another_binding(folder: Path, other: tuple[str, ...]) -> None:
    assert Result(*BIND).code == 0
    assert Result(*other, "--check").code == 1


def test_check_tells_another_config(folder: Path) -> None:
    assert Result(*BIND).code == 0
    (folder / "config.json").write_text(json.dumps(dict(reversed(CONFIG.items())), indent=4))
    assert Result(*BIND, "--check").code == 0  # the same values, written otherwise
    (folder / "config.json").write_text(json.dumps(CONFIG | {"block": 3}))
    assert Result(*BIND, "--check").code == 1


def test_findings_leave_no_files(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps(with_value("text.hidden", None)))
    ran = Result(*BIND, "--format", "concise")
    assert (ran.code, (folder / "generated").exists()) == (1, False)
    assert ran.out == (
        f"small.yaml:{line_of('hidden: config')}:3: error[PPC660] config.json has no "
        "`text.hidden` (help: add it to the config, or give the size with --set hidden=N)\n"
    )


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (("small.yaml", "--stages", "2"), "--stages and --set go with --bind CONFIG"),
        (("small.yaml", "--set", "kv_rows=1"), "--stages and --set go with --bind CONFIG"),
        (
            ("small.yaml", "other.yaml", "--bind", "config.json"),
            "--bind is for one spec, not for 2",
        ),
        (("small.yaml", "--bind", "nowhere.json"), "nowhere.json: No such file"),
        (("small.yaml", "--bind", "small.yaml"), "small.yaml: is not JSON"),
        (("small.yaml", "--bind", "config.json", "--set", "kv=1"), "has no `kv` to set"),
    ],
)
def test_what_cannot_run(folder: Path, argv: tuple[str, ...], problem: str) -> None:
    (folder / "other.yaml").write_text(SPEC.replace("family: small", "family: other"))
    ran = Result("generate", *argv)
    assert ran.code == 2
    assert problem in ran.err
