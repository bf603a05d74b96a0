"""Ranges of layers: of the model that is built, of the spec, and of stages that are captured."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from spec_tools import import_text
from toy_model import HIDDEN, LAYERS, POOL_ROWS, VOCAB, ToyStage

from ppcgc import runtime as rt
from ppcgc.runtime.errors import LayerError

CONFIG = {"hidden": HIDDEN, "vocab": VOCAB}


def staged(toy: Any, *ranges: tuple[int, int], count: int = LAYERS) -> list[Any]:
    """A runner for each range, of the class that its place wants."""
    backend, made = rt.open_backend("cpu"), []
    for start, end in ranges:
        ends = {(True, True): "Only", (True, False): "First", (False, True): "Last"}
        kind = ends.get((start == 0, end == count), "Middle")
        model = ToyStage(start, end)
        made.append(
            getattr(toy, f"Prefill{kind}")(
                model=model,
                layers=rt.LayerRange(start, end, count),
                dims=toy.Dims.from_config(CONFIG, pool_rows=POOL_ROWS),
                state=toy.State(pool=[model.pool]),
                dtype=torch.float32,
                backend=backend,
            )
        )
    return made


@pytest.mark.parametrize("count", [2, 7])
def test_a_range_of_a_model_with_other_layers_is_refused(toy: Any, count: int) -> None:
    with pytest.raises(LayerError, match=rf"\[0, 2\) of {count}, the model has 3 layers"):
        staged(toy, (0, 2), count=count)


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        (((0, 1), (2, 3)), r"do not join: no stage has layers \[1, 2\)"),
        (((2, 3), (0, 1)), r"do not join: no stage has layers \[1, 2\)"),
        (((0, 2), (1, 3)), r"overlap: both have layers \[1, 2\)"),
        (((0, 2), (1, 2), (2, 3)), "2 of the stages that are captured end at layer 2, 1 begin"),
        (((0, 1), (0, 1), (1, 3)), "2 of the stages that are captured end at layer 1, 1 begin"),
    ],
)
def test_stages_that_do_not_join_are_refused(
    toy: Any, ranges: tuple[tuple[int, int], ...], words: str
) -> None:
    runners = staged(toy, *ranges)
    with pytest.raises(LayerError, match=words):
        rt.capture(runners)
    assert all(runner.table == {} for runner in runners)


@pytest.mark.parametrize(
    "ranges",
    [
        ((1, 2),),
        ((0, 1), (1, 2)),
        ((1, 2), (2, 3)),
        ((0, 3), (2, 3)),  # a whole model beside a stage of one
        ((0, 3), (0, 3)),
        ((0, 1), (1, 3), (0, 1), (1, 3)),  # two of the same pipeline
    ],
)
def test_stages_that_join_or_stand_alone_are_captured(
    toy: Any, ranges: tuple[tuple[int, int], ...]
) -> None:
    runners = staged(toy, *ranges)
    rt.capture(runners)
    assert all(runner.captured for runner in runners)


def test_a_gap_may_be_another_process_s(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    for world, refused in ((1, True), (2, False)):
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda world=world: world)
        runners = staged(toy, (0, 1), (2, 3))
        if refused:
            with pytest.raises(LayerError, match="do not join"):
                rt.capture(runners)
        else:
            rt.capture(runners)
            assert runners[1].captured
        with pytest.raises(LayerError, match="overlap"):
            rt.capture(staged(toy, (0, 2), (1, 3)))


# ---------------------------------------------------------------- explicit ranges of a spec


class Adds(torch.nn.Module):
    """Each layer adds its own power of ten, so that a sum tells which layers ran."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__()
        self.step = float(sum(10**layer for layer in range(start, end)))

    def forward(self, *, ids: Any, view: Any, boundary: Any = None) -> Any:
        rows = ids[:, None].expand(-1, HIDDEN).float() if boundary is None else boundary["x"]
        return rows + self.step


EXPLICIT = """\
version: 1
family: explicit
dims: {hidden: config.hidden}
axes:
  tokens: {max: 4, live: batch.num_tokens}
pipeline:
  layers: {count: config.num_hidden_layers}
  stages: [[0, 2], [2, 5]]
  boundary:
    - {name: x, axis: tokens, shape: [tokens, hidden], dtype: model, padding: zero}
runners:
  step:
    buckets: {tokens: [4]}
    slots:
      - {name: ids, axis: tokens, dtype: int64, padding: zero, source: batch.ids, residency: host}
    forward:
      first: {ids: slot.ids, view: view}
      later: {ids: slot.ids, view: view, boundary: boundary}
    outputs:
      last: [{name: x, axis: tokens, shape: [tokens, hidden], dtype: model}]
"""


@pytest.fixture(scope="module")
def explicit(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return import_text(EXPLICIT, tmp_path_factory.mktemp("explicit"), "explicit.yaml")


def stage(
    explicit: Any, place: str, start: int, end: int, count: int, model_layers: int = 5
) -> Any:
    config = {"hidden": HIDDEN, "num_hidden_layers": model_layers}
    return getattr(explicit, f"Step{place}")(
        model=Adds(start, end),
        layers=rt.LayerRange(start=start, end=end, count=count),
        dims=explicit.Dims.from_config(config),
        dtype=torch.float32,
        backend=rt.open_backend("cpu"),
    )


def test_the_ranges_of_the_spec_run_every_layer(explicit: Any) -> None:
    first, last = stage(explicit, "First", 0, 2, 5), stage(explicit, "Last", 2, 5, 5)
    rt.capture([first, last])
    batch = SimpleNamespace(num_tokens=2, ids=[0, 7])
    assert last.run(batch, first.run(batch)).x[:, 0].tolist() == [11111.0, 11118.0]


@pytest.mark.parametrize(
    ("place", "given", "words"),
    [
        ("Last", (3, 5, 5), r"owns layers \[3, 5\) of 5, the spec's stages are \[0, 2\), \[2, 5\)"),
        ("First", (0, 3, 5), r"owns layers \[0, 3\) of 5, the spec's stages are"),
        ("First", (0, 2, 7), "stages end at layer 5, the model has 7"),
        ("First", (0, 2, 7, 7), "stages end at layer 5, the model has 7"),
        ("First", (0, 2, 5, 7), r"\[0, 2\) of 5, the model has 7 layers"),
    ],
)
def test_a_range_beside_those_of_the_spec_is_refused(
    explicit: Any, place: str, given: tuple[int, ...], words: str
) -> None:
    with pytest.raises(LayerError, match=words):
        stage(explicit, place, *given)
