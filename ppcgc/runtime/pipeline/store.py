"""The store that the ranks meet at, asked so that no question waits for ever.

Note [a store without an answer]
    ``TCPStore`` reads its socket without a limit: where the process that hosts it is stopped, or
    its machine has gone without a word, a question never comes back, whatever timeout the store was
    made with. So each is asked from a thread of its own. One that is stuck is left behind, and
    nothing is asked again. None of this happens in a step: ranks ask the store while they set up,
    when something failed, and at the end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from torch.distributed import distributed_c10d as c10d

from ppcgc.runtime.errors import PeerError

T = TypeVar("T")


class StoreGoneError(PeerError):
    """The store does not answer. ``host`` is the rank that keeps it, None where that is not known.

    ``Board`` and ``Faults`` turn it into a PeerError with a step.
    """

    def __init__(self, host: int | None, why: str) -> None:
        super().__init__(f"the store of the process group {_kept_by(host)} does not answer ({why})")
        self.host, self.why = host, why


class AnsweringStore:
    """What a board needs of a store. All of it raises StoreGoneError, within ``limit`` seconds."""

    def __init__(self, store: c10d.Store, name: str, *, host: int | None, limit: float) -> None:
        self._store = c10d.PrefixStore(name, store)
        self._host, self._limit = host, limit
        self._gone: StoreGoneError | None = None

    def set(self, key: str, value: str) -> None:
        self._asked(lambda: self._store.set(key, value))

    def delete(self, key: str) -> None:
        self._asked(lambda: self._store.delete_key(key))

    def there(self, *keys: str) -> bool:
        """Whether all of them have a value."""
        return self._asked(lambda: self._store.check(list(keys)))

    def get(self, *keys: str) -> list[str]:
        """The values of keys that are there."""
        values = self._asked(lambda: self._store.multi_get(list(keys)))
        return [value.decode() for value in values]

    def count(self, key: str, more: int) -> int:
        """A count that begins at 0, after adding to it."""
        return self._asked(lambda: self._store.add(key, more))

    def first(self, key: str, value: str) -> str:
        """The value that stands at ``key``: this one unless there was one before."""
        return self._asked(lambda: self._store.compare_set(key, "", value)).decode()

    def _asked(self, question: Callable[[], T]) -> T:
        if self._gone is not None:
            raise self._gone
        answer: Future[T] = Future()
        thread = threading.Thread(
            target=_answer, args=(question, answer), name="ppcgc store", daemon=True
        )
        thread.start()
        try:
            return answer.result(self._limit)
        except TimeoutError:
            why = f"not within {self._limit:g} s"
        except RuntimeError as problem:  # what a store raises whose host is gone
            why = str(problem).splitlines()[0]
        self._gone = StoreGoneError(self._host, why)
        raise self._gone from None


def _answer(question: Callable[[], T], answer: Future[T]) -> None:
    try:
        answer.set_result(question())
    except BaseException as problem:
        answer.set_exception(problem)


def _kept_by(host: int | None) -> str:
    return "that a launcher or another process hosts" if host is None else f"on rank {host}"


def own_store() -> c10d.Store:
    """The store that ``init_process_group`` made; torch's own libraries get it in this way."""
    store: c10d.Store = c10d._get_default_store()
    return store


def host_of_own() -> int | None:
    """The rank that keeps that store, None where a launcher does."""
    return None if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" else 0
