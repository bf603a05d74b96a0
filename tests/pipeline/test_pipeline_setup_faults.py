"""A rank that fails while process groups are made, and a store that goes with its host."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
import torch.distributed as dist
from fault_scenarios import opened
from rank_processes import run_ranks
from torch._C._distributed_c10d import HashStore
from toy_pipeline import decode_batch

from ppcgc.runtime.errors import HandOffTimeoutError, PeerError
from ppcgc.runtime.pipeline import groups
from ppcgc.runtime.pipeline.board import Board, Failure
from ppcgc.runtime.pipeline.store import AnsweringStore, StoreGoneError, host_of_own


def opens(rank: int, culprit: int, fault: str, at: int) -> Any:
    """Opens a pipeline of three; ``culprit`` fails when it should make group number ``at``."""
    made = 0
    new = groups._new

    def failing(*args: Any) -> Any:
        nonlocal made
        if made == at:
            if fault == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("no luck")
        made += 1
        return new(*args)

    try:
        with patch.object(groups, "_new", failing if rank == culprit else new):
            opened(rank, 3, "gloo")
    except Exception as problem:
        left = len(dist.distributed_c10d._world.pg_map)
        return f"{type(problem).__name__}: {problem}", left
    return "opened", 0


@pytest.mark.parametrize(("culprit", "fault", "at"), [(2, "dies", 0), (1, "raises", 1)])
def test_a_rank_that_fails_while_groups_are_made(
    culprit: int, fault: str, at: int, tmp_path: Path
) -> None:
    outcomes = run_ranks(3, opens, tmp_path, culprit, fault, at)
    for rank, outcome in enumerate(outcomes):
        if rank == culprit:
            assert outcome.kind == ("DIED" if fault == "dies" else None)
            continue
        error, left = outcome.value
        assert f"rank {culprit} failed in the set-up: " in error
        assert ("ValueError: no luck" if fault == "raises" else "a process group of ranks") in error
        assert left == 1  # the group of the world


def with_a_store_on_rank_0(rank: int, port: int, fault: str) -> Any:
    """Rank 0 keeps the store, as without a launcher, and is gone in step 2."""
    dist.barrier()
    dist.destroy_process_group()
    address = f"tcp://127.0.0.1:{port}"
    limit = timedelta(seconds=20)
    dist.init_process_group("gloo", address, rank=rank, world_size=3, timeout=limit)
    host = torch.tensor(os.getpid())
    dist.broadcast(host, src=0)
    # long enough for all to connect on a machine under load: only rank 0 may be what fails
    pipeline, _ = opened(rank, 3, "gloo", timeout=4.0)
    try:
        with pipeline:
            pipeline.capture()
            for step in range(40):
                if rank == 0 and step == 2:
                    os.kill(os.getpid(), signal.SIGKILL if fault == "dies" else signal.SIGSTOP)
                pipeline.run("decode", decode_batch(4))
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    finally:
        if rank == 2:
            time.sleep(0.5)  # rank 1 may be asking still
            with suppress(ProcessLookupError):
                os.kill(int(host), signal.SIGKILL)
    return "served"


@pytest.mark.parametrize("fault", ["dies", "is stopped"])
def test_a_rank_that_takes_the_store_with_it(fault: str, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    host, *others = run_ranks(3, with_a_store_on_rank_0, tmp_path, port, fault)
    assert host.kind == "DIED"
    for outcome in others:
        assert outcome.kind is None, outcome
        # the host may be gone before a slow rank has read the last vote of the capture
        assert re.match(r"PeerError: rank 0 failed in (step \d+|the set-up): ", outcome.value)
        assert "the store of the process group on rank 0 does not answer" in outcome.value


def test_a_store_that_does_not_answer_is_asked_once() -> None:
    class Stuck:
        asked = 0

        def check(self, keys: list[str]) -> bool:
            self.asked += 1
            threading.Event().wait(20)
            return True

    stuck = Stuck()
    store = AnsweringStore(HashStore(), "name", host=3, limit=0.05)
    store._store = stuck  # type: ignore[assignment]  # the fault
    for _ in range(2):
        with pytest.raises(StoreGoneError, match=r"on rank 3 does not answer \(not within 0.05 s"):
            store.there("key")
    assert stuck.asked == 1


def test_a_launcher_that_keeps_the_store_is_no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    assert host_of_own() is None
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "False")
    assert host_of_own() == 0


def boards(timeout: float) -> list[Board]:
    store = HashStore()
    return [Board(store, "p", rank=r, members=(0, 1, 2), timeout=timeout) for r in range(3)]


def test_an_exchange_blames_the_rank_that_the_missing_one_waits_for() -> None:
    first, second, _ = boards(0.2)
    waits = threading.Thread(target=second.culprit, args=(2, "the boundary"))
    waits.start()  # rank 1 is not in the exchange, since it waits for rank 2 elsewhere
    with pytest.raises(HandOffTimeoutError, match=r"rank 2 failed in step 4: rank 1, which waits"):
        first.exchange("end", "", step=4)
    waits.join()


def test_an_exchange_waits_on_while_anything_moves() -> None:
    first, second, third = boards(0.4)
    given: list[Any] = []
    waits = threading.Thread(target=lambda: given.append(first.exchange("end", "a")))
    waits.start()
    for _ in range(4):
        time.sleep(0.2)
        second.moved()
    others = [
        threading.Thread(target=b.exchange, args=("end", t))
        for b, t in ((second, "b"), (third, "c"))
    ]
    for thread in others:
        thread.start()
    for thread in (*others, waits):
        thread.join()
    assert given == [["a", "b", "c"]]


def test_an_exchange_that_nobody_moves_in_ends() -> None:
    first, *_ = boards(0.1)
    with pytest.raises(PeerError, match=r"rank 1 failed in the set-up: gave no end within 0\.1 s"):
        first.exchange("end", "a")


def test_a_value_that_came_before_its_rank_failed_is_read() -> None:
    """A look at the value, then one at the failures: both may come in between."""
    first, second, third = boards(2.0)
    there, looks = first._store.there, iter([False])

    def late(key: str) -> bool:
        if key == "0/1" and not next(looks, True):
            second._store.set("0/1", "b")
            second.publish(Failure(rank=1, step=3, what="no luck"))
            return False
        return there(key)

    first._store.there = late  # type: ignore[method-assign, assignment]
    third._store.set("0/2", "c")
    assert first.exchange("votes", "a") == ["a", "b", "c"]
