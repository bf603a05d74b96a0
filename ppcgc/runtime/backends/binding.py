"""Makes the steps of a tape into calls on real memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ppcgc.runtime.backends.storages import StorageBook, TensorRef
from ppcgc.runtime.backends.tape import Step, Tape, leaves

#: What a replay runs: ``function(*args, **kwargs)``.
Call = tuple[Callable[..., object], tuple[Any, ...], dict[str, Any]]


def bind(tape: Tape, bases: Mapping[int, int], pool: torch.UntypedStorage) -> list[Call]:
    """The calls of ``tape``, intermediates in ``pool`` at ``bases``, everything else in place.

    ``pool`` must hold the planned bytes already: ``set_`` past the end would resize it.
    """
    memory = _Memory(tape.book, bases, pool)
    return [_call(step, memory) for step in tape.steps]


class _Memory:
    """Finds the tensor of a reference: one tensor for equal references."""

    def __init__(
        self, book: StorageBook, bases: Mapping[int, int], pool: torch.UntypedStorage
    ) -> None:
        self._book = book
        self._bases = bases
        self._pool = pool
        self._tensors: dict[TensorRef, torch.Tensor] = {}

    def tensor(self, ref: TensorRef) -> torch.Tensor:
        found = self._tensors.get(ref)
        if found is None:
            found = self._tensors[ref] = self._make(ref)
        return found

    def in_place_of(self, value: Any) -> Any:
        """``value`` with each reference replaced by its tensor."""
        if isinstance(value, TensorRef):
            return self.tensor(value)
        if isinstance(value, (list, tuple)):
            return type(value)(self.in_place_of(item) for item in value)
        return value

    def _make(self, ref: TensorRef) -> torch.Tensor:
        held = self._book.entries[ref.storage].held
        storage = self._pool if held is None else held
        base = self._bases[ref.storage] if held is None else 0
        # a tensor of its own over the memory: no gradient, and no inference tensor, so that a
        # replay may write it whatever mode the model ran in
        tensor = torch.empty(0, dtype=ref.dtype)
        tensor.set_(storage, base // ref.dtype.itemsize + ref.offset, ref.shape, ref.stride)
        if ref.conjugate:
            tensor = tensor.conj()
        return torch._neg_view(tensor) if ref.negative else tensor


def _call(step: Step, memory: _Memory) -> Call:
    args = memory.in_place_of(step.args)
    kwargs = {key: memory.in_place_of(value) for key, value in step.kwargs.items()}
    made = [(position, memory.tensor(ref)) for position, ref in step.made]
    function: Callable[..., object] = step.func
    if step.traits.collective:
        function = _waiting(step.func)
    elif step.traits.out_variant is not None and len(made) == step.results:
        variant = step.traits.out_variant
        outs = dict(zip(variant.out_names, (tensor for _, tensor in made), strict=True))
        return variant.overload, args, {**kwargs, **outs}
    if made:
        function = _copying_back(function, made)
    return function, args, kwargs


def _copying_back(
    function: Callable[..., object], made: Sequence[tuple[int, torch.Tensor]]
) -> Callable[..., None]:
    """``function``, its new results copied to where the later steps read them."""

    def run(*args: Any, **kwargs: Any) -> None:
        results = list(leaves(function(*args, **kwargs)))
        for position, target in made:
            result = results[position]
            if isinstance(result, torch.Tensor):
                target.copy_(result)

    return run


def _waiting(function: Callable[..., object]) -> Callable[..., object]:
    """A collective, waited for: c10d by its work handle, functional ones by their own wait."""

    def run(*args: Any, **kwargs: Any) -> object:
        result = function(*args, **kwargs)
        for leaf in leaves(result):
            if isinstance(leaf, torch.Tensor):
                torch.ops._c10d_functional.wait_tensor.default(leaf)
            elif hasattr(leaf, "wait"):
                leaf.wait()
        return result

    return run
