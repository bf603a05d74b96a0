"""One asynchronous copy from pinned memory to a GPU, as cheap as the driver makes it.

Note [the driver's own copy]
    ``Tensor.copy_`` looks at both tensors and tells the allocator of pinned memory about the copy:
    4 of its 7 microseconds on an H200's host. A load copies between two addresses that never
    change, from memory that its ring guards itself, so the driver is called directly. Where that
    cannot be (another current device, no driver), ``copy_`` does the same.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

Copy: TypeAlias = Callable[[Tensor, Tensor], None]  # device bytes, as many pinned host bytes


def open_copy(device: torch.device) -> Copy:
    """The copy for this device; asynchronous, on the current stream, from pinned memory."""
    driver = _driver() if device.type == "cuda" else None
    return copy_by_torch if driver is None else _by_the_driver(driver, device)


def finish_copies(device: torch.device) -> None:
    """Wait for what reads pinned memory that is about to go: its allocator does not know of it."""
    if not torch.cuda.is_current_stream_capturing():
        torch.cuda.synchronize(device)


def copy_by_torch(device_bytes: Tensor, host_bytes: Tensor) -> None:
    device_bytes.copy_(host_bytes, non_blocking=True)


def _driver() -> Callable[..., int] | None:
    try:
        call: Callable[..., int] = ctypes.CDLL("libcuda.so.1").cuMemcpyHtoDAsync_v2
    except (OSError, AttributeError):
        return None
    call.argtypes = (ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)  # type: ignore[attr-defined]  # a ctypes function
    return call


def _by_the_driver(copy: Callable[..., int], device: torch.device) -> Copy:
    index = device.index
    current_device = torch._C._cuda_getDevice
    current_stream = torch._C._cuda_getCurrentRawStream

    def copy_bytes(device_bytes: Tensor, host_bytes: Tensor) -> None:
        here = current_device() == index
        if not here or copy(
            device_bytes.data_ptr(),
            host_bytes.data_ptr(),
            host_bytes.nbytes,
            current_stream(index),
        ):
            copy_by_torch(device_bytes, host_bytes)

    return copy_bytes
