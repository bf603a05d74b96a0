"""Outputs: live rows only, all of them written, and valid until the next run."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.runtime.errors import StaleOutputError
from ppcgc.runtime.verification.cases import Case, another
from ppcgc.runtime.verification.comparing import (
    changed_rows,
    differing,
    listed,
    same_bits,
    tensors_of,
)
from ppcgc.runtime.verification.poison import poison_bytes
from ppcgc.runtime.verification.session import Outcome, Session, cloned
from ppcgc.runtime.verification.stages import StageUnderTest
from ppcgc.runtime.verification.verdicts import Finding


def check(session: Session) -> Outcome:
    findings: list[Finding] = []
    steps = 0
    for stage, case in session.one_a_bucket("outputs"):
        steps += 1
        findings += _trimmed(stage, case)
        stage.restore()
        findings += _written(stage, case)
        stage.restore()
        findings += _overwritten(session, stage, case)
    return Outcome(f"outputs of {steps} steps are trimmed, whole, and guarded once stale", findings)


def _trimmed(stage: StageUnderTest, case: Case) -> Iterator[Finding]:
    """The shapes of a replay are those of an eager step, which the spec's contract checks."""
    eager = stage.eager_at_live_shape(case).outputs
    stage.restore()
    for name, tensor in stage.replay(case).outputs.items():
        if name in eager and tensor.shape != eager[name].shape:
            yield Finding(
                where=stage.where(case),
                subject=f"output {name}",
                what=f"a replay gives {list(tensor.shape)}, live rows are "
                f"{list(eager[name].shape)}",
                mend="cut the output back to the live rows of its own axis",
            )


def _written(stage: StageUnderTest, case: Case) -> Iterator[Finding]:
    """Every live row is written by the replay."""
    step = stage.begin(case)
    buffers = tensors_of(stage.runner.table[case.padded].outputs)
    for tensor in buffers.values():
        poison_bytes(tensor)
    before = {name: tensor.clone() for name, tensor in buffers.items()}
    for name, tensor in tensors_of(stage.runner.finish(step)).items():
        if name not in before or tensor.dim() == 0 or not tensor.numel():
            continue
        old = before[name]
        for dim, extent in enumerate(tensor.shape):
            old = old.narrow(dim, 0, extent)
        same = set(range(tensor.shape[0])) - set(changed_rows(old, tensor))
        if same:
            yield Finding(
                where=stage.where(case),
                subject=f"output {name}",
                what=f"the replay did not write rows {listed(sorted(same))}",
                mend="write every row of the result, padded ones too",
            )


def _overwritten(session: Session, stage: StageUnderTest, case: Case) -> Iterator[Finding]:
    """Outputs stay until the next run; then a guarded view raises, a kept one is unchanged."""
    others = [one for one in session.cases if one is not case]
    second = another(session.subject, case)
    if second is not None:
        others.insert(0, session.with_boundaries(second))
    if not others:
        return
    first = stage.runner.finish(stage.begin(case))
    then = cloned(first)
    shared = {
        buffer.untyped_storage().data_ptr()
        for prefix in ("output.", "handed.")
        for _, buffer in stage.runner.arena.named(prefix)
    }
    stage.restore_state()
    stage.begin(others[0])
    for name, how in differing(tensors_of(then), tensors_of(first)).items():
        yield Finding(
            where=stage.where(case),
            subject=f"output {name}",
            what=f"the load of the next batch changes it before it runs: {how}",
            mend="give outputs memory of their own",
        )
    stage.restore_state()
    stage.replay(others[0])
    for name, tensor in tensors_of(first).items():
        kept = tensor.untyped_storage().data_ptr() not in shared
        if kept and not same_bits(tensor, tensors_of(then)[name]):
            yield Finding(
                where=stage.where(case),
                subject=f"output {name}",
                what="it is not a view of the output buffer, and the next run overwrites it",
                mend="store results with the spec's outputs; `keep: clone` keeps a copy",
            )
    yield from _guarded(stage, case, others[0])


def _guarded(stage: StageUnderTest, case: Case, other: Case) -> Iterator[Finding]:
    """What a run returns is that run's, and says so when it is read after the next."""
    stage.restore()
    stage.runner.guard_views()
    try:
        first = stage.runner.finish(stage.begin(case))
        stage.restore_state()
        stage.runner.finish(stage.begin(other))
        for name, tensor in tensors_of(first).items():
            if type(tensor).__name__ != "GuardedView":
                continue
            try:
                tensor.clone()
            except StaleOutputError:
                continue
            yield Finding(
                where=stage.where(case),
                subject=f"output {name}",
                what="the view that a run returned is handed out again by the next run",
                mend="return the outputs of this run; copy what has to outlive it",
            )
    finally:
        stage.runner.guard_views(False)
