"""The slots of an eager step: the batch's own tensors, uncopied, at live size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ppcgc.runtime import roles
from ppcgc.runtime.host_sources import HostSource, check_fits, spread, spread_cells, spread_over
from ppcgc.runtime.loading import check_source, host_rows_of, staged
from ppcgc.runtime.slot_info import SlotInfo


class EagerRows:
    """Makes each slot of an eager step, with the same checks as a load.

    A mutable slot is a copy: the forward may write it, and the batch stays its owner's.
    """

    def __init__(
        self,
        table: Sequence[SlotInfo],
        shapes: Mapping[str, tuple[int, ...]],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self._dtypes = {info.name: info.dtype or dtype for info in table}
        self._mutable = {info.name for info in table if info.mutable}
        self._shapes = shapes
        self._device = device
        self._host: dict[str, Tensor] = {}  # host sources of this step, for their roles' checks

    def own(
        self,
        name: str,
        source: Tensor | None,
        *,
        cast: bool = False,
        broadcast: bool = False,
        absent: float | None = None,
    ) -> Tensor:
        """The batch's own device tensor. Raises SourceError for another shape or dtype.

        ``absent`` fills the slot where the source is None.
        """
        if source is None and absent is not None:
            return self.filled(name, absent)
        dtype = self._dtypes[name]
        if cast and isinstance(source, Tensor):
            source = source.to(dtype)
        if broadcast:
            source = spread_over(source, self._shapes[name])
        rows = check_source(source, self._shapes[name], dtype, self._device, name)
        return rows.clone() if name in self._mutable else rows

    def own_if_given(
        self, name: str, source: Tensor | None, *, cast: bool = False, broadcast: bool = False
    ) -> Tensor | None:
        """As ``own``; None for an absent source."""
        return None if source is None else self.own(name, source, cast=cast, broadcast=broadcast)

    def upload(
        self,
        name: str,
        source: HostSource,
        *,
        cast: bool = False,
        broadcast: bool = False,
        absent: float | None = None,
    ) -> Tensor:
        """A host source, moved to the stage's device. Raises SourceError; ``absent`` as above."""
        if source is None and absent is not None:
            return self.filled(name, absent)
        rows = self._host[name] = self.on_host(name, source, cast=cast, broadcast=broadcast)
        return self._moved(rows, copy=name in self._mutable)

    def upload_if_given(
        self, name: str, source: HostSource, *, cast: bool = False, broadcast: bool = False
    ) -> Tensor | None:
        """As ``upload``; None for an absent source."""
        if source is None:
            return None
        return self.upload(name, source, cast=cast, broadcast=broadcast)

    def on_host(
        self,
        name: str,
        source: HostSource,
        *,
        cast: bool = False,
        broadcast: bool = False,
        absent: float | None = None,
    ) -> Tensor:
        """A host source that stays on the host: a mirror, or a slot without a device side."""
        if source is None and absent is not None:
            return torch.full(self._shapes[name], absent, dtype=self._dtypes[name])
        shape, dtype = self._shapes[name], self._dtypes[name]
        return host_rows_of(source, shape, dtype, name, cast=cast, broadcast=broadcast)

    def on_host_if_given(
        self, name: str, source: HostSource, *, cast: bool = False, broadcast: bool = False
    ) -> Tensor | None:
        """As ``on_host``; None for an absent source."""
        if source is None:
            return None
        return self.on_host(name, source, cast=cast, broadcast=broadcast)

    def filled(self, name: str, value: float) -> Tensor:
        """One value everywhere: computed, constant, or absent with a fill. Raises SourceError."""
        check_fits(name, (value,), self._dtypes[name])
        return torch.full(self._shapes[name], value, dtype=self._dtypes[name], device=self._device)

    def computed(self, name: str, values: Sequence[int], *, dim: int = 0) -> Tensor:
        """One value a row, the same in all of the row's elements."""
        rows = torch.empty(self._shapes[name], dtype=self._dtypes[name])
        return self._moved(rows.copy_(spread(name, values, rows, dim)))

    def computed_cells(
        self, name: str, values: Sequence[Sequence[int]], dims: tuple[int, int]
    ) -> Tensor:
        """One value a cell of two dimensions, the same in all of the cell's elements."""
        rows = torch.empty(self._shapes[name], dtype=self._dtypes[name])
        return self._moved(rows.copy_(spread_cells(name, values, rows, dims)))

    def _moved(self, rows: Tensor, *, copy: bool = False) -> Tensor:
        """On the stage's device; the host does not wait for it."""
        return staged(rows, self._device).to(self._device, non_blocking=True, copy=copy)

    # ------------------------------------------------------------ roles, as at a load

    def check_index(self, name: str, limit: int, *, skips_negative: bool = False) -> None:
        """See ``roles``, as for the checks below. A source that is absent has nothing to check."""
        if name in self._host:
            roles.check_index(name, self._host[name], limit, skips_negative=skips_negative)

    def check_write_index(self, name: str, limit: int, *, skips_negative: bool) -> None:
        if name in self._host:
            roles.check_write_index(name, self._host[name], limit, skips_negative=skips_negative)

    def check_offsets(self, name: str, end: int, *, closed: bool) -> None:
        if name in self._host:
            roles.check_offsets(name, self._host[name], end, closed=closed)

    def check_lengths(self, name: str, total: int) -> None:
        if name in self._host:
            roles.check_lengths(name, self._host[name], total)

    def check_bounded(self, name: str, limit: int) -> None:
        if name in self._host:
            roles.check_bounded(name, self._host[name], limit)
