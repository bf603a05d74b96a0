"""What a stage's own Python does, op by op, with the line and the layer of the model.

Works on any device: a dispatch mode sees the calls, an eager run of the captured region makes
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ppcgc.runtime.backends.model_line import ModelLine, line_of_call
from ppcgc.runtime.backends.tape import tensors


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One call: its name, the model's line, the module that made it."""

    name: str
    line: ModelLine
    layer: str

    def __str__(self) -> str:
        layer = f" ({self.layer})" if self.layer else ""
        return f"{self.name} at {self.line}{layer}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A tensor that the run read or wrote without having made it."""

    address: int
    nbytes: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    written: bool
    op: Op


_NO_STATE = torch.empty(0, dtype=torch.uint8)


class OpWatch(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own hook
    """Calls ``see(op, func, results)`` after each op; ``reads`` collects foreign tensors."""

    def __init__(
        self,
        running: Sequence[str],
        see: Callable[[Op, Any, list[Tensor]], None] | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.reads: list[Read] = []
        self.random: list[Op] = []
        self._running = running
        self._see = see
        self._made: dict[int, Any] = {}  # storages are held, so that no address comes again

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        op = Op(name=str(func), line=line_of_call(), layer=self._running[-1])
        given = list(tensors((args, kwargs)))
        seeded = torch.Tag.nondeterministic_seeded in func.tags
        before = _random_state(given) if seeded else _NO_STATE
        result = func(*args, **kwargs)
        results = list(tensors((result,)))
        self._note(func, op, given, results)
        own = kwargs.get("generator") is not None
        # attention is tagged too, although it draws for dropout only: see whether it drew
        if seeded and (own or not torch.equal(before, _random_state(given))):
            self.random.append(op)
        if self._see is not None:
            self._see(op, func, results)
        return result

    def _note(self, func: Any, op: Op, given: list[Tensor], results: list[Tensor]) -> None:
        to_device = any(tensor.is_cuda for tensor in results)
        for tensor in given:
            # host memory that goes to the device counts, also where the forward made it itself:
            # the graph keeps its address, and the next run of the forward's Python has another
            from_host = to_device and tensor.device.type == "cpu" and tensor.dim() > 0
            foreign = tensor.untyped_storage()._cdata not in self._made
            if (foreign or from_host) and tensor.numel():
                self.reads.append(
                    Read(
                        address=tensor.data_ptr(),
                        nbytes=reach(tensor),
                        shape=tuple(tensor.shape),
                        dtype=tensor.dtype,
                        device=tensor.device,
                        written=func._schema.is_mutable and tensor is given[0],
                        op=op,
                    )
                )
        own = {tensor.untyped_storage()._cdata for tensor in given}
        for tensor in results:
            storage = tensor.untyped_storage()
            if storage._cdata not in own:
                self._made[storage._cdata] = storage


def _random_state(given: Sequence[Tensor]) -> Tensor:
    """The state of the default generator that an op on these tensors draws from."""
    device = next((tensor.device for tensor in given if tensor.device.type == "cuda"), None)
    return torch.get_rng_state() if device is None else torch.cuda.get_rng_state(device)


def reach(tensor: Tensor) -> int:
    """Bytes from the first to the last element of a tensor."""
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return (last + 1) * tensor.element_size() if tensor.numel() else 0


def trace(stage: Any, case: Any) -> Iterator[tuple[Op, list[Tensor]]]:
    """Each op of the captured region with copies of its results, over the slots as loaded."""
    seen: list[tuple[Op, list[Tensor]]] = []

    def see(op: Op, func: Any, results: list[Tensor]) -> None:
        if not func._schema.is_mutable:
            seen.append((op, [result.clone() for result in results]))

    stage.make_ready(case)
    with stage.modules_named() as running, OpWatch(running, see):
        stage.run_ready_body(case)
    return iter(seen)


def live_part(tensor: Tensor, live: Any, padded: Any) -> Tensor:
    """The part of an op's result that belongs to live rows, as its extents tell.

    A dimension of an axis' padded size (or one more, for offsets) is cut to the live size.
    """
    sizes: dict[int, int] = {}
    for rows, most in zip(live, padded, strict=True):
        for extra in (0, 1):
            sizes[most + extra] = min(rows + extra, sizes.get(most + extra, rows + extra))
    for dim, extent in enumerate(tensor.shape):
        if extent in sizes:
            tensor = tensor.narrow(dim, 0, min(extent, sizes[extent]))
    return tensor
