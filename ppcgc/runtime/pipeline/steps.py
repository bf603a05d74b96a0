"""One step of a rank: the first chooses and sends a header, later ranks follow it."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ppcgc.runtime.choice import Choice
from ppcgc.runtime.errors import DisagreementError, PpcgcError, SourceError, StepRefusedError
from ppcgc.runtime.pipeline.channel import HeaderChannel
from ppcgc.runtime.pipeline.handoff import HandOff, Side
from ppcgc.runtime.pipeline.header import Header, Path
from ppcgc.runtime.pipeline.outbox import Outbox
from ppcgc.runtime.pipeline.transport import Transfer, Transport


class Refused(Exception):
    """Carries an error of a step that no rank has run."""

    def __init__(self, error: PpcgcError) -> None:
        super().__init__(str(error))
        self.error = error


class Steps:
    """The steps of one rank, over what its pipeline has connected.

    ``messages`` carries eager steps; ``transports`` has the transport of each runner's replays,
    ``incoming`` and ``outgoing`` are the blocks that its buckets lie in.
    """

    def __init__(
        self,
        *,
        rank: int,
        last: bool,
        handoffs: list[HandOff],
        transports: list[Transport],
        messages: Transport,
        channel: HeaderChannel,
        outbox: Outbox,
        incoming: Tensor | None,
        outgoing: Tensor | None,
    ) -> None:
        self.rank, self.last = rank, last
        self.handoffs, self.transports, self.messages = handoffs, transports, messages
        self.channel, self.outbox = channel, outbox
        self.incoming, self.outgoing = incoming, outgoing
        self.step = 0

    def lead(self, number: int, batch: Any) -> Any:
        """The first rank's step. Raises Refused before anything was sent but that."""
        runner = self.handoffs[number].runner
        try:
            live, choice = runner.decide(batch)
            begun = runner.begin_as(batch, None, live, choice, in_graph=True)
        except PpcgcError as problem:
            note = f"{type(problem).__name__}: {problem}"
            self.channel.send(Header(step=self.step, runner=number, path=Path.REFUSED, note=note))
            raise Refused(problem) from problem
        self.channel.send(
            Header(
                step=self.step,
                runner=number,
                path=Path.EAGER if choice.padded is None else Path.REPLAY,
                reason=choice.reason,
                live=tuple(live),
                padded=tuple(choice.padded or ()),
                note=choice.detail,
            )
        )
        self.outbox.before_step()
        outputs = runner.finish(begun)
        if choice.padded is not None:
            self.transports[number].replayed(self.step)
        return self._hand_on(number, live, choice, outputs)

    def follow(self, number: int, batch: Any) -> Any:
        """A later rank's step. Raises Refused when the first rank refused the batch."""
        header = self.channel.receive(self.step)
        if header.path is Path.REFUSED:
            raise Refused(
                StepRefusedError(f"rank 0 refused the batch of step {self.step}: {header.note}")
            )
        self.agreed(header, number)
        handoff = self.handoffs[number]
        live = handoff.kind(*header.live)
        padded = handoff.kind(*header.padded) if header.path is Path.REPLAY else None
        choice: Choice[Any] = Choice(padded, header.reason, header.note)
        self._check_batch(number, batch, live, choice)
        return self._take_and_run(number, batch, live, choice)

    def agreed(self, header: Header, number: int | None) -> None:
        """Raises DisagreementError unless this rank is about to do what the header says.

        ``number`` is the runner of the step, None at the end of a stream.
        """
        said = None if header.path is Path.END else header.runner
        if header.step != self.step or said != number:
            theirs, mine = self._doing(said), self._doing(number)
            raise DisagreementError(
                f"step {self.step}: rank 0 is at {theirs} (its step {header.step}), rank "
                f"{self.rank} at {mine}; call all ranks with the same batches in the same order"
            )

    def _doing(self, number: int | None) -> str:
        return "the end" if number is None else f"a step of {self.handoffs[number].runner.runner}"

    def _check_batch(self, number: int, batch: Any, live: Any, choice: Choice[Any]) -> None:
        """Raises DisagreementError for another batch than the first rank's."""
        runner = self.handoffs[number].runner
        try:
            own = runner.extents(batch)
        except AttributeError as problem:
            raise SourceError(f"rank {self.rank}, step {self.step}: {problem}") from problem
        if own != live:
            raise DisagreementError(
                f"step {self.step}: rank 0 has a batch of {live}, rank {self.rank} one of {own}; "
                "call all ranks with the same batches in the same order"
            )
        absent = runner.inputs.absent(batch)
        if absent is not None and choice.padded is not None:
            raise DisagreementError(
                f"step {self.step}: slot {absent} is absent on rank {self.rank}, which wants an "
                "eager step, but rank 0 chose a replay; give all ranks what the spec reads"
            )

    def _take_and_run(self, number: int, batch: Any, live: Any, choice: Choice[Any]) -> Any:
        runner, handoff = self.handoffs[number].runner, self.handoffs[number]
        takes = handoff.takes
        if takes is None or self.incoming is None:
            raise RuntimeError("a rank after the first has a later stage")
        transport: Transport = self.messages
        coming: Transfer | None = None
        if choice.padded is None:
            block, boundary = takes.fresh(live)
        else:
            transport = self.transports[number]
            block = self.incoming[: takes.wire_bytes(choice.padded, live)]
            boundary = takes.live_views(runner.table[choice.padded].boundary, live)
        if block.numel() and not transport.in_graph:
            coming = transport.receive(block, self.step)
        begun = runner.begin_as(batch, boundary, live, choice, in_graph=True)
        self.outbox.before_step()
        if coming is not None and choice.padded is None:
            coming.confirm()  # the model may read values on the host: only of bytes that have come
        elif coming is not None:
            coming.wait()
        outputs = runner.finish(begun)
        if coming is not None:
            transport.release()
        else:
            coming = transport.replayed(self.step)
        result = self._hand_on(number, live, choice, outputs)
        if coming is not None and self.last:
            coming.confirm()  # what is returned must rest on bytes that have come
        return result

    def _hand_on(self, number: int, live: Any, choice: Choice[Any], outputs: Any) -> Any:
        hands = self.handoffs[number].hands
        if hands is None:
            return outputs
        if choice.padded is None:
            block = hands.pack(outputs, live)
            if block.numel():
                self.outbox.send_own(block, self.messages, self.step)
            return None
        transport = self.transports[number]
        size = hands.wire_bytes(choice.padded, live)
        if size and not transport.in_graph and self.outgoing is not None:
            self.outbox.send(self.outgoing[:size], transport, self.step)
        return None


def part(block: Tensor | None, side: Side | None, padded: Any) -> Tensor | None:
    """What a replay moves by itself: a bucket's block up to its last padded row."""
    if block is None or side is None:
        return None
    return block[: side.wire_bytes(padded, padded)]
