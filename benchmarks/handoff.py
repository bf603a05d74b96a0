"""Hand-off of a whole boundary between two ranks, one way: our transports and what else there is.

A round is one hand-off from rank 0 to rank 1 and a message of 8 bytes back, which starts when the
hand-off is over on the device; rounds are queued one behind the other. One way is a round less
half a round of two such messages. Ours include the reset of the padded rows, the others do not.
On GPUs the messages of 8 bytes are captured. No way includes a stage, a load of slots, or the
copy by which several batches can be in flight.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from benchmarks.ranks import RankFailedError, TwoRanks
from benchmarks.shape import Shape
from ppcgc import runtime as rt
from ppcgc.runtime.past_live import PastLive
from ppcgc.runtime.pipeline.board import Board
from ppcgc.runtime.pipeline.faults import Faults
from ppcgc.runtime.pipeline.groups import Edge
from ppcgc.runtime.pipeline.store import own_store
from ppcgc.runtime.pipeline.transport import Transport, check_transports, open_transport

Go = Callable[[], object]  # this rank's part of one hand-off, queued
TOKENS = (16, 64, 512, 2048)
KEYS = 2  # hidden states and residual
TIMEOUT = 30.0


class Link:
    """Groups, blocks and messages between two ranks, from rank 0 to rank 1 and back."""

    def __init__(self, run: TwoRanks, shape: Shape, most: int) -> None:
        self.run, self.shape, self.device, self.rank = run, shape, run.device, run.rank
        self.on_gpus = run.device.type == "cuda"
        self.backend = rt.open_backend(run.device)
        kind = "nccl" if self.on_gpus else "gloo"
        self.there, self.inside, self.back = (
            dist.new_group([0, 1], backend=kind) for _ in range(3)
        )
        board = Board(
            own_store(), "benchmarks/handoff", rank=self.rank, members=(0, 1), timeout=TIMEOUT
        )
        self.faults = Faults(board, TIMEOUT)
        self.most = self.nbytes(most)
        self.live = torch.zeros(1, dtype=torch.int32, device=self.device)
        self.sign = torch.zeros(8, dtype=torch.uint8, device=self.device)
        self.sign_there = self.queued(lambda: self.message(self.sign, self.inside, 0))
        self.sign_back = self.queued(lambda: self.message(self.sign, self.back, 1))

    def nbytes(self, tokens: int) -> int:
        return KEYS * tokens * self.shape.hidden_size * self.shape.dtype.itemsize

    def keys(self, block: Tensor) -> tuple[Tensor, ...]:
        """The keys [tokens, hidden] of a block that holds them all."""
        return tuple(
            part.view(self.shape.dtype).view(-1, self.shape.hidden_size)
            for part in block.chunk(KEYS)
        )

    def message(self, block: Tensor, group: Any, source: int) -> None:
        """One message from rank ``source`` to the other; the stream waits, or on a CPU the host."""
        op = dist.isend if self.rank == source else dist.irecv
        work = op(block, 1 - self.rank, group=group)
        if work is None:
            raise RankFailedError("no work although this rank is in the group")
        work.wait()

    def queued(self, body: Callable[[], None]) -> Go:
        """The body as a graph on a GPU; messages on a CPU are not recorded."""
        if not self.on_gpus:
            return body
        self.backend.warm_up(body)
        return self.backend.capture(body).replay

    def reset(self, block: Tensor) -> Callable[[], None]:
        """What a captured region of ours begins with: padded rows of every key are reset."""

        past_live = PastLive(self.device)

        def body() -> None:
            for rows in self.keys(block):
                past_live.fill(rows, self.live, 0)
            past_live.reset()

        self.backend.warm_up(body)
        return body

    def transport(self, name: str) -> tuple[Transport, Tensor]:
        """One of ours from rank 0 to rank 1, connected, and this rank's block."""
        check_transports([name], self.device)
        other = 1 - self.rank
        edge = Edge(group=self.there, captured=self.inside, peer=other)
        incoming, outgoing = (edge, None) if self.rank else (None, edge)
        made = open_transport(name, self.device, incoming, outgoing, self.faults)
        landing, leaving = made.blocks(*((self.most, 0) if self.rank else (0, self.most)))
        made.warm_up()
        block = landing if self.rank else leaving
        if block is None:
            raise RankFailedError(f"transport {name} gave no block")
        return made, block

    def close(self) -> None:
        self.backend.close()


