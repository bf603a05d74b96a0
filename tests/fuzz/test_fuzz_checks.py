"""The second reading sees a load that is wrong, a step that is, and a choice that is."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from fuzz_compiler import answered, source_of
from fuzz_packages import imported
from fuzz_runs import Pipeline
from fuzz_small import text_of, with_slots
from fuzz_world import world_of

from ppcgc.driver import check_source

TREE = with_slots(
    "{name: places, axis: tokens, dtype: int32, padding: {fill: live.requests}, "
    "source: batch.places}",
    "{name: twin, axis: tokens, dtype: int32, padding: repeat_last, source: batch.twin, "
    "residency: host, place: host}",
)
FAULTS = [
    (
        "step_first.py",
        'rt.fitting("places", live.requests, slots.places)',
        "live.requests + 1",
    ),
    ("step_first.py", "rt.pad_repeat_last(slots.twin, live.tokens)", "pass"),
    ("step_first.py", 'host.move_rows(slots.ids, batch.ids, live.tokens, "ids", 0)', "pass"),
    ("boundary.py", "self.past_live.fill(", "(lambda *_, **__: None)("),
    ("step.py", "(4, 8)", "(8, 8)"),
]


def pipeline(change: Callable[[dict[str, str]], None]) -> None:
    text = text_of(TREE)
    files = dict(answered(text).files)
    change(files)
    family = check_source(source_of(text, None)).family
    assert family is not None
    with imported(files) as package:
        for seed in range(4):
            Pipeline(world_of(family), package, family.runners[0], 3, Random(seed)).run()


def test_a_sound_package_passes() -> None:
    pipeline(lambda files: None)


@pytest.mark.parametrize(("path", "old", "new"), FAULTS)
def test_a_fault_in_generated_code_is_seen(path: str, old: str, new: str) -> None:
    def change(files: dict[str, Any]) -> None:
        name = next(name for name in files if name.endswith(f"/{path}"))
        if old not in files[name]:
            raise LookupError(f"{name} has no {old}")
        files[name] = files[name].replace(old, new)

    with pytest.raises(AssertionError):
        pipeline(change)
