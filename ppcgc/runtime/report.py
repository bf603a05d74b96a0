"""What a runner holds and did, as a table for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ppcgc.runtime.stage_captured import CapturedStage


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketReport:
    """``padding_rows`` counts, for each axis, rows that replays computed for nobody.

    ``operations`` are those of one replay, None where the backend does not count them.
    """

    padded: tuple[int, ...]
    captured: bool
    dropped: str | None = None  # why no rank has a graph of it
    operations: int | None
    replays: int
    padding_rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookReport:
    """``plan_seconds`` is time on the host, of all plans, waits for earlier ones left out."""

    name: str
    plans: int
    plan_seconds: float

    def __str__(self) -> str:
        each = self.plan_seconds / self.plans * 1e6 if self.plans else 0.0
        return f"hook {self.name}: {self.plans} plans, {each:,.0f} us each on the host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Bytes are measured: what the arena, the host block and the backend's pool hold now."""

    title: str
    axes: tuple[str, ...]
    buckets: tuple[BucketReport, ...]
    eager: tuple[tuple[str, int], ...]
    slot_bytes: int
    host_block_bytes: int
    pool_bytes: int
    backend: str
    hooks: tuple[HookReport, ...] = ()
    compile: str = "none"  # what runs inside the graphs in the model's place
    calibration: str | None = None
    shares_with: tuple[str, ...] = ()  # runners whose steps write the same memory
    shared_bytes: int = 0  # of that memory, which is counted nowhere else

    @property
    def replays(self) -> int:
        return sum(bucket.replays for bucket in self.buckets)

    @property
    def eager_steps(self) -> int:
        return sum(count for _, count in self.eager)

    def _sharing(self) -> list[str]:
        names = ", ".join(self.shares_with)
        return [f"memory shared with {names}: {self.shared_bytes:,} bytes"] if names else []

    def __str__(self) -> str:
        head = ["bucket", "graph", "operations", "replays", *(f"padding {a}" for a in self.axes)]
        rows = [
            [
                " × ".join(map(str, bucket.padded)),
                "yes" if bucket.captured else "no",
                "-" if bucket.operations is None else str(bucket.operations),
                str(bucket.replays),
                *map(str, bucket.padding_rows),
            ]
            for bucket in self.buckets
        ]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = [
            "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True))
            for row in [head, *rows]
        ]
        eager = ", ".join(f"{count} ({reason})" for reason, count in self.eager) or "none"
        return "\n".join(
            [
                f"{self.title} on {self.backend}, buckets by {' × '.join(self.axes)}",
                *lines,
                *(
                    f"bucket {' × '.join(map(str, bucket.padded))} dropped: {bucket.dropped}"
                    for bucket in self.buckets
                    if bucket.dropped is not None
                ),
                f"eager steps: {eager}",
                *map(str, self.hooks),
                *([] if self.compile == "none" else [f"compile: {self.compile}"]),
                *([] if self.calibration is None else [self.calibration]),
                f"bytes: slots and outputs {self.slot_bytes:,}, host block "
                f"{self.host_block_bytes:,}, shared pool {self.pool_bytes:,}",
                *self._sharing(),
            ]
        )


def report_of(runner: CapturedStage[Any, Any, Any, Any, Any, Any]) -> Report:
    """The report of a runner as it stands."""
    return Report(
        title=(
            f"{runner.family}.{runner.runner}, {runner.place.value} stage, layers {runner.layers}"
        ),
        axes=runner.axes,
        buckets=tuple(
            BucketReport(
                padded=tuple(bucket.padded),
                captured=bucket.graph is not None,
                dropped=runner.dropped.get(bucket.padded),
                operations=None if bucket.graph is None else bucket.graph.steps,
                replays=bucket.replays,
                padding_rows=bucket.padding_rows,
            )
            for bucket in runner.table.values()
        ),
        eager=tuple((reason.value, count) for reason, count in runner.eager_steps.items()),
        slot_bytes=runner.arena.nbytes,
        host_block_bytes=runner.host_block_bytes,
        pool_bytes=runner.backend.pool_bytes(),
        backend=runner.backend.name,
        compile=runner.compiled_as,
        shares_with=() if runner.shared is None else runner.shared.others(runner),
        shared_bytes=0 if runner.shared is None else runner.shared.nbytes,
        calibration=None if runner.crossover is None else str(runner.crossover),
        hooks=tuple(
            HookReport(name=hook.info.name, plans=hook.plans, plan_seconds=hook.plan_seconds)
            for hook in runner.hook_calls.states
            if "plan" in hook.info.at
        ),
    )
