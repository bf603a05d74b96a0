"""Every word of generated code as a name in a spec: refused with a code, or it works.

One package for each place where a name can stand, with all names that the compiler lets pass
there; it must lint, type-check and run.
"""

from __future__ import annotations

import ast
import importlib
import keyword
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from case_files import CASES, SOUND, committed
from case_stages import assert_equal, build, run
from case_world import Batches, sizes_of

from ppcgc import runtime as rt
from ppcgc.driver import Source, check_source, compile_sources
from ppcgc.ir import BatchCount, Family

ROOT = CASES.parent.parent
NAME_RULES = {"PPC124", "PPC125", "PPC126"}  # duplicate, hazardous, ambiguous

SPEC = """\
version: 1
family: names_of_{place}
dims: {{hidden: config.hidden_size, {dims}}}
axes:
  tokens: {{max: 4, live: batch.num_tokens}}
  twice: {{max: 4, live: batch.num_twice}}
{axes}
options: {{the_option: true, {options}}}
scalars: {{the_scalar: {{source: batch.the_scalar, key: [1]}}, {scalars}}}
hooks: {{{hooks}}}
state:
  kv: {{rows: 8, reserved: [0, 1]}}
{state}
pipeline:
  layers: {{count: 2, kinds: {{{kinds}}}}}
  stages: [[0, 1], [1, 2]]
  boundary:
    - {{name: hidden_states, axis: tokens, shape: [tokens, hidden], dtype: model, padding: zero}}
{boundary}
runners:
  step:
    buckets:
      {{tokens: [4], twice: {{equals: "max(tokens, min(tokens, 3))"}}, {buckets}}}
    slots: &slots
      - {{name: ids, axis: tokens, dtype: int64, padding: zero, source: batch.ids}}
      - {{name: places, axis: tokens, dtype: int64, padding: zero, role: write_index, of: state.kv,
         source: batch.places}}
      - {{name: of_twice, axis: twice, dtype: int64, padding: zero, source: batch.of_twice}}
{slots}
    forward: &forward
      first: {{view: view, {first}}}
      later: {{view: view, received: boundary, {first}}}
    outputs: &outputs
      last:
        - {{name: given, axis: tokens, shape: [tokens, hidden], dtype: model, from: result.given}}
{outputs}
{runners}
"""
WORDS = (
    "dims",
    "axes",
    "options",
    "scalars",
    "hooks",
    "kinds",
    "state",
    "boundary",
    "buckets",
    "slots",
    "first",
    "outputs",
    "runners",
)
SLOT = "      - {{name: {0}, axis: tokens, dtype: int64, padding: zero, source: batch.{1}}}\n"
HOST_SLOT = SLOT.replace("padding: zero,", "padding: zero, residency: host,")
WRITES = (
    "      - {{name: zz_{0}, axis: tokens, dtype: int64, padding: zero, role: write_index,\n"
    "         of: state.{0}, source: batch.zz_{0}}}\n"
)
KEY = "    - {{name: {0}, axis: tokens, dtype: int64, padding: zero}}\n"
SCALAR_SLOT = (
    "      - {{name: zs_{0}, axis: none, shape: [1], dtype: int64,\n"
    "         source: {{compute: scalar.{0}}}}}\n"
)
OUTPUT = "        - {{name: {0}, axis: tokens, dtype: int64, from: result.{0}}}\n"
RUNNER = (
    "  {0}:\n    buckets: {{tokens: [4], twice: max}}\n    slots: *slots\n    forward: *forward\n"
    "    outputs: *outputs\n"
)

