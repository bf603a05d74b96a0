"""The thread that looks after transfers, with transfers of its own and no GPU."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from ppcgc.runtime.errors import HandOffTimeoutError, PeerError
from ppcgc.runtime.pipeline import watch as watch_module
from ppcgc.runtime.pipeline.board import Failure
from ppcgc.runtime.pipeline.faults import Faults
from ppcgc.runtime.pipeline.watch import BreakOff, Watch

LIMIT = 0.3


class Clock:
    """Stands still until it is moved, and counts who asks."""

    def __init__(self) -> None:
        self.now, self.asked = 100.0, 0

    def monotonic(self) -> float:
        self.asked += 1
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(watch_module, "time", made)
    return made


class Fake:
    """A transfer that happens when it is told to, or raises as a lost device does."""

    def __init__(self, step: int, *, peer: int = 1, broken: bool = False) -> None:
        self.peer, self.step = peer, step
        self.happened, self.broken = False, broken
        self.asked = 0

    def done(self) -> bool:
        self.asked += 1
        if self.broken:
            raise RuntimeError("the device is lost")
        return self.happened


class Watched:
    """A watch, and what it said."""

    def __init__(self, clock: Clock, failed: PeerError | None = None) -> None:
        self.clock = clock
        self.errors: list[PeerError] = []
        self.said = threading.Event()
        self.failed = failed
        self.watch = Watch(
            limit=LIMIT, late=self._late, failed=lambda: self.failed, tripped=self._tripped
        )

    def after(self, seconds: float) -> None:
        """That much later, once the watch has looked at everything again."""
        self.clock.now += seconds
        looks = self.clock.asked + 6  # three questions in a look at most: one whole look, or more
        while self.clock.asked < looks and not self.said.is_set():
            time.sleep(0.01)

    def _late(self, transfer: Any, why: str) -> PeerError:
        return HandOffTimeoutError(f"rank {transfer.peer}, step {transfer.step}{why and ': '}{why}")

    def _tripped(self, problem: PeerError) -> None:
        self.errors.append(problem)
        self.said.set()


def test_the_oldest_transfer_that_does_not_happen_is_named(clock: Clock) -> None:
    watched = Watched(clock)
    first, second, other = Fake(4), Fake(5), Fake(9, peer=2)
    first.happened = other.happened = True
    for name, transfer in (("in", first), ("in", second), ("out", other)):
        watched.watch.add(name, transfer)
    watched.after(0)  # the limit counts from here, where the first is seen to have happened
    watched.after(0.9 * LIMIT)
    assert not watched.errors
    watched.after(0.2 * LIMIT)
    assert [str(error) for error in watched.errors] == ["rank 1, step 5"]
    watched.watch.stop()


def test_transfers_that_happen_one_after_the_other_are_never_late(clock: Clock) -> None:
    watched = Watched(clock)
    transfers = [Fake(step) for step in range(6)]
    for transfer in transfers:
        watched.watch.add("in", transfer)
    for transfer in transfers:  # all together they take longer than the limit
        watched.after(0.9 * LIMIT)
        transfer.happened = True
        watched.after(0)
    watched.after(2 * LIMIT)
    assert not watched.errors
    asked = [transfer.asked for transfer in transfers]
    watched.after(LIMIT)
    assert [transfer.asked for transfer in transfers] == asked  # forgotten
    watched.watch.stop()


def test_another_rank_that_failed_is_found_while_something_waits(clock: Clock) -> None:
    failure = Failure(rank=2, step=7, what="no luck").error()
    watched = Watched(clock, failed=failure)
    watched.after(LIMIT)
    assert not watched.errors  # nothing waits: whoever asks next finds out by itself
    watched.watch.add("in", Fake(7))
    watched.after(0.9 * LIMIT)
    assert watched.errors == [failure]
    watched.watch.stop()


def test_a_lost_device_ends_it_with_its_reason(clock: Clock) -> None:
    watched = Watched(clock)
    watched.watch.add("in", Fake(3, broken=True))
    assert watched.said.wait(10)
    assert str(watched.errors[0]) == "rank 1, step 3: the device is lost"
    watched.watch.stop()


def test_a_stopped_watch_says_nothing_and_leaves_no_thread(clock: Clock) -> None:
    watched = Watched(clock)
    watched.watch.add("in", Fake(1))
    watched.watch.stop()
    watched.watch.stop()
    clock.now += 2 * LIMIT
    assert not any(thread.name == "ppcgc watch" for thread in threading.enumerate())
    assert not watched.errors


class SilentBoard:
    """A board on which nothing stands yet."""

    rank = 0

    def __init__(self) -> None:
        self.published: list[Failure] = []

    def failure(self) -> Failure | None:
        return self.published[0] if self.published else None

    def publish(self, failure: Failure) -> Failure:
        self.published.append(failure)
        return self.published[0]

    def culprit(self, peer: int, what: str) -> tuple[int, str]:
        return peer, ""

    def raise_failure(self) -> None:
        return None


def test_what_was_broken_off_is_not_taken_for_done() -> None:
    """A wait that ends because the watch ended it raises, and the board has the failure."""
    board: Any = SilentBoard()
    faults = Faults(board, timeout=LIMIT)
    stuck = Fake(2)
    faults.watch(lambda: setattr(stuck, "happened", True))
    faults.check()
    faults.look_after("in", stuck)
    deadline = time.monotonic() + 10
    while not stuck.happened and time.monotonic() < deadline:  # a host inside CUDA
        time.sleep(0.01)
    with pytest.raises(HandOffTimeoutError, match=r"rank 1 failed in step 2: rank 0 waited 0\.3 s"):
        faults.poll(stuck.done, peer=1, step=2, what="the boundary")
    with pytest.raises(HandOffTimeoutError):
        faults.check()
    assert [(failure.rank, failure.step) for failure in board.published] == [(1, 2)]
    faults.end_watch()


def test_breaking_off_happens_once_and_all_of_it_at_the_same_time() -> None:
    both = threading.Barrier(2)
    done: list[str] = []

    def act(name: str) -> None:
        both.wait(5)  # one after the other they would wait for ever
        done.append(name)

    breaking = BreakOff()
    breaking.add([lambda: act("a"), lambda: act("b")])
    assert breaking.finished(0.0)  # nothing was begun
    breaking.start()
    breaking.start()
    assert breaking.finished(10.0)
    assert sorted(done) == ["a", "b"]


def wait(event: threading.Event) -> None:
    event.wait(10)


def test_breaking_off_that_does_not_end_is_not_waited_for() -> None:
    hold = threading.Event()
    breaking = BreakOff()
    breaking.add([lambda: wait(hold)])
    breaking.start()
    assert not breaking.finished(0.05)
    hold.set()
    assert breaking.finished(10.0)
