"""A whole Llama-3.1-8B shape over ranks: replays against the same stages run eagerly.

    torchrun --nproc-per-node 2 -m benchmarks.two_ranks --device cuda

Each rank builds its own layers alone, random weights in bf16. For every bucket, what a replay
makes on each rank must equal, bit for bit, what its stage makes of inputs that are padded here by
hand and handed on by plain torch.distributed. A prompt of 47 tokens must go through the bucket of
64 and a decode step through its own on all ranks (``cuda graph: True``); then once more with decode
eager, so that prefill stands alone. Exits with 1 where anything differs. Without ``--device cuda``
it is a tiny model in float32 over gloo.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from benchmarks.rank_stage import VOCAB, RankStage, new_rank_stage
from benchmarks.rank_steps import (
    CONTEXT,
    DECODE_BUCKETS,
    Step,
    all_buckets,
    prompt_and_token,
)
from benchmarks.shape import LLAMA_8B, TINY, Shape
from generated import llama
from ppcgc.runtime import Crossover, open_backend
from ppcgc.runtime.crossover import BucketTimes
from ppcgc.runtime.pipeline import Pipeline

# ------------------------------------------------------------ through the runners


@dataclass(slots=True, kw_only=True)
class Served:
    """A rank's pipeline and its stage."""

    pipeline: Pipeline
    stage: RankStage
    runners: dict[str, Any]

    def run(self, steps: list[Step], eager: tuple[str, ...]) -> Iterator[dict[str, Tensor]]:
        """What this rank made in each step, live rows: the boundary or the last stage's states.

        Raises RuntimeError for a step that did not replay its bucket; of ``eager`` runners, for
        one that replayed.
        """
        for step in steps:
            outputs = self.pipeline.run(step.runner, step.batch)
            runner = self.runners[step.runner]
            record = runner.last_step
            wanted = None if step.runner in eager else step.rows
            padded = record.choice.padded
            if (None if padded is None else padded.tokens) != wanted:
                raise RuntimeError(f"{step.runner} of {step.rows} rows went as {record}")
            if outputs is None and padded is not None:
                buffers = runner.table[padded].outputs
                outputs = {key: buffers[key][: record.live.tokens] for key in buffers}
            if outputs is None:
                yield {}  # an eager step's block is on its way already
            elif isinstance(outputs, dict):
                yield {key: rows.clone() for key, rows in outputs.items()}
            else:
                yield {"result": outputs.hidden_states.clone()}


def serve(stage: RankStage, device: torch.device, transport: str) -> Served:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    dims = dims_of(stage.shape)
    classes = {
        "prefill": (llama.PrefillFirst, llama.PrefillMiddle, llama.PrefillLast),
        "decode": (llama.DecodeFirst, llama.DecodeMiddle, llama.DecodeLast),
    }
    place = 0 if rank == 0 else 2 if rank == ranks - 1 else 1
    backend = open_backend(device)
    runners = {
        name: places[place](
            model=stage,
            layers=llama.stage_layers(dims, stage=rank, of=ranks),
            dims=dims,
            state=llama.State(kv=stage.kv()),
            dtype=stage.shape.dtype,
            backend=backend,
        )
        for name, places in classes.items()
    }
    pipeline = Pipeline(list(runners.values()), transport=transport, timeout=60)
    return Served(pipeline=pipeline, stage=stage, runners=runners)


def dims_of(shape: Shape) -> Any:
    config = SimpleNamespace(
        num_hidden_layers=shape.num_hidden_layers,
        hidden_size=shape.hidden_size,
        vocab_size=VOCAB,
        max_position_embeddings=shape.max_position_embeddings,
    )
    return llama.Dims.from_config(config, kv_rows=shape.kv_rows, context=CONTEXT)


def never_replay_decode() -> list[Crossover]:
    """As if eager had been measured faster for every decode bucket."""
    return [
        Crossover(
            runner="llama.decode",
            axis="requests",
            column=0,
            buckets=tuple(
                BucketTimes(padded=(size, size), replay=1.0, eager=((size, 0.0),), least=size + 1)
                for size in DECODE_BUCKETS
            ),
        )
    ]


# ------------------------------------------------------------ by hand


