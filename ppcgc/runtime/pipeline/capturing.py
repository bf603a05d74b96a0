"""Capture of a pipeline: all ranks take bucket after bucket together.

Note [a bucket belongs to all ranks or to none]
    A rank without the graph of a bucket would run eagerly while the others replay. So the ranks
    vote after each warm-up and each capture, and a bucket that one of them could not capture is
    dropped by all; its steps run eagerly everywhere, with the reason in every report.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch

from ppcgc.runtime.capturing import (
    AnyBucket,
    Progress,
    in_order,
    label,
    make_ready,
    record,
    warm_up,
)
from ppcgc.runtime.collecting import garbage_held
from ppcgc.runtime.compiling import first_to_compile, prepare
from ppcgc.runtime.errors import CaptureError, GraphRequiredError, PeerError
from ppcgc.runtime.pipeline.board import Board
from ppcgc.runtime.pipeline.counting import Counting
from ppcgc.runtime.pipeline.handoff import AnyRunner

Watched = Callable[[int, str], AbstractContextManager[None]]
Body = Callable[[AnyRunner, AnyBucket], Callable[[], None]]
GOOD, DROP, FATAL = "good", "drop", "fatal"


def capture_together(
    runners: Sequence[AnyRunner],
    board: Board,
    body: Body,
    watched: Watched = lambda step, what: nullcontext(),
    counting: Counting | None = None,
    *,
    order: str = "descending",
    share: bool = False,
    progress: Progress | None = None,
) -> Mapping[str, str]:
    """Warm up and capture every bucket; the dropped ones, by label without the place, and why.

    ``body`` gives the region to capture, ``watched`` makes errors of a collective tell who was
    not there, ``counting`` compares how many the ranks took part in. Raises on every rank: the
    error of the model or of ppcgc where it happened, PeerError elsewhere; DisagreementError for
    captures of unequally many; CaptureError when a runner has no bucket left, GraphRequiredError
    when it may not do without one.
    """

    def capture(runner: AnyRunner, bucket: AnyBucket) -> None:
        with watched(-1, f"the capture of {label(runner, bucket)}"):
            record(runner, bucket, body(runner, bucket))

    def warm(runner: AnyRunner, bucket: AnyBucket) -> None:
        with watched(-1, f"the warm-up of {label(runner, bucket)}"):
            warm_up(runner, bucket)

    make_ready(runners, share=share)
    try:
        with torch.inference_mode(False), garbage_held():
            prepare(runners, None)
            for runner in runners:
                if runner.compiled is not None:
                    one = first_to_compile(runner)
                    _together(board, counting, runner, one, "compile", progress, warm)
            for runner, bucket in in_order(runners, order):
                _together(board, counting, runner, bucket, "warm up", progress, warm)
            for runner, bucket in in_order(runners, order):
                if bucket.padded not in runner.dropped:
                    _together(board, counting, runner, bucket, "capture", progress, capture)
        _check_left(runners)
    except BaseException:
        for runner in runners:
            runner.close()
        raise
    for runner in runners:
        runner.mark_captured()
    return {
        f"{runner.runner} {padded}": why
        for runner in runners
        for padded, why in runner.dropped.items()
    }


def _together(
    board: Board,
    counting: Counting | None,
    runner: AnyRunner,
    bucket: AnyBucket,
    doing: str,
    progress: Progress | None,
    act: Callable[[AnyRunner, AnyBucket], None],
) -> None:
    if progress is not None:
        progress(f"{doing} {label(runner, bucket)}")
    problem: Exception | None = None
    before = counting.now() if counting else {}
    try:
        act(runner, bucket)
    except PeerError:
        raise  # it stands on the board, where the others find it instead of a vote
    except Exception as error:
        problem = error
    kind = GOOD if problem is None else DROP if isinstance(problem, CaptureError) else FATAL
    text = "" if problem is None else f"{type(problem).__name__}: {problem}"
    calls = counting.since(before) if counting else {}
    own = json.dumps([kind, text, calls])
    texts = board.exchange(f"vote on {runner.runner} {bucket.padded}", own)
    votes = dict(zip(board.members, map(json.loads, texts), strict=True))
    for rank, (vote, why, _) in votes.items():
        if vote == FATAL:
            if problem is not None:
                raise problem
            raise PeerError(f"rank {rank} could not {doing} {runner.runner} {bucket.padded}: {why}")
        if vote == DROP and bucket.padded not in runner.dropped:
            runner.drop(bucket.padded, f"rank {rank}: {why}")
    if counting and bucket.padded not in runner.dropped:
        took = {rank: theirs for rank, (_, _, theirs) in votes.items()}
        counting.compare_known(f"{doing} {label(runner, bucket)}", took, trial=doing != "capture")


def _check_left(runners: Sequence[AnyRunner]) -> None:
    for runner in runners:
        if not runner.dropped:
            continue
        padded, why = next(iter(runner.dropped.items()))
        if len(runner.dropped) == len(runner.table):
            raise CaptureError(f"{runner}: no bucket could be captured on all ranks; {why}")
        if runner.require_graph:
            raise GraphRequiredError(
                f"{runner}: bucket {padded} could not be captured on all ranks, and the spec says "
                f"`require_graph: true`; {why}"
            )
