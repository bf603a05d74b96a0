"""`compile: inductor`: the captured region runs the forward as torch.compile made it.

Note [compiled once for all buckets]
    The forward is compiled with the padded dimensions dynamic: which they are is read off the
    buckets themselves, as the dimensions in which their slots differ. It happens before the first
    warm-up, at the largest bucket: Inductor tunes its kernels for the sizes that it sees first,
    and what it finds for many rows serves few of them better than the other way round. Every bucket
    is then warmed up and captured with these kernels. A forward that fixes a padded dimension would
    be compiled anew for each bucket: that is refused.

Note [only graphs are compiled]
    An eager step calls the model itself. The CPU backend records ATen operations, under which a
    compiled function runs as those very operations: there nothing is compiled and the report
    says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ppcgc.runtime.errors import BuildError

if TYPE_CHECKING:
    from ppcgc.runtime.bucket import Bucket
    from ppcgc.runtime.stage_captured import CapturedStage

    AnyRunner = CapturedStage[Any, Any, Any, Any, Any, Any]
    AnyBucket = Bucket[Any, Any, Any, Any]

MODES = ("none", "inductor")
RECOMPILES = 64  # of one function: every runner and every bucket of extent 1 has its own


def prepare(runners: Sequence[AnyRunner], mode: str | None) -> None:
    """Set what each runner's captured region calls. ``mode`` overrides the spec's `compile`.

    Raises BuildError for a mode that there is not.
    """
    for runner in runners:
        wanted = runner.compile if mode is None else mode
        if wanted not in MODES:
            raise BuildError(f"compile {wanted!r}: one of {', '.join(MODES)}")
        runner.compiled = None
        if wanted == "inductor" and runner.backend.name != "cpu":
            mark_dynamic(list(runner.table.values()))
            runner.compiled = torch.compile(runner.model, options=_options())
        runner.compiled_as = describe(runner, wanted)


def _options() -> dict[str, Any]:
    """What Inductor is told: see Note [an add of all rows is no bias] in ``residual_adds``.

    A process that has set a pass of its own in this place keeps that one, alone.
    """
    from torch._inductor import config

    from ppcgc.runtime.residual_adds import RESIDUAL_ADDS  # it imports Inductor

    if config.post_grad_custom_pre_pass is not None:
        return {}
    return {"post_grad_custom_pre_pass": RESIDUAL_ADDS}


def describe(runner: AnyRunner, wanted: str) -> str:
    """For the report: what runs inside the graphs."""
    if wanted == "none":
        return "none"
    return "inductor" if runner.compiled is not None else "none: the cpu backend compiles nothing"


@contextmanager
def forward_compiled(runner: AnyRunner) -> Iterator[None]:
    """Inside the block ``forward`` calls the compiled model, where there is one."""
    if runner.compiled is None:
        yield
        return
    before = runner.model
    runner.model = runner.compiled
    try:
        with torch._dynamo.config.patch(
            recompile_limit=RECOMPILES, fail_on_recompile_limit_hit=True
        ):
            yield
    finally:
        runner.model = before


def first_to_compile(runner: AnyRunner) -> AnyBucket:
    """The largest bucket of the ladder."""
    return max(runner.table.values(), key=lambda bucket: bucket.padded)


def mark_dynamic(buckets: Sequence[AnyBucket]) -> None:
    """Tell torch.compile the dimensions in which the buckets' slots and boundaries differ.

    An extent of 1 is never dynamic to torch: such a bucket gets a compilation of its own.
    """
    found = [[*tensors_of(bucket.slots), *tensors_of(bucket.boundary)] for bucket in buckets]
    for same in zip(*found, strict=True):
        for dim in range(same[0].dim()):
            if len({tensor.shape[dim] for tensor in same}) > 1:
                for tensor in same:
                    if tensor.shape[dim] > 1:
                        torch._dynamo.mark_dynamic(tensor, dim)


def tensors_of(held: object) -> Iterator[Tensor]:
    """The tensors of a generated view or boundary, those of its groups too."""
    if isinstance(held, Tensor):
        yield held
    elif is_dataclass(held):
        for field in fields(held):
            yield from tensors_of(getattr(held, field.name))
