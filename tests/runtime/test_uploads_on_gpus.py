"""Host rows that go to a GPU: the host waits for nothing, and may write them again at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ppcgc.runtime.cells import upload_cells
from ppcgc.runtime.eager_rows import EagerRows
from ppcgc.runtime.loading import upload_rows, upload_whole
from ppcgc.runtime.slot_info import SlotInfo

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
Upload = Callable[[Tensor, torch.device], Tensor]


def eager(source: Tensor, device: torch.device) -> Tensor:
    info = SlotInfo(name="ids", line="x.yaml:1", axes=(), dtype=torch.int64, padding="none")
    return EagerRows((info,), {"ids": tuple(source.shape)}, torch.float32, device).upload(
        "ids", source
    )


def rows(source: Tensor, device: torch.device) -> Tensor:
    slot = torch.zeros(2 * len(source), *source.shape[1:], dtype=torch.int64, device=device)
    upload_rows(slot, source, len(source), "ids")
    return slot[: len(source)]


def whole(source: Tensor, device: torch.device) -> Tensor:
    slot = torch.zeros(source.shape, dtype=torch.int64, device=device)
    upload_whole(slot, source, "ids")
    return slot


def cells(source: Tensor, device: torch.device) -> Tensor:
    height, width = source.shape
    slot = torch.zeros(height + 3, width + 3, dtype=torch.int64, device=device)
    upload_cells(slot, source, (height, width), (0, 1), "ids")
    return slot[:height, :width]


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("upload", [eager, rows, whole, cells])
def test_an_upload_does_not_wait_for_the_stream(upload: Upload, pinned: bool) -> None:
    device = torch.device("cuda", torch.cuda.current_device())
    source = torch.arange(40_000).view(200, 200)
    if pinned:
        source = source.pin_memory()
    upload(source, device)  # blocks of memory are there from here on
    torch.cuda.synchronize()
    torch.cuda._sleep(1_000_000_000)  # type: ignore[no-untyped-call]  # torch's; half a second
    made = upload(source, device)
    assert not torch.cuda.current_stream().query()  # the host is ahead of the device
    source.zero_()
    assert torch.equal(made.cpu(), torch.arange(40_000).view(200, 200))
