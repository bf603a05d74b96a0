"""The plan: bucket tables, kinds of stage, placement of slots, fingerprint."""

from __future__ import annotations

from ppcgc.ir import Family, Runner
from ppcgc.plan.buckets import bucket_table, columns
from ppcgc.plan.fingerprint import fingerprint
from ppcgc.plan.model import BucketPlan, KindPlan, Placement, Plan, RunnerPlan, SlotPlan
from ppcgc.plan.stages import kinds_of, places_of

__all__ = ["BucketPlan", "KindPlan", "Placement", "Plan", "RunnerPlan", "SlotPlan", "plan"]


def plan(family: Family) -> Plan:
    """Decide everything that does not need the model's config."""
    return Plan(
        family=family,
        runners=tuple(_runner_plan(family, runner) for runner in family.runners),
        fingerprint=fingerprint(family),
    )


def _runner_plan(family: Family, runner: Runner) -> RunnerPlan:
    axes = {axis.name: axis for axis in family.axes}
    return RunnerPlan(
        runner=runner,
        axes=tuple(rule.axis for rule in runner.buckets),
        columns=columns(runner, axes),
        buckets=bucket_table(runner, axes),
        kinds=kinds_of(runner, places_of(family.pipeline)),
    )