def of_ours(link: Link, name: str) -> Callable[[int], tuple[Go, Tensor]]:
    """A hand-off of so many tokens as a stage does it, and the block that it moves."""
    transport, whole = link.transport(name)

    def build(tokens: int) -> tuple[Go, Tensor]:
        block = whole[: link.nbytes(tokens)]
        if transport.in_graph:
            if link.rank == 0:
                return link.queued(lambda: transport.depart(None, block)), block
            reset_inside = link.reset(block)

            def region() -> None:
                transport.arrive(block)
                reset_inside()
                transport.depart(block, None)

            return link.queued(region), block
        if link.rank == 0:
            return (lambda: transport.send(block, 0).wait()), block
        reset = link.backend.capture(link.reset(block)).replay

        def take() -> None:
            transport.receive(block, 0).wait()
            reset()

        return take, block

    return build


def of_others(link: Link, name: str) -> Callable[[int], tuple[Go, Tensor]]:
    """The bytes alone, in one message or one for each key; nothing is reset."""
    whole = torch.zeros(link.most, dtype=torch.uint8, device=link.device)

    def build(tokens: int) -> tuple[Go, Tensor]:
        block = whole[: link.nbytes(tokens)]
        if name == "raw captured send":
            return link.queued(lambda: link.message(block, link.inside, 0)), block
        parts = block.chunk(KEYS) if name == "eager send a key" else (block,)

        def go() -> None:
            for part in parts:
                link.message(part, link.there, 0)

        return go, block

    return build


OURS = ("captured", "symmetric", "eager")
OTHERS = ("raw captured send", "eager send", "eager send a key")


def ways(link: Link) -> Iterator[tuple[str, Callable[[int], tuple[Go, Tensor]]]]:
    """Those that the device allows, by name; one that cannot be opened is told of."""
    names = (*OURS, *OTHERS) if link.on_gpus else ("eager", "eager send", "eager send a key")
    for name in names:
        try:
            if name in OURS:
                built = link.run.together(partial(of_ours, link, name))
                yield f"ppcgc {name}", built
            else:
                yield name, of_others(link, name)
        except RankFailedError as problem:
            link.run.say(f"hand-off by {name} left out: {problem}")


def check(link: Link, go: Go, block: Tensor, tokens: int, resets: bool) -> None:
    """Live rows arrive, padded ones are reset. Raises RankFailedError where they do not."""
    live = max(1, 3 * tokens // 4)
    random = torch.Generator().manual_seed(tokens)
    wanted = torch.randn(KEYS, tokens, link.shape.hidden_size, generator=random)
    wanted[:, live:] = float("nan")  # what a sender's padded rows may hold
    link.live.fill_(live)
    for rows, given in zip(link.keys(block), wanted.to(link.shape.dtype), strict=True):
        rows.copy_(given if link.rank == 0 else torch.zeros_like(given))
    link.run.meet()
    go()
    link.run.sync()
    right = True
    if link.rank == 1:
        for rows, given in zip(link.keys(block), wanted.to(link.shape.dtype), strict=True):
            right &= torch.equal(rows[:live].cpu(), given[:live])
            right &= not resets or not rows[live:].any().item()
    if not all(link.run.both(right)):
        raise RankFailedError(f"wrong rows arrived, {live} of {tokens} tokens")
    block.zero_()
    link.live.fill_(tokens)


def round_us(link: Link, go: Go, back: Go, rounds: int, repeats: int) -> list[float]:
    """Microseconds of a round, once for each repeat, on rank 0."""
    times = []
    for _ in range(repeats + 1):  # the first is for the caches
        link.run.meet()
        start = perf_counter()
        for _ in range(rounds):
            go()
            back()
        link.run.sync()
        times.append((perf_counter() - start) / rounds * 1e6)
    return times[1:]


def handoff(
    run: TwoRanks, shape: Shape, sizes: tuple[int, ...] = TOKENS, rounds: int = 100
) -> list[dict[str, Any]]:
    """One row for each way and number of tokens; ``us`` is one way, the median of some repeats."""
    link = Link(run, shape, max(sizes))
    empty = round_us(link, link.sign_there, link.sign_back, rounds, 5)
    sign = statistics.median(empty) / 2
    rows: list[dict[str, Any]] = [{"way": "8 bytes", "tokens": 0, "bytes": 8, "us": sign}]
    for name, build in ways(link):
        for tokens in sizes:
            try:
                go, block = run.together(partial(build, tokens))
                resets = name.startswith("ppcgc")
                run.together(partial(check, link, go, block, tokens, resets))
                times = run.together(partial(round_us, link, go, link.sign_back, rounds, 5))
            except RankFailedError as problem:
                run.say(f"hand-off by {name} of {tokens} tokens left out: {problem}")
                continue
            rows.append(
                {
                    "way": name,
                    "tokens": tokens,
                    "bytes": link.nbytes(tokens),
                    "us": statistics.median(times) - sign,
                    "spread_us": max(times) - min(times),
                }
            )
    run.meet()
    link.close()
    return rows
