"""What torch itself offers: reduce-overhead, make_graphed_callables, Inductor captured by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.batches import BY_TOKENS, INTEGERS, Batch, Given, padded
from benchmarks.peers.base import Step, UnavailableError
from benchmarks.peers.by_hand import ByHand
from benchmarks.scenario import REQUESTS, Case, Scenario


def need_gpu(scenario: Scenario, what: str) -> None:
    if not scenario.on_gpu:
        raise UnavailableError(f"{what} needs a GPU")


def with_dynamic_tokens(batch: Batch, given: Given) -> None:
    """Tell torch.compile which dimension differs from bucket to bucket."""
    rows = [getattr(batch, name) for name in BY_TOKENS]
    for tensor in (*rows, given.hidden_states, given.residual):
        torch._dynamo.mark_dynamic(tensor, 0)


class ReduceOverhead:
    """``torch.compile(mode="reduce-overhead")``: Inductor and torch's own CUDA graph trees.

    Compiled once with a dynamic token dimension; a graph for each padded size. Its inputs are
    padded and on the device already: nothing of that is measured.
    """

    name = "reduce-overhead"
    does = "torch.compile with its own graphs; inputs padded and on the device already"

    def __init__(self, scenario: Scenario) -> None:
        need_gpu(scenario, self.name)
        self.scenario = scenario
        self.compiled = torch.compile(scenario.stage, mode="reduce-overhead")
        self.inputs: dict[int, tuple[Batch, Given]] = {}
        for case in reversed(scenario.cases):  # kernels are tuned for what comes first
            batch, given = padded(case.on_device, case.given, case.bucket, REQUESTS)
            with_dynamic_tokens(batch, given)
            self.inputs[case.bucket] = (batch, given)
            for _ in range(3):  # compile, record, replay
                self._run(case.bucket)
        scenario.sync()

    def _run(self, bucket: int) -> Any:
        batch, given = self.inputs[bucket]
        torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]  # torch's
        with torch.no_grad():
            return self.compiled(positions=batch.positions, batch=batch, pp_proxy_tensors=given)

    def step(self, case: Case) -> Step:
        return lambda: self._run(case.bucket)

    def outputs(self, case: Case) -> tuple[Tensor, Tensor]:
        made = self._run(case.bucket)
        return made["hidden_states"][: case.live].clone(), made["residual"][: case.live].clone()

    def close(self) -> None:
        torch._dynamo.reset()


class InductorByHand(ByHand):
    """Inductor with a dynamic token dimension, captured by hand: what composing can reach."""

    name = "raw inductor"
    does = "replay of Inductor's kernels captured alone; nothing is loaded"

    def __init__(self, scenario: Scenario) -> None:
        need_gpu(scenario, self.name)
        compiled = torch.compile(scenario.stage)
        self._compiled: Callable[..., dict[str, Tensor]] = compiled
        super().__init__(scenario)

    def model(self) -> Callable[..., dict[str, Tensor]]:
        return self._compiled

    def buffers(self, case: Case) -> tuple[Batch, Given]:
        batch, given = super().buffers(case)
        with_dynamic_tokens(batch, given)
        return batch, given


class GraphedCallables:
    """``torch.cuda.make_graphed_callables``, one call a bucket. It copies inputs by itself."""

    name = "make_graphed_callables"
    does = "torch.cuda.make_graphed_callables; inputs padded and on the device, copied by torch"

    def __init__(self, scenario: Scenario) -> None:
        need_gpu(scenario, self.name)
        self.scenario = scenario
        self.calls: dict[int, tuple[Any, tuple[Tensor, ...]]] = {}
        for case in reversed(scenario.cases):
            sample = self._tensors(case)
            call = torch.cuda.make_graphed_callables(self._flat, sample, num_warmup_iters=2)
            self.calls[case.bucket] = (call, self._tensors(case))

    def _tensors(self, case: Case) -> tuple[Tensor, ...]:
        batch, given = padded(case.on_device, case.given, case.bucket, REQUESTS)
        integers = (getattr(batch, name) for name in INTEGERS)
        return (*integers, given.hidden_states, given.residual)

    def _flat(self, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        *integers, hidden, residual = tensors
        batch = Batch(
            num_tokens=hidden.shape[0],
            num_requests=REQUESTS,
            **dict(zip(INTEGERS, integers, strict=True)),
        )
        given = Given(hidden_states=hidden, residual=residual)
        out = self.scenario.stage(positions=batch.positions, batch=batch, pp_proxy_tensors=given)
        return out["hidden_states"], out["residual"]

    def step(self, case: Case) -> Step:
        call, tensors = self.calls[case.bucket]
        return lambda: call(*tensors)

    def outputs(self, case: Case) -> tuple[Tensor, Tensor]:
        call, tensors = self.calls[case.bucket]
        hidden, residual = call(*tensors)
        return hidden[: case.live].clone(), residual[: case.live].clone()

    def close(self) -> None:
        self.calls.clear()
