"""`compile: inductor`: what is compiled, when, and what runs where it cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from fake_backend import FakeBackend
from torch._inductor import config
from toy_model import through, toy_batch, toy_stages

from ppcgc import runtime as rt
from ppcgc.runtime.errors import BuildError, CaptureError


class Compiler:
    """Stands in for ``torch.compile``: notes the padded size of each call that it wraps."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.options: list[dict[str, Any]] = []

    def __call__(self, model: Any, *, options: dict[str, Any]) -> Callable[..., object]:
        self.options.append(options)

        def compiled(**keywords: Any) -> object:
            self.calls.append(keywords["padded"])
            out: object = model(**keywords)
            return out

        return compiled


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    made = Compiler()
    monkeypatch.setattr(torch, "compile", made)
    return made


def test_it_is_compiled_at_the_largest_bucket_and_captured_in_all(
    toy: Any, compiler: Compiler
) -> None:
    (runner,) = toy_stages(toy, 1, backend=FakeBackend())
    lines: list[str] = []
    rt.capture([runner], compile="inductor", progress=lines.append)
    assert compiler.calls == [16, 16, 8, 4, 16, 8, 4]  # compiled, warmed up, captured
    assert lines[0] == "compile toy.prefill only, layers [0, 3) of 3"
    assert "compile: inductor" in str(runner.report())


def test_residual_adds_are_kept_apart_unless_the_process_has_a_pass_of_its_own(
    toy: Any, compiler: Compiler
) -> None:
    (runner,) = toy_stages(toy, 1, backend=FakeBackend())
    rt.capture([runner], compile="inductor")
    with config.patch(post_grad_custom_pre_pass=lambda graph: None):
        rt.capture([runner], compile="inductor")
    assert [sorted(one) for one in compiler.options] == [["post_grad_custom_pre_pass"], []]


def test_eager_steps_call_the_model_itself(toy: Any, compiler: Compiler) -> None:
    runners = toy_stages(toy, 2, backend=FakeBackend())
    rt.capture(runners, compile="inductor")
    compiler.calls.clear()
    batch = toy_batch(3, 2)
    eager = through(runners, batch, "eager")
    assert compiler.calls == []
    assert torch.equal(through(runners, batch).hidden_states, eager.hidden_states)


def test_the_spec_says_it_and_the_build_overrides_it(
    toy: Any, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    (runner,) = toy_stages(toy, 1, backend=FakeBackend())
    monkeypatch.setattr(type(runner), "compile", "inductor")
    rt.capture([runner])
    assert runner.compiled_as == "inductor"
    rt.capture([runner], compile="none")
    assert (runner.compiled_as, runner.compiled) == ("none", None)
    assert "compile" not in str(runner.report())


def test_another_word_is_refused(toy: Any) -> None:
    (runner,) = toy_stages(toy, 1)
    with pytest.raises(BuildError, match="compile 'fast': one of none, inductor"):
        rt.capture([runner], compile="fast")


def test_the_cpu_backend_compiles_nothing_and_says_so(toy: Any, compiler: Compiler) -> None:
    (runner,) = toy_stages(toy, 1)
    rt.capture([runner], compile="inductor")
    assert compiler.calls == []
    assert "compile: none: the cpu backend compiles nothing" in str(runner.report())
    batch = toy_batch(3, 2)
    assert torch.equal(runner.run(batch).hidden_states, runner.eager(batch).hidden_states)


def test_padded_dimensions_are_dynamic_and_no_others(toy: Any, compiler: Compiler) -> None:
    first, last = toy_stages(toy, 2, backend=FakeBackend())
    rt.capture([first, last], compile="inductor")
    bucket = next(iter(last.table.values()))
    dynamic = {
        name: sorted(getattr(rows, "_dynamo_dynamic_indices", ()))
        for name, rows in {
            "positions": bucket.slots.positions,
            "offsets": bucket.slots.offsets,
            "count": bucket.slots.count,
            "hidden_states": bucket.boundary.hidden_states,
            "residual": bucket.boundary.residual,
        }.items()
    }
    assert dynamic == {
        "positions": [0],
        "offsets": [],
        "count": [],
        "hidden_states": [0],
        "residual": [1],
    }


def test_an_error_of_the_compiler_names_the_bucket(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(model: Any, **options: Any) -> Callable[..., object]:
        def compiled(**keywords: Any) -> object:
            raise RuntimeError("Constraints violated (tokens)")

        return compiled

    monkeypatch.setattr(torch, "compile", broken)
    (runner,) = toy_stages(toy, 1, backend=FakeBackend())
    with pytest.raises(CaptureError, match=r"bucket tokens=16 .*Constraints violated"):
        rt.capture([runner], compile="inductor")
    batch = toy_batch(3, 2)
    assert runner.eager(batch).hidden_states.shape == (5, 3)
