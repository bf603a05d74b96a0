"""Slips of a caller without a type checker: an error of ppcgc's own that says what to give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from spec_tools import SPECS, import_text
from toy_model import HIDDEN, LAYERS, POOL_ROWS, VOCAB, ToyStage, through, toy_batch, toy_stages

from ppcgc import runtime as rt
from ppcgc.runtime.errors import (
    BuildError,
    CaptureError,
    DimError,
    LayerError,
    OutputError,
    PpcgcError,
    SourceError,
    StaleStepError,
    StateError,
)
from ppcgc.runtime.pipeline import Pipeline

CONFIG = {"hidden": HIDDEN, "vocab": VOCAB}


def built(toy: Any, **given: Any) -> Any:
    """The whole toy model in one stage, with some of what it is built with replaced."""
    dims = toy.Dims.from_config(CONFIG, pool_rows=POOL_ROWS)
    model = ToyStage(0, LAYERS)
    words = {
        "model": model,
        "layers": rt.LayerRange(0, LAYERS, LAYERS),
        "dims": dims,
        "state": toy.State(pool=[model.pool]),
        "dtype": torch.float32,
        "backend": rt.open_backend("cpu"),
    }
    return toy.PrefillOnly(**(words | given))


Slip = tuple[str, Callable[[Any], object], type[PpcgcError], tuple[str, ...]]


def pool_of_inference() -> torch.Tensor:
    with torch.inference_mode():
        return torch.zeros(POOL_ROWS, HIDDEN)


BUILDS: list[Slip] = [
    (
        "backend by name",
        lambda toy: built(toy, backend="cpu"),
        BuildError,
        ("PrefillOnly: backend is 'cpu'", 'open_backend("cpu")'),
    ),
    (
        "no backend",
        lambda toy: built(toy, backend=None),
        BuildError,
        ("backend is None", "open_backend("),
    ),
    (
        "a device that torch does not know",
        lambda toy: rt.open_backend("gpu"),
        BuildError,
        ("device 'gpu'", "cpu, cuda, cuda:N"),
    ),
    (
        "no device",
        lambda toy: rt.open_backend(None),  # type: ignore[arg-type]
        BuildError,
        ("device None", "cpu, cuda, cuda:N"),
    ),
    (
        "a pair of layers",
        lambda toy: built(toy, layers=(0, 2)),
        LayerError,
        ("PrefillOnly: layers is (0, 2)", "LayerRange(start=0, end=2, count=dims.layer_count)"),
    ),
    (
        "a range of layers",
        lambda toy: built(toy, layers=range(1, 3)),
        LayerError,
        ("layers is range(1, 3)", "LayerRange(start=1, end=3,", "stage_layers"),
    ),
    (
        "a number of layers",
        lambda toy: built(toy, layers=3),
        LayerError,
        ("layers is 3", "LayerRange(start=..., end=...,"),
    ),
    (
        "a list as state",
        lambda toy: built(toy, state=[torch.zeros(POOL_ROWS, HIDDEN)]),
        BuildError,
        ("PrefillOnly: state is a list without pool", "State(pool=...)"),
    ),
    (
        "a config as dims",
        lambda toy: built(toy, dims=CONFIG),
        BuildError,
        ("dims is a dict without", "pool_rows", "Dims.from_config(config, ...)"),
    ),
    (
        "dtype by name",
        lambda toy: built(toy, dtype="float32"),
        BuildError,
        ("dtype is 'float32'", "give torch.float32"),
    ),
    (
        "a type as dtype",
        lambda toy: built(toy, dtype=float),
        BuildError,
        ("dtype is <class 'float'>", "give a torch.dtype"),
    ),
    (
        "one tensor as state",
        lambda toy: built(toy, state=toy.State(pool=torch.zeros(POOL_ROWS, HIDDEN))),
        StateError,
        (
            f"state pool is a Tensor of shape [{POOL_ROWS}, {HIDDEN}]",
            "a list of one tensor a layer",
        ),
    ),
    (
        "a state that is too short",
        lambda toy: built(toy, state=toy.State(pool=[torch.zeros(16, HIDDEN)])),
        StateError,
        (f"pool[0] has shape [16, {HIDDEN}], 16 rows", f"says {POOL_ROWS} rows", "toy.yaml:15"),
    ),
    (
        "a state made in inference mode",
        lambda toy: built(toy, state=toy.State(pool=[pool_of_inference()])),
        StateError,
        ("state pool[0]", "make it outside of torch.inference_mode()"),
    ),
    (
        "a file's name as config",
        lambda toy: toy.Dims.from_config("config.json", pool_rows=POOL_ROWS),
        DimError,
        ("config is 'config.json'", "a mapping or an object", "json.loads(Path(file)"),
    ),
    (
        "a file's path as config",
        lambda toy: toy.Dims.from_config(Path("config.json"), pool_rows=POOL_ROWS),
        DimError,
        ("config.json", "a mapping or an object"),
    ),
    (
        "no config",
        lambda toy: toy.Dims.from_config(None, pool_rows=POOL_ROWS),
        DimError,
        ("config is None", "a mapping or an object"),
    ),
    (
        "capture of a runner",
        lambda toy: rt.capture(built(toy)),
        BuildError,
        ("a list of runners, not toy.prefill only", "[runner]"),
    ),
    (
        "capture of a dict",
        lambda toy: rt.capture({"prefill": built(toy)}),  # type: ignore[arg-type]
        BuildError,
        ("not a dict", "[*runners.values()]"),
    ),
    (
        "capture of a generator",
        lambda toy: rt.capture(built(toy) for _ in range(1)),  # type: ignore[arg-type]
        BuildError,
        ("not a generator", "[runner, ...]"),
    ),
    (
        "capture of a model",
        lambda toy: rt.capture([built(toy), ToyStage(0, 1)]),  # type: ignore[list-item]
        BuildError,
        ("item 1 is a ToyStage, not a runner",),
    ),
    (
        "capture of nothing",
        lambda toy: rt.capture([]),
        BuildError,
        ("capture was given no runners",),
    ),
    (
        "calibration of a runner",
        lambda toy: rt.calibrate(built(toy)),
        BuildError,
        ("calibrate takes a list of runners", "[runner]"),
    ),
    (
        "calibration of a number",
        lambda toy: rt.calibrate([3]),  # type: ignore[list-item]
        BuildError,
        ("calibrate: item 0 is a int, not a runner",),
    ),
    ("calibration of nothing", lambda toy: rt.calibrate([]), BuildError, ("given no runners",)),
    (
        "a calibration that is none",
        lambda toy: built(toy).use_calibration(3),
        BuildError,
        ("what `calibrate` returned", "not a int"),
    ),
    (
        "feeding a model",
        lambda toy: built(toy).feed(ToyStage(0, 1)),
        BuildError,
        ("the runner of the next stage, not a ToyStage",),
    ),
    (
        "a step that was never begun",
        lambda toy: built(toy).finish(None),
        StaleStepError,
        ("what `begin` returned, not a NoneType",),
    ),
    (
        "a pipeline of a runner",
        lambda toy: Pipeline(built(toy)),
        BuildError,
        ("Pipeline takes a list of runners", "[runner]"),
    ),
    (
        "a pipeline without a batch under way",
        lambda toy: Pipeline([built(toy)], in_flight=0),
        BuildError,
        ("in_flight is 0; at least 1",),
    ),
    (
        "a pipeline without time",
        lambda toy: Pipeline([built(toy)], timeout=0),
        BuildError,
        ("timeout is 0; give seconds, more than 0",),
    ),
    (
        "a pipeline with time in words",
        lambda toy: Pipeline([built(toy)], timeout="2"),  # type: ignore[arg-type]
        BuildError,
        ("timeout is '2'; give seconds",),
    ),
    (
        "verification of a runner",
        lambda toy: rt.verify(built(toy)),
        BuildError,
        ("verify takes a Subject, not a ", "Subject(runners=[...], batches=...)"),
    ),
]


@pytest.mark.parametrize(
    ("slip", "kind", "words"), [case[1:] for case in BUILDS], ids=[case[0] for case in BUILDS]
)
def test_a_slip_at_build_says_what_to_give(
    toy: Any, slip: Callable[[Any], object], kind: type[PpcgcError], words: tuple[str, ...]
) -> None:
    with pytest.raises(kind) as caught:
        slip(toy)
    assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)


def test_a_cuda_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(BuildError, match=r"cuda:2: this torch sees 2 CUDA devices, .* cuda:1"):
        rt.open_backend("cuda:2")


# ---------------------------------------------------------------- hooks


class Fill:
    """A hook that fills its slot."""

    def load(self, slots: Any, batch: Any, live: Any) -> None:
        slots.hooked[: live.tokens] = 3.0


@pytest.mark.parametrize(
    ("hooks", "said"),
    [
        *(
            (given, f"hooks is a {type(given).__name__} without fill: give OneFirstHooks(fill=...)")
            for given in (Fill(), None, [Fill()])
        ),
        (SimpleNamespace(fill=Fill), "hook fill: Fill is a class; give an object, Fill(...)"),
    ],
)
def test_a_hook_in_the_place_of_the_hooks_is_refused(
    hooks: Any, said: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = (SPECS / "keeping.yaml").read_text(encoding="utf-8")
    made = import_text(text, tmp_path_factory.mktemp("keeping"), "keeping.yaml")
    dims = made.Dims.from_config({"hidden": HIDDEN})
    with pytest.raises(BuildError) as caught:
        made.OneFirst(
            model=lambda *, ids, view, boundary: ids,
            layers=made.stage_layers(dims, stage=0, of=2),
            dims=dims,
            dtype=torch.float32,
            backend=rt.open_backend("cpu"),
            hooks=hooks,
        )
    for part in said.split(": "):
        assert part in str(caught.value)


# ---------------------------------------------------------------- calls


@pytest.fixture(scope="module")
def stages(toy: Any) -> list[Any]:
    runners = toy_stages(toy, 2)
    rt.capture(runners)
    return runners


@pytest.mark.parametrize("call", ["run", "begin", "eager", "begin_eager"])
def test_a_first_stage_takes_no_boundary(stages: list[Any], call: str) -> None:
    with pytest.raises(
        SourceError, match=r"PrefillFirst is the first stage and takes the batch"
    ) as e:
        getattr(stages[0], call)(toy_batch(3, 2), torch.ones(5, HIDDEN))
    assert "run(batch)" in str(e.value)
    assert "a Tensor as boundary" in str(e.value)


@pytest.mark.parametrize("call", ["run", "begin", "eager", "begin_eager"])
def test_a_last_stage_without_a_boundary_names_itself(stages: list[Any], call: str) -> None:
    with pytest.raises(TypeError, match=rf"PrefillLast\.{call}\(\) missing .* 'boundary'"):
        getattr(stages[1], call)(toy_batch(3, 2))


@pytest.mark.parametrize("call", ["run", "begin", "eager"])
def test_a_refused_batch_says_whose_step_it_was(toy: Any, call: str) -> None:
    """Slots of one name are in many runners."""
    stages = toy_stages(toy, 2)
    rt.capture(stages)
    batch = toy_batch(3, 2)
    batch.positions = batch.positions[:2]
    with pytest.raises(SourceError, match="positions") as e:
        getattr(stages[0], call)(batch)
    (note,) = e.value.__notes__
    assert note == f"in a step of {stages[0]} with 5 live tokens, 2 live requests"


def test_a_boundary_of_none_is_refused_for_sizes_never_met_too(toy: Any) -> None:
    """For a size that was not seen yet nothing is known of a boundary, None included."""
    runners = toy_stages(toy, 2)
    rt.capture(runners)
    with pytest.raises(SourceError, match=r"the boundary is a NoneType .* toy\.Boundary\("):
        runners[1].run(toy_batch(3, 2), None)
    assert through(runners, toy_batch(3, 2)).hidden_states.shape == (5, HIDDEN)


# ---------------------------------------------------------------- models


class Returns(ToyStage):
    """The toy, but its last stage returns something else."""

    def __init__(self, made: Callable[[Any], object]) -> None:
        super().__init__(0, LAYERS)
        self.made = made

    def forward(self, **words: Any) -> Any:
        return self.made(super().forward(**words))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda result: None, ("a NoneType", "is its `return` missing?")),
        (lambda result: {"logits": result[0]}, ("a dict of ['logits']", "not a tuple")),
        (lambda result: (None, *result[1:]), ("output hidden_states", "a NoneType")),
    ],
)
def test_a_result_of_another_kind_says_what_is_expected(
    toy: Any, made: Callable[[Any], object], words: tuple[str, ...]
) -> None:
    runner = built(toy, model=Returns(made))
    with pytest.raises(OutputError) as caught:
        rt.capture([runner])
    assert "warm-up of toy.prefill only, bucket tokens=16 requests=4" in str(caught.value)
    assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)


class Fails(ToyStage):
    """Raises at some call: the first is a warm-up, the fourth of three buckets a capture."""

    def __init__(self, at: int) -> None:
        super().__init__(0, LAYERS)
        self.at = at

    def forward(self, **words: Any) -> Any:
        if len(self.seen) == self.at:
            CONFIG["rope_scaling"]
        return super().forward(**words)


@pytest.mark.parametrize(("at", "doing"), [(0, "warm-up"), (3, "capture")])
def test_an_error_of_the_model_names_bucket_and_line(toy: Any, at: int, doing: str) -> None:
    with pytest.raises(CaptureError) as caught:
        rt.capture([built(toy, model=Fails(at))])
    text = str(caught.value)
    assert text.startswith(f"{doing} of toy.prefill only, bucket tokens=16 requests=4: KeyError")
    assert "test_slips.py" in text
    assert 'in forward: CONFIG["rope_scaling"]' in text
    assert isinstance(caught.value.__cause__, KeyError)
