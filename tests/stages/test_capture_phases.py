"""Capture: two phases, in order, on loads of their own, and what is left when one fails."""

from __future__ import annotations

import gc
import re
from typing import Any

import pytest
import torch
from fake_backend import FakeBackend
from toy_model import EMPTY, RESERVED, ToyStage, through, toy_batch, toy_stages

from ppcgc import runtime as rt
from ppcgc.runtime.errors import (
    BuildError,
    CaptureError,
    NotCapturedError,
    OutputError,
    PpcgcError,
)

SIZES = (4, 8, 16)


def test_every_bucket_warms_up_before_any_is_captured(toy: Any) -> None:
    backend = FakeBackend()
    lines: list[str] = []
    runners = toy_stages(toy, 2, backend=backend)
    rt.capture(runners, progress=lines.append)
    warm, captured = backend.log[:6], backend.log[6:]
    assert warm == [f"warm up {number}" for number in range(6)]
    assert captured == [f"capture {number}" for number in range(6)]
    assert lines == [
        f"{doing} toy.prefill {place}, bucket tokens={size} requests=4"
        for doing in ("warm up", "capture")
        for size in reversed(SIZES)
        for place in ("first", "last")
    ]
    assert [call["padded"] for runner in runners for call in runner.model.seen] == 2 * (
        [16, 8, 4] * 2
    )


@pytest.mark.parametrize(("order", "sizes"), [("descending", [16, 8, 4]), ("ascending", SIZES)])
def test_the_order_is_an_option(toy: Any, order: str, sizes: list[int]) -> None:
    (runner,) = toy_stages(toy, 1, backend=FakeBackend())
    rt.capture([runner], order=order)
    assert [call["padded"] for call in runner.model.seen] == [*sizes, *sizes]
    out = runner.run(toy_batch(3, 2))
    assert torch.equal(out.hidden_states, runner.eager(toy_batch(3, 2)).hidden_states)


def test_an_unknown_order_is_refused_before_anything_runs(toy: Any) -> None:
    (runner,) = toy_stages(toy, 1, backend=FakeBackend())
    with pytest.raises(BuildError, match="order 'sideways': one of descending, ascending"):
        rt.capture([runner], order="sideways")
    assert runner.table == {}


def test_a_runner_given_twice_is_refused_before_anything_runs(toy: Any) -> None:
    first, last = toy_stages(toy, 2, backend=FakeBackend())
    with pytest.raises(BuildError, match=r"toy\.prefill last, layers .* is given more than once"):
        rt.capture([first, last, last])
    assert first.table == {}


def test_each_warm_up_and_capture_is_loaded_with_its_own_bucket(toy: Any) -> None:
    """Bytes of another bucket would put other offsets there; no load would leave zeros."""
    backend = FakeBackend()
    (runner,) = toy_stages(toy, 1, backend=backend)
    seen: list[tuple[int, list[int], int]] = []
    forward = runner.model.forward

    def watch(**words: Any) -> Any:
        view = words["view"]
        seen.append((words["padded"], view.offsets.tolist(), int(view.count)))
        assert set(view.mapping.tolist()) == {RESERVED[0]}
        return forward(**words)

    runner.model = watch
    rt.capture([runner])
    spread = {4: [0, 1, 2, 3, 4], 8: [0, 2, 4, 6, 8], 16: [0, 4, 8, 12, 16]}
    assert seen == [(size, spread[size], size) for size in (16, 8, 4)] * 2


def test_warm_up_and_capture_write_one_reserved_row_alone(toy: Any) -> None:
    runners = toy_stages(toy, 2)
    rt.capture(runners)
    for runner in runners:
        (pool,) = runner.state.pool
        written = (pool != EMPTY).any(1).nonzero().flatten().tolist()
        assert written == [RESERVED[0]]


def test_the_collector_is_held_off_and_put_back(toy: Any) -> None:
    backend = FakeBackend()
    assert gc.isenabled()
    rt.capture(toy_stages(toy, 1, backend=backend))
    assert backend.collector == [False] * 6
    assert gc.isenabled()
    gc.disable()
    try:
        rt.capture(toy_stages(toy, 1, backend=FakeBackend()))
        assert not gc.isenabled()
    finally:
        gc.enable()


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize("phase", ["warm up", "capture"])
@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (CaptureError("aten.item at model.py:3"), CaptureError, "aten.item at model.py:3"),
        (OutputError("the forward gave a tuple"), OutputError, "the forward gave a tuple"),
        (ValueError("bad head width"), CaptureError, "ValueError: bad head width"),
        (AttributeError("no such layer"), CaptureError, "AttributeError: no such layer"),
    ],
)
def test_a_failing_bucket_is_named_and_eager_goes_on(
    toy: Any, phase: str, error: Exception, kind: type[PpcgcError], text: str
) -> None:
    backend = FakeBackend(fail_at=(phase, 3), error=error)
    runners = toy_stages(toy, 2, backend=backend)
    doing = {"warm up": "warm-up", "capture": "capture"}[phase]
    place = f"{doing} of toy.prefill last, bucket tokens=8 requests=4: {text}"
    with pytest.raises(kind, match=re.escape(place)) as raised:
        rt.capture(runners)
    assert raised.value.__cause__ is error
    assert gc.isenabled()
    closed = sorted(line for line in backend.log if line.startswith("close"))
    assert closed == ([] if phase == "warm up" else ["close 0", "close 1", "close 2"])
    batch = toy_batch(3, 2)
    with pytest.raises(NotCapturedError, match="PrefillFirst has no graphs"):
        runners[0].run(batch)
    assert through(runners, batch, "eager").hidden_states.shape == (5, 3)
    rt.capture(runners)  # what failed once may be tried again
    assert torch.equal(
        through(runners, batch).hidden_states, through(runners, batch, "eager").hidden_states
    )


