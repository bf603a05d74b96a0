"""What a GPU graph could not hold is refused, with the operation and the model's line."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from tape_checks import capture_results
from torch import Tensor

from ppcgc.runtime.backends.cpu import CpuBackend
from ppcgc.runtime.errors import CaptureError

REFUSED: dict[str, tuple[str, Callable[[Tensor], object]]] = {
    "item": ("Tensor.item()", lambda x: x.sum().item()),
    "bool": ("Tensor.__bool__()", lambda x: bool(x.sum())),
    "if": ("Tensor.__bool__()", lambda x: 1 if x.sum() > 0 else 2),
    "int": ("Tensor.__int__()", lambda x: int(x.sum())),
    "float": ("Tensor.__float__()", lambda x: float(x.sum())),
    "as an index": ("Tensor.__index__()", lambda x: list(range(x.sum().long()))),
    "tolist": ("Tensor.tolist()", lambda x: x.tolist()),
    "numpy": ("Tensor.numpy()", lambda x: x.numpy()),
    "cpu": ("Tensor.cpu()", lambda x: x.cpu()),
    "repr": ("Tensor.__repr__()", lambda x: repr(x)),
    "str": ("Tensor.__repr__()", lambda x: str(x)),
    "format": ("Tensor.__format__()", lambda x: f"{x.sum()}"),
    "dlpack": ("Tensor.__dlpack__()", lambda x: x.__dlpack__()),
    "equal": ("torch.equal()", lambda x: torch.equal(x, x)),
    "allclose": ("aten", lambda x: torch.allclose(x, x)),
    "in": ("aten", lambda x: 3.0 in x),
    "item unseen by Tensor": ("aten._local_scalar", lambda x: torch.ops.aten.item(x[0, 0])),
    "whole in inference mode": ("aten.item", lambda x: _item_in_inference_mode(x)),
    "scalar tensor as slice": ("aten", lambda x: x[torch.argmax(x[:, 0]) :]),
    "integer tensor as index": ("aten", lambda x: x[x[:, 0].argmax()]),
    "nonzero": ("aten.nonzero", lambda x: x.nonzero()),
    "where alone": ("aten.nonzero", lambda x: torch.where(x > 0)),
    "argwhere": ("aten", lambda x: torch.argwhere(x)),
    "mask as index": ("aten.index.Tensor with a mask", lambda x: x[x > 0]),
    "rows by a mask": ("aten.index.Tensor with a mask", lambda x: x[x[:, 0] > 0, 1]),
    "masked_select": ("aten.masked_select", lambda x: x.masked_select(x > 0)),
    "unique": ("aten", lambda x: torch.ops.aten._unique2(x)),
    "unique_consecutive": ("aten", lambda x: torch.ops.aten.unique_consecutive(x)),
    "bincount": ("aten.bincount", lambda x: x.flatten().long().abs().bincount()),
    "repeat_interleave": (
        "aten.repeat_interleave",
        lambda x: x.repeat_interleave(torch.tensor([1, 2, 1, 0]), 0),
    ),
    "one_hot without classes": ("aten", lambda x: F.one_hot(x[0].long().abs())),
    "sparse": ("aten", lambda x: x.to_sparse() * 2),
}


def _item_in_inference_mode(x: Tensor) -> object:
    with torch.inference_mode():
        return torch.ops.aten.item(x[0, 0])


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_operation_and_the_line(case: str) -> None:
    op, read = REFUSED[case]
    x = torch.ones(4, 8)

    def body() -> None:
        read(x + 1)

    with pytest.raises(CaptureError) as caught:
        CpuBackend().capture(body)
    message = str(caught.value)
    assert message.startswith(op)
    assert f"{__file__}:" in message
    assert "fix: " in message


def test_the_line_is_the_models_source() -> None:
    x = torch.ones(3)

    def body() -> None:
        total = x.sum()
        total.item()  # the line to be named

    with pytest.raises(CaptureError, match=r"in body: total\.item\(\)  # the line to be named"):
        CpuBackend().capture(body)


def test_a_mask_as_index_of_a_write_needs_a_host_number() -> None:
    device_value = torch.zeros(())
    x = torch.ones(4)

    def body() -> None:
        x[x > 0] = device_value * 2

    with pytest.raises(CaptureError, match="with a mask as index"):
        CpuBackend().capture(body)


def test_a_refusal_cannot_be_swallowed_by_the_model() -> None:
    x = torch.ones(3)
    out = torch.zeros(3)

    def body() -> None:
        try:
            scale = x.sum().item()
        except Exception:
            scale = 1.0
        out.copy_(x * scale)

    with pytest.raises(CaptureError, match=r"Tensor\.item\(\)"):
        CpuBackend().capture(body)


def test_after_a_refusal_everything_works() -> None:
    backend = CpuBackend()
    x = torch.ones(3)
    asked = torch.cuda.is_current_stream_capturing
    with pytest.raises(CaptureError):
        backend.capture(lambda: x.sum().item())
    assert torch.cuda.is_current_stream_capturing is asked
    assert torch.is_grad_enabled()
    assert x.sum().item() == 3.0
    graph, (doubled,) = capture_results(backend, lambda: (x * 2,))
    x.fill_(4)
    graph.replay()
    assert doubled.tolist() == [8.0, 8.0, 8.0]


def test_an_error_of_the_model_passes_through() -> None:
    backend = CpuBackend()
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        backend.capture(lambda: torch.ones(2, 3) @ torch.ones(2, 3))
    assert backend.capture(lambda: torch.ones(2)).steps == 1


def test_a_capture_inside_a_capture() -> None:
    backend = CpuBackend()

    def body() -> None:
        backend.capture(lambda: None)

    with pytest.raises(CaptureError, match="inside another capture"):
        backend.capture(body)


def test_a_replay_inside_a_capture() -> None:
    backend = CpuBackend()
    graph = backend.capture(lambda: None)
    with pytest.raises(CaptureError, match="inside a capture"):
        backend.capture(graph.replay)


def test_work_on_the_meta_device_is_only_bookkeeping() -> None:
    meta = torch.empty(3, device="meta")
    x = torch.ones(3)
    shapes: list[torch.Size] = []
    graph = CpuBackend().capture(lambda: shapes.append((meta + meta).shape + (x + 1).shape))
    assert graph.steps == 1


def test_copies_of_tensors_are_no_host_reads() -> None:
    x = torch.ones(3)
    graph, (out,) = capture_results(CpuBackend(), lambda: (copy.deepcopy(x) + x.to("cpu"),))
    x.fill_(2)
    graph.replay()
    assert out.tolist() == [4.0, 4.0, 4.0]


def test_a_higher_order_operator_is_refused() -> None:
    from torch._higher_order_ops.cond import cond_op

    x = torch.ones(3)

    def body() -> None:
        cond_op(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))

    with pytest.raises(CaptureError, match="higher-order operator"):
        CpuBackend().capture(body)
