"""`ppcgc verify` on every family of ``specs/``: whole it passes, with a planted fault it does not.

Quick runs here; every bucket and case of every family with PPCGC_VERIFY_FAMILIES=full.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import verify_families
from test_sliding_window import SWA_ROWS
from test_verify_loading import loading_as, with_stale_tail
from torch import Tensor, nn

from ppcgc.runtime import Subject, capture, verify
from ppcgc.runtime.verification import Verdict
from ppcgc.runtime.verification.command import subjects_of, verify_factory

SPECS = sorted(path.stem for path in (Path(__file__).parents[2] / "specs").glob("*.yaml"))
FULL = os.environ.get("PPCGC_VERIFY_FAMILIES") == "full"

# what cannot be checked, and why, as the report says it
NO_OFFSETS = "in 1 of 2 buckets requests were not told apart: no offsets tell whose rows are whose"
IN_ORDER = "requests were left in their order"
AUTHORS = f"{IN_ORDER}: hooks and callers may read of the batch what no slot names"
EMBEDS = "not read again: inputs_embeds (live rows, its source is caller)"
UNREAD = {
    "llama_flashinfer": {AUTHORS},
    "qwen3_vl": {AUTHORS, f"{EMBEDS}; {AUTHORS}"},
    "sglang_decode": {f"{IN_ORDER}: slot encoder_lens may hold numbers of rows"},
    "sglang_prefill": {
        NO_OFFSETS,
        f"not read again: input_embeds (live rows, its source is caller); {NO_OFFSETS}",
    },
}

# whose rows of which state no slot says; not so for positions in three parts, which are no pages
NOT_PROBED = {"bart": "cross_kv"}


@pytest.mark.parametrize("family", SPECS)
def test_a_family_is_verified(family: str) -> None:
    found = verify_factory(f"verify_families:{family}", quick=not FULL, progress=lambda _: None)
    for one in found:
        assert one.ok, str(one)
        assert {result.verdict for result in one.results} == {Verdict.PASSED}
    unread = {one["loading"].evidence.partition("; ")[2] for one in found} - {""}
    for one in found:
        left = one["padding"].evidence.partition("; not probed: rows of ")[2]
        assert left.partition(" ")[0] == NOT_PROBED.get(family, "")
    if not FULL:  # of all buckets, others are left out
        assert unread == UNREAD.get(family, set())


@pytest.mark.parametrize("family", ["gemma3", "deepseek_v32", "kimi_k3", "qwen3_vl"])
def test_three_stages(family: str) -> None:
    for one in subjects_of(f"verify_families:{family}", device=None, stages=3):
        assert len(one.runners) == 3
        found = verify(one, quick=True)
        assert found.ok, str(found)


# ---------------------------------------------------------------- planted faults


def caught(faulty: Subject, check: str, *texts: str) -> None:
    """The check fails, and one of its findings has all of these texts."""
    result = verify(faulty, checks=[check], quick=True)[check]
    assert result.verdict is Verdict.FAILED, f"{check} passed: {result.evidence}"
    found = [str(finding) for finding in result.findings]
    assert any(all(text in one for text in texts) for one in found), "\n".join(found)


def padded_to_a_live_row(slots: Any, batch: Any, live: Any, host: Any) -> None:
    slots.state_rows[live.requests :] = int(batch.state_rows[0])


@pytest.mark.parametrize(
    ("check", "texts"),
    [
        ("loading", ["slot state_rows (qwen3_next.yaml", "rows past live", "expected 0, found 1"]),
        ("parity", ["state ssm[0]", "rows of live tokens"]),
    ],
)
def test_padding_that_owns_a_live_recurrent_state(check: str, texts: list[str]) -> None:
    decode = verify_families.qwen3_next()[1]
    loading_as(decode.runners[0], padded_to_a_live_row)
    caught(decode, check, *texts)


def test_picked_positions_of_an_earlier_batch() -> None:
    prefill = verify_families.deepseek_v32()[0]
    last = prefill.runners[1]
    incoming = type(last.incoming)

    class Unreset(incoming):  # type: ignore[misc, valid-type]  # generated
        def reset(self, boundary: Any, counts: Tensor, columns: Any) -> None:
            return None

    last.incoming.__class__ = Unreset
    capture(prefill.runners)
    caught(prefill, "loading", "prefill last", "boundary.topk_indices", "still hold old bytes")


class OneMapping(nn.Module):
    """Sliding layers write where full ones do."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *, batch: Any, **others: Any) -> Any:
        rows = batch.slot_mapping % SWA_ROWS
        return self.model(batch=replace(batch, slot_mapping_swa=rows), **others)


def test_sliding_layers_that_write_where_full_ones_do() -> None:
    decode = verify_families.gemma3()[1]
    last = decode.runners[1]  # a full layer and a sliding one
    last.model = OneMapping(last.model)
    capture(decode.runners)
    caught(decode, "loading", "decode last", "state swa_kv", "which neither live rows nor padding")


def test_a_ring_written_by_rows_of_padding() -> None:
    prefill = verify_families.gemma3()[0]
    with_stale_tail(prefill.runners[0], "slot_mapping_swa", lambda live: int(live.tokens))
    caught(prefill, "loading", "slot slot_mapping_swa (gemma3.yaml", "rows past live")
