"""What bound code has as constants, and what it refuses: small pieces read from the text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from binding_tools import binding_of, compiled
from small_spec import CONFIG, SPEC
from spec_tools import import_files

from ppcgc import runtime as rt
from ppcgc.runtime.errors import BoundError, LayerError


def files(stages: int | None = 3, **given: Any) -> dict[str, str]:
    values = {name.replace("__", "."): value for name, value in given.items()}
    made = compiled(SPEC, binding_of(CONFIG, stages=stages, given=values))
    assert [f.message for f in made.findings if f.is_error] == []
    return made.files


def test_boundary_shapes_are_integers_or_a_choice_between_cuts() -> None:
    boundary = files(3)["small/boundary.py"]
    # cuts before layers 2 and 4; kind even has layers 0, 2, 4 and so has full
    assert "hidden_states: Tensor  # [tokens, 16] model" in boundary
    assert "(rows.tokens, 1 if self.cut == 2 else 2, 16)" in boundary
    assert (
        'rt.TensorInfo("seen", (rows.tokens, 1 if self.cut == 2 else 2), torch.int32)' in boundary
    )
    assert "if self.cut" not in boundary.replace("1 if self.cut", "")
    assert "self.dims" not in boundary


def test_a_key_that_crosses_some_cuts_or_none() -> None:
    boundary = files(4)["small/boundary.py"]  # cuts before layers 2, 4 and 5
    assert "if self.cut in (2, 4):" in boundary
    config = CONFIG | {"types": "ssssss"}
    made = compiled(SPEC, binding_of(config, stages=4))
    assert "# picks crosses none of the cuts" in made.files["small/boundary.py"]


def test_without_stages_cuts_stay_and_sizes_are_constants() -> None:
    bound = files(None)
    assert "rt.ceil_div(self.cut, 2), 16" in bound["small/boundary.py"]
    assert "if self.cut in (0, 2, 4):" in bound["small/boundary.py"]
    assert "STAGES" not in bound["small/family.py"]
    assert "rt.even_ranges(dims.layer_count, of)" in bound["small/family.py"]


def test_values_given_by_name_are_constants_and_others_stay() -> None:
    stage = files(3)["small/step_first.py"]
    assert '"bias": (rows.tokens, rt.floor_div(32, self.dims.tp.size))' in stage
    assert '"lora": self.dims.options.lora or self.dims.options.mode == "wide"' in stage
    assert "self.dims.kv_rows" in stage
    stage = files(3, kv_rows=64, tp__size=2, options__lora=True)["small/step_first.py"]
    assert '"bias": (rows.tokens, 16)' in stage
    assert '"lora": True' in stage
    assert "self.dims" not in stage
    assert "padding 15" in stage or "15" in stage


@pytest.fixture
def small(tmp_path: Path) -> Any:
    return import_files(files(3, tp__size=2, options__lora=True), tmp_path)


class Config:
    text = CONFIG["text"]
    block = CONFIG["block"]
    layers = CONFIG["layers"]
    types = CONFIG["types"]


def test_the_same_config_builds(small: Any) -> None:
    dims = small.Dims.from_config(Config, kv_rows=64, tp=rt.Ranks(size=2))
    assert dims == small.Dims(kv_rows=64, options=small.Options(), tp=rt.Ranks(size=2))
    assert (dims.hidden, dims.wide, dims.layer_count) == (16, 32, 6)
    assert dims.kinds.full == {0, 2, 4}
    assert small.stage_layers(dims, stage=1, of=3) == rt.LayerRange(2, 4, 6)
    with pytest.raises(LayerError, match="has 3 stages, the build asks for 2"):
        small.stage_layers(dims, stage=1, of=2)


@pytest.mark.parametrize(
    ("name", "value", "found", "wanted"),
    [
        ("text", {"hidden": 24}, "hidden is 24", "has 16"),
        ("block", 3, "block is 3", "has 2"),
        ("layers", 6, "kinds is Kinds", "has Kinds"),
    ],
)
def test_a_config_that_differs_is_refused_with_both_values(
    small: Any, name: str, value: object, found: str, wanted: str
) -> None:
    other = type("Other", (Config,), {name: value, "types": "ffffff"})
    with pytest.raises(BoundError, match=f"{found}.*{wanted}.*config.json"):
        small.Dims.from_config(other, kv_rows=64, tp=rt.Ranks(size=2))


def test_ranks_and_options_that_differ_are_refused(small: Any) -> None:
    with pytest.raises(BoundError, match=r"tp\.size is 1 in this build, the code has 2"):
        small.Dims.from_config(Config, kv_rows=64)
    with pytest.raises(
        BoundError, match=r"options\.lora is False in this build, the code has True"
    ):
        options = small.Options(lora=False)
        small.Dims.from_config(Config, kv_rows=64, tp=rt.Ranks(size=2), options=options)


def test_a_stage_of_another_cut_is_refused() -> None:
    stages = ((0, 2), (2, 4), (4, 6))
    rt.check_stage(rt.LayerRange(2, 4, 6), stages)
    for layers in (rt.LayerRange(0, 3, 6), rt.LayerRange(2, 4, 8)):
        with pytest.raises(BoundError, match=r"the code is for stages \[0, 2\), \[2, 4\)"):
            rt.check_stage(layers, stages)


def test_bound_code_is_laid_out_typed_and_free_of_unused_names(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    (tmp_path / "ruff.toml").write_text(
        (root / "generated/ruff.toml")
        .read_text()
        .replace("../pyproject.toml", (root / "pyproject.toml").as_posix())
    )
    for number, made in enumerate((files(1), files(3, kv_rows=64), files(None, tp__size=1))):
        for path, text in made.items():
            file = tmp_path / f"p{number}" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    for command in (["check", "--no-cache"], ["format", "--check", "--no-cache"]):
        ran = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "."],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