class ReadsTheHost(ToyStage):
    """Python that looks at a value: what a graph cannot hold."""

    def forward(self, **words: Any) -> Any:
        if int(words["view"].count) > 8:
            words["view"].scale.add_(0)
        return super().forward(**words)


def test_the_cpu_backend_names_operation_line_and_bucket(toy: Any) -> None:
    (runner,) = toy_stages(toy, 1)
    runner.model = ReadsTheHost(0, 3)
    with pytest.raises(CaptureError, match=r"capture of toy.prefill only, bucket tokens=16") as e:
        rt.capture([runner])
    assert "test_capture_phases.py" in str(e.value), str(e.value)
    assert runner.eager(toy_batch(3, 2)).hidden_states.shape == (5, 3)


def test_a_boundary_key_that_nobody_reads_is_found_at_warm_up(toy: Any) -> None:
    first, last = toy_stages(toy, 2)

    def forgetful(*, boundary: Any, **words: Any) -> Any:
        both = {"hidden_states": boundary.hidden_states, "residual": boundary.hidden_states.T}
        return last_forward(boundary=Mapping(both), **words)

    class Mapping(dict[str, Any]):
        __getattr__ = dict.__getitem__

    last_forward = last.model
    last.model = forgetful
    with pytest.raises(OutputError, match="hands over residual, which the forward never read"):
        rt.capture([first, last])


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda given: given["hidden_states"], "returned a Tensor; a stage that is not the last"),
        (lambda given: {"hidden_states": given["hidden_states"]}, r"lacks \['residual'\]"),
        (lambda given: {**given, "topk": 1}, r"has \['topk'\] beyond"),
        (lambda given: {**given, "residual": None}, "boundary.residual: the forward gave a None"),
        (lambda given: {**given, "residual": given["residual"].T}, r"gave shape \[16, 3\]"),
        (lambda given: {k: v.double() for k, v in given.items()}, "gave torch.float64"),
    ],
)
def test_a_boundary_that_is_not_the_declared_one(toy: Any, result: Any, message: str) -> None:
    first, last = toy_stages(toy, 2)
    forward = first.model
    first.model = lambda **words: result(forward(**words))
    with pytest.raises(OutputError, match=message):
        rt.capture([first, last])


def test_outputs_that_are_not_the_declared_ones(toy: Any) -> None:
    (runner,) = toy_stages(toy, 1)
    forward = runner.model
    runner.model = lambda **words: forward(**words)[:2]
    with pytest.raises(OutputError, match="returned 2 values, the spec wants item 2"):
        rt.capture([runner])
    with pytest.raises(OutputError, match="wants item 2"):
        runner.eager(toy_batch(3))


# ---------------------------------------------------------------- life cycle


def test_nothing_replays_before_capture_or_after_close(toy: Any) -> None:
    (runner,) = toy_stages(toy, 1)
    batch = toy_batch(3, 2)
    for call in (runner.run, runner.begin):
        with pytest.raises(NotCapturedError, match=r"call ppcgc.runtime.capture\(\[...\]\) first"):
            call(batch)
    eager = runner.eager(batch).hidden_states
    rt.capture([runner])
    assert torch.equal(runner.run(batch).hidden_states, eager)
    runner.close()
    runner.close()
    with pytest.raises(NotCapturedError):
        runner.run(batch)
    assert torch.equal(runner.eager(batch).hidden_states, eager)
    addresses = [bucket.slots.positions.data_ptr() for bucket in runner.table.values()]
    rt.capture([runner])
    assert torch.equal(runner.run(batch).hidden_states, eager)
    assert [bucket.slots.positions.data_ptr() for bucket in runner.table.values()] == addresses


def test_a_second_capture_closes_the_graphs_of_the_first(toy: Any) -> None:
    backend = FakeBackend()
    (runner,) = toy_stages(toy, 1, backend=backend)
    rt.capture([runner])
    old = [bucket.graph for bucket in runner.table.values()]
    rt.capture([runner])
    assert all(graph.closed for graph in old)
    assert not any(bucket.graph.closed for bucket in runner.table.values())
    assert backend.log.index("close 0") < backend.log.index("warm up 3")


@pytest.mark.parametrize("capture_under", [True, False])
def test_inference_mode_may_differ_between_capture_and_steps(toy: Any, capture_under: bool) -> None:
    runners = toy_stages(toy, 2)
    with torch.inference_mode(capture_under):
        rt.capture(runners)
    fuller, batch = toy_batch(4, 4), toy_batch(3, 2, seed=1)
    for under in (not capture_under, capture_under):
        with torch.inference_mode(under):
            through(runners, fuller)
            replayed = through(runners, batch)
            eager = through(runners, batch, "eager")
            assert torch.equal(replayed.hidden_states, eager.hidden_states)
            assert torch.equal(replayed.sums, eager.sums)


def test_a_failed_allocation_leaves_nothing_half_made(toy: Any) -> None:
    (runner,) = toy_stages(toy, 1)
    slots = runner.inputs.slots

    def fails(*arguments: Any) -> Any:
        raise MemoryError("no room")

    runner.inputs.slots = fails
    with pytest.raises(MemoryError):
        rt.capture([runner])
    assert runner.table == {}
    runner.inputs.slots = slots
    rt.capture([runner])
    assert len(runner.table) == len(SIZES)
