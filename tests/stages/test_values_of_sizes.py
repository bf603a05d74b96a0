"""What sizes of a build decide: paddings, constants, casts and indices of a small spec's slot."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from spec_tools import compile_text, import_text

from ppcgc import runtime as rt
from ppcgc.driver import Source, compile_sources
from ppcgc.runtime.errors import DimError, SourceError

SPEC = """\
version: 1
family: sized
dims: {{vocab: config.vocab, wide: build}}
axes:
  tokens: {{max: 4, live: batch.num_tokens}}
  images: {{max: 2, live: batch.num_images}}
state: {{kv: {{rows: wide, reserved: [0]}}}}
pipeline: {{layers: {{count: 2}}, stages: [[0, 2]]}}
runners:
  serve:
    buckets: {{tokens: [2, 4], images: max}}
    dispatch: {{over_capacity: eager}}
    slots:
      - {{name: pixel, axis: images, dtype: float32, padding: zero, source: batch.pixel}}
      - {{name: at, axis: tokens, dtype: int64, padding: zero, role: write_index, of: state.kv,
         source: batch.at, residency: host}}
      - {{name: seen, axis: tokens, {slot}}}
      - {{name: token, axis: tokens, dtype: int64, padding: zero, role: index, of: vocab,
         source: batch.token, residency: host}}
    forward: {{first: {{batch: view}}}}
    outputs: {{last: [{{name: out, axis: tokens, dtype: float32, from: result}}]}}
