"""Host: a step waits for nothing, copies from no temporary, and allocates nothing.

On CUDA the step runs under ``torch.cuda.set_sync_debug_mode("error")`` and the allocator's count
is compared. On a CPU, where nothing would wait, reads of device memory by Python are watched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ppcgc.runtime.backends.model_line import line_of_call, line_of_error
from ppcgc.runtime.backends.refusals import HOST_READS
from ppcgc.runtime.verification.cases import Case
from ppcgc.runtime.verification.memory_map import MemoryMap, uses_of
from ppcgc.runtime.verification.session import Outcome, Session
from ppcgc.runtime.verification.stages import StageUnderTest
from ppcgc.runtime.verification.verdicts import Finding

_MEND = "keep the value on the device, or work it out on the host from the batch"


def check(session: Session) -> Outcome:
    findings: list[Finding] = []
    steps = 0
    for stage, case in session.one_a_bucket("host"):
        steps += 1
        findings += _temporaries(stage, case)
        stage.restore()
        on_cuda = stage.runner.device.type == "cuda"
        findings += (_on_cuda if on_cuda else _on_cpu)(stage, case)
    return Outcome(
        f"{steps} steps without a host read, a temporary's copy or an allocation", findings
    )


def _temporaries(stage: StageUnderTest, case: Case) -> Iterator[Finding]:
    """Host memory that the captured region copies from."""
    stage.begin(case)
    on_cuda = stage.runner.device.type == "cuda"
    told: set[str] = set()
    for use in uses_of(stage, case):
        from_host = use.device == "cpu" if on_cuda else "lift_fresh" in use.op
        if from_host and use.place not in told:
            told.add(use.place)
            yield Finding(
                where=stage.where(case),
                subject=f"host tensor {use.dtype} {list(use.shape)}",
                what=f"{use.op} copies from a temporary on the host at {use.place}",
                mend="make the constant before (register_buffer) or pass it in a slot: a graph "
                "keeps the address of memory that is gone",
            )


class HostReads(TorchFunctionMode):
    """Notes the first read of device memory by Python."""

    def __init__(self, is_device: Callable[[int], bool]) -> None:
        super().__init__()
        self.first: str | None = None
        self._is_device = is_device

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func in HOST_READS and self.first is None:
            read = [arg for arg in args if isinstance(arg, Tensor)]
            if any(self._is_device(tensor.data_ptr()) for tensor in read):
                self.first = f"{HOST_READS[func]} reads device memory at {line_of_call()}"
        return func(*args, **(kwargs or {}))


def _on_cpu(stage: StageUnderTest, case: Case) -> Iterator[Finding]:
    memory = MemoryMap(stage, case)

    def is_device(address: int) -> bool:
        region = memory.find(address, address + 1)
        return region is not None and region.kind != "host slot"

    with HostReads(is_device) as reads:
        step = stage.begin(case)
        stage.runner.finish(step)
    if reads.first is not None:
        yield Finding(where=stage.where(case), subject="step", what=reads.first, mend=_MEND)


def _on_cuda(stage: StageUnderTest, case: Case) -> Iterator[Finding]:
    device = stage.runner.device
    stage.replay(case)  # whatever is lazy has happened
    torch.cuda.synchronize(device)
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step = stage.begin(case)
        before = torch.cuda.memory_stats(device)["allocation.all.allocated"]
        stage.runner.finish(step)
        after = torch.cuda.memory_stats(device)["allocation.all.allocated"]
    except RuntimeError as problem:
        what = f"{str(problem).splitlines()[0]} at {line_of_error(problem)}"
        yield Finding(where=stage.where(case), subject="step", what=what, mend=_MEND)
        return
    finally:
        torch.cuda.set_sync_debug_mode(mode)
    if after != before:
        yield Finding(
            where=stage.where(case),
            subject="replay",
            what=f"{after - before} allocations between load and trimmed outputs",
            mend="allocate before capture; a replay writes fixed memory only",
        )
