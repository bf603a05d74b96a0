"""Which keys of the boundary the forward reads, seen while it warms up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from ppcgc.runtime.errors import OutputError
from ppcgc.runtime.views import Boundary


class ReadingBoundary(Boundary):
    """Stands in for a boundary during warm-up and notes each key that is read.

    Its own names are private: a key may be called anything else.
    """

    __slots__ = ("_inner", "_noted")

    def __init__(self, inner: Boundary, noted: set[str]) -> None:
        self._inner = inner
        self._noted = noted

    def declared(self) -> tuple[str, ...]:
        return self._inner.declared()

    def keys(self) -> tuple[str, ...]:
        return self._inner.keys()

    def __getitem__(self, key: str) -> Tensor:
        self._noted.add(key)
        return self._inner[key]

    def __getattr__(self, name: str) -> Tensor | None:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self.declared() and name not in self.keys():
            return None  # what the boundary itself shows of a key that does not cross
        return self[name]


@contextmanager
def all_keys_read(boundary: Any, through_slots: Sequence[str]) -> Iterator[Any]:
    """Gives what a forward is to be shown in the place of ``boundary``, and watches its reads.

    ``through_slots`` are keys that slots show, which count as read. Raises OutputError for a
    declared key that the forward never read. A stage without a boundary is not watched.
    """
    if not isinstance(boundary, Boundary):
        yield boundary
        return
    noted = set(through_slots)
    yield ReadingBoundary(boundary, noted)
    unread = [key for key in boundary if key not in noted]
    if unread:
        raise OutputError(
            f"the boundary hands over {', '.join(unread)}, which the forward never read; "
            "bind or read the key, or drop it from pipeline.boundary"
        )
