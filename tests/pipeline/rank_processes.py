"""Ranks as processes of this machine: start them, collect what each returns or raises."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from ppcgc.runtime.pipeline.store import own_store

# Imported once, in the server that ranks are forked from: the CPU backend's first capture would
# import torch._dynamo in each of them, which takes seconds.
# What asks whether there are GPUs must not start CUDA in that server: its forks could not.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["torch._dynamo", "toy_pipeline"])

GROUPS = count()  # alike on all ranks, since all make all groups
WAIT = timedelta(seconds=20)  # for a group's making and its messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a rank: a value, or an error's type and text.

    Else its kind is DIED, HUNG for one that said nothing, STAYED for one whose process did not end.
    """

    value: Any = None
    kind: str | None = None
    text: str = ""


@cache
def context_of(gpus: bool) -> Any:
    """How ranks are started: forked where that is possible, since they start in no time then.

    A server whose imports have started CUDA cannot fork for GPUs; a rank is a new Python then.
    """
    if not gpus:
        return CONTEXT
    receiver, sender = CONTEXT.Pipe(duplex=False)
    trial = CONTEXT.Process(target=_starts_cuda, args=(sender,))
    trial.start()
    sender.close()
    try:
        forks = receiver.poll(60) and receiver.recv_bytes() == b"started"
    except EOFError:
        forks = False
    trial.join()
    return CONTEXT if forks else multiprocessing.get_context("spawn")


def _starts_cuda(pipe: Any) -> None:
    try:
        torch.zeros(1, device="cuda")
        pipe.send_bytes(b"started")
    except RuntimeError:
        pipe.send_bytes(b"refused")


def run_ranks(
    ranks: int,
    work: Callable[..., Any],
    folder: Path,
    *args: Any,
    limit: float = 25.0,
    gpus: bool = False,
) -> list[Outcome]:
    """Run ``work(rank, *args)`` on so many ranks of a gloo group; ``limit`` in seconds for all:
    who has said nothing by then has hung, and is killed. With ``gpus`` each has one, and NCCL.
    """
    context = context_of(gpus)
    pipes = [context.Pipe(duplex=False) for _ in range(ranks)]
    store = folder / f"store-{time.monotonic_ns()}"
    processes = [
        context.Process(target=_rank, args=(rank, ranks, str(store), pipe[1], work, args, gpus))
        for rank, pipe in enumerate(pipes)
    ]
    for process, (_, sender) in zip(processes, pipes, strict=True):
        process.start()
        sender.close()
    deadline = time.monotonic() + limit
    outcomes = []
    for (receiver, _), process in zip(pipes, processes, strict=True):
        try:
            arrived = receiver.poll(max(0.0, deadline - time.monotonic()))
            outcomes.append(
                pickle.loads(receiver.recv_bytes()) if arrived else Outcome(kind="HUNG")
            )
        except EOFError:
            outcomes.append(Outcome(kind="DIED"))
        process.join(max(0.0, deadline - time.monotonic()))
    for rank, process in enumerate(processes):
        if process.is_alive():
            process.kill()
            process.join()
            if outcomes[rank].kind != "HUNG":
                outcomes[rank] = replace(outcomes[rank], kind="STAYED")
    return outcomes


def _rank(
    rank: int,
    ranks: int,
    store: str,
    pipe: Any,
    work: Callable[..., Any],
    args: tuple[Any, ...],
    gpus: bool,
) -> None:
    gc.freeze()  # what was imported is shared with the server; a collection would copy it all
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    if gpus:
        os.environ["LOCAL_RANK"] = str(rank)
        torch.cuda.set_device(rank)
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if gpus else "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=ranks,
        timeout=WAIT,
    )
    _meet("ranks", ranks)
    try:
        outcome = Outcome(value=work(rank, *args))
    except Exception as problem:
        outcome = Outcome(kind=type(problem).__name__, text=str(problem))
    # plain pickle: a tensor sent by multiprocessing would need this process to stay alive
    pipe.send_bytes(pickle.dumps(outcome))
    pipe.close()
    if dist.is_initialized():
        dist.destroy_process_group()


# Note [gloo connects on both sides]
#
# ``init_process_group`` and ``new_group`` return when this rank has its connections, whatever the
# others have. One whose work ends at once closes them, and a slower rank then fails in its own
# making of the group: "Gloo connectFullMesh failed, connection closed by peer". Torch has
# TORCH_DIST_INIT_BARRIER=1 against it, which would change the pipeline's own groups as well.


def new_group(ranks: list[int], backend: str | None = None) -> Any:
    """``dist.new_group`` on all ranks, which all have made it when this returns."""
    group = dist.new_group(ranks, backend=backend)
    _meet(f"group {next(GROUPS)}", dist.get_world_size())
    return group


def _meet(name: str, ranks: int) -> None:
    """Wait for all ranks, at the store: no message of theirs is sent or counted."""
    store = own_store()
    if store.add(f"at {name}", 1) == ranks:
        store.set(f"met {name}", "all")
    store.wait([f"met {name}"], WAIT)


def values(outcomes: list[Outcome]) -> list[Any]:
    """What the ranks returned; fails with the text of the first error."""
    for rank, outcome in enumerate(outcomes):
        assert outcome.kind is None, f"rank {rank}: {outcome.kind}: {outcome.text}"
    return [outcome.value for outcome in outcomes]
