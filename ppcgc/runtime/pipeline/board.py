"""What the ranks of a pipeline tell each other beside the data: values, votes, failures.

All of it goes through the store that ``torch.distributed`` keeps for its rendezvous, so that a
rank whose peers are stuck or gone can still read who failed, and where.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from torch.distributed import distributed_c10d as c10d

from ppcgc.runtime.errors import HandOffTimeoutError, PeerError

GRACE = 0.5  # seconds that ranks which time out together have to say whom they waited for

T = TypeVar("T")


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

    ``rank`` and ``members`` are numbers in the world.
    """

    def __init__(
        self, store: c10d.Store, name: str, *, rank: int, members: Sequence[int], timeout: float
    ) -> None:
        self.rank, self.members, self.timeout = rank, tuple(members), timeout
        self._store = c10d.PrefixStore(name, store)
        self._turn = 0

    def exchange(self, what: str, value: str) -> list[str]:
        """Everybody's value, by ``members``; no rank goes on before all have given theirs.

        Raises PeerError for a failure on the board, HandOffTimeoutError naming the first rank
        that gave nothing in time.
        """
        return self._asked(lambda: self._exchange(what, value))

    def _exchange(self, what: str, value: str) -> list[str]:
        turn, self._turn = self._turn, self._turn + 1
        self._store.set(f"{turn}/{self.rank}", value)
        deadline = time.monotonic() + self.timeout
        values = [self._value(f"{turn}/{rank}", rank, what, deadline) for rank in self.members]
        if turn:  # whoever is here has read every value of the turn before
            self._store.delete_key(f"{turn - 1}/{self.rank}")
        return values

    def _value(self, key: str, rank: int, what: str, deadline: float) -> str:
        pause = 0.0005
        while not self._store.check([key]):
            self.raise_failure()
            if time.monotonic() > deadline:
                failure = Failure(
                    rank=rank,
                    step=-1,
                    what=f"gave no {what} within {self.timeout:g} s",
                    late=True,
                )
                raise self.publish(failure).error()
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
        value: str = self._store.get(key).decode()
        return value

    def publish(self, failure: Failure) -> Failure:
        """Put a failure on the board unless there is one; the one that stands there."""
        text = json.dumps(asdict(failure))
        first = self._asked(lambda: self._store.compare_set("failure", "", text))
        return Failure(**json.loads(first.decode()))

    def failure(self) -> Failure | None:
        """The failure on the board."""
        if not self._asked(lambda: self._store.check(["failure"])):
            return None
        return Failure(**json.loads(self._store.get("failure").decode()))

    def raise_failure(self) -> None:
        """Raises PeerError when another rank has failed."""
        failure = self.failure()
        if failure is not None and failure.rank != self.rank:
            raise failure.error()

    def culprit(self, peer: int) -> int:
        """The rank that keeps everybody waiting, for a rank that waited for ``peer`` in vain.

        Ranks that time out together say so; the one that they wait for and that says nothing is
        at fault. Takes GRACE seconds.
        """
        self._asked(lambda: self._store.set(f"waiting/{self.rank}", str(peer)))
        time.sleep(GRACE)
        blamed, seen = peer, {self.rank}
        while blamed not in seen and self._store.check([f"waiting/{blamed}"]):
            seen.add(blamed)
            blamed = int(self._store.get(f"waiting/{blamed}"))
        return peer if blamed in seen else blamed

    def silent(self, peers: Sequence[int]) -> int:
        """The one of ``peers`` that is at fault, for a rank that met all but it in a collective.

        Those that were there wait as well, and say so. Takes GRACE seconds.
        """
        self._asked(lambda: self._store.set(f"waiting/{self.rank}", str(peers[0])))
        time.sleep(GRACE)
        silent = [peer for peer in peers if not self._store.check([f"waiting/{peer}"])]
        return (silent or list(peers))[0]

    def _asked(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except PeerError:
            raise
        except RuntimeError as problem:  # what a store raises whose host is gone
            raise PeerError(
                f"the store of the process group does not answer ({problem}); the process that "
                "hosts it is gone: rank 0, where no launcher does"
            ) from problem


def own_store() -> c10d.Store:
    """The store that ``init_process_group`` made; torch's own libraries get it in this way."""
    store: c10d.Store = c10d._get_default_store()
    return store
