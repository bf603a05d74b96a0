"""SGLang's buffer registry, loaded from its wheel where that is at hand.

The registry is filled from device tensors and the boundary is copied, then a graph of the same
model over its buffers is replayed. Its small-copy kernel takes no tensor of more than 8,192
elements and so never runs on this boundary; the stand-in says no at once.
"""

from __future__ import annotations

import importlib.util
import sys
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from benchmarks.batches import BY_TOKENS, INTEGERS, LONG, Batch, Given, padded
from benchmarks.peers.base import Step, UnavailableError
from benchmarks.peers.by_hand import ByHand
from benchmarks.scenario import REQUESTS, Case, Scenario

LOADER = Path(__file__).parents[2] / "tests" / "families" / "sglang_wheel.py"
SMALL_COPY = "sglang.kernels.ops.memory.small_copy"


def _loader() -> Any:
    """The module of the tests that loads files of the wheel."""
    spec = importlib.util.spec_from_file_location("sglang_wheel", LOADER)
    if spec is None or spec.loader is None or not LOADER.is_file():
        raise UnavailableError("tests/families/sglang_wheel.py is not there")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault("sglang_wheel", module)  # its dataclasses look their module up
    spec.loader.exec_module(module)
    return module


class SglangRegistry(ByHand):
    """``CudaGraphBufferRegistry.fill_from`` and a replay."""

    name = "sglang registry"
    does = "fill_from device tensors, the boundary copied, replay, outputs cut"

    def __init__(self, scenario: Scenario) -> None:
        loader = _loader()
        read, why_not = loader.find()
        if read is None:
            raise UnavailableError(why_not)
        self._open = ExitStack()
        field = self._open.enter_context(loader.loaded(read))
        small_copy = ModuleType(SMALL_COPY)
        vars(small_copy)["try_small_copy"] = lambda dsts, srcs: False
        sys.modules[SMALL_COPY] = small_copy
        self.registry = _registry(field.registry, scenario)
        super().__init__(scenario)

    def buffers(self, case: Case) -> tuple[Batch, Given]:
        """Views of the registry's buffers, filled with the case."""
        self.fill(case)
        whole, _ = padded(case.on_device, case.given, case.bucket, REQUESTS)
        batch = whole.of(lambda rows: rows)
        views = {
            name: self.registry.get_slot(name).buffer[: len(getattr(batch, name))]
            for name in INTEGERS
        }
        given = Given(
            hidden_states=self.registry.get_slot("pp.hidden_states").buffer[: case.bucket],
            residual=self.registry.get_slot("pp.residual").buffer[: case.bucket],
        )
        return Batch(num_tokens=case.bucket, num_requests=REQUESTS, **views), given

    def fill(self, case: Case) -> None:
        self.registry.fill_from(
            case.on_device,
            raw_bs=case.on_device.num_requests,
            padded_bs=REQUESTS,
            raw_num_tokens=case.live,
            padded_num_tokens=case.bucket,
            pp_proxy_tensors=case.given,
        )

    def run(self, case: Case) -> tuple[Tensor, Tensor]:
        self.fill(case)
        _, _, out, graph = self.held[case.bucket]
        graph.replay()
        return out.hidden_states[: case.live], out.residual[: case.live]

    def step(self, case: Case) -> Step:
        return lambda: self.run(case)

    def outputs(self, case: Case) -> tuple[Tensor, Tensor]:
        return self.run(case)

    def close(self) -> None:
        super().close()
        sys.modules.pop(SMALL_COPY, None)
        self._open.close()


def _registry(module: Any, scenario: Scenario) -> Any:
    """Its registry with the nine slots of the scenario."""
    registry = module.CudaGraphBufferRegistry(
        device=scenario.device, max_bs=REQUESTS, max_num_tokens=max(scenario.buckets)
    )
    policy = module.PaddingPolicy
    for name in INTEGERS:
        by_tokens, offsets = name in BY_TOKENS, name == "cu_seqlens"
        registry.register_slot(
            module.GraphSlot(
                name=name,
                shape_fn=_shape(by_tokens, offsets),
                dtype=torch.int64 if name in LONG else torch.int32,
                axis="tokens" if by_tokens else "bs",
                padding_policy=policy.FOREACH_COPY if offsets else policy.ZERO,
                source_fn=(lambda batch, _: batch.cu_seqlens) if offsets else None,
                post_fill=_repeat_last if offsets else None,
            )
        )
    hidden, dtype = scenario.shape.hidden_size, scenario.shape.dtype
    for name in ("hidden_states", "residual"):
        registry.register_slot(
            module.GraphSlot(
                name=f"pp.{name}",
                shape_fn=lambda _, tokens: (tokens, hidden),
                dtype=dtype,
                axis="tokens",
                padding_policy=policy.ZERO,
                source_fn=_from_boundary(name),
            )
        )
    return registry


def _shape(by_tokens: bool, offsets: bool) -> Any:
    return lambda requests, tokens: (tokens if by_tokens else requests + offsets,)


def _from_boundary(name: str) -> Any:
    return lambda _, context: getattr(context.pp_proxy_tensors, name)


def _repeat_last(buffer: Tensor, _: Any, context: SimpleNamespace) -> None:
    """Its policies know no last value: the hook that its backends write for offsets."""
    live = context.raw_bs
    buffer[live + 1 : context.padded_bs + 1].copy_(buffer[live])
