"""What `ppcgc generate --bind` settles: numbers that generated code has as constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Constant: TypeAlias = int | bool | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The config that code is generated for, and what follows from it.

    ``dims`` has the sizes that are known, computed ones included; ``options`` and ``ranks``
    (sizes of ``tp`` and ``dp``) what was given by name; ``kinds`` the global layer ids of each
    kind whose layers are known. ``stages`` are half open ranges, None where the build decides.
    """

    config: str  # the file's name, without folders
    fingerprint: str  # of the config's values, not of how they are written
    dims: tuple[tuple[str, int], ...]
    layers: int | None
    options: tuple[tuple[str, Constant], ...] = ()
    ranks: tuple[tuple[str, int], ...] = ()
    kinds: tuple[tuple[str, tuple[int, ...]], ...] = ()
    stages: tuple[tuple[int, int], ...] | None = None

    @property
    def cuts(self) -> tuple[int, ...]:
        """The first layer after each cut; none where the build decides on the stages."""
        return tuple(start for start, _ in (self.stages or ())[1:])
