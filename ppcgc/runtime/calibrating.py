"""Measuring each bucket against eager at build, so that no step is slower for its graph.

See Note [a padded replay can lose to eager] in ``crossover``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import torch

from ppcgc.runtime.choice import Choice
from ppcgc.runtime.errors import BuildError, NotCapturedError, PpcgcError
from ppcgc.runtime.joining import check_list
from ppcgc.runtime.stage import StageRunner
from ppcgc.runtime.stage_kinds import EntryStage, LaterStage

if TYPE_CHECKING:  # see Note [what an import does not need] in ``ppcgc.runtime``
    from ppcgc.runtime.crossover import Crossover

AnyRunner = StageRunner[Any, Any, Any, Any, Any, Any]
Extents = tuple[int, ...]
Progress = Callable[[str], None]


class Clock(Protocol):
    """Times a step."""

    def seconds(self, step: Callable[[], object]) -> float:
        """Seconds of ``step`` as one of a stream of steps."""
        ...


class StreamClock:
    """Runs a step again and again for about ``budget`` seconds, and waits for the device once.

    The best of three streams: what disturbs a measurement only ever adds to it.

    Note [behind a first step]
        While the first step of a stream is launched the device stands still, which a step of many
        launches pays for and a replay does not. In service the device still has the step before:
        so on a GPU a stream is measured from the end of its first step.
    """

    def __init__(self, device: torch.device, budget: float = 0.06) -> None:
        self.device = device
        self.budget = budget

    def _stream(self, step: Callable[[], object], count: int) -> float:
        step()
        if self.device.type != "cuda":
            start = perf_counter()
            _repeat(step, count)
            return (perf_counter() - start) / count
        begun = self._mark()
        _repeat(step, count)
        ended = self._mark()
        self.wait()
        return float(begun.elapsed_time(ended)) / 1e3 / count

    def _mark(self) -> torch.cuda.Event:
        """Where the stream of steps is now."""
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # torch's
        event.record(torch.cuda.current_stream(self.device))
        return event

    def wait(self) -> None:
        """Until the device has done all of it."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def repeats(self, each: float) -> int:
        """How often a step of ``each`` seconds is run in one stream."""
        return max(3, min(200, round(self.budget / max(1e-7, each) / 3)))

    def seconds(self, step: Callable[[], object]) -> float:
        self._stream(step, 1)  # kernels are loaded at their first call
        count = self.repeats(self._stream(step, 2))
        return min(self._stream(step, count) for _ in range(3))


