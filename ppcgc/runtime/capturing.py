"""Capture of every bucket of every runner of a process, in two phases.

Note [warm up every bucket before the first capture]
    A smaller batch can need a larger workspace than a bigger one, and a workspace that grows
    after a capture leaves that graph on freed memory. So every bucket runs once uncaptured, then
    all are captured, on one stream and from one pool, the largest first: blocks that a large
    bucket frees serve the smaller ones.

Note [load before run]
    Each warm-up and each capture comes right after a load of that very bucket (see Note [bytes
    belong to one bucket] in ``host_block``). Write indices point at reserved rows of the state
    then, so nothing has to be saved and restored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, TypeVar

import torch

from ppcgc.runtime.backends.collectives import messages_refused
from ppcgc.runtime.backends.model_line import UNKNOWN_LINE, line_of_error
from ppcgc.runtime.bucket import Bucket
from ppcgc.runtime.collecting import garbage_held
from ppcgc.runtime.compiling import first_to_compile, forward_compiled, prepare
from ppcgc.runtime.errors import BuildError, CaptureError, PpcgcError
from ppcgc.runtime.joining import check_together
from ppcgc.runtime.recording import all_keys_read
from ppcgc.runtime.sharing import share as share_memory
from ppcgc.runtime.stage_captured import CapturedStage

AnyRunner = CapturedStage[Any, Any, Any, Any, Any, Any]
RunnerT = TypeVar("RunnerT", bound=CapturedStage[Any, Any, Any, Any, Any, Any])
AnyBucket = Bucket[Any, Any, Any, Any]
Progress = Callable[[str], None]

ORDERS = ("descending", "ascending")


def capture(
    runners: Sequence[AnyRunner],
    *,
    order: str = "descending",
    compile: str | None = None,
    share: bool = False,
    progress: Progress | None = None,
) -> None:
    """Capture all buckets of all ``runners``; they share their backend's pool.

    ``compile`` (none, inductor) overrides what the specs say; see Note [compiled once for all
    buckets] in ``compiling``. ``share`` puts runners of a stage that do not overlap into the same
    memory (see ``sharing``): an output is then a view until the next run of any of them.
    ``progress`` is called with a line of text for each bucket. Graphs that a runner has already
    are closed first, so that two sets never share the memory. An error of a bucket names the
    runner and the bucket: what ppcgc refuses keeps its kind, an error of the model itself becomes
    CaptureError. What was captured so far is closed then; the runners can still run eagerly.
    """
    if order not in ORDERS:
        raise BuildError(f"order {order!r}: one of {', '.join(ORDERS)}")
    check_together(runners)
    say = progress or _silent
    make_ready(runners, share=share)
    # Note [buffers outlive inference mode]
    # What is made under torch.inference_mode() can never be written outside of it, and slots,
    # pools and outputs are written by every step, wherever that step is asked for.
    with torch.inference_mode(False), garbage_held():
        try:
            prepare(runners, compile)
            for runner in runners:
                if runner.compiled is not None:
                    say(f"compile {runner}")
                    warm_up(runner, first_to_compile(runner))
            for runner, bucket in in_order(runners, order):
                say(f"warm up {label(runner, bucket)}")
                warm_up(runner, bucket)
            for runner, bucket in in_order(runners, order):
                say(f"capture {label(runner, bucket)}")
                record(runner, bucket, runner.body(bucket))
        except BaseException:
            for runner in runners:
                runner.close()
            raise
    for runner in runners:
        runner.mark_captured()


def make_ready(runners: Sequence[AnyRunner], *, share: bool) -> None:
    """Close what was captured earlier, and give everything its final address."""
    for runner in runners:
        runner.close()
        runner.dropped.clear()
    if share:
        share_memory(runners)
    for runner in runners:
        runner.allocate()


def in_order(runners: Sequence[RunnerT], order: str) -> Iterator[tuple[RunnerT, AnyBucket]]:
    """Every bucket of every runner, by padded rows."""
    pairs = [(runner, bucket) for runner in runners for bucket in runner.table.values()]
    return iter(sorted(pairs, key=lambda pair: pair[1].padded, reverse=order == "descending"))


def label(runner: AnyRunner, bucket: AnyBucket) -> str:
    """``llama.prefill first, bucket tokens=64 requests=16``."""
    sizes = " ".join(f"{axis}={n}" for axis, n in zip(runner.columns, bucket.padded, strict=True))
    return f"{runner.family}.{runner.runner} {runner.place.value}, bucket {sizes}"


def warm_up(runner: AnyRunner, bucket: AnyBucket) -> None:
    """Load a bucket and run it once, uncaptured. Raises CaptureError and what ppcgc refuses."""
    try:
        runner.load_for_capture(bucket)
        with messages_refused(), all_keys_read(bucket.boundary, runner.keys_of_slots()) as shown:
            runner.backend.warm_up(runner.body(bucket, shown))
        if runner.compiled is not None:
            with forward_compiled(runner):
                runner.backend.warm_up(runner.body(bucket))
    except Exception as problem:
        _raise_located(problem, f"warm-up of {label(runner, bucket)}")


def record(runner: AnyRunner, bucket: AnyBucket, body: Callable[[], None]) -> None:
    """Load a bucket and capture ``body``, its region. Raises CaptureError."""
    try:
        runner.load_for_capture(bucket)
        with forward_compiled(runner):
            bucket.graph = runner.backend.capture(body)
    except Exception as problem:
        _raise_located(problem, f"capture of {label(runner, bucket)}")


def _raise_located(problem: Exception, doing: str) -> NoReturn:
    """Raise the same kind of error, or CaptureError for one of the model's own, with the place.

    The model's line is told with it, as the backends do for what a capture refuses.
    """
    if isinstance(problem, PpcgcError):
        raise type(problem)(f"{doing}: {problem}") from problem
    line = line_of_error(problem)
    at = "" if line == UNKNOWN_LINE else f"\n  at {line}"
    raise CaptureError(f"{doing}: {type(problem).__name__}: {problem}{at}") from problem


def _silent(_: str) -> None:
    return None
