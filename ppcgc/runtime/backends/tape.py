"""Records the ATen operations of a body, with the memory each one reads and writes.

The tape holds no tensor of the body: tensors are noted by the number of their storage and their
geometry, so the body's intermediates are freed as eager code frees them. Where they lie at
replay is planned afterwards (``lifetimes``) and made into calls by ``binding``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from ppcgc.runtime.backends.collectives import waits_paused
from ppcgc.runtime.backends.model_line import ModelLine, line_of_call
from ppcgc.runtime.backends.operations import Traits, traits_of
from ppcgc.runtime.backends.refusals import HostReadGuard, Refusals
from ppcgc.runtime.backends.storages import StorageBook, TensorRef
from ppcgc.runtime.backends.uses import EscapedTensor, ExternalUse
from ppcgc.runtime.errors import CaptureError


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One operation to do again.

    ``args`` and ``kwargs`` are the call's, with a TensorRef for each tensor. ``made`` holds the
    results that the operation put into new memory: (position among the results, where).
    """

    func: OpOverload[..., object]
    traits: Traits
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    made: tuple[tuple[int, TensorRef], ...]
    results: int
    line: ModelLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Tape:
    """What one run of a body did."""

    steps: tuple[Step, ...]
    book: StorageBook
    externals: tuple[ExternalUse, ...]
    escaped: tuple[EscapedTensor, ...]


_on_this_thread = threading.local()


def recording() -> bool:
    """Whether this thread is inside ``record``."""
    return getattr(_on_this_thread, "recording", False)


