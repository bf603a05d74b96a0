"""``ppcgc plan`` and ``ppcgc init``: numbers worked out by hand, and a spec to start from."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from command_line import Result

from ppcgc.arguments import MODEL_DTYPES
from ppcgc.driver import Source, check_source
from ppcgc.ir import DTYPES
from ppcgc.schema_file import NAME

SPEC = """\
version: 1
family: small
dims: {hidden: config.text.hidden, kv_rows: build, wide: hidden * 2}
axes:
  requests: {max: 4, live: batch.num_requests}
  tokens: {max: 8, live: batch.num_tokens}
state:
  kv: {rows: kv_rows, reserved: [0]}
pipeline:
  layers: {count: config.layers}
  boundary:
    - {name: hidden_states, axis: tokens, shape: [tokens, hidden], dtype: model, padding: zero}
runners:
  step:
    buckets: {tokens: [4, 8], requests: max}
    slots:
      - {name: ids, axis: tokens, dtype: int64, padding: zero, source: batch.ids, residency: host,
         stages: first}
      - {name: starts, axis: requests, shape: [requests + 1], dtype: int32, padding: repeat_last,
         source: batch.starts}
      - {name: bias, axis: tokens, shape: [wide, 2 * tokens], dtype: model, padding: zero,
         source: batch.bias}
    forward:
      first: {ids: slot.ids, starts: slot.starts, bias: slot.bias}
      later: {starts: slot.starts, bias: slot.bias, x: boundary}
    outputs: {last: [{name: out, axis: tokens, shape: [tokens, hidden], dtype: model}]}
"""
KINDS = "{count: config.layers, kinds: {even: {if: layer % 2 == 0}, third: {ids: [3]}}}"
CUT_KEYS = """\
    - {name: k, axis: tokens, shape: [tokens], dtype: int32, padding: zero,
       when: cut.layer in kinds.third}
    - {name: m, axis: tokens, shape: [tokens, kinds.even.below(cut.layer)], dtype: int32,
       padding: zero}
