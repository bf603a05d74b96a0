"""Memory that a forward allocates and reads before it has written it.

The shared pool cannot show it: what an earlier op of the same graph left there is the same at
every replay. So the forward runs as Python, each `torch.empty` filled with NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ppcgc.runtime.backends.model_line import ModelLine, line_of_call
from ppcgc.runtime.backends.operations import traits_of
from ppcgc.runtime.verification.cases import Case
from ppcgc.runtime.verification.comparing import Tensors, differing
from ppcgc.runtime.verification.stages import StageUnderTest
from ppcgc.runtime.verification.verdicts import Finding


class FilledAllocations(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own hook
    """Fills what ``torch.empty`` and its like give, all of it or one allocation's."""

    def __init__(self, only: int | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.made: list[tuple[str, ModelLine]] = []
        self._only = only

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if traits_of(func).allocates_only and isinstance(result, Tensor):
            if self._only in (None, len(self.made)) and result.is_floating_point():
                result.fill_(float("nan"))
            self.made.append((str(func), line_of_call()))
        return result


def findings(
    stage: StageUnderTest, case: Case, expected: Tensors, tolerance: float
) -> Iterator[Finding]:
    """An allocation whose old content reaches live outputs."""
    allocations, how = _run(stage, case, expected, tolerance, None)
    if how is None:
        return
    for number, (op, line) in enumerate(allocations):
        _, alone = _run(stage, case, expected, tolerance, number)
        if alone is not None:
            yield Finding(
                where=stage.where(case),
                subject="memory that was never written",
                what=f"{op} at {line}: what it held before reaches live rows: {alone}",
                mend="write all of it, or allocate with torch.zeros",
            )


def _run(
    stage: StageUnderTest, case: Case, expected: Tensors, tolerance: float, only: int | None
) -> tuple[list[tuple[str, ModelLine]], str | None]:
    stage.restore()
    stage.begin(case)
    with torch.no_grad(), FilledAllocations(only) as mode:
        result = stage.run_body(case)
    found = differing(expected, result.outputs, relative=tolerance)
    text = "; ".join(f"output {name}: {how}" for name, how in found.items())
    return mode.made, text or None
