"""What goes wrong in a pipeline, for ranks over gloo and over NCCL with each transport.

``where`` is ``gloo``, or the transport between GPUs. Every scenario is the work of one rank; the
tests say which error each rank must end with.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from toy_pipeline import ToyStage, build, decode_batch

from ppcgc import runtime as rt
from ppcgc.runtime.counts import over_capacity
from ppcgc.runtime.pipeline import Pipeline

AT_STEP = 2
EAGER_ROWS = 19  # more than the largest bucket: such a step runs the model itself


GPU = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices"),
]


def modes(*transports: str) -> list[Any]:
    """gloo, and these transports between GPUs."""
    return ["gloo", *(pytest.param(name, marks=GPU) for name in transports)]


def timeout_of(where: str) -> float:
    """Seconds; ranks may take a second and a half more to say who is at fault."""
    return 1.0 if where == "gloo" else 3.0


def backend_of(rank: int, where: str) -> Any:
    return rt.open_backend("cpu" if where == "gloo" else f"cuda:{rank}")


def opened(
    rank: int, ranks: int, where: str, *, model: type[ToyStage] = ToyStage, **options: Any
) -> tuple[Pipeline, Any]:
    """A pipeline of the decode runner, not captured, and this rank's runner.

    All ranks meet before it, since a process may take longer to start than a timeout.
    """
    built = build(rank, ranks, names=("decode",), model=model, backend=backend_of(rank, where))
    runner = built.runners["decode"]
    transport = "eager" if where == "gloo" else where
    options = {"timeout": timeout_of(where), **options}
    dist.all_reduce(torch.zeros(1))
    return Pipeline([runner], transport=transport, **options), runner


class Raising(ToyStage):
    """Its own mistake, in eager steps alone, so that it captures well."""

    def forward(self, **given: Any) -> Any:
        if len(given["positions"]) == EAGER_ROWS:
            raise ValueError("no luck")
        return super().forward(**given)


class Sleeping(ToyStage):
    """Hangs in an eager step."""

    def forward(self, **given: Any) -> Any:
        if len(given["positions"]) == EAGER_ROWS:
            _hang(None, "gloo" if self.kv[0].device.type == "cpu" else "eager")
        return super().forward(**given)


MODELS = {"raises": Raising, "hangs in its forward": Sleeping}


def serve_with_fault(rank: int, ranks: int, culprit: int, fault: str, where: str = "gloo") -> Any:
    """Steps of four rows; in step 2, of 19 rows if its forward is the fault, ``culprit`` fails."""
    model = MODELS.get(fault, ToyStage) if rank == culprit else ToyStage
    pipeline, runner = opened(rank, ranks, where, model=model)
    with pipeline:
        pipeline.capture()
        for step in range(AT_STEP + 40):
            if step == AT_STEP and rank == culprit:
                FAULTS.get(fault, _nothing)(runner, where)
            rows = EAGER_ROWS if step == AT_STEP and fault in MODELS else 4
            begun = time.monotonic()
            try:
                pipeline.run("decode", decode_batch(rows))
            except Exception as problem:
                problem.args = (f"{problem} (after {time.monotonic() - begun:.1f} s)",)
                raise
    return "served"


def _nothing(runner: Any, where: str) -> None:
    return None


def _die(runner: Any, where: str) -> None:
    os._exit(1)


def _hang(runner: Any, where: str) -> None:
    time.sleep(2 * timeout_of(where) + 0.5)


def _after_the_header(fault: Callable[[Any, str], None]) -> Callable[[Any, str], None]:
    """The others have the header, and replay; this rank fails before its own replay."""

    def arrange(runner: Any, where: str) -> None:
        finish = runner.finish

        def failing(step: Any) -> Any:
            fault(runner, where)
            return finish(step)

        runner.finish = failing

    return arrange


def _kill(runner: Any, where: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


FAULTS: dict[str, Callable[[Any, str], None]] = {
    "dies": _die,
    "hangs": _hang,
    "is killed amid its step": _after_the_header(_kill),
    "hangs amid its step": _after_the_header(_hang),
}


def mute(rank: int, where: str = "gloo") -> Any:
    """The first rank sends the header, but the boundary never comes."""
    pipeline, runner = opened(rank, 2, where)
    with pipeline:
        pipeline.capture()
        if rank == 0:
            pipeline._outbox.send = lambda *_: None  # type: ignore[method-assign]  # the fault
            if where == "symmetric":
                runner.finish = lambda *_: None  # a replay would send by itself
        pipeline.run("decode", decode_batch(4))
        time.sleep(2 * timeout_of(where) if rank == 0 else 0)


def host_inside_cuda(rank: int, where: str) -> Any:
    """The last rank believes that another follows, and waits for the GPU, not for the bytes."""
    pipeline, runner = opened(rank, 2, where)
    with pipeline:
        pipeline.capture()
        pipeline.run("decode", decode_batch(4))
        if rank == 0:
            _after_the_header(_hang)(runner, where)
            pipeline.run("decode", decode_batch(4))
        pipeline._steps.last = False
        pipeline.run("decode", decode_batch(4))
        if where != "gloo":
            torch.cuda.synchronize()  # without the watch it would never come back
        pipeline.run("decode", decode_batch(4))
    return "served"


def above_capacity(rank: int, where: str) -> Any:
    """As with ``over_capacity: error``: the batch is refused everywhere, the next one is served."""
    pipeline, runner = opened(rank, 2, where)
    choose = runner.choose

    def strict(live: Any) -> Any:
        if live.requests > 16:
            raise over_capacity("llama.decode", "requests", live.requests, 16, "decode.dispatch")
        return choose(live)

    runner.choose = strict
    refused = "nothing"
    with pipeline:
        pipeline.capture()
        try:
            pipeline.run("decode", decode_batch(20))
        except Exception as problem:
            refused = f"{type(problem).__name__}: {problem}"
        made = pipeline.run("decode", decode_batch(4))
        return refused, None if made is None else made.hidden_states.cpu()


def capturing() -> bool:
    try:
        return torch.cuda.is_current_stream_capturing()
    except RuntimeError:  # a torch without CUDA, outside of a capture of the CPU backend
        return False


class TooLarge(ToyStage):
    """Asks for more memory than there is, while the bucket of four rows is captured."""

    def forward(self, **given: Any) -> Any:
        if len(given["positions"]) == 4 and capturing():
            torch.empty(1 << 50, dtype=torch.uint8, device=given["positions"].device)
        return super().forward(**given)


def out_of_memory(rank: int, odd: int, where: str) -> Any:
    """Paths and outputs of steps of 4, 3, 2 and 8 rows where one rank could not capture 4."""
    model = TooLarge if rank == odd else ToyStage
    pipeline, runner = opened(rank, 2, where, model=model)
    with pipeline:
        pipeline.capture()
        paths, outputs = [], []
        for size in (4, 3, 2, 8):
            made = pipeline.run("decode", decode_batch(size))
            paths.append(str(runner.last_step))
            outputs.append(None if made is None else made.hidden_states.cpu())
        return paths, outputs, dict(pipeline.dropped)


def unequal(rank: int, where: str) -> dict[str, str]:
    """What opening a pipeline raises: other specs, then ranks in another order."""
    raised = {}
    for difference in ("spec", "order"):
        stage = 1 - rank if difference == "order" else rank
        built = build(stage, 2, names=("decode",), backend=backend_of(rank, where))
        runner = built.runners["decode"]
        if difference == "spec" and rank:
            runner.fingerprint = "sha256:0123"
        transport = "eager" if where == "gloo" else where
        try:
            Pipeline([runner], transport=transport, timeout=timeout_of(where))
            raised[difference] = "opened"
        except Exception as problem:
            raised[difference] = f"{type(problem).__name__}: {problem}"
    return raised


def nothing_left(rank: int, where: str, fault: str) -> Any:
    """Bytes, threads and groups that a closed pipeline leaves, over those before it was built.

    One pipeline is served and closed before, for what CUDA and NCCL load once in a process.
    """
    _serve_and_close(rank, where, "none")
    before = _held(where)
    error, during = _serve_and_close(rank, where, fault)
    after = _held(where)
    patience = time.monotonic() + 15  # shared memory goes when the other rank has unmapped it
    while after["bytes"] - before["bytes"] > 4 << 20 and time.monotonic() < patience:
        time.sleep(0.5)
        after = _held(where)
    left = {name: after[name] - before[name] for name in after}
    return error, left, during["bytes"] - before["bytes"]


def _serve_and_close(rank: int, where: str, fault: str) -> tuple[str, dict[str, int]]:
    model = MODELS.get(fault, ToyStage) if rank == 0 else ToyStage
    pipeline, runner = opened(rank, 2, where, model=model)
    pipeline.capture()
    during = _held(where, graphs=True)
    error = "served"
    try:
        pipeline.run("decode", decode_batch(4))
        if rank == 0:
            FAULTS.get(fault, _nothing)(runner, where)
        pipeline.run("decode", decode_batch(EAGER_ROWS if fault in MODELS else 4))
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"
    pipeline.close()
    pipeline.close()
    return error, during


def _held(where: str, *, graphs: bool = False) -> dict[str, int]:
    gc.collect()
    held = {
        "threads": sum(thread.name.startswith("ppcgc") for thread in threading.enumerate()),
        "groups": len(dist.distributed_c10d._world.pg_map),
        "bytes": 0,
    }
    if where != "gloo":
        torch.cuda.synchronize()
        if not graphs:  # torch keeps one for each stream that ever ran a matrix product
            torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()
        free, whole = torch.cuda.mem_get_info()
        held["bytes"] = whole - free
    return held