def calibrate(
    runners: Sequence[AnyRunner],
    *,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> tuple[Crossover, ...]:
    """Time every bucket and eager at a few live sizes; steps that eager wins then run eagerly.

    For captured runners of one process; ranks of a pipeline use ``Pipeline.calibrate``. Stages of
    one runner are measured one after the other and added up, for they all take the same path. Such
    a step is recorded with ``Reason.SLOWER``. A runner with ``require_graph`` is left as it is.
    Batches are those of capture: they write reserved rows of the state alone.
    ``runner.use_calibration(None)`` takes it back, and ``use_calibration(kept)`` applies one that
    was kept, so that a build can be repeated exactly. Raises NotCapturedError, and BuildError for
    a rank's runner, or what is no list of runners.
    """
    check_list(runners, "calibrate")
    say = progress or _silent
    for runner in runners:
        if not runner.captured:
            raise NotCapturedError(f"{runner}: capture it before it is calibrated")
        if runner.among_ranks:
            raise BuildError(
                f"{runner}: other ranks have its other stages, and all must take one path; use the "
                "`calibrate` of its pipeline"
            )
    names = dict.fromkeys((runner.family, runner.runner) for runner in runners)
    found = []
    for name in names:
        stages = [runner for runner in runners if (runner.family, runner.runner) == name]
        if any(stage.require_graph for stage in stages):
            say(f"{'.'.join(name)} always replays: `require_graph: true`")
            continue
        with counters_kept(stages):
            crossover = measure(stages, clock or StreamClock(stages[0].device), say)
        for stage in stages:
            stage.use_calibration(crossover)
        found.append(crossover)
    return tuple(found)


@contextmanager
def counters_kept(stages: Sequence[AnyRunner]) -> Iterator[None]:
    """Reports count the steps of users, not those that were measured inside the block."""
    kept = [
        (
            dict(stage.eager_steps),
            stage.last_step,
            {
                padded: (bucket.replays, bucket.padding_rows)
                for padded, bucket in stage.table.items()
            },
        )
        for stage in stages
    ]
    try:
        yield
    finally:
        for stage, (eager, last, buckets) in zip(stages, kept, strict=True):
            stage.eager_steps, stage.last_step = eager, last
            stage.forget_choices()
            for padded, (replays, padding) in buckets.items():
                stage.table[padded].count_from(replays, padding)


def measure(
    stages: Sequence[AnyRunner],
    clock: Clock,
    say: Progress,
    reduced: Callable[[Sequence[float]], Sequence[float]] = tuple,
) -> Crossover:
    """The crossover of one runner, whose ``stages`` here are added up.

    ``reduced`` makes the seconds of this process those of all processes, in the same order.
    """
    runner = stages[0]
    for stage in stages:
        stage.use_calibration(None)
    column = varied_column(tuple(runner.buckets))
    sizes, seconds = [], []
    for padded in sorted(runner.buckets):
        if any(padded in stage.dropped for stage in stages):
            continue
        say(f"calibrate {runner.family}.{runner.runner} {runner.columns[column]} {padded[column]}")
        lives = list(live_sizes(runner, padded, column))
        sizes.append((padded, [live[column] for live in lives]))
        for live, replays in [(lives[-1], True), *((live, False) for live in lives)]:
            seconds.append(
                sum(clock.seconds(step_of(stage, live, padded, replays)) for stage in stages)
            )
    from ppcgc.runtime.crossover import BucketTimes, Crossover, least_live

    all_seconds = iter(reduced(seconds))
    times = []
    for padded, rows in sizes:
        replay = next(all_seconds)
        eager = tuple((live, next(all_seconds)) for live in rows)
        least = least_live(replay, eager)
        times.append(BucketTimes(padded=tuple(padded), replay=replay, eager=eager, least=least))
    return Crossover(
        runner=f"{runner.family}.{runner.runner}",
        axis=runner.columns[column],
        column=column,
        buckets=tuple(times),
    )


def varied_column(buckets: Sequence[Extents]) -> int:
    """The first column in which buckets differ, 0 for a single bucket."""
    columns = enumerate(zip(*buckets, strict=True))
    return next((at for at, sizes in columns if len(set(sizes)) > 1), 0)


def live_sizes(runner: AnyRunner, padded: Extents, column: int) -> Iterator[Extents]:
    """Live extents that take this bucket: its fewest, some between, the most. Ascending."""
    full = runner.with_largest(runner.buckets[padded])
    below = max(
        (size[column] for size in runner.buckets if size[column] < padded[column]), default=0
    )
    low, high = below + 1, full[column]
    for rows in sorted({low, (low + high) // 2} - {high}):
        kind = type(full)
        alone = kind(*(rows if at == column else size for at, size in enumerate(full)))
        all_cut = kind(*(min(rows, size) for size in full))
        for live in dict.fromkeys(map(runner.with_largest, (alone, all_cut))):
            if _takes(runner, live, padded):
                yield live
                break
    yield full


def _takes(runner: AnyRunner, live: Any, padded: Extents) -> bool:
    try:
        choice: Choice[Any] = runner.choose(live)
        # an axis that equals another has no count of its own
        same = runner.extents(runner.capture_batch(live, padded)) == live
    except PpcgcError:  # a limit of the spec, a list of a group that says another count
        return False
    return bool(choice.padded == padded and same)


def step_of(runner: AnyRunner, live: Any, padded: Any, replays: bool) -> Callable[[], object]:
    """A step on a batch with these live rows: a replay, or the model itself."""
    batch = runner.capture_batch(live, padded)
    if isinstance(runner, EntryStage):
        run = runner.run if replays else runner.eager
        return lambda: run(batch)
    assert isinstance(runner, LaterStage)  # a stage is the one or the other
    boundary = runner.incoming.held(
        {
            info.name: torch.zeros(info.shape, dtype=info.dtype, device=runner.device)
            for info in runner.incoming.in_step(live, padded if replays else None)
        }
    )
    run_later = runner.run if replays else runner.eager
    return lambda: run_later(batch, boundary)


def _repeat(step: Callable[[], object], count: int) -> None:
    for _ in range(count):
        step()


def _silent(_: str) -> None:
    return None