runners:"""
CONFIG = {"text": {"hidden": 16}, "layers": 7, "torch_dtype": "torch.bfloat16"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SPEC)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def planned(*options: str) -> dict[str, Any]:
    ran = Result("plan", "small.yaml", "--format", "json", *options)
    assert ran.code == 0, ran.err + ran.out
    data: dict[str, Any] = json.loads(ran.out)
    return data


# ---------------------------------------------------------------- plan


def test_every_number_with_a_config(folder: Path) -> None:
    data = planned("--config", "config.json", "--set", "kv_rows=99", "--stages", "3")
    assert data["version"] == 1
    assert re.fullmatch("sha256:[0-9a-f]{64}", data["fingerprint"])
    assert data["dims"] == {"hidden": 16, "kv_rows": 99, "wide": 32}
    stages = [(s["place"], s["start"], s["end"]) for s in data["stages"]]
    assert stages == [("first", 0, 3), ("middle", 3, 5), ("last", 5, 7)]
    (runner,) = data["runners"]
    assert (runner["graphs"], runner["max_graphs"], runner["columns"]) == (
        2,
        64,
        ["tokens", "requests"],
    )
    assert runner["coverage"]["tokens"] == {"largest": 8, "capacity": 8, "follows": False}
    small, large = runner["buckets"]
    assert small["padded"] == {"tokens": 4, "requests": 4}
    # [tokens, hidden] in bfloat16
    assert [cut["bytes"] for cut in small["hand_offs"]] == [4 * 16 * 2] * 2
    assert [cut["layer"] for cut in large["hand_offs"]] == [3, 5]
    first, later = large["kinds"]
    assert (first["places"], later["places"]) == (["only", "first"], ["middle", "last"])
    slots = {slot["name"]: slot for slot in first["slots"]}
    assert slots["ids"] == {
        "name": "ids",
        "placement": "host block",
        "dtype": "int64",
        "shape": [8],
        "bytes": 64,
    }
    assert (slots["starts"]["shape"], slots["starts"]["bytes"]) == ([5], 20)
    assert (slots["bias"]["shape"], slots["bias"]["bytes"]) == ([32, 16], 1024)
    assert slots["bias"]["placement"] == "device"
    assert [slot["name"] for slot in later["slots"]] == ["starts", "bias"]


def test_what_is_not_known_is_null(folder: Path) -> None:
    data = planned()
    assert data["dims"] == {"hidden": None, "kv_rows": None, "wide": None}
    assert (data["layers"], data["stages"]) == (None, None)
    bucket = data["runners"][0]["buckets"][0]
    (cut,) = bucket["hand_offs"]
    assert (cut["bytes"], cut["tensors"][0]["shape"]) == (None, [4, "dims.hidden"])
    slots = {slot["name"]: slot for slot in bucket["kinds"][0]["slots"]}
    assert slots["ids"]["bytes"] == 32
    assert slots["bias"]["bytes"] is None


def test_what_is_set_goes_before_the_config(folder: Path) -> None:
    data = planned("--config", "config.json", "--set", "hidden=2", "--dtype", "float32")
    assert data["dims"]["wide"] == 4
    assert data["runners"][0]["buckets"][0]["hand_offs"][0]["bytes"] == 4 * 2 * 4


def test_layer_kinds_and_cuts(folder: Path) -> None:
    """A key crosses some cuts only, a shape counts the layers of a kind below the cut."""
    text = SPEC.replace("{count: config.layers}", KINDS).replace("runners:", CUT_KEYS)
    text = text.replace("x: boundary", "x: boundary.hidden_states, k: boundary.k, m: boundary.m")
    (folder / "small.yaml").write_text(text)
    data = planned("--config", "config.json", "--stages", "3")
    assert [stage["kinds"] for stage in data["stages"]] == [
        {"even": 2, "third": 0},
        {"even": 1, "third": 1},
        {"even": 1, "third": 0},
    ]
    at_3, at_5 = data["runners"][0]["buckets"][0]["hand_offs"]
    assert [tensor["name"] for tensor in at_3["tensors"]] == ["hidden_states", "k", "m"]
    assert [tensor["name"] for tensor in at_5["tensors"]] == ["hidden_states", "m"]
    # layers 0 and 2 are even and below 3; so is 4 below 5
    assert at_3["bytes"] == 4 * 16 * 2 + 4 * 4 + 4 * 2 * 4
    assert at_5["bytes"] == 4 * 16 * 2 + 4 * 3 * 4


def test_declared_stages(folder: Path) -> None:
    text = SPEC.replace("  boundary:", "  stages: [[0, 1], [1, 7]]\n  boundary:")
    (folder / "small.yaml").write_text(text)
    data = planned("--config", "config.json")
    assert [(s["start"], s["end"]) for s in data["stages"]] == [(0, 1), (1, 7)]
    ran = Result("plan", "small.yaml", "--stages", "3")
    assert (ran.code, ran.err) == (2, "ppcgc: --stages 3: the spec states 2 stages\n")
    (folder / "config.json").write_text(json.dumps({**CONFIG, "layers": 8}))
    ran = Result("plan", "small.yaml", "--config", "config.json")
    assert ran.err == "ppcgc: the stages end at layer 7, the model at 8\n"


def test_the_text_shows_the_same_numbers(folder: Path) -> None:
    options = ("--config", "config.json", "--set", "kv_rows=99", "--stages", "2")
    text = Result("plan", "small.yaml", *options).out
    assert "runner step: 2 graphs of at most 64" in text
    assert "stage 0 first: layers [0, 4), 4 layers" in text
    assert "tokens: up to 8 live rows replay, capacity 8" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["1", "8", "4", "8", "4", "256"] in rows
    assert ["1", "only/first", "ids", "host", "block", "int64", "[8]", "64"] in rows
    assert "?" not in text


def test_the_text_says_what_to_give(folder: Path) -> None:
    text = Result("plan", "small.yaml").out
    assert (
        "not known: bytes of `dtype: model` (give --dtype, or a --config FILE that has it)" in text
    )
    assert "not known: hidden, kv_rows, wide (give --config FILE, or --set hidden=N)" in text
    assert "give --stages N" in text


def test_the_dtype_is_asked_for_only_where_bytes_need_it(folder: Path) -> None:
    asked = "bytes of `dtype: model`"
    (folder / "config.json").write_text(json.dumps({**CONFIG, "torch_dtype": None}))
    sizes = ("--config", "config.json", "--set", "kv_rows=99")
    assert asked in Result("plan", "small.yaml", *sizes).out
    known = Result("plan", "small.yaml", *sizes, "--dtype", "float16").out
    assert asked not in known
    assert "?" not in known
    (folder / "small.yaml").write_text(SPEC.replace("dtype: model", "dtype: float32"))
    assert asked not in Result("plan", "small.yaml", *sizes).out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--set", "kv_row=1"], "small has no `kv_row` to set; it has: hidden, kv_rows"),
        (["--set", "wide=1"], "small has no `wide` to set"),
        (["--set", "kv_rows"], "--set kv_rows: write NAME=VALUE"),
        (["--set", "kv_rows=8", "--set", "kv_rows=9"], "kv_rows=9: kv_rows is given twice"),
        (["--set", "kv_rows=many"], "kv_rows is many; a size is an integer of at least 1"),
        (["--set", "kv_rows=0"], "kv_rows is 0; a size is an integer"),
        (["--config", "none.json"], "none.json: No such file"),
        (["--config", "small.yaml"], "small.yaml: is not JSON"),
        (["--config", "list.json"], "list.json: is not a JSON object"),
        (["--config", "twice.json"], "twice.json: key `hidden` is given twice"),
        (["--config", "poor.json"], "the config has no `text.hidden`"),
        (["--config", "odd.json"], "`text.hidden` of the config is '16', not an integer"),
        (
            ["--config", "huge.json"],
            "`text.hidden` of the config is 1000000000000000000; a size has",
        ),
        (["--config", "config.json", "--stages", "8"], "--stages 8: 7 layers make 1 to 7 stages"),
        (["--stages", "0"], "--stages"),
    ],
)
def test_what_cannot_be_planned(folder: Path, options: list[str], words: str) -> None:
    (folder / "list.json").write_text("[]")
    (folder / "twice.json").write_text('{"text": {"hidden": 16, "hidden": 32}}')
    (folder / "poor.json").write_text("{}")
    (folder / "huge.json").write_text('{"text": {"hidden": 1000000000000000000}}')
    (folder / "odd.json").write_text('{"text": {"hidden": "16"}}')
    ran = Result("plan", "small.yaml", *options)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err


def test_a_spec_with_errors_has_no_plan(folder: Path) -> None:
    (folder / "small.yaml").write_text("version: 1\n")
    ran = Result("plan", "small.yaml")
    assert ran.code == 1
    assert "PPC102" in ran.out


def test_a_folder_of_several_specs_has_no_one_plan(folder: Path) -> None:
    (folder / "b.yaml").write_text(SPEC)
    assert ".: holds 2 specs; give one of them" in Result("plan", ".").err


def test_model_dtypes_are_dtypes() -> None:
    assert set(MODEL_DTYPES) < set(DTYPES)


# ---------------------------------------------------------------- init


def test_the_starter_validates_clean_and_plans(folder: Path) -> None:
    ran = Result("init")
    assert (ran.code, ran.out) == (0, "")
    assert "wrote my_model.yaml" in ran.err
    assert f"`ppcgc schema > {NAME}`" in ran.err
    text = Path("my_model.yaml").read_text()
    assert text.startswith(f"# yaml-language-server: $schema={NAME}\n")
    checked = Result("validate", "my_model.yaml")
    assert (checked.code, checked.out) == (0, "")
    assert Result("plan", "my_model.yaml").code == 0


@pytest.mark.parametrize(
    ("argv", "path", "family"),
    [
        (["qwen2.5-vl"], "qwen2.5-vl.yaml", "qwen2_5_vl"),
        (["specs/a.yaml"], "specs/a.yaml", "a"),
        (["a.yml", "--family", "other"], "a.yml", "other"),
    ],
)
def test_names_of_a_starter(folder: Path, argv: list[str], path: str, family: str) -> None:
    assert Result("init", *argv).code == 0
    checked = check_source(Source(file=path, data=Path(path).read_bytes()))
    assert checked.family is not None
    assert checked.family.name == family


@pytest.mark.parametrize("name", ["bad name!/x", "-x", "it's", "$(touch y)"])
def test_what_it_suggests_can_be_run(folder: Path, name: str) -> None:
    ran = Result("init", "--family", "x", "--", name)
    assert ran.code == 0
    check, schema = (line.split("`")[1] for line in ran.err.splitlines())
    verb, to = shlex.split(check), shlex.split(schema)
    assert verb[:2] == ["ppcgc", "validate"]
    assert len(verb) == 3
    assert Result(*verb[1:]).code == 0
    assert to[:3] == ["ppcgc", "schema", ">"]
    assert [Path(word).parent for word in to[3:]] == [Path(verb[2]).parent]


def test_the_schema_of_a_folder_above_is_used(folder: Path) -> None:
    (folder / "schemas").mkdir()
    (folder / "schemas" / NAME).write_text("{}")
    assert "ppcgc schema" not in Result("init", "specs/deep/a").err
    first = (folder / "specs/deep/a.yaml").read_text().split("\n", 1)[0]
    assert first == f"# yaml-language-server: $schema=../../schemas/{NAME}"


def test_a_file_is_never_written_over(folder: Path) -> None:
    ran = Result("init", "small")
    assert (ran.code, ran.err) == (2, "ppcgc: small.yaml: is there already\n")
    assert (folder / "small.yaml").read_text() == SPEC


@pytest.mark.parametrize("argv", [["class"], ["1st"], ["a", "--family", "x: 1\ny"], ["日本"]])
def test_a_family_that_is_no_name(folder: Path, argv: list[str]) -> None:
    ran = Result("init", *argv)
    assert ran.code == 2
    assert "give another name with --family" in ran.err
    assert not list(folder.glob("[!s]*.yaml"))
