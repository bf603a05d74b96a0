"""A pipeline of two ranks on streams of batches, beside the raw replay of its slower stage.

Each rank has half of the layers. Ours is the whole of it: arrays of numpy are loaded at every
step, the first rank chooses and the second follows, boundaries are handed over, outputs are cut.
"Raw" is the model of a stage alone, captured, replayed for the same batches in a row with nothing
loaded or handed over: no pipeline of these stages can be faster than the slower of its two. Eager
has its inputs on the device already and sends the boundary's two keys by NCCL as they are made.
"""

from __future__ import annotations

import random
import statistics
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from benchmarks.batches import Batch, Given, batch_of, boundary_of, padded, prompts
from benchmarks.compare import TOLERANCE, error_of
from benchmarks.generated import bench_llama
from benchmarks.model import with_weights
from benchmarks.pipeline_stage import Part
from benchmarks.ranks import RankFailedError, TwoRanks
from benchmarks.scenario import REQUESTS
from benchmarks.shape import Shape
from benchmarks.timing import kernel_elsewhere
from ppcgc import runtime as rt
from ppcgc.runtime.pipeline import Pipeline
from ppcgc.runtime.pipeline.profiling import traced

RUNNER = "prefill_dense"
IN_FLIGHT = 4


def streams(count: int) -> dict[str, list[int]]:
    """Tokens of each batch, by the name of the stream."""
    mixed = random.Random(5)
    return {
        "47 tokens": [47] * count,
        "20 to 500 tokens": [mixed.randint(20, 500) for _ in range(count)],
    }


class TwoStages:
    """This rank's half, and the ways of running batches through both."""

    def __init__(self, run: TwoRanks, shape: Shape) -> None:
        self.run, self.shape, self.device, self.rank = run, shape, run.device, run.rank
        self.last = self.rank == 1
        start = self.rank * shape.layers
        self.half = with_weights(lambda: Part(shape, start), shape, run.device)
        kind = "nccl" if run.device.type == "cuda" else "gloo"
        self.group = dist.new_group([0, 1], backend=kind)

    def arrays(self, tokens: int) -> Batch:
        return batch_of(prompts(tokens))

    # ------------------------------------------------------------ ours

    def pipeline(self, transport: str, sizes: Sequence[int]) -> Pipeline:
        """Captured, with the buckets that these sizes take. Raises PpcgcError kinds."""
        place = bench_llama.PrefillDenseLast if self.last else bench_llama.PrefillDenseFirst
        taken = {self.bucket(tokens) for tokens in sizes}
        some = {key: live for key, live in place.buckets.items() if key.tokens in taken}
        shape, layers = self.shape, self.shape.layers
        start = self.rank * layers
        runner: Any = type("Some", (place,), {"buckets": some})(
            model=self.half,
            layers=rt.LayerRange(start, start + layers, shape.num_hidden_layers),
            dims=bench_llama.Dims.from_config(shape, kv_rows=shape.kv_rows),
            state=bench_llama.State(kv=self.half.kv()),
            dtype=shape.dtype,
            backend=rt.open_backend(self.device),
        )
        made = Pipeline([runner], transport=transport, in_flight=IN_FLIGHT)
        made.capture()
        return made

    def bucket(self, tokens: int) -> int:
        return min(
            size.tokens for size in bench_llama.PrefillDenseLast.buckets if size[0] >= tokens
        )

    # ------------------------------------------------------------ raw

    def replays(self, sizes: Sequence[int]) -> dict[int, Callable[[], None]]:
        """The model alone, captured by bucket over inputs of its own."""
        backend = rt.open_backend(self.device)
        made: dict[int, Callable[[], None]] = {}
        for bucket in sorted({self.bucket(tokens) for tokens in sizes}, reverse=True):
            batch, given = padded(
                self.arrays(bucket - 1).on(self.device),
                boundary_of(self.shape, bucket - 1, self.device),
                bucket,
                REQUESTS,
            )
            out = [torch.empty_like(given.hidden_states) for _ in range(1 if self.last else 2)]

            def body(batch: Batch = batch, given: Given = given, out: list[Tensor] = out) -> None:
                result = self.forward(batch, given)
                for into, rows in zip(out, result, strict=True):
                    into.copy_(rows)

            backend.warm_up(body)
            graph = backend.capture(body)

            def replay(graph: rt.Graph = graph, reads: object = body) -> None:
                graph.replay()  # over memory that only ``reads`` holds

            made[bucket] = replay
        return made

    def forward(self, batch: Batch, given: Given) -> tuple[Tensor, ...]:
        """This rank's half: the boundary's keys, or what the last stage gives."""
        boundary = given if self.last else None
        with torch.no_grad():
            made = self.half(positions=batch.positions, batch=batch, pp_proxy_tensors=boundary)
        return (made,) if self.last else (made["hidden_states"], made["residual"])

    # ------------------------------------------------------------ eager

    def eager(self, batches: Sequence[Batch]) -> list[Tensor]:
        """Eager stages over eager messages; what the last stage gives."""
        outputs: list[Tensor] = []
        under_way: deque[tuple[list[dist.Work], tuple[Tensor, ...]]] = deque()
        empty = Given(hidden_states=torch.empty(0), residual=torch.empty(0))
        for batch in batches:
            if self.last:
                given = Given(hidden_states=self._rows(batch), residual=self._rows(batch))
                for work in self._post(dist.irecv, (given.hidden_states, given.residual)):
                    work.wait()
                outputs += self.forward(batch, given)
                continue
            keys = self.forward(batch, empty)
            under_way.append((self._post(dist.isend, keys), keys))
            while len(under_way) > IN_FLIGHT:
                self._settle(under_way)
        while under_way:
            self._settle(under_way)
        return outputs

    def _rows(self, batch: Batch) -> Tensor:
        size = (batch.num_tokens, self.shape.hidden_size)
        return torch.empty(size, dtype=self.shape.dtype, device=self.device)

    def _post(self, op: Any, keys: tuple[Tensor, ...]) -> list[dist.Work]:
        messages = [dist.P2POp(op, rows.contiguous(), 1 - self.rank, self.group) for rows in keys]
        works: list[dist.Work] = dist.batch_isend_irecv(messages)
        return works

    @staticmethod
    def _settle(under_way: deque[tuple[list[dist.Work], tuple[Tensor, ...]]]) -> None:
        works, _ = under_way.popleft()
        for work in works:
            work.wait()

    # ------------------------------------------------------------ timing

    def rate(self, count: int, act: Callable[[], object], repeats: int = 3) -> float:
        """Batches a second, from the common start to the end of the later rank; the median."""
        rates = []
        for _ in range(repeats):
            kernel_elsewhere(self.device)  # messages are: see the note in ``timing``
            self.run.meet()
            start = perf_counter()
            act()
            self.run.sync()
            slowest: float = max(self.run.both(perf_counter() - start))
            rates.append(count / slowest)
        return statistics.median(rates)


