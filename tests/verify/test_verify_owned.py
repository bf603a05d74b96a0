"""Whose rows of the state: told by the subject in any form, or by a slot that a hook fills."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from probe_family import CONFIG, CONTEXT, KV_ROWS, build, caught, decode_batch, subject
from probe_model import ToyDecode
from torch import Tensor

from ppcgc.driver import compile_sources
from ppcgc.runtime import LayerRange, Subject, open_backend, verify
from ppcgc.runtime.errors import BuildError
from ppcgc.runtime.verification.owned import row_numbers
from ppcgc.sources import read_sources


class ReadsRowTwo(ToyDecode):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden + self.kv[2]


@pytest.mark.parametrize("form", [torch.tensor, list, set], ids=["tensor", "list", "set"])
def test_owned_in_any_form(form: Callable[[list[int]], Any]) -> None:
    def owned(batch: Any, state: str) -> Any:
        return form([2, *batch.slot_table.flatten().tolist()])

    found = verify(subject(build("decode", models=(ReadsRowTwo,)), owned=owned), checks=["padding"])
    assert found.ok, found


def test_owned_as_a_tensor_leaves_the_others_unowned() -> None:
    def owned(batch: Any, state: str) -> Tensor:
        table: Tensor = batch.slot_table
        return table

    told = subject(build("decode", models=(ReadsRowTwo,)), owned=owned)
    caught(told, "padding", "rows that no live request owns", "self.kv[2]")


def test_a_mask_is_no_row_numbers() -> None:
    mixed: list[Any] = [torch.tensor(4), 5]
    assert row_numbers(mixed, "kv") == {4, 5}
    with pytest.raises(BuildError, match=r"torch.bool for state kv; .*nonzero"):
        row_numbers(torch.ones(3, dtype=torch.bool), "kv")


# ---------------------------------------------------------------- a table that a hook fills


class Tables:
    def load(self, slots: Any, batch: Any, live: Any) -> None:
        if batch.table is not None:  # None in the batch of a capture
            slots.slot_table[: live.requests] = batch.table


def hooked(folder: Path, monkeypatch: pytest.MonkeyPatch, model: type[ToyDecode]) -> Subject:
    text = Path(__file__).with_name("probe.yaml").read_text(encoding="utf-8")
    text = text.replace("family: toy_probe", "family: hooked_probe")
    text = text.replace("source: batch.slot_table, residency: host", "source: hook.tables")
    hook = "    hooks: {tables: {at: load, writes: [slot_table]}}\n"
    text = text.replace("  decode:\n", f"  decode:\n{hook}")
    (folder / "hooked.yaml").write_text(text, encoding="utf-8")
    compiled = compile_sources(read_sources([str(folder / "hooked.yaml")]))
    assert [found.message for found in compiled.findings if found.is_error] == []
    for path, code in compiled.files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "hooked_probe", raising=False)
    made = importlib.import_module("hooked_probe")
    dims = made.Dims.from_config(CONFIG, kv_rows=KV_ROWS, context=CONTEXT)
    kv = torch.zeros(dims.kv_rows, dims.hidden)
    stage: Any = model(dims, kv, first=True).eval()
    stage.is_last = True
    runner = made.DecodeOnly(
        model=stage,
        layers=LayerRange(0, 2, 2),
        dims=dims,
        state=made.State(kv=[kv]),
        dtype=torch.float32,
        backend=open_backend("cpu"),
        hooks=made.DecodeFirstHooks(tables=Tables()),
    )

    def batch(live: Any, seed: int) -> Any:
        one = decode_batch(live, seed)
        one.table = one.slot_table
        return one

    return Subject(runners=[runner], batches=batch)


def test_rows_of_a_table_that_a_hook_fills_are_owned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = verify(hooked(tmp_path, monkeypatch, ToyDecode), checks=["padding"])
    assert found.ok, found


def test_other_rows_than_the_hooks_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = hooked(tmp_path, monkeypatch, ReadsRowTwo)
    caught(told, "padding", "rows that no live request owns", "self.kv[2]")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (None, "`owned` gave None for state kv"),
        (["a"], r"`owned` gave \['a'\] for state kv .*; give row numbers"),
        ([500], f"`owned` gave row 500 of state kv, which has {KV_ROWS} rows"),
        ([-1], f"`owned` gave row -1 of state kv, which has {KV_ROWS} rows"),
    ],
)
def test_owned_that_gives_no_rows_of_the_state(given: Any, text: str) -> None:
    told = subject(build("decode"), owned=lambda batch, state: given)
    (finding,) = verify(told, checks=["padding"])["padding"].findings
    assert re.search(text, str(finding)), finding