def by_hand(stage: RankStage, step: Step, *, padded: bool) -> dict[str, Tensor]:
    """The same, by this stage's own forward and plain messages; eager, at the bucket's shape."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    device = stage.inverse.device
    live = len(step.batch.positions)
    rows, requests = (step.rows, step.requests) if padded else (live, step.batch.num_requests)
    given = _padded_batch(step, rows, requests, device)
    boundary = None
    if rank > 0:
        boundary = {}
        for key in ("hidden_states", "residual"):
            came = stage.kv()[0].new_empty(live, stage.shape.hidden_size)
            dist.recv(came, src=rank - 1)
            boundary[key] = F.pad(came, (0, 0, 0, rows - live))
    with torch.no_grad():
        made = stage(
            input_ids=given.input_ids if rank == 0 else None,
            positions=given.positions,
            batch=given,
            pp_proxy_tensors=boundary,
        )
    if rank == last:
        return {"result": made[:live]}
    for key in ("hidden_states", "residual"):
        dist.send(made[key][:live].contiguous(), dst=rank + 1)
    return {key: made[key][:live] for key in made}


def _padded_batch(step: Step, rows: int, requests: int, device: torch.device) -> Any:
    """Zeros behind the live rows; offsets go on as the last one."""
    more, live = requests - step.batch.num_requests, len(step.batch.positions)
    given = {
        name: F.pad(getattr(step.batch, name), (0, rows - live))
        for name in ("input_ids", "positions", "slot_mapping")
    }
    given["seq_lens"] = F.pad(step.batch.seq_lens, (0, more))
    if step.runner == "prefill":
        offsets = step.batch.cu_seqlens
        given["cu_seqlens"] = torch.cat([offsets, offsets[-1:].expand(more)])
    else:
        given["slot_table"] = F.pad(step.batch.slot_table, (0, 0, 0, more))
    return SimpleNamespace(**{name: rows.to(device) for name, rows in given.items()})


# ------------------------------------------------------------ what must hold


def check(stage: RankStage, device: torch.device, transport: str) -> list[str]:
    """Serve with a transport; what is not as it must be on this rank, in words."""
    wrong: list[str] = []
    graph = f"{device.type} graph: True"
    served = serve(stage, device, transport)
    with served.pipeline as pipeline:
        pipeline.capture()
        steps = prompt_and_token()
        wrong += compare(served, steps, f"{transport}, 47 tokens")
        report = str(pipeline.report())
        if dist.get_rank() == 0:
            say(report.split("\nllama.")[0])
        for line in ("prefill: replay 47→64", "decode: replay 1→1"):
            if f"last step of {line}, {graph}" not in report:
                wrong.append(f"the report does not say `{line}, {graph}`: {report}")
        wrong += compare(served, all_buckets(), f"{transport}, all buckets")
        pipeline.use_calibration(never_replay_decode())
        wrong += compare(served, steps, f"{transport}, decode eager", eager=("decode",))
        report = str(pipeline.report())
        if f"prefill: replay 47→64, {graph}" not in report or "decode: eager 1 (" not in report:
            wrong.append(f"prefill does not stand alone: {report}")
    return wrong


def compare(
    served: Served, steps: list[Step], name: str, *, eager: tuple[str, ...] = ()
) -> list[str]:
    """Run the steps, then by hand on an empty cache; the differences of live rows."""
    _forget(served.stage)
    made = list(served.run(steps, eager))
    _forget(served.stage)
    references = [by_hand(served.stage, step, padded=step.runner not in eager) for step in steps]
    wrong = []
    for step, ours, expected in zip(steps, made, references, strict=True):
        for key, rows in ours.items():
            if not torch.equal(rows, expected[key]):
                worst = float((rows - expected[key]).abs().max())
                wrong.append(f"{name}: {step.runner} {step.rows}, {key}: {worst:g} apart")
            elif not bool(rows.isfinite().all()) or float(rows.abs().max()) == 0:
                wrong.append(f"{name}: {step.runner} {step.rows}, {key}: no numbers to compare")
    return wrong


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _forget(stage: RankStage) -> None:
    for rows in stage.kv():
        rows.zero_()


def main(argv: list[str] | None = None) -> int:
    """Run this rank; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--transport", action="append", choices=["eager", "captured", "symmetric"])
    arguments = parser.parse_args(argv)
    on_gpu = arguments.device == "cuda"
    device = torch.device("cpu")
    if on_gpu:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo")
    wrong: list[str] = []
    try:
        begun = time.monotonic()
        shape = LLAMA_8B if on_gpu else TINY
        rank, ranks = dist.get_rank(), dist.get_world_size()
        stage = new_rank_stage(
            shape, llama.stage_layers(dims_of(shape), stage=rank, of=ranks), device
        )
        for transport in arguments.transport or (["eager", "captured"] if on_gpu else ["eager"]):
            found = check(stage, device, transport)
            wrong += found
            for line in found:
                say(f"rank {rank}: {line}")
            say(
                f"rank {rank}, transport {transport}, {len(stage.layers)} layers in "
                f"{shape.dtype}: {'DIFFERENT' if found else 'EQUAL'} to eager in every bucket "
                f"({time.monotonic() - begun:.0f} s)"
            )
    finally:
        dist.destroy_process_group()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
