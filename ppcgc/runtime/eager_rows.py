"""The slots of an eager step: the batch's own tensors, uncopied, at live size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ppcgc.runtime.errors import SourceError
from ppcgc.runtime.host_rows import HostSource, as_host_tensor
from ppcgc.runtime.loading import check_source
from ppcgc.runtime.slot_info import SlotInfo


class EagerRows:
    """Makes each slot of an eager step, with the same checks as a load."""

    def __init__(
        self,
        table: Sequence[SlotInfo],
        shapes: Mapping[str, tuple[int, ...]],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self._dtypes = {info.name: info.dtype or dtype for info in table}
        self._shapes = shapes
        self._device = device

    def own(self, name: str, source: Tensor | None, *, cast: bool = False) -> Tensor:
        """The batch's own device tensor. Raises SourceError for another shape or dtype."""
        dtype = self._dtypes[name]
        if cast and isinstance(source, Tensor):
            source = source.to(dtype)
        return check_source(source, self._shapes[name], dtype, self._device, name)

    def upload(self, name: str, source: HostSource, *, cast: bool = False) -> Tensor:
        """A host source, moved to the stage's device."""
        dtype = self._dtypes[name]
        if cast and isinstance(source, Tensor):
            source = source.to(dtype)
        rows = as_host_tensor(source, dtype, name)
        if list(rows.shape) != list(self._shapes[name]):
            raise SourceError(
                f"slot {name}: the source has shape {list(rows.shape)}, "
                f"the live rows need {list(self._shapes[name])}"
            )
        return rows.to(self._device)

    def filled(self, name: str, value: float) -> Tensor:
        """One value everywhere: computed, constant, or absent with a fill."""
        return torch.full(self._shapes[name], value, dtype=self._dtypes[name], device=self._device)

    def computed(self, name: str, values: Sequence[int]) -> Tensor:
        """One value a row."""
        return torch.tensor(values, dtype=self._dtypes[name], device=self._device)
