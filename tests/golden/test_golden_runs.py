"""Generated packages run: every stage of every case, replay against eager, on random batches."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random

import pytest
import torch
from case_files import SOUND, family_of, package
from case_stages import assert_equal, build, reason_of, run
from case_world import Batches, Counts, sizes_of

from ppcgc.ir import AbsentEager, AbsentFill, BatchSource, Runner
from ppcgc.runtime.choice import Reason
from ppcgc.runtime.errors import CapacityError, PpcgcError


def some_counts(batches: Batches, random: Random) -> list[Counts]:
    """Live counts around the sizes of each axis, the fullest first: it leaves stale rows."""
    around = []
    for axis in batches.stated():
        rule = next(r for r in batches.runner.buckets if r.axis == axis.name)
        sizes = getattr(rule, "sizes", (axis.max,))
        around.append(
            sorted({n for s in sizes for n in (1, s - 1, s, s + 1) if 0 <= n <= axis.max})
        )
    names = [axis.name for axis in batches.stated()]
    points = [dict(zip(names, point, strict=True)) for point in product(*around)]
    legal = [counts for counts in map(batches.counts, points) if counts is not None]
    picked = random.sample(legal, min(len(legal), 8))
    return sorted(picked, key=lambda counts: -sum(counts.values()))


RUNNERS = [(case, runner) for case in SOUND for runner in family_of(case).runners]


@pytest.mark.parametrize(
    ("case", "runner"), RUNNERS, ids=[f"{case.name}-{runner.name[:12]}" for case, runner in RUNNERS]
)
def test_replay_gives_what_an_eager_step_gives(case: Path, runner: Runner) -> None:
    random = Random(f"{case.name} {runner.name}")
    stages = build(family_of(case), package(case), runner)
    batches = Batches(family_of(case), runner, sizes_of(family_of(case))[2], random)
    found = some_counts(batches, random)
    replayed = 0
    for counts in found:
        batch = batches.make(counts)
        try:
            by_graph = run(stages, batch, eagerly=False)
        except CapacityError:
            continue
        by_hand = run(stages, batch, eagerly=True)
        for one, two in zip(by_graph, by_hand, strict=True):
            assert_equal(one, two)
        replayed += stages[0].eager_steps.get(Reason.OVER_CAPACITY, 0) == 0
    assert found, "no legal batch was found"
    assert replayed
    assert stages[0].report().replays > 0


@pytest.mark.parametrize("case", [case for case in SOUND if case.name == "nested_batch"])
def test_absent_sources(case: Path) -> None:
    (runner,) = family_of(case).runners
    stages = build(family_of(case), package(case), runner)
    env = sizes_of(family_of(case))[2]
    batches = Batches(family_of(case), runner, env, Random(5))
    counts = batches.counts({"tokens": 3, "images": 1})
    assert counts is not None
    batch = batches.make(counts, absent=True)
    by_graph = run(stages, batch, eagerly=False)
    assert reason_of(stages[0]) is Reason.ABSENT
    assert_equal(by_graph[-1], run(stages, batch, eagerly=True)[-1])
    fills = [s for s in runner.slots if isinstance(s.absent, AbsentFill)]
    assert fills
    assert any(isinstance(s.absent, AbsentEager) for s in runner.slots)
    batch = batches.make(counts)
    for name in ("spec", "mm"):  # a missing step of a path is a missing source
        setattr(batch, name, None)
    with pytest.raises(PpcgcError, match=r"batch\.mm|grid"):
        run(stages, batch, eagerly=False)
    batch = batches.make(counts)
    batch.spec = None
    given = run(stages, batch, eagerly=False)
    assert reason_of(stages[0]) is Reason.FITS
    filled = batches.make(counts)
    filled.spec.info.bias = torch.full((3,), 1)
    filled.spec.scale = torch.full((3,), 0.5)
    filled.spec.whole = torch.full((2,), 2.0)
    filled.text, filled.lora, filled.mm = batch.text, batch.lora, batch.mm
    assert_equal(given[-1], run(stages, filled, eagerly=False)[-1])


@pytest.mark.parametrize("case", SOUND, ids=lambda case: str(case.name))
def test_every_source_of_the_batch_is_in_its_protocol(case: Path) -> None:
    """The batch Protocols of a package together offer exactly the paths that the spec reads."""
    family, made = family_of(case), package(case)
    for runner in family.runners:
        camel = "".join(part[:1].upper() + part[1:] for part in runner.name.split("_"))
        protocols = [
            getattr(made, name)
            for name in made.__all__
            if name.startswith(camel) and name.endswith("Batch")
        ]
        offered = {name for protocol in protocols for name in vars(protocol) if name[:1] != "_"}
        read = {s.source.path[0] for s in runner.slots if isinstance(s.source, BatchSource)}
        counts = {
            axis.live.path[0]
            for axis in family.axes
            if hasattr(axis.live, "path") and axis.name in {r.axis for r in runner.buckets}
        }
        assert read <= offered
        assert offered <= read | counts
