"""Peers that are written by hand: eager, the model captured alone, a careful graph runner."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.batches import BY_TOKENS, INTEGERS, LONG, Batch, Given, padded
from benchmarks.peers.base import Step
from benchmarks.scenario import REQUESTS, Case, Scenario
from ppcgc.runtime import Backend, Graph, open_backend
from ppcgc.runtime.backends.cuda import CudaBackend

Held = tuple[Batch, Given, Given, Graph]  # inputs, outputs, the graph between them


class Eager:
    """The model at live size."""

    name = "eager"
    does = "the model alone, its inputs on the device already"

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario

    def step(self, case: Case) -> Step:
        return lambda: self.scenario.eager(case)

    def outputs(self, case: Case) -> tuple[Tensor, Tensor]:
        return self.scenario.eager(case)

    def close(self) -> None:
        return None


class AsCaptured(CudaBackend):
    """Graphs as torch captures them, memset nodes among the kernels."""

    replaces_memsets = False


class ByHand:
    """Graphs over buffers of their own, one set a bucket; subclasses fill them."""

    name = "raw"
    does = "replay of the model captured alone; nothing is loaded"

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.backend = self.open_backend()
        self.held = {case.bucket: self.capture(case) for case in reversed(scenario.cases)}

    def open_backend(self) -> Backend:
        device = self.scenario.device
        return AsCaptured(device) if self.scenario.on_gpu else open_backend(device)

    def model(self) -> Callable[..., dict[str, Tensor]]:
        return self.scenario.stage

    def buffers(self, case: Case) -> tuple[Batch, Given]:
        """Inputs of the padded shape, holding the case."""
        return padded(case.on_device, case.given, case.bucket, REQUESTS)

    def capture(self, case: Case) -> Held:
        batch, given = self.buffers(case)
        out = Given(
            hidden_states=torch.empty_like(given.hidden_states),
            residual=torch.empty_like(given.residual),
        )
        model = self.model()

        def body() -> None:
            made = model(positions=batch.positions, batch=batch, pp_proxy_tensors=given)
            out.hidden_states.copy_(made["hidden_states"])
            out.residual.copy_(made["residual"])

        self.backend.warm_up(body)
        return batch, given, out, self.backend.capture(body)

    def step(self, case: Case) -> Step:
        return self.held[case.bucket][3].replay

    def outputs(self, case: Case) -> tuple[Tensor, Tensor]:
        self.step(case)()
        out = self.held[case.bucket][2]
        return out.hidden_states[: case.live], out.residual[: case.live]

    def close(self) -> None:
        self.backend.close()


class HandWritten(ByHand):
    """A runner for this stage alone, as a careful engineer writes it.

    Integers go through a pinned buffer a slot, padded on the host, then one asynchronous copy
    each; the boundary is copied and its tail zeroed. Views are made at each step.
    """

    name = "hand-written"
    does = "pinned staging and a copy a slot, boundary copied, replay, outputs cut"

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        largest = max(scenario.buckets)
        self.pinned = {name: self._staging(name, largest) for name in INTEGERS}
        self.arrays = {name: rows.numpy() for name, rows in self.pinned.items()}
        self.done = torch.cuda.Event() if scenario.on_gpu else None  # type: ignore[no-untyped-call]  # torch's

    def _staging(self, name: str, largest: int) -> Tensor:
        rows = largest if name in BY_TOKENS else REQUESTS + (name == "cu_seqlens")
        dtype = torch.int64 if name in LONG else torch.int32
        return torch.zeros(rows, dtype=dtype, pin_memory=self.scenario.on_gpu)

    def fill(self, case: Case) -> None:
        """Load the graph's inputs from the case."""
        batch, given, _, _ = self.held[case.bucket]
        source, live = case.arrays, case.live
        if self.done is not None:
            self.done.synchronize()
        for name in INTEGERS:
            rows, staged, slot = getattr(source, name), self.arrays[name], getattr(batch, name)
            staged[: len(rows)] = rows
            staged[len(rows) : len(slot)] = rows[-1] if name == "cu_seqlens" else 0
            slot.copy_(self.pinned[name][: len(slot)], non_blocking=True)
        if self.done is not None:
            self.done.record()
        for rows_in, slot in (
            (case.given.hidden_states, given.hidden_states),
            (case.given.residual, given.residual),
        ):
            slot[:live].copy_(rows_in)
            slot[live:].zero_()

    def run(self, case: Case) -> tuple[Tensor, Tensor]:
        self.fill(case)
        _, _, out, graph = self.held[case.bucket]
        graph.replay()
        return out.hidden_states[: case.live], out.residual[: case.live]

    def step(self, case: Case) -> Step:
        return lambda: self.run(case)

    def outputs(self, case: Case) -> tuple[Tensor, Tensor]:
        return self.run(case)


class OneCopy(ByHand):
    """The floor of a host step: one pinned copy and one launch, written for one bucket each."""

    name = "floor"
    does = "one pinned copy of the whole integer block, one launch; nothing is chosen or checked"

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        longest = 16 * max(scenario.buckets) + 4 * 64 * (REQUESTS + 1)
        self.block = torch.zeros(longest, dtype=torch.uint8, pin_memory=scenario.on_gpu)
        self.landed = torch.zeros(longest, dtype=torch.uint8, device=scenario.device)

    def step(self, case: Case) -> Step:
        size = 16 * case.bucket + 4 * 64 * (REQUESTS + 1)
        landed, block = self.landed[:size], self.block[:size]
        replay = self.held[case.bucket][3].replay

        def run() -> None:
            landed.copy_(block, non_blocking=True)
            replay()

        return run


class OneCopyNoMemsets(OneCopy):
    """The same floor where launches are as cheap as ours."""

    name = "floor, no memsets"
    does = "the same; memsets in the graph replaced by kernels, as ppcgc does"

    def open_backend(self) -> Backend:
        return open_backend(self.scenario.device)
