"""What a capture refuses: host reads and shapes that depend on data.

The CPU could do all of it. A GPU graph cannot, or would freeze the value of the capture, so it
is refused here in the same places, with the model's line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import torch
from torch._ops import OpOverload
from torch.overrides import TorchFunctionMode

from ppcgc.runtime.backends.model_line import line_of_call
from ppcgc.runtime.errors import CaptureError

_HOST_READ_NAMES = frozenset(
    f"aten::{name}" for name in ("_local_scalar_dense", "allclose", "equal", "is_nonzero", "item")
)
_MESSAGES = frozenset(f"c10d::{name}" for name in ("send", "recv_", "recv_any_source_"))
_TAKES_INDICES = frozenset(
    f"aten::{name}"
    for name in (
        "_index_put_impl_",
        "_unsafe_index",
        "_unsafe_index_put",
        "index",
        "index_put",
        "index_put_",
    )
)
_KEEP_ON_DEVICE = (
    "keep the value on the device (torch.where, index operations), "
    "or work it out on the host before the step and pass it in a slot"
)
_FIX_THE_SIZE = (
    "give the result a fixed size: torch.where with a mask, nonzero_static, "
    "or repeat_interleave with output_size"
)

_Tensor = torch.Tensor
#: Methods that read memory without any ATen call (tolist, numpy), that hand it to code which the
#: tape does not see (__dlpack__), or that would wait for a GPU although a CPU has nothing to do
#: (cpu). `.to("cpu")` is let through: `x.to(y.device)` says the same here and is no host read.
HOST_READS: Mapping[Callable[..., Any], str] = {
    getattr(_Tensor, name): f"Tensor.{name}()"
    for name in (
        "__array__",
        "__bool__",
        "__complex__",
        "__dlpack__",
        "__float__",
        "__format__",
        "__index__",
        "__int__",
        "__repr__",
        "cpu",
        "item",
        "numpy",
        "tolist",
    )
} | {torch.equal: "torch.equal()", _Tensor.equal: "Tensor.equal()"}


class Refusals:
    """Raises refusals and keeps the first.

    Note [a refusal cannot be swallowed]: a model may wrap the call in ``try ... except``. On a
    GPU the capture is spoilt all the same, so whoever records looks at ``first`` afterwards.
    """

    def __init__(self) -> None:
        self.first: CaptureError | None = None

    def refuse(self, op: str, reason: str, fix: str) -> NoReturn:
        """Raise a CaptureError that names ``op`` and the model's line."""
        error = CaptureError(f"{op} {reason}\n  at {line_of_call()}\n  fix: {fix}")
        if self.first is None:
            self.first = error
        raise error

    def check(
        self,
        func: OpOverload[..., object],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        is_host_constant: Callable[[torch.Tensor], bool],
    ) -> None:
        """Refuse ``func`` when a GPU graph could not hold this call of it."""
        name = func._schema.name
        if name in _HOST_READ_NAMES or torch.Tag.data_dependent_output in func.tags:
            self.refuse(
                str(func), "needs a value on the host, which a capture cannot read", _KEEP_ON_DEVICE
            )
        if name in _MESSAGES:
            self.refuse(
                str(func),
                "is a message from rank to rank inside a stage",
                "hand the tensor over as a key of `pipeline.boundary`, or use a collective",
            )
        if torch.Tag.dynamic_output_shape not in func.tags and name not in _TAKES_INDICES:
            return
        if not _has_fixed_shape(name, args, kwargs, is_host_constant):
            what = "with a mask as index " if name in _TAKES_INDICES else ""
            self.refuse(
                str(func),
                f"{what}works on a number of elements that depends on data",
                _FIX_THE_SIZE,
            )


def _has_fixed_shape(
    name: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    is_host_constant: Callable[[torch.Tensor], bool],
) -> bool:
    if name == "aten::repeat_interleave":
        return kwargs.get("output_size") is not None
    if name not in _TAKES_INDICES:
        return False
    indices = [index for index in args[1] if index is not None]
    masks = [index for index in indices if index.dtype in (torch.bool, torch.uint8)]
    if not masks:
        return True
    # `x[mask] = 0.0` with one mask is a masked_fill_ on every device, and waits for nothing
    values = args[2] if len(args) > 2 else None
    accumulates = len(args) > 3 and bool(args[3])
    return (
        name == "aten::index_put_"
        and len(indices) == 1
        and not accumulates
        and isinstance(values, torch.Tensor)
        and values.numel() == 1
        and is_host_constant(values)
    )


class HostReadGuard(TorchFunctionMode):
    """Refuses the reads that no dispatch mode can see."""

    def __init__(self, refusals: Refusals) -> None:
        super().__init__()
        self._refusals = refusals

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func in HOST_READS:
            self._refusals.refuse(
                HOST_READS[func], "reads a tensor on the host while capturing", _KEEP_ON_DEVICE
            )
        if func is torch.nn.functional.one_hot:
            return _one_hot(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _one_hot(tensor: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
    """torch's one_hot reads its input's range on a CPU, though not on a GPU: this one does not.

    Without ``num_classes`` the size depends on data, and torch's own call is refused.
    """
    if num_classes <= 0:
        return torch.nn.functional.one_hot(tensor, num_classes)
    classes = torch.arange(num_classes, device=tensor.device)
    return (tensor.unsqueeze(-1) == classes).to(torch.int64)
