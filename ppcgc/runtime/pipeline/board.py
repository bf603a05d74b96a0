"""What the ranks of a pipeline tell each other beside the data: values, votes, failures.

All of it goes through the store that ``torch.distributed`` keeps for its rendezvous, so that a
rank whose peers are stuck or gone can still read who failed, and where.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from torch.distributed import distributed_c10d as c10d

from ppcgc.runtime.errors import HandOffTimeoutError, PeerError
from ppcgc.runtime.pipeline.store import AnsweringStore, StoreGoneError

GRACE = 0.5  # seconds that ranks which time out together have to say whom they waited for


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The first failure of a pipeline: whose, in which step, and what. Step -1 is the set-up."""

    rank: int
    step: int
    what: str
    late: bool = False

    def error(self) -> PeerError:
        """The error that every other rank raises."""
        kind = HandOffTimeoutError if self.late else PeerError
        return kind(f"rank {self.rank} failed in {step_name(self.step)}: {self.what}")


def step_name(step: int) -> str:
    return f"step {step}" if step >= 0 else "the set-up"


class Board:
    """One pipeline's part of a store. ``timeout`` in seconds bounds every wait for a value.

    ``rank`` and ``members`` are numbers in the world; ``host`` is the rank that keeps the store,
    None where that is not known.
    """

    def __init__(
        self,
        store: c10d.Store,
        name: str,
        *,
        rank: int,
        members: Sequence[int],
        timeout: float,
        host: int | None = None,
    ) -> None:
        self.rank, self.members, self.timeout = rank, tuple(members), timeout
        self._store = AnsweringStore(store, name, host=host, limit=timeout)
        self._turn = 0

    def exchange(self, what: str, value: str, *, step: int = -1) -> list[str]:
        """Everybody's value, by ``members``; no rank goes on before all have given theirs.

        Raises PeerError for a failure on the board, HandOffTimeoutError naming the rank that keeps
        the others waiting: ``timeout`` seconds after the rank before it came, or anything moved.
        """
        try:
            return self._exchange(what, value, step)
        except StoreGoneError as gone:
            others = [rank for rank in self.members if rank != self.rank]
            raise self.lost(gone, step, f"waited for {what}", (others or [self.rank])[0]) from gone

    def _exchange(self, what: str, value: str, step: int) -> list[str]:
        turn, self._turn = self._turn, self._turn + 1
        keys = {rank: f"{turn}/{rank}" for rank in self.members}
        self._store.set(keys[self.rank], value)
        for rank, key in keys.items():
            self._wait_for(key, rank, what, step)
        values = self._store.get(*keys.values())
        if turn:  # whoever is here has read every value of the turn before
            self._store.delete(f"{turn - 1}/{self.rank}")
        return values

    def moved(self) -> None:
        """Tell those who wait in an exchange that this rank is not there yet, but goes on.

        Note [what is in flight comes first]
            At the end the first ranks may be several batches ahead of the last one. Each rank
            waits for the next to take what it sent, one after the other, and says so here; else
            the first would give up a slow rank that no neighbour gives up.
        """
        self._store.count("moves", 1)

    def _wait_for(self, key: str, rank: int, what: str, step: int) -> None:
        pause, seen, now = 0.0005, 0, time.monotonic()
        look, deadline = now + self.timeout / 10, now + self.timeout
        while not self._store.there(key):
            try:
                self.raise_failure()
            except PeerError:
                if self._store.there(key):  # it came, and what it says is why its rank failed then
                    return
                raise
            now = time.monotonic()
            if now > look:
                moves, look = self._store.count("moves", 0), now + self.timeout / 10
                if moves != seen:
                    seen, deadline = moves, now + self.timeout
            if now > deadline:
                raise self._late(rank, what, step)
            time.sleep(pause)
            pause = min(2 * pause, 0.02)

    def _late(self, rank: int, what: str, step: int) -> PeerError:
        blamed, circle = self.culprit(rank, what)
        detail = f"gave no {what} within {self.timeout:g} s{circle}"
        if blamed != rank:
            detail = f"rank {rank}, which waits for it, {detail}"
        return self.publish(Failure(rank=blamed, step=step, what=detail, late=True)).error()

    def publish(self, failure: Failure) -> Failure:
        """Put a failure on the board unless there is one; the one that stands there."""
        first = self._store.first("failure", json.dumps(asdict(failure)))
        return Failure(**json.loads(first))

    def failure(self) -> Failure | None:
        """The failure on the board."""
        if not self._store.there("failure"):
            return None
        (text,) = self._store.get("failure")
        return Failure(**json.loads(text))

    def raise_failure(self) -> None:
        """Raises PeerError when another rank has failed, or all have given this one up."""
        failure = self.failure()
        if failure is not None and (failure.rank != self.rank or failure.late):
            raise failure.error()

    def culprit(self, peer: int, what: str) -> tuple[int, str]:
        """The rank that keeps everybody waiting, for one that waited for ``what`` of ``peer``.

        Ranks that time out together say so; the one that they wait for and that says nothing is
        at fault. Where they wait for each other, that is ``peer``, and the second value says in
        words who waits for what. Takes GRACE seconds.
        """
        self._say_waiting(peer, what)
        blamed, said = peer, {self.rank: f"rank {self.rank} for {what} of rank {peer}"}
        while blamed not in said and self._store.there(f"waiting/{blamed}"):
            (text,) = self._store.get(f"waiting/{blamed}")
            other, theirs = json.loads(text)
            said[blamed] = f"rank {blamed} for {theirs} of rank {other}"
            blamed = other
        if blamed not in said:
            return blamed, ""
        circle = ", ".join(said.values())
        return peer, f". They wait for each other: {circle}. Make the same calls on all ranks"

    def _say_waiting(self, peer: int, what: str) -> None:
        self._store.set(f"waiting/{self.rank}", json.dumps([peer, what]))
        time.sleep(GRACE)

    def silent(self, peers: Sequence[int]) -> int:
        """The one of ``peers`` that is at fault, for a rank that met all but it in a collective.

        Those that were there wait as well, and say so. Takes GRACE seconds.
        """
        self._say_waiting(peers[0], "a collective")
        silent = [peer for peer in peers if not self._store.there(f"waiting/{peer}")]
        return (silent or list(peers))[0]

    def lost(self, gone: StoreGoneError, step: int, doing: str, peer: int) -> PeerError:
        """What a rank knows without the store: its host is gone, or else ``peer``, and the store.

        ``doing`` is what this rank did.
        """
        what = f"rank {self.rank} {doing}, and {gone}"
        if gone.host is not None:  # it may have left for the failure of another, of which it read
            what = f"{what}; what rank {gone.host} itself raised may name another rank"
        return Failure(rank=peer if gone.host is None else gone.host, step=step, what=what).error()
