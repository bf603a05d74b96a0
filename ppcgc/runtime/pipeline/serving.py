"""A rank of a pipeline that serves: the same steps on all ranks, chosen by the first.

A step, on every rank: the first rank chooses and sends a header; each rank loads its slots,
takes the boundary into them, replays, and hands on. Every rank is called with the same batches
in the same order, since each fills its own slots from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from ppcgc.runtime.calibrating import Clock
from ppcgc.runtime.capturing import AnyBucket, Progress
from ppcgc.runtime.crossover import Crossover
from ppcgc.runtime.errors import BuildError, PpcgcError
from ppcgc.runtime.pipeline.calibrating import RanksClock, agree_on_kept, calibrate_together
from ppcgc.runtime.pipeline.capturing import capture_together
from ppcgc.runtime.pipeline.handoff import AnyRunner
from ppcgc.runtime.pipeline.opening import OpenPipeline
from ppcgc.runtime.pipeline.report import PipelineReport, environment
from ppcgc.runtime.pipeline.steps import Refused, Write, part


class Pipeline(OpenPipeline):
    """This rank's stage among the ranks of a pipeline.

    ``runners`` are this stage's own, built with the same names in the same order on all ranks.
    ``transport`` overrides what their spec declares; ``in_flight`` batches may be on their way
    to the next rank; every wait for another rank ends within ``timeout`` seconds (and some half a
    second more to find out who is at fault; as long again where the process that hosts the store
    of the process group has stopped). On GPUs a hand-off that has not happened a second
    after that ends the pipeline too, wherever the host is then (see ``watch``). ``lanes`` are lists
    of ranks, one for each pipeline of the world, in the order of their stages: one pipeline of all
    ranks by default. Where the runners were built for ranks of tp or dp, each of these has its own
    lane; those that meet in collectives take every step together (see ``team``), and the first
    rank of tp chooses for all.

    Opening it compares the ranks: AgreementError, on all of them, names two that differ and both
    values. Other errors: BuildError without a process group, TransportError, HandOffTimeoutError
    for a rank that does not come.
    """

    # ------------------------------------------------------------ capture

    def capture(self, *, share: bool = False, progress: Progress | None = None) -> None:
        """Warm up and capture every bucket, all ranks together; ``share`` as in ``capture``.

        A bucket that one rank could not capture is dropped by all: ``dropped`` and the report
        say why. Raises as ``capture`` of one process does, PeerError where another rank failed.
        """
        self._ready()
        try:
            # connecting waits inside NCCL: whoever is late or gone is found before
            self._board.exchange("start of the capture", "capture", step=self.step)
            for transport in (self._messages, *self._transports.values()):
                transport.warm_up()
            self._collectives.warm_up()
            self.dropped = capture_together(
                self._runners,
                self._board,
                self._body,
                self._collectives.watched,
                self._counting,
                share=share,
                progress=progress,
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
        stage = runner.body(bucket, arrive=lambda: transport.arrive(incoming))

        def run() -> None:
            stage()
            transport.depart(incoming, outgoing)

        return run

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
            found = calibrate_together(
                self._runners,
                self._board,
                clock or RanksClock(self._device, self._board, self._faults),
                {r.runner: self._transports[n].in_graph for r, n in self._named()},
                progress or (lambda _: None),
            )
            for transport in self._transports.values():
                transport.recount()
            return found
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

    def run(self, runner: str, batch: Any, write: Write | None = None) -> Any:
        """One step of a runner, on all ranks with the same batch.

        ``write`` is called with the begun step on this rank, between its load and its replay: it
        writes the slots of ``source: caller``, and a runner that has some is not run without it.
        Its live counts are compared with the first rank's; other values of the same counts are not.
        Returns the outputs on the last rank (valid as long as the spec's ``keep`` says), None on
        the others, which may be ahead. A batch that the first rank refuses raises its error
        there and StepRefusedError elsewhere, and the next step may follow. Any other error ends
        the pipeline on all ranks: PeerError names the rank and the step.
        """
        self._ready_to_run()
        number = self._numbers.get(runner)
        if number is None:
            raise BuildError(f"no runner {runner!r}: this rank has {', '.join(self._numbers)}")
        refused: PpcgcError | None = None
        outputs = None
        try:
            self._faults.check()
            outputs = self._steps.run(number, batch, write)
            self._faults.check()
        except Refused as refusal:
            refused = refusal.error
        except BaseException as problem:
            known = self._faults.tripped  # then it is a consequence: of what was broken off
            self._give_up(known or problem)
            if known is None or known is problem:
                raise
            raise known from problem
        self._steps.step += 1
        if refused is not None:  # not while Refused is handled, whose cause this error is
            raise refused
        return outputs

    def stream(
        self, steps: Iterable[tuple[str, Any] | tuple[str, Any, Write | None]]
    ) -> Iterator[Any]:
        """Run ``(runner, batch)`` after ``(runner, batch)``, the same on all ranks.

        A third member is ``write`` of ``run``.
        Yields what ``run`` returns. Ranks work on different batches at once: each goes on as soon
        as its boundary is on its way. At the end all ranks wait for each other, so that none
        believes in outputs that a later rank never made: DisagreementError for a rank that has
        another number of steps.
        """
        for runner, batch, *write in steps:
            yield self.run(runner, batch, *write)
        self._ready()
        try:
            self._faults.check()
            self._end("end of the stream")
        except BaseException as problem:
            self._give_up(problem)
            raise

    # ------------------------------------------------------------ afterwards

    @property
    def device(self) -> torch.device:
        """Where this rank's stage runs."""
        return self._device

    def exchange(self, what: str, text: str) -> list[str]:
        """Every rank's text, by rank, once all that was sent has gone. Raises PeerError kinds."""
        self._ready()
        self._outbox.settle(on_host=True)
        self._channel.settle()
        return self._board.exchange(what, text, step=self.step)

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
