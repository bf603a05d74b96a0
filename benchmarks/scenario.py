"""What every peer is given: one stage, live sizes, inputs on the host and on the device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.batches import Batch, Given, batch_of, boundary_of, prompts
from benchmarks.generated import bench_llama
from benchmarks.model import Stage, new_stage
from benchmarks.shape import LLAMA_8B, TINY, Shape
from ppcgc import runtime as rt

BUCKETS = (16, 32, 64, 128, 256, 512, 1024, 2048)
REQUESTS = 16  # padded, in every bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One batch in every form. ``bucket`` is the padded number of tokens."""

    bucket: int
    arrays: Batch
    tensors: Batch  # CPU tensors
    on_device: Batch
    given: Given

    @property
    def live(self) -> int:
        return self.arrays.num_tokens

    def __str__(self) -> str:
        return f"{self.live} → {self.bucket}"


class Scenario:
    """The stage, and where it runs."""

    def __init__(self, device: torch.device, shape: Shape, buckets: tuple[int, ...]) -> None:
        self.device, self.shape, self.buckets = device, shape, buckets
        self.stage: Stage = new_stage(shape, device)
        self.layers = rt.LayerRange(
            shape.start, shape.start + shape.layers, shape.num_hidden_layers
        )
        self.dims = bench_llama.Dims.from_config(shape, kv_rows=shape.kv_rows)
        self.cases = tuple(self.case(bucket * 3 // 4, bucket) for bucket in buckets)

    @property
    def on_gpu(self) -> bool:
        return self.device.type == "cuda"

    def case(self, live: int, bucket: int) -> Case:
        """A batch of ``live`` tokens in a few prompts."""
        arrays = batch_of(prompts(live))
        return Case(
            bucket=bucket,
            arrays=arrays,
            tensors=arrays.on(torch.device("cpu")),
            on_device=arrays.on(self.device),
            given=boundary_of(self.shape, live, self.device),
        )

    def build(self, kind: type, backend: rt.Backend) -> Runner:
        """A runner of the generated class ``kind`` over the stage, not captured."""
        runner: Runner = kind(
            model=self.stage,
            layers=self.layers,
            dims=self.dims,
            state=bench_llama.State(kv=self.stage.kv()),
            dtype=self.shape.dtype,
            backend=backend,
        )
        return runner

    def eager(self, case: Case) -> tuple[Tensor, Tensor]:
        """The model alone at live size, its inputs on the device already: what all must equal."""
        return self.eager_of(case.on_device, case.given)

    def eager_of(self, batch: Batch, given: Given) -> tuple[Tensor, Tensor]:
        """The model on inputs of its device."""
        with torch.no_grad():
            out = self.stage(positions=batch.positions, batch=batch, pp_proxy_tensors=given)
        return out["hidden_states"], out["residual"]

    def sync(self) -> None:
        if self.on_gpu:
            torch.cuda.synchronize(self.device)


Runner = (
    bench_llama.PrefillMiddle | bench_llama.PrefillOnDeviceMiddle | bench_llama.PrefillDenseMiddle
)


def scenario(*, tiny: bool) -> Scenario:
    """The stage of Llama-3.1-8B on the GPU, or a tiny one on the CPU."""
    if tiny:
        return Scenario(torch.device("cpu"), TINY, (16, 64))
    return Scenario(torch.device("cuda", 0), LLAMA_8B, BUCKETS)
