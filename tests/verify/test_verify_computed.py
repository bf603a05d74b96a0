"""Computed slots are read again, scalars and capacities too: an edit of their load shows."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from probe_family import build, imported, prefill_batch

from ppcgc.driver import Source
from ppcgc.runtime import Subject, verify
from ppcgc.runtime.verification import CheckResult, Verdict

PROBE = Path(__file__).with_name("probe.yaml").read_text(encoding="utf-8")
SLOTS = """\
    scalars: {boost: {source: batch.boost}}
    slots:
      - {name: boost, axis: none, shape: [1], dtype: int64, source: {compute: scalar.boost * 2}}
      - {name: left, axis: none, shape: [1], dtype: int64,
         source: {compute: tokens.max - live.tokens}}
      - {name: open, axis: tokens, dtype: int64, source: {compute: tokens.max - row.tokens}}
"""


def loading(name: str, code: str = "", other: str = "") -> CheckResult:
    """What `loading` finds in a package of this name where an edit replaced ``code``."""
    text = PROBE.replace("toy_probe", name).replace("    slots:\n", SLOTS, 1)

    def edited(module: str) -> str:
        is_table = "rt.SlotInfo(" in module  # has the spec's own words
        return module if is_table or not code else module.replace(code, other)

    made = imported(Source(file="probe.yaml", data=text.encode()), name, edited)

    def batches(live: Any, seed: int) -> Any:
        batch = prefill_batch(live, seed)
        return batch and SimpleNamespace(**vars(batch), boost=3 + seed % 5)

    subject = Subject(runners=build(made=made), batches=batches)
    return verify(subject, checks=["loading"])["loading"]


def test_scalars_and_capacities_are_read_again() -> None:
    done = loading("toy_computed")
    assert done.verdict is Verdict.PASSED, str(done)
    assert "not read again" not in done.evidence


@pytest.mark.parametrize(
    ("slot", "code", "other"),
    [
        ("boost", "live.boost * 2", "live.boost * 3"),
        ("left", "16 - live.tokens", "17 - live.tokens"),
        ("open", "16 - row", "16 - row // 2"),
    ],
)
def test_an_edit_of_a_computed_slot_is_blamed_on_it(slot: str, code: str, other: str) -> None:
    done = loading(f"toy_{slot}_edited", code, other)
    assert done.verdict is Verdict.FAILED
    assert {finding.subject.split()[1] for finding in done.findings} == {slot}
