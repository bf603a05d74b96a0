"""Which keys of the boundary the forward reads, seen while it warms up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from ppcgc.runtime.errors import OutputError
from ppcgc.runtime.views import Boundary


class ReadingBoundary(Boundary):
    """Stands in for a boundary during warm-up and notes each key that is read."""

    __slots__ = ("_inner", "read")

    def __init__(self, inner: Boundary) -> None:
        self._inner = inner
        self.read: set[str] = set()

    def keys(self) -> tuple[str, ...]:
        return self._inner.keys()

    def __getitem__(self, key: str) -> Tensor:
        self.read.add(key)
        return self._inner[key]

    def __getattr__(self, name: str) -> Tensor:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def require_all(self) -> None:
        """Raises OutputError for a declared key that the forward never read."""
        unread = [key for key in self.keys() if key not in self.read]
        if unread:
            raise OutputError(
                f"the boundary hands over {', '.join(unread)}, which the forward never read; "
                "bind or read the key, or drop it from pipeline.boundary"
            )


class _Nothing:
    def require_all(self) -> None:
        return None


@contextmanager
def boundary_reads(bucket: Any) -> Iterator[ReadingBoundary | _Nothing]:
    """Watch the reads of a bucket's boundary, if it takes one."""
    boundary = bucket.boundary
    if not isinstance(boundary, Boundary):
        yield _Nothing()
        return
    reading = ReadingBoundary(boundary)
    bucket.boundary = reading
    try:
        yield reading
    finally:
        bucket.boundary = boundary