def pipeline(
    run: TwoRanks, shape: Shape, transports: Sequence[str], *, count: int = 96
) -> list[dict[str, Any]]:
    """One row for each stream and way: batches a second, and over the raw slower stage."""
    stages = TwoStages(run, shape)
    lengths = streams(count)
    streamed = [Stream(run, stages, name, sizes) for name, sizes in lengths.items()]
    every = [tokens for sizes in lengths.values() for tokens in sizes]
    for transport in transports:
        try:
            made = run.together(partial(stages.pipeline, transport, every))
        except RankFailedError as problem:
            run.say(f"pipeline by {transport} left out: {problem}")
            continue
        for stream in streamed:
            stream.serve(f"ppcgc {transport}", made, TOLERANCE[shape.dtype])
        made.close()
    return [row for stream in streamed for row in stream.rows]


class Stream:
    """The batches of one stream: raw and eager first, then by each pipeline. Keeps the rows."""

    def __init__(self, run: TwoRanks, stages: TwoStages, name: str, sizes: list[int]) -> None:
        self.run, self.stages, self.name, self.sizes = run, stages, name, sizes
        self.batches = [stages.arrays(tokens) for tokens in sizes]
        self.rows: list[dict[str, Any]] = []
        self._replays = stages.replays(sizes)
        self._raw()
        self.floor = stages.rate(len(sizes), self._raw)  # both start together, each does its own
        self._note("raw, the slower stage", self.floor)
        on_device = [batch.on(run.device) for batch in self.batches]
        self.wanted = run.together(partial(stages.eager, on_device))
        self._note("eager", stages.rate(len(sizes), partial(stages.eager, on_device)))

    def serve(self, way: str, made: Pipeline, tolerance: float) -> None:
        """All batches through a pipeline, whose outputs are compared with eager's first."""
        outputs: list[Tensor] = []
        for batch in self.batches:
            given = made.run(RUNNER, batch)
            outputs += [] if given is None else [given.hidden_states.clone()]
        self.run.sync()
        off = error_of(outputs, self.wanted) if self.stages.last else 0.0
        error = max(self.run.both(off))
        if error > tolerance:
            self.run.say(f"{self.name}, {way}: WRONG, relative error {error:.3g} against eager")
            self.rows.append({"stream": self.name, "way": way, "error": error})
            return
        self._note(way, self.stages.rate(len(self.sizes), partial(self._served, made)), error)

    def _raw(self) -> None:
        for tokens in self.sizes:
            self._replays[self.stages.bucket(tokens)]()

    def _served(self, made: Pipeline) -> None:
        for batch in self.batches:
            made.run(RUNNER, batch)

    def _note(self, way: str, rate: float, error: float | None = None) -> None:
        over = rate / self.floor
        row = {"stream": self.name, "way": way, "batches_per_s": rate, "over_raw": over}
        self.rows.append({**row, "error": error})
        self.run.say(f"{self.name}, {way}: {rate:.1f} batches/s, {over:.3f} of raw")


def trace_of_some_steps(
    run: TwoRanks, shape: Shape, transport: str, path: Path, *, steps: int = 6
) -> None:
    """A Chrome trace of both ranks: a few batches of the mixed stream."""
    stages = TwoStages(run, shape)
    sizes = streams(steps)["20 to 500 tokens"]
    batches = [stages.arrays(tokens) for tokens in sizes]
    with stages.pipeline(transport, sizes) as made:
        for warm in (nullcontext(), traced(made, path)):
            with warm:
                for batch in batches:
                    made.run(RUNNER, batch)
                run.meet()
