"""Generated runners as peers."""

from __future__ import annotations

from torch import Tensor

from benchmarks.batches import Batch
from benchmarks.generated import bench_llama
from benchmarks.peers.base import Step
from benchmarks.scenario import Case, Runner, Scenario
from ppcgc import runtime as rt


class Ours:
    """The generated runner: integers from numpy arrays, the boundary in place."""

    name = "ppcgc"
    does = "choose, check, load from numpy, boundary in place, replay, trim"
    kind: type[Runner] = bench_llama.PrefillMiddle
    compile = "none"
    in_place = True

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.backend = rt.open_backend(scenario.device)
        self.runner = scenario.build(self.kind, self.backend)
        rt.capture([self.runner], compile=self.compile)

    def batch(self, case: Case) -> Batch:
        return case.arrays

    def boundary(self, case: Case) -> bench_llama.Boundary:
        """The case's rows: in the very slots that the graph reads, or in tensors of their own."""
        given = case.given
        if not self.in_place:
            return bench_llama.Boundary(hidden_states=given.hidden_states, residual=given.residual)
        slots = next(
            bucket.boundary
            for padded, bucket in self.runner.table.items()
            if padded.tokens == case.bucket
        )
        boundary = bench_llama.Boundary(
            hidden_states=slots.hidden_states[: case.live], residual=slots.residual[: case.live]
        )
        boundary.hidden_states.copy_(given.hidden_states)
        boundary.residual.copy_(given.residual)
        return boundary

    def step(self, case: Case) -> Step:
        run, batch, boundary = self.runner.run, self.batch(case), self.boundary(case)
        return lambda: run(batch, boundary)

    def outputs(self, case: Case) -> tuple[Tensor, Tensor]:
        made = self.runner.run(self.batch(case), self.boundary(case))
        record = self.runner.last_step
        if record is None or record.path != "replay":
            raise RuntimeError(f"{self.name}: the step of {case} did not replay: {record}")
        return made.hidden_states, made.residual

    def close(self) -> None:
        self.runner.close()
        self.backend.close()


class OursFromTensors(Ours):
    name = "ppcgc, CPU tensors"
    does = "the same from CPU tensors"

    def batch(self, case: Case) -> Batch:
        return case.tensors


class OursOnDevice(Ours):
    """Like for like with a registry of device buffers: device sources, the boundary copied."""

    name = "ppcgc, on device"
    does = "integers from device tensors, the boundary copied, replay, trim"
    kind = bench_llama.PrefillOnDeviceMiddle
    in_place = False

    def batch(self, case: Case) -> Batch:
        return case.on_device


class OursInductor(Ours):
    name = "ppcgc + inductor"
    does = "as ppcgc; Inductor's kernels captured"
    compile = "inductor"
