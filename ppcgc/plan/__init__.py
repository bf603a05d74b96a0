"""The plan: bucket tables, kinds of stage, placement of slots, fingerprint."""

from __future__ import annotations

from ppcgc.ir import Family, Runner
from ppcgc.plan.buckets import bucket_table, columns
from ppcgc.plan.fingerprint import fingerprint
from ppcgc.plan.late import late_names
from ppcgc.plan.limits import limits_of
from ppcgc.plan.model import BucketPlan, KindPlan, Placement, Plan, RunnerPlan, SlotPlan
from ppcgc.plan.stages import kinds_of, places_of

__all__ = [
    "BucketPlan",
    "KindPlan",
    "Placement",
    "Plan",
    "RunnerPlan",
    "SlotPlan",
    "plan",
    "runner_plan",
]


def plan(family: Family) -> Plan:
    """Decide everything that does not need the model's config."""
    return Plan(
        family=family,
        runners=tuple(runner_plan(family, runner) for runner in family.runners),
        fingerprint=fingerprint(family),
    )


def runner_plan(family: Family, runner: Runner) -> RunnerPlan:
    """The plan of one runner; without buckets where only a build knows them."""
    axes = {axis.name: axis for axis in family.axes}
    late = bool(late_names(runner, axes))
    return RunnerPlan(
        runner=runner,
        axes=tuple(rule.axis for rule in runner.buckets),
        columns=columns(runner, axes),
        buckets=() if late else bucket_table(runner, axes),
        late=late,
        limits=limits_of(runner, axes),
        kinds=kinds_of(runner, places_of(family.pipeline)),
    )