# what a name adds to the spec where it stands
PLACES: dict[str, dict[str, str]] = {
    "dim": {"dims": "{0}: config.zz_{0}, "},
    "build_dim": {"dims": "{0}: build, "},
    "config": {"dims": "zz_{0}: config.{0}, "},
    "axis": {
        "axes": "  {0}: {{max: 2, live: batch.zz_{0}}}\n",
        "buckets": "{0}: max, ",
        "slots": SLOT.replace("name: {0}, axis: tokens", "name: zz_{0}, axis: {0}").replace(
            "{1}", "zx_{0}"
        ),
    },
    "count": {
        "axes": "  zz_{0}: {{max: 2, live: batch.{0}}}\n",
        "buckets": "zz_{0}: max, ",
        "slots": SLOT.replace("name: {0}, axis: tokens", "name: zy_{0}, axis: zz_{0}").replace(
            "{1}", "zx_{0}"
        ),
    },
    "option": {"options": "{0}: true, "},
    "scalar": {
        "scalars": "{0}: {{source: batch.zz_{0}, key: [1]}}, ",
        "first": "zs_{0}: scalar.{0}, ",
    },
    "bucketed": {
        "scalars": "{0}: {{source: batch.zz_{0}, buckets: [2]}}, ",
        "first": "zs_{0}: scalar.{0}, ",
    },
    "free": {
        "scalars": "{0}: {{source: batch.zz_{0}}}, ",
        "slots": SCALAR_SLOT,
    },
    "hook": {"hooks": "{0}: {{at: [key]}}, ", "first": "zk_{0}: hook.{0}, "},
    "kind": {
        "kinds": "{0}: {{ids: [0, 1]}}, ",
        "slots": SLOT.replace("{0},", "zs_{0}, stages: {{owns: {0}}},").replace("{1}", "zz_{0}"),
    },
    "state": {"state": "  {0}: {{rows: 8, reserved: [0, 1]}}\n", "slots": WRITES},
    "slot": {"slots": SLOT.replace("{1}", "zz_{0}")},
    "host_slot": {"slots": HOST_SLOT.replace("{1}", "zz_{0}")},
    "group": {"slots": HOST_SLOT.replace("name: {0}", "name: {0}.member").replace("{1}", "zz_{0}")},
    "member": {"slots": SLOT.replace("name: {0}", "name: group.{0}").replace("{1}", "zz_{0}")},
    "attribute": {"slots": HOST_SLOT.replace("name: {0}", "name: zz_{0}").replace("{1}", "{0}")},
    "inner": {"slots": SLOT.replace("name: {0}", "name: zz_{0}").replace("{1}", "{0}.leaf")},
    "key": {"boundary": KEY},
    "output": {"outputs": OUTPUT},
    "keyword": {"first": "{0}: {{literal: 1}}, "},
    "runner": {"runners": RUNNER},
}


def words_of_generated_code() -> list[str]:
    """Every name of the committed packages, and of the classes that they build on."""
    found: set[str] = set(keyword.kwlist) | set(keyword.softkwlist)
    for base in (tuple, rt.Boundary, rt.SlotView, rt.StageRunner, rt.Inputs, rt.Outputs):
        found.update(name for name in dir(base) if not name.startswith("_"))
    for case in SOUND:
        if case.name == "long_names":
            continue
        for path, text in committed(case).items():
            found.add(Path(path).stem)
            for node in ast.walk(ast.parse(text)):
                for field in ("id", "arg", "name", "asname", "module"):
                    value = getattr(node, field, None)
                    if isinstance(value, str):
                        found.update(value.split("."))
    yaml_values = {"True", "False", "None"}
    # what the spec around the names uses, or what a rule about pairs of keywords forbids
    own = {"ids", "places", "given", "hidden", "tokens", "num_tokens", "kv", "hidden_states"}
    own |= {"view", "received", "inputs_embeds", *yaml_values}
    found |= {"l", "O", "I"}
    return sorted(word for word in found - own if word and not word.startswith("__"))


def words_for(place: str) -> list[str]:
    """The words that are tried at a place; a runner is a module each, so only a module's words."""
    words = words_of_generated_code()
    if place != "runner":
        return words
    found: set[str] = set()
    for path, text in committed(SOUND[0]).items():
        found.add(Path(path).stem)
        for node in ast.parse(text).body:
            found.update(alias.name for alias in getattr(node, "names", []))
            found.add(getattr(node, "name", ""))
    return [word for word in words if word in found | {"boundary", "class", "State", "torch"}]


