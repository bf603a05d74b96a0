"""Plans: a batch is planned as by hooks that never planned before.

Every other reference is planned by the very hooks that the step has, so a plan that is kept by live
counts, or skipped where they are those of the step before, is the same on both sides. Hooks that do
not plan alike twice tell nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor

from ppcgc.runtime.verification.cases import Case, another
from ppcgc.runtime.verification.comparing import differing
from ppcgc.runtime.verification.memory_map import planned_tensors
from ppcgc.runtime.verification.session import Session
from ppcgc.runtime.verification.stages import StageUnderTest
from ppcgc.runtime.verification.verdicts import Finding

MOST_BYTES = 1 << 20


def plan_findings(session: Session, stage: StageUnderTest, case: Case) -> Iterator[Finding]:
    """What hooks make of another batch of the same counts, behind a step with this one."""
    second = another(session.subject, case)
    if second is None or not stage.runner.hook_calls.states:
        return
    second = session.with_boundaries(second)
    stage.restore()
    stage.replay(case)
    before = _made(stage, second)
    used = _planned(stage, second, before, None)
    try:
        fresh = [_planned(stage, second, before, stage.unused_hooks()) for _ in range(2)]
    except Exception:  # a hook that lacks what its `key` would have put there
        return
    finally:
        stage.restore()
    if differing(*fresh):
        return
    for name, how in differing(fresh[0], used).items():
        yield Finding(
            where=stage.where(second),
            subject=name,
            what="planned behind another batch of the same counts, it is not what hooks make of "
            f"this batch that never planned before: {how}",
            mend="plan each step from its own batch: what is kept by live counts, or skipped where "
            "they are the same, is the plan of another batch",
        )


def _planned(
    stage: StageUnderTest, case: Case, before: dict[str, Tensor], hooks: Sequence[Any] | None
) -> dict[str, Tensor]:
    """What the hooks (None: the runner's own) make of a case, from these bytes."""
    stage.restore()
    for name, tensor in _held(stage, case):
        tensor.copy_(before[name])
    with stage.runner.hook_calls.replaced(hooks):
        stage.begin(case)
        stage.make_ready(case)
    return _made(stage, case)


def _made(stage: StageUnderTest, case: Case) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in _held(stage, case)}


def _held(stage: StageUnderTest, case: Case) -> Iterator[tuple[str, Tensor]]:
    """What the hooks' keys made, and the slots that hooks write; workspaces may hold anything.

    A plan is numbers of rows and blocks: what is larger than MOST_BYTES is a library's scratch.
    """
    for name, tensor in planned_tensors(stage.runner, stage.runner.table[case.padded]):
        if not name.endswith(" workspace") and tensor.nbytes <= MOST_BYTES:
            yield f"made {name}", tensor
    for info, tensor in stage.slots(case):
        if info.source == "hook":
            yield f"slot {info.name} ({info.line})", tensor
