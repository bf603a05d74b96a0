"""A rank of a pipeline that serves: the same steps on all ranks, chosen by the first.

A step, on every rank: the first rank chooses and sends a header; each rank loads its slots,
takes the boundary into them, replays, and hands on. Every rank is called with the same batches
in the same order, since each fills its own slots from them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from torch.distributed import distributed_c10d as c10d

from ppcgc.runtime.calibrate import Clock
from ppcgc.runtime.capture import AnyBucket, Progress
from ppcgc.runtime.crossover import Crossover
from ppcgc.runtime.errors import (
    AgreementError,
    BuildError,
    NotCapturedError,
    PeerError,
)
from ppcgc.runtime.pipeline.agreement import agree, terms_of
from ppcgc.runtime.pipeline.board import Board, Failure, own_store
from ppcgc.runtime.pipeline.calibrating import RanksClock, agree_on_kept, calibrate_together
from ppcgc.runtime.pipeline.capturing import capture_together
from ppcgc.runtime.pipeline.channel import HeaderChannel
from ppcgc.runtime.pipeline.faults import Faults
from ppcgc.runtime.pipeline.groups import Groups, open_groups, own_lane
from ppcgc.runtime.pipeline.handoff import AnyRunner, HandOff
from ppcgc.runtime.pipeline.header import Header, Path
from ppcgc.runtime.pipeline.outbox import Outbox
from ppcgc.runtime.pipeline.report import PipelineReport, environment
from ppcgc.runtime.pipeline.steps import Refused, Steps, part
from ppcgc.runtime.pipeline.transport import Transport, check_transports, open_transport
from ppcgc.runtime.pipeline.transport.base import Queued
from ppcgc.runtime.pipeline.transport.eager import EagerTransport
from ppcgc.runtime.pipeline.watch import BreakOff

_opened = itertools.count()  # all ranks open their pipelines in one order, as they do groups


class Pipeline:
    """This rank's stage among the ranks of a pipeline.

    ``runners`` are this stage's own, built with the same names in the same order on all ranks.
    ``transport`` overrides what their spec declares; ``in_flight`` batches may be on their way
    to the next rank; every wait for another rank ends within ``timeout`` seconds (and some half a
    second more to find out who is at fault). ``lanes`` are lists of ranks, one for each pipeline
    of the world, in the order of their stages: one pipeline of all ranks by default.

    Opening it compares the ranks: AgreementError, on all of them, names two that differ and both
    values. Other errors: BuildError without a process group, TransportError, HandOffTimeoutError
    for a rank that does not come.
    """

    def __init__(
        self,
        runners: Sequence[AnyRunner],
        *,
        transport: str | None = None,
        in_flight: int = 2,
        timeout: float = 30.0,
        lanes: Sequence[Sequence[int]] | None = None,
        store: c10d.Store | None = None,
    ) -> None:
        if not runners or in_flight < 1:
            raise BuildError("a pipeline has at least one runner, and one batch in flight")
        lane = own_lane(lanes)
        self.rank, self.size = lane.stage, lane.size
        self.dropped: Mapping[str, str] = {}
        self._runners = list(runners)
        self._device = runners[0].device
        self._numbers = {runner.runner: number for number, runner in enumerate(runners)}
        self._names = [transport or runner.transport for runner in runners]
        self._board = Board(
            store or own_store(),
            f"ppcgc/{next(_opened)}/{lane.number}",
            rank=self.rank,
            size=self.size,
            timeout=timeout,
        )
        self._faults = Faults(self._board, timeout)
        self._groups = Groups(control=None, incoming=None, outgoing=None)
        self._break_off = BreakOff()
        self._failed: str | None = None
        self._closed = self._connected = self._captured = False
        try:
            self._handoffs = [HandOff(runner) for runner in runners]
            for runner in runners:
                runner.among_ranks = lane.size > 1
            check_transports(self._names, self._device)
            self.fingerprint = agree(self._board, terms_of(self._handoffs, self._names))
            self._groups = open_groups(
                lanes if lanes is not None else [lane.ranks],
                lane,
                self._device,
                timeout,
                captured="captured" in self._names,
            )
            self._break_off.add(self._groups.aborts())
            if self._device.type == "cuda":
                self._faults.watch(self._break_off.start)
            self._connect(in_flight)
        except BaseException as problem:
            self._give_up(problem)
            raise

    def _connect(self, in_flight: int) -> None:
        ends = (self._device, self._groups.incoming, self._groups.outgoing, self._faults)
        self._messages = EagerTransport(*ends)
        self._transports: dict[str, Transport] = {
            name: open_transport(name, *ends) for name in dict.fromkeys(self._names)
        }
        incoming = max(side.nbytes if (side := h.takes) else 0 for h in self._handoffs)
        outgoing = max(side.nbytes if (side := h.hands) else 0 for h in self._handoffs)
        keeper = self._transports[self._names[0]]
        self._incoming, self._outgoing = keeper.blocks(incoming, outgoing)
        for handoff in self._handoffs:
            handoff.place(self._incoming, self._outgoing)
        self._outbox = Outbox(in_flight, outgoing, self._device)
        self._channel = HeaderChannel(
            self._groups.control,
            self._groups.incoming,
            self._groups.outgoing,
            self._faults,
            columns=max(len(next(iter(runner.buckets))) for runner in self._runners),
            ahead=in_flight,
        )
        self._steps = Steps(
            rank=self.rank,
            last=self.rank == self.size - 1,
            handoffs=self._handoffs,
            transports=[self._transports[name] for name in self._names],
            messages=self._messages,
            channel=self._channel,
            outbox=self._outbox,
            incoming=self._incoming,
            outgoing=self._outgoing,
        )
        self._connected = True

    @property
    def step(self) -> int:
        """The number of the next step, -1 before capture."""
        return self._steps.step if self._captured else -1

    # ------------------------------------------------------------ capture

    def capture(self, *, share: bool = False, progress: Progress | None = None) -> None:
        """Warm up and capture every bucket, all ranks together; ``share`` as in ``capture``.

        A bucket that one rank could not capture is dropped by all: ``dropped`` and the report
        say why. Raises as ``capture`` of one process does, PeerError where another rank failed.
        """
        self._ready()
        try:
            # connecting waits inside NCCL: whoever is late or gone is found before
            self._board.exchange("start of the capture", "capture")
            for transport in (self._messages, *self._transports.values()):
                transport.warm_up()
            self.dropped = capture_together(
                self._runners, self._board, self._body, share=share, progress=progress
            )
            self._captured = True
        except BaseException as problem:
            self._give_up(problem)
            raise

    def _body(self, runner: AnyRunner, bucket: AnyBucket) -> Any:
        number = self._numbers[runner.runner]
        handoff, transport = self._handoffs[number], self._transports[self._names[number]]
        incoming = part(self._incoming, handoff.takes, bucket.padded)
        outgoing = part(self._outgoing, handoff.hands, bucket.padded)
        return transport.around(runner.body(bucket), incoming, outgoing)

    # ------------------------------------------------------------ calibration

    def calibrate(
        self, *, clock: Clock | None = None, progress: Progress | None = None
    ) -> tuple[Crossover, ...]:
        """Time every bucket against eager, all ranks together; as ``runtime.calibrate`` does it.

        The ranks' seconds are put together before they are used (see Note [a choice is made for
        all stages] in ``calibrating``), so all ranks return and apply the same.
        """
        self._ready_to_run()
        try:
            self._outbox.settle(on_host=True)
            return calibrate_together(
                self._runners,
                self._board,
                clock or RanksClock(self._device, self._board, self._faults),
                {r.runner: self._transports[n].in_graph for r, n in self._named()},
                progress or (lambda _: None),
            )
        except BaseException as problem:
            self._give_up(problem)
            raise

    def use_calibration(self, kept: Sequence[Crossover] | None) -> None:
        """Apply what ``calibrate`` returned, on all ranks; None takes it back.

        Raises AgreementError, on all ranks, for ranks that were given different ones, BuildError
        for one of another runner.
        """
        self._ready_to_run()
        agree_on_kept(self._board, kept)
        by_name = {one.runner: one for one in kept or ()}
        for runner in self._runners:
            runner.use_calibration(by_name.pop(f"{runner.family}.{runner.runner}", None))
        if by_name:
            raise BuildError(f"the calibration is of {', '.join(by_name)}, which no rank has")

    def _named(self) -> Iterator[tuple[AnyRunner, str]]:
        return zip(self._runners, self._names, strict=True)

    # ------------------------------------------------------------ steps

    def run(self, runner: str, batch: Any) -> Any:
        """One step of a runner, on all ranks with the same batch.

        Returns the outputs on the last rank (valid as long as the spec's ``keep`` says), None on
        the others, which may be ahead. A batch that the first rank refuses raises its error
        there and StepRefusedError elsewhere, and the next step may follow. Any other error ends
        the pipeline on all ranks: PeerError names the rank and the step.
        """
        self._ready_to_run()
        number = self._numbers.get(runner)
        if number is None:
            raise BuildError(f"no runner {runner!r}: this rank has {', '.join(self._numbers)}")
        step = self._steps.lead if self.rank == 0 else self._steps.follow
        try:
            self._faults.check()
            outputs = step(number, batch)
            self._faults.check()
        except Refused as refusal:
            self._steps.step += 1
            raise refusal.error from refusal.error.__cause__
        except BaseException as problem:
            known = self._faults.tripped  # then it is a consequence: of what was broken off
            self._give_up(known or problem)
            if known is None or known is problem:
                raise
            raise known from problem
        self._steps.step += 1
        return outputs

    def stream(self, steps: Iterable[tuple[str, Any]]) -> Iterator[Any]:
        """Run ``(runner, batch)`` after ``(runner, batch)``, the same on all ranks.

        Yields what ``run`` returns. Ranks work on different batches at once: each goes on as soon
        as its boundary is on its way. At the end all ranks wait for each other, so that none
        believes in outputs that a later rank never made.
        """
        for runner, batch in steps:
            yield self.run(runner, batch)
        self._end()

    def _end(self) -> None:
        self._ready()
        try:
            self._faults.check()
            self._outbox.settle(on_host=True)
            if self.rank == 0:
                self._channel.send(Header(step=self.step, runner=0, path=Path.END))
            else:
                self._steps.agreed(self._channel.receive(self.step), None)
            self._channel.settle()
            self._board.exchange("end of the stream", "end")
        except BaseException as problem:
            self._give_up(problem)
            raise

    # ------------------------------------------------------------ afterwards

    def _ready(self) -> None:
        if self._closed:
            raise NotCapturedError("the pipeline is closed")
        if self._failed is not None:
            raise PeerError(f"the pipeline has ended: {self._failed}")

    def _ready_to_run(self) -> None:
        self._ready()
        if not self._captured:
            raise NotCapturedError("the pipeline has no graphs: call its `capture` first")

    def _give_up(self, problem: BaseException) -> None:
        """Say why on the board and let go: see Note [a failure cascades] in ``faults``."""
        text = f"{type(problem).__name__}: {problem}"
        self._failed = str(problem) if isinstance(problem, PeerError) else text
        if not isinstance(problem, PeerError | AgreementError):  # an agreement fails on all alike
            own = Failure(rank=self.rank, step=self.step, what=text.splitlines()[0])
            with suppress(PeerError):  # the store is gone too: the others see that for themselves
                self._board.publish(own)
        self._let_go()

    def _let_go(self) -> None:
        # Note [graphs close before NCCL]: a graph may hold messages of a communicator.
        failed = self._failed is not None
        if failed:
            self._break_off.start()  # see Note [graphs and communicators let go together]
        for runner in self._runners:
            with suppress(*([RuntimeError] if failed else [])):  # of a CUDA context that is lost
                runner.close()
        if self._connected:
            self._channel.drop()
            self._outbox.drop()
        self._faults.end_watch()
        if self._break_off.finished(self._faults.timeout):
            self._groups.close()

    def report(self) -> PipelineReport:
        """What this rank holds and did, the dropped buckets of all ranks among it."""
        blocks = (self._incoming, self._outgoing)
        return PipelineReport(
            rank=self.rank,
            size=self.size,
            fingerprint=self.fingerprint,
            transports=tuple(dict.fromkeys(self._names)),
            backend=self._runners[0].backend.name,
            steps=self.step,
            last_steps=tuple(
                (runner.runner, str(runner.last_step), runner.last_step.path == "replay")
                for runner in self._runners
                if runner.last_step is not None
            ),
            block_bytes=sum(b.nbytes for b in blocks if b is not None) + self._outbox.nbytes,
            environment=environment(),
            runners=tuple(runner.report() for runner in self._runners),
        )

    def close(self) -> None:
        """Finish what is under way, close graphs, then groups. Idempotent, and never raises
        for a rank that failed: every wait in it ends within the timeout."""
        if self._closed:
            return
        self._closed = True
        if self._failed is not None:
            return
        try:
            self._faults.check()
            self._outbox.settle(on_host=True)
            self._channel.settle()
            self._drain()
            self._board.exchange("end of the pipeline", "close")
        except PeerError as problem:
            self._failed = str(problem)
        self._let_go()

    def _drain(self) -> None:
        """Wait for what is queued on the GPU. Raises PeerError kinds."""
        edge = self._groups.incoming or self._groups.outgoing
        if self._device.type == "cuda" and edge is not None:
            Queued(self._faults, edge, self.step, self._device).confirm()

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if problem is not None and self._failed is None and not self._closed:
            self._give_up(problem)
        self.close()