def spec_with(place: str, names: list[str]) -> str:
    parts = {
        word: "".join(PLACES[place].get(word, "").format(name) for name in names).rstrip("\n")
        for word in WORDS
    }
    text = SPEC.format(place=place, **parts)
    return "\n".join(line for line in text.splitlines() if line.strip()) + "\n"


def refused(text: str) -> set[str]:
    """The names that the compiler refuses, all of them by rules of names."""
    checked = check_source(Source(file="names.yaml", data=text.encode()))
    errors = [finding for finding in checked.findings if finding.is_error]
    assert {finding.rule.code for finding in errors} <= NAME_RULES, errors
    return {name for finding in errors for name in re.findall(r"'([\w.]+)'", finding.message)[:1]}


@cache
def accepted(place: str) -> list[str]:
    """The names of the sweep that a place takes; what it refuses it refuses alone, too."""
    names = words_for(place)
    while bad := refused(spec_with(place, names)):
        bare = {name.split(".")[-1] if place == "member" else name.split(".")[0] for name in bad}
        bare |= {name.removeprefix("zz_") for name in bare}
        left = [name for name in names if name not in bare]
        assert len(left) < len(names), bad
        names = left
    return names


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Family]]:
    """A folder with the package of every place, and the families."""
    folder, families = tmp_path_factory.mktemp("names"), {}
    for place in PLACES:
        source = Source(file="names.yaml", data=spec_with(place, accepted(place)).encode())
        for path, text in compile_sources([source]).files.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        family = check_source(source).family
        assert family is not None
        families[place] = family
    return folder, families


Packages = tuple[Path, dict[str, Family]]


def test_the_sweep_is_wide_and_some_names_are_refused() -> None:
    words = set(words_of_generated_code())
    assert words >= {"self", "rt", "torch", "Tensor", "live", "batch", "Dims", "count", "class"}
    for place in PLACES:
        taken = accepted(place)
        assert len(taken) > (5 if place == "runner" else 100)
        assert "class" not in taken


def test_accepted_names_lint_and_type_check(packages: Packages) -> None:
    folder, _ = packages
    for command in (
        ("ruff", "check", "--no-cache", "--isolated", "--select", "E7,E9,F,B", str(folder)),
        (
            "mypy",
            "--strict",
            "--follow-imports=silent",
            *(str(path) for path in sorted(folder.iterdir())),
        ),
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("place", PLACES)
def test_accepted_names_run(place: str, packages: Packages) -> None:
    folder, families = packages
    family = families[place]
    sys.path.insert(0, str(folder))
    try:
        made: Any = importlib.import_module(family.name)
    finally:
        sys.path.remove(str(folder))
    for runner in family.runners[:4] if place != "runner" else family.runners:
        stages = build(family, made, runner)
        batches = Batches(family, runner, sizes_of(family)[2], Random(1))
        counts = batches.counts({axis.name: 1 for axis in batches.stated()} | {"tokens": 3})
        assert counts is not None
        batch = batches.make(counts)
        for scalar in runner.scalars:
            assert isinstance(scalar.source, BatchCount)
            setattr(batch, scalar.source.path[0], 1)
        assert_equal(run(stages, batch, eagerly=False)[-1], run(stages, batch, eagerly=True)[-1])


def test_classes_of_paths_keep_out_of_the_way_of_other_classes() -> None:
    """A group, a hook and a path of the batch may spell one class of a module."""
    named = {
        "hooks": "batch_x: {at: [key]}, ",
        "slots": SLOT.format("batch_x.ids", "x.slots.leaf") + SLOT.format("zz", "x.hook.leaf"),
        "first": "zk: hook.batch_x, ",
    }
    text = SPEC.format(place="classes", **{word: named.get(word, "") for word in WORDS})
    made = compile_sources([Source(file="names.yaml", data=text.encode())])
    for path, code in made.files.items():
        classes = [node.name for node in ast.parse(code).body if isinstance(node, ast.ClassDef)]
        assert len(classes) == len(set(classes)), path
    assert "class StepFirstBatchXSlots2(Protocol)" in made.files["names_of_classes/step_first.py"]