"""
CONFIG = {"vocab": 32}
ROWS, SEEN = 3, "source: batch.seen, residency: host"


def package(slot: str, folder: Path) -> Any:
    return import_text(SPEC.format(slot=slot), folder)


def forward(*, batch: Any) -> torch.Tensor:
    """The slot itself as floats, padded rows included."""
    rows: torch.Tensor = batch.seen.float() + 0 * batch.token
    return rows


def built(sized: Any, wide: int = 3) -> Any:
    dims = sized.Dims.from_config(CONFIG, wide=wide)
    return sized.ServeOnly(
        model=forward,
        layers=rt.LayerRange(0, 2, 2),
        dims=dims,
        state=sized.State(kv=[torch.zeros(wide, 1)]),
        dtype=torch.float32,
        backend=rt.open_backend("cpu"),
    )


def batch(seen: Any, rows: int = ROWS, images: int = 0) -> Any:
    return SimpleNamespace(
        num_tokens=rows,
        num_images=images,
        pixel=torch.ones(images),
        at=[1] * rows,
        token=[0] * rows,
        seen=seen,
    )


# ---------------------------------------------------------------- paddings and constants


@pytest.mark.parametrize(
    ("slot", "wide", "said"),
    [
        (
            "dtype: int64, padding: {fill: vocab}, role: index, of: vocab",
            3,
            "is 32, legal are 0 to 31",
        ),
        (
            "dtype: int64, padding: {fill: 32}, role: index, of: vocab",
            3,
            "is 32, legal are 0 to 31",
        ),
        (
            "dtype: int64, padding: {fill: wide - 4}, role: index, of: wide",
            3,
            "is -1, legal are 0 to 2",
        ),
        (
            "dtype: int32, padding: {fill: wide + 1}, role: lengths, of: wide",
            3,
            "is 4, legal are 0 to 3",
        ),
        ("dtype: int32, padding: {fill: 9}, role: lengths, of: wide", 3, "is 9, legal are 0 to 3"),
        ("dtype: int8, padding: {fill: wide}", 300, "is 300, legal are -128 to 127"),
    ],
)
def test_a_padding_that_the_sizes_forbid(slot: str, wide: int, said: str, tmp_path: Path) -> None:
    sized = package(f"{slot}, {SEEN}", tmp_path)
    with pytest.raises(DimError, match=r"slot seen \(spec.yaml:17\): with these sizes") as caught:
        built(sized, wide=wide)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("slot", "wide"),
    [
        ("dtype: int8, source: {const: wide}", 300),
        ("dtype: int64, role: index, of: vocab, source: {const: wide}", 32),
    ],
)
def test_a_constant_that_the_sizes_forbid(slot: str, wide: int, tmp_path: Path) -> None:
    with pytest.raises(DimError, match=f"padding or constant is {wide}, legal are"):
        built(package(slot, tmp_path), wide=wide)


@pytest.mark.parametrize(
    ("slot", "wide", "padded"),
    [
        ("dtype: int64, padding: {fill: vocab - 1}, role: index, of: vocab", 3, 31),
        ("dtype: int32, padding: {fill: wide}, role: lengths, of: wide", 3, 3),
        ("dtype: int8, padding: {fill: wide}", 127, 127),
        (
            "dtype: int64, padding: {fill: wide - 4}, consumer_skips_negative: true, role: index, "
            "of: wide",
            3,
            -1,
        ),
    ],
)
def test_a_padding_that_they_allow(slot: str, wide: int, padded: int, tmp_path: Path) -> None:
    runner = built(package(f"{slot}, {SEEN}", tmp_path), wide)
    rt.capture([runner])
    step = runner.begin(batch([1, 2, 0]))
    assert step.slots.seen.tolist() == [1, 2, 0, padded]
    assert runner.finish(step).out.tolist() == [1, 2, 0]


def test_a_binding_finds_it_when_it_is_generated(tmp_path: Path) -> None:
    from binding_tools import binding_of

    slot = f"dtype: int64, padding: {{fill: vocab}}, role: index, of: vocab, {SEEN}"
    text = SPEC.format(slot=slot)
    assert compile_text(text)  # nothing is known of vocab yet
    source = Source(file="spec.yaml", data=text.encode())
    found = compile_sources([source], binding_of(CONFIG, given={"wide": 3})).findings
    assert [(f.rule.code, f.span.line) for f in found if f.is_error] == [("PPC243", 17)]


# ---------------------------------------------------------------- casts


CAST = f"cast: true, padding: zero, {SEEN}"


@pytest.mark.parametrize("captured", [True, False])
@pytest.mark.parametrize(
    ("dtype", "source", "said"),
    [
        (
            "int32",
            torch.tensor([1, 2**32 + 2, 0]),
            "values 0 to 4294967298 do not fit into torch.int32",
        ),
        (
            "int32",
            np.array([1, 2**32 + 2, 0]),
            "values 0 to 4294967298 do not fit into torch.int32",
        ),
        ("int8", torch.tensor([300, 1, 2]), "values 1 to 300 do not fit into torch.int8"),
        ("uint8", torch.tensor([-1, 1, 2]), "values -1 to 2 do not fit into torch.uint8"),
        ("int32", torch.tensor([1.9, 2.0, 0.0]), "torch.float32 with fractions"),
        ("int32", torch.tensor([1.0, float("nan"), 0.0]), "do not fit into torch.int32"),
        ("float32", torch.ones(3, dtype=torch.complex64), "drops the imaginary parts"),
    ],
)
def test_a_cast_that_changes_values(
    captured: bool, dtype: str, source: Any, said: str, tmp_path: Path
) -> None:
    runner = built(package(f"dtype: {dtype}, {CAST}", tmp_path))
    rt.capture([runner])
    with pytest.raises(SourceError, match=f"slot seen: .*{said}"):
        (runner.run if captured else runner.eager)(batch(source))


@pytest.mark.parametrize("captured", [True, False])
@pytest.mark.parametrize(
    ("dtype", "source"),
    [
        ("int32", torch.tensor([1, 2**31 - 1, 0])),
        ("int32", torch.tensor([1.0, -2.0, 0.0])),
        ("int8", torch.tensor([True, False, True])),
        ("float32", torch.tensor([0.5, 1.5, 2.5], dtype=torch.float64)),
    ],
)
def test_a_cast_that_keeps_them(captured: bool, dtype: str, source: Any, tmp_path: Path) -> None:
    runner = built(package(f"dtype: {dtype}, {CAST}", tmp_path))
    rt.capture([runner])
    given = (runner.run if captured else runner.eager)(batch(source))
    assert given.out.tolist() == source.float().tolist()


# ---------------------------------------------------------------- live values


@pytest.mark.parametrize("captured", [True, False])
def test_skipped_rows_of_an_index(captured: bool, tmp_path: Path) -> None:
    """A live row may be one that the kernel skips: no adapter, for one."""
    slot = "dtype: int64, padding: {fill: -1}, consumer_skips_negative: true, role: index, of: wide"
    runner = built(package(f"{slot}, {SEEN}", tmp_path))
    rt.capture([runner])
    step = runner.run if captured else runner.eager
    assert step(batch([0, -1, 2])).out.tolist() == [0, -1, 2]
    with pytest.raises(SourceError, match="legal are 0 to 2, or negative ones"):
        step(batch([0, -1, 3]))


@pytest.mark.parametrize("captured", [True, False])
def test_an_index_of_an_axis_without_live_rows(captured: bool, tmp_path: Path) -> None:
    """Text alone: every row has to point somewhere, and there is no image."""
    slot = f"dtype: int64, padding: zero, role: index, of: images, {SEEN}"
    runner = built(package(slot, tmp_path))
    rt.capture([runner])
    step = runner.run if captured else runner.eager
    assert step(batch([0, 0, 0])).out.tolist() == [0, 0, 0]
    assert step(batch([0, 1, 1], images=2)).out.tolist() == [0, 1, 1]
    with pytest.raises(SourceError, match="live values run from 0 to 1, legal are 0 to 0"):
        step(batch([0, 1, 0]))


@pytest.mark.parametrize("captured", [True, False])
def test_a_list_of_numpy_integers(captured: bool, tmp_path: Path) -> None:
    runner = built(package(f"dtype: int32, padding: zero, {SEEN}", tmp_path))
    rt.capture([runner])
    step = runner.run if captured else runner.eager
    assert step(batch([np.int64(1), np.int32(2), 3])).out.tolist() == [1, 2, 3]
    for odd in (True, torch.tensor(3), 3.0, np.array([3, 4])):
        with pytest.raises(SourceError, match=r"row 1 of the source is .*, not an integer"):
            step(batch([1, odd, 2]))


@pytest.mark.parametrize("captured", [True, False])
def test_a_slot_from_the_host_has_a_twin(captured: bool, tmp_path: Path) -> None:
    """For hooks to read, of the same path or another one."""
    slot = f"dtype: int32, padding: {{fill: 1}}, {SEEN}, mirror: {{source: batch.seen}}"
    runner = built(package(slot, tmp_path))
    rt.capture([runner])
    step = (runner.begin if captured else runner.begin_eager)(batch([4, 5, 6]))
    assert step.slots.seen_host.tolist() == ([4, 5, 6, 1] if captured else [4, 5, 6])
    assert runner.finish(step).out.tolist() == [4, 5, 6]
