"""Specs changed in one place: what must change then, and what must not."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from spec_tools import SPECS, compile_text, import_text
from toy_model import through, toy_batch, toy_stages

from ppcgc import runtime as rt
from ppcgc.load import load
from ppcgc.resolve import resolve

TOY = (SPECS / "toy.yaml").read_text(encoding="utf-8")
ROOT = Path(__file__).parents[2]


def replaced(old: str, new: str) -> str:
    assert old in TOY
    return TOY.replace(old, new)


def stages_of(text: str, folder: Path) -> list[Any]:
    made = toy_stages(import_text(text, folder), 2)
    rt.capture(made)
    return made


def test_the_order_of_slots_changes_no_number(tmp_path: Path, toy: Any) -> None:
    def reverse(block: re.Match[str]) -> str:
        slots = block.group(2).rstrip("\n").split("\n")
        return block.group(1) + "\n".join(reversed(slots)) + "\n" + block.group(3)

    turned = re.sub(r"(    slots:\n)(.*?)(    forward:)", reverse, TOY, flags=re.DOTALL)
    assert turned != TOY
    plain, other = toy_stages(toy, 2), stages_of(turned, tmp_path)
    rt.capture(plain)
    names = [info.name for info in plain[0].inputs.table()]
    assert [info.name for info in other[0].inputs.table()] == names[::-1]
    for tokens in (3, 8, 13):
        batch = toy_batch(tokens - 2, 2, seed=tokens)
        assert torch.equal(through(plain, batch).hidden_states, through(other, batch).hidden_states)


def test_memory_does_not_grow_with_the_number_of_buckets(tmp_path: Path, toy: Any) -> None:
    few = stages_of(replaced("tokens: [4, 8, 16]", "tokens: [16]"), tmp_path)
    many = toy_stages(toy, 2)
    rt.capture(many)
    for one, three in zip(few, many, strict=True):
        assert len(three.table) == 3 * len(one.table)
        assert three.report().slot_bytes == one.report().slot_bytes
        assert three.report().host_block_bytes == one.report().host_block_bytes
        assert three.report().pool_bytes == one.report().pool_bytes


def test_a_capture_batch_within_limits_is_legal_for_the_roles(tmp_path: Path) -> None:
    limits = replaced('limits: ["tokens >= requests"]', 'limits: ["tokens >= 3 * requests"]')
    made = stages_of(limits, tmp_path)
    for bucket in made[0].table.values():
        tokens, requests = bucket.live_at_capture
        assert tokens >= 3 * requests
        assert requests >= 1
        assert tokens == bucket.padded.tokens
    batch = toy_batch(3, 5)
    assert torch.equal(
        through(made, batch).hidden_states, through(made, batch, "eager").hidden_states
    )


@pytest.mark.parametrize("count", ["live.tokens", "padded.tokens"])
def test_a_received_row_cannot_be_padded_with_a_number_of_the_step(count: str) -> None:
    """The reset is inside the captured region, where host numbers are frozen."""
    key = "dtype: model, padding: zero}\n    - {name: residual"
    text = replaced(key, key.replace("zero", f"{{fill: {count}}}"))
    document, _ = load(text, "toy.yaml")
    assert document is not None
    family, findings = resolve(document)
    assert family is None
    assert [finding for finding in findings if count in finding.message]


def test_a_pipeline_of_one_stage_has_no_other_place() -> None:
    files = compile_text((SPECS / "derived.yaml").read_text(encoding="utf-8"), "derived.yaml")
    modules = {Path(path).stem for path in files}
    assert {"family", "graphs", "graphs_only", "step", "step_only"} <= modules
    assert "boundary" not in modules
    places = re.compile(r"_(first|middle|last|later)$")
    assert [module for module in sorted(modules) if places.search(module)] == []


@pytest.mark.parametrize("name", ["toy", "words", "derived"])
def test_generated_code_is_formatted_and_has_no_unused_name(name: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    package = tmp_path / "generated"
    package.mkdir()
    shutil.copy(ROOT / "generated" / "ruff.toml", package / "ruff.toml")
    files = compile_text((SPECS / f"{name}.yaml").read_text(encoding="utf-8"), f"{name}.yaml")
    for path, content in files.items():
        (package / path).parent.mkdir(exist_ok=True)
        (package / path).write_text(content, encoding="utf-8")
    for command in (["check"], ["format", "--diff"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", str(package)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