def record(body: Callable[[], object]) -> Tape:
    """Run ``body`` once, without gradients, and return its tape. Raises CaptureError.

    The modes are left whatever happens. An error of the body's own passes through.
    """
    if recording():
        raise CaptureError("a capture was started inside another capture: capture one at a time")
    refusals = Refusals()
    recorder = _Recorder(refusals)
    _on_this_thread.recording = True
    try:
        with torch.no_grad(), HostReadGuard(refusals), waits_paused(recorder), recorder:
            body()
    finally:
        _on_this_thread.recording = False
    if refusals.first is not None:
        raise refusals.first
    escaped = recorder.book.settle()
    return Tape(
        steps=tuple(recorder.steps),
        book=recorder.book,
        externals=tuple(recorder.book.external_uses.values()),
        escaped=escaped,
    )


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own hook
    """Sees every ATen call of the body, lets it happen, and notes what a replay must repeat."""

    # without it torch raises its own error before this mode can name the operator
    supports_higher_order_operators = True

    def __init__(self, refusals: Refusals) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.steps: list[Step] = []
        self.book = StorageBook()
        self.paused = False  # see Note [a collective ends in its wait] in ``collectives``
        self._refusals = refusals

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if self.paused:
            return func(*args, **kwargs)
        if not isinstance(func, OpOverload):
            self._refusals.refuse(
                str(func),
                "is a higher-order operator, which the CPU backend does not record",
                "call the model's eager code instead",
            )
        if any(_unwraps_itself(kind) for kind in types):
            return NotImplemented  # the subclass takes itself apart; its parts come back here
        self._refusals.check(func, args, kwargs, self.book.is_host_constant)
        traits = traits_of(func)
        if traits.composite:
            with self:
                composed: Callable[..., Any] = func._op_dk
                return composed(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
        result = func(*args, **kwargs)
        self._note(func, traits, args, kwargs, result)
        return result

    def _note(
        self,
        func: OpOverload[..., object],
        traits: Traits,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: object,
    ) -> None:
        """Append the step that repeats this call, if there is anything to repeat."""
        results = list(leaves(result))
        inputs = list(tensors(args)) + list(tensors(kwargs))
        outputs = list(tensors(results))
        if any(_unwraps_itself(type(output)) for output in outputs):
            return  # it only wrapped something that is already here
        if not self._on_cpu(traits, [*inputs, *outputs]) or traits.metadata_only:
            return
        if func._schema.name == "aten::lift_fresh":
            self._note_host_constant(outputs[0], traits)
            return
        given = {tensor.untyped_storage()._cdata for tensor in inputs}
        fresh = [
            (position, leaf)
            for position, leaf in enumerate(results)
            if isinstance(leaf, torch.Tensor) and leaf.untyped_storage()._cdata not in given
        ]
        line = line_of_call()
        if traits.allocates_only:
            for _, tensor in fresh:
                self.book.made(tensor, traits.name, line)
            return
        asserts = func._schema.name == "aten::_assert_async"
        if not (fresh or traits.written or traits.collective or asserts):
            return  # a view, or nothing but metadata
        self._append(func, traits, args, kwargs, fresh, len(results), line)

    def _append(
        self,
        func: OpOverload[..., object],
        traits: Traits,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        fresh: Sequence[tuple[int, torch.Tensor]],
        results: int,
        line: ModelLine,
    ) -> None:
        # after the call, since it may have given its out= arguments their final shape
        step = len(self.steps)

        def refer(value: Any, written: bool) -> Any:
            if isinstance(value, torch.Tensor):
                return self.book.used(value, step, written, traits.name, line)
            if isinstance(value, (list, tuple)):
                return type(value)(refer(item, written) for item in value)
            return value

        self.steps.append(
            Step(
                func=func,
                traits=traits,
                args=tuple(refer(arg, at in traits.written) for at, arg in enumerate(args)),
                kwargs={key: refer(arg, key in traits.written) for key, arg in kwargs.items()},
                made=tuple(
                    (position, self.book.made(tensor, traits.name, line, step))
                    for position, tensor in fresh
                ),
                results=results,
                line=line,
            )
        )

    def _note_host_constant(self, constant: torch.Tensor, traits: Traits) -> None:
        """``torch.tensor([...])`` in the body: each replay copies the values in again.

        A GPU does the same with a copy from the host, and the body may write into its constant.
        """
        line = line_of_call()
        image = constant.clone()
        ref = self.book.host_constant(constant, traits.name, line)
        step = len(self.steps)
        copy = torch.ops.aten.copy_.default
        self.book.touch(ref, step)
        self.steps.append(
            Step(
                func=copy,
                traits=traits_of(copy),
                args=(ref, self.book.image(image, traits.name, line)),
                kwargs={},
                made=(),
                results=1,
                line=line,
            )
        )

    def _on_cpu(self, traits: Traits, involved: Sequence[torch.Tensor]) -> bool:
        """Whether the call works on CPU memory; refuses memory that the tape cannot describe."""
        for tensor in involved:
            if tensor.device.type not in ("cpu", "meta"):
                self._refusals.refuse(
                    traits.name,
                    f"works on a tensor on {tensor.device} under the CPU backend",
                    "put the stage on the CPU, or use the backend of its device",
                )
            if tensor.layout is not torch.strided or tensor.is_quantized:
                self._refusals.refuse(
                    traits.name,
                    f"works on a {tensor.layout}, {tensor.dtype} tensor: only dense, unquantized "
                    "tensors are recorded",
                    "use dense tensors inside the stage",
                )
        return all(tensor.device.type == "cpu" for tensor in involved)


def leaves(value: object) -> Iterator[object]:
    """Everything inside nested lists, tuples and dicts, in order."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    else:
        yield value


def tensors(value: object) -> Iterator[torch.Tensor]:
    """The tensors among the leaves of ``value``."""
    return (leaf for leaf in leaves(value) if isinstance(leaf, torch.Tensor))


def _unwraps_itself(kind: type) -> bool:
    """Whether ``kind`` is a tensor subclass with a dispatch of its own."""
    own: object = getattr(kind, "__torch_dispatch__", None)
    return own is not torch.Tensor.__torch_dispatch__
