"""One step of a rank: the first chooses and sends a header, the others follow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from torch import Tensor

from ppcgc.runtime.choice import Choice
from ppcgc.runtime.errors import (
    DisagreementError,
    PeerError,
    PpcgcError,
    SourceError,
    StepRefusedError,
)
from ppcgc.runtime.missing_reads import read_by_step
from ppcgc.runtime.pipeline.channel import HeaderChannel
from ppcgc.runtime.pipeline.collectives import Collectives
from ppcgc.runtime.pipeline.counting import Counting
from ppcgc.runtime.pipeline.handoff import AnyRunner, HandOff, Side
from ppcgc.runtime.pipeline.header import Header, Path, header_of
from ppcgc.runtime.pipeline.layout import Wire
from ppcgc.runtime.pipeline.outbox import Outbox
from ppcgc.runtime.pipeline.shared_choice import SharedChoice
from ppcgc.runtime.pipeline.transport import Transfer, Transport
from ppcgc.runtime.stage import Step

Write: TypeAlias = Callable[[Step[Any, Any, Any]], None]  # the caller's rows of a begun step


class Refused(Exception):
    """Carries an error of a step that no rank has run."""

    def __init__(self, error: PpcgcError) -> None:
        super().__init__(str(error))
        self.error = error


class Steps:
    """The steps of one rank, over what its pipeline has connected.

    ``messages`` carries eager steps; ``transports`` has the transport of each runner's replays,
    ``incoming`` and ``outgoing`` are the blocks that its buckets lie in. ``first`` is the rank
    that chooses; with ``shared`` it does so together with those of other batches.
    """

    def __init__(
        self,
        *,
        rank: int,
        first: int,
        last: bool,
        handoffs: list[HandOff],
        transports: list[Transport],
        messages: Transport,
        channel: HeaderChannel,
        outbox: Outbox,
        incoming: Tensor | None,
        outgoing: Tensor | None,
        collectives: Collectives,
        counting: Counting,
        shared: SharedChoice | None,
    ) -> None:
        self.rank, self.first, self.last = rank, first, last
        self.handoffs, self.transports, self.messages = handoffs, transports, messages
        self.channel, self.outbox = channel, outbox
        self.incoming, self.outgoing = incoming, outgoing
        self.collectives, self.counting, self.shared = collectives, counting, shared
        self.step = 0
        self._write: Write | None = None  # of the step under way

    def run(self, number: int, batch: Any, write: Write | None = None) -> Any:
        """One step; ``write`` as in ``Pipeline.run``. Raises Refused for a batch that no rank has
        run, SourceError for slots that the caller leaves unwritten."""
        self._write = write
        self._check_written(number)
        return self.lead(number, batch) if self.leads else self.follow(number, batch)

    def _check_written(self, number: int) -> None:
        """The caller's slots are zero until they are written, and nobody would see why."""
        handoff = self.handoffs[number]
        if handoff.open_slots and self._write is None:
            raise SourceError(
                f"rank {self.rank}, step {self.step}: {handoff.runner.runner} has slots that the "
                f"caller writes ({', '.join(handoff.open_slots)}); give run(..., write=...), which "
                "is called with the begun step, or let a hook write them"
            )

    @property
    def leads(self) -> bool:
        return self.rank == self.first

    def lead(self, number: int, batch: Any) -> Any:
        """The step of the rank that chooses. Raises Refused before anything was sent but that."""
        runner = self.handoffs[number].runner
        try:
            live, choice, begun = self._chosen(number, batch)
        except PpcgcError as problem:
            if isinstance(problem, PeerError | DisagreementError):
                raise
            note = f"{type(problem).__name__}: {problem}"
            self.channel.send(Header(step=self.step, runner=number, path=Path.REFUSED, note=note))
            raise Refused(problem) from problem
        self.channel.send(header_of(self.step, number, live, choice))
        self.outbox.before_step()
        outputs = self._finished(runner, begun, choice)
        if choice.padded is not None:
            self.transports[number].replayed(self.step)
        self.collectives.queued(self.step)
        return self._hand_on(number, live, choice, outputs)

    def _chosen(self, number: int, batch: Any) -> tuple[Any, Choice[Any], Any]:
        """Live counts, the choice, and the step that is begun with it."""
        runner = self.handoffs[number].runner
        if self.shared is None:
            live, choice = runner.decide(batch)
            return live, choice, self._begun(runner, batch, None, live, choice)
        try:
            live, choice = runner.decide(batch)
            begun = self._begun(runner, batch, None, live, choice)
        except PpcgcError as problem:
            self.shared.refuse(self.step, number, problem)
            raise
        agreed = self.shared.choose(self.step, number, live, choice)
        if agreed is not choice:
            begun = self._begun(runner, batch, None, live, agreed)
        return live, agreed, begun

    def _begun(
        self, runner: AnyRunner, batch: Any, boundary: Any, live: Any, choice: Choice[Any]
    ) -> Step[Any, Any, Any]:
        """Nobody looks at the slots before the replay, but for a caller who writes some."""
        return runner.begin_as(batch, boundary, live, choice, in_graph=self._write is None)

    def follow(self, number: int, batch: Any) -> Any:
        """The step of any other rank. Raises Refused when the first rank refused the batch."""
        header = self.channel.receive(self.step)
        if header.path is Path.REFUSED:
            raise Refused(
                StepRefusedError(
                    f"rank {self.first} refused the batch of step {self.step}: {header.note}"
                )
            )
        self.agreed(header, number)
        handoff = self.handoffs[number]
        live = handoff.kind(*header.live)
        padded = handoff.kind(*header.padded) if header.path is Path.REPLAY else None
        choice: Choice[Any] = Choice(padded, header.reason, header.note)
        self._check_batch(number, batch, live, choice)
        return self._take_and_run(number, batch, live, choice)

    def end(self) -> None:
        """All ranks end here. Raises DisagreementError where another is at a step, PeerError kinds.

        Note [the end is said like a step]
            The first rank says it in a header. So a rank that ends while the others go on, or goes
            on while they end, finds out there, and not after a timeout that another might be
            blamed for.
        """
        if not self.leads:
            self.agreed(self.channel.receive(self.step), None)
            return
        if self.shared is not None:
            self.shared.end(self.step)
        self.channel.send(Header(step=self.step, runner=0, path=Path.END))

    def agreed(self, header: Header, number: int | None) -> None:
        """Raises DisagreementError unless this rank is about to do what the header says.

        ``number`` is the runner of the step, None at the end of a stream.
        """
        said = None if header.path is Path.END else header.runner
        if header.step != self.step or said != number:
            theirs, mine = self._doing(said), self._doing(number)
            raise DisagreementError(
                f"step {self.step}: rank {self.first} is at {theirs} (its step {header.step}), "
                f"rank {self.rank} at {mine}; call all ranks with the same batches in the same "
                "order"
            )

    def _doing(self, number: int | None) -> str:
        return "the end" if number is None else f"a step of {self.handoffs[number].runner.runner}"

    def _check_batch(self, number: int, batch: Any, live: Any, choice: Choice[Any]) -> None:
        """Raises DisagreementError for another batch than the first rank's."""
        runner = self.handoffs[number].runner
        try:
            own = runner.extents(batch)
        except AttributeError as problem:
            if not read_by_step(problem, runner.inputs_type.__module__):
                raise
            raise SourceError(f"rank {self.rank}, step {self.step}: {problem}") from problem
        if own != live:
            raise DisagreementError(
                f"step {self.step}: rank {self.first} has a batch of {live}, rank {self.rank} one "
                f"of {own}; call all ranks with the same batches in the same order"
            )
        absent = runner.inputs.absent(batch)
        if absent is not None and choice.padded is not None:
            raise DisagreementError(
                f"step {self.step}: slot {absent} is absent on rank {self.rank}, which wants an "
                f"eager step, but rank {self.first} chose a replay; give all ranks what the spec "
                "reads"
            )

    def _take_and_run(self, number: int, batch: Any, live: Any, choice: Choice[Any]) -> Any:
        runner, takes = self.handoffs[number].runner, self.handoffs[number].takes
        padded = choice.padded
        transport = self.messages if padded is None else self.transports[number]
        boundary, wire, block = None, Wire(()), self.incoming
        if takes is None:
            pass  # a rank of the first stage that does not choose
        elif padded is None:
            wire = takes.eager_wire(live)
            block, boundary = takes.fresh(live)
        else:
            wire = takes.wire(padded, live)
            boundary = takes.live_views(runner.table[padded].boundary, live, padded)
        # what is received is written behind the last step, whatever stream that was on
        runner.backend.join_stream()
        coming: list[Transfer] = []
        if block is not None and not transport.in_graph:
            coming = [transport.receive(block[piece], self.step) for piece in wire.pieces]
        begun = self._begun(runner, batch, boundary, live, choice)
        self.outbox.before_step()
        for transfer in coming:
            if padded is None:
                transfer.confirm()  # the model may read values on the host: only of what has come
            else:
                transfer.wait()
        if block is not None and wire.joined is not None:
            self.collectives.join(block[wire.joined], self.step)
        outputs = self._finished(runner, begun, choice)
        if moved := transport.replayed(self.step):
            coming = [moved]
        self.collectives.queued(self.step)
        result = self._hand_on(number, live, choice, outputs)
        for transfer in coming if self.last else ():
            transfer.confirm()  # what is returned must rest on bytes that have come
        return result

    def _finished(self, runner: AnyRunner, begun: Any, choice: Choice[Any]) -> Any:
        """See Note [a collective belongs to its step] in ``counting``."""
        if self._write is not None:
            self._write(begun)
        if choice.padded is not None or not self.counting:
            with self.collectives.watched(self.step):
                return runner.finish(begun)
        before = self.counting.now()
        with self.collectives.watched(self.step):
            outputs = runner.finish(begun)
        self.counting.compare(self.step, before)
        return outputs

    def _hand_on(self, number: int, live: Any, choice: Choice[Any], outputs: Any) -> Any:
        hands = self.handoffs[number].hands
        if hands is None:
            return outputs
        if choice.padded is None:
            wire = hands.eager_wire(live)
            if wire.pieces:
                self.outbox.send_own(hands.pack(outputs, live), wire, self.messages, self.step)
            return None
        transport = self.transports[number]
        wire = hands.wire(choice.padded, live)
        if wire.pieces and not transport.in_graph and self.outgoing is not None:
            self.outbox.send(self.outgoing, wire, transport, self.step)
        return None


def part(block: Tensor | None, side: Side | None, padded: Any) -> Tensor | None:
    """What a replay moves by itself: a bucket's block up to its last padded row."""
    if block is None or side is None:
        return None
    pieces = side.wire(padded, padded).pieces
    return block[pieces[0]] if pieces else block[:0]
