"""A rank of a pipeline from its first word to the others until it lets go of them."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Self

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from ppcgc.runtime.errors import (
    AgreementError,
    BuildError,
    NotCapturedError,
    PeerError,
    PpcgcError,
)
from ppcgc.runtime.joining import check_list
from ppcgc.runtime.pipeline.agreement import agree, terms_of
from ppcgc.runtime.pipeline.board import Board, Failure
from ppcgc.runtime.pipeline.channel import HeaderChannel
from ppcgc.runtime.pipeline.collectives import Collectives, groups_of
from ppcgc.runtime.pipeline.counting import Counting
from ppcgc.runtime.pipeline.faults import Faults
from ppcgc.runtime.pipeline.groups import Groups, aborts, open_groups, own_lane
from ppcgc.runtime.pipeline.handoff import AnyRunner, HandOff
from ppcgc.runtime.pipeline.outbox import Outbox
from ppcgc.runtime.pipeline.shared_choice import SharedChoice
from ppcgc.runtime.pipeline.steps import Steps
from ppcgc.runtime.pipeline.store import host_of_own, own_store
from ppcgc.runtime.pipeline.team import Team, find_teams, spot_of
from ppcgc.runtime.pipeline.transport import (
    Transport,
    check_scattered,
    check_transports,
    open_transport,
)
from ppcgc.runtime.pipeline.transport.base import Queued, passed
from ppcgc.runtime.pipeline.transport.eager import EagerTransport
from ppcgc.runtime.pipeline.watch import BreakOff

LINGER_S = 1.0  # for headers that the next rank has not taken, where this one fails

_opened = itertools.count()  # all ranks open their pipelines in one order, as they do groups


def _check_arguments(runners: Sequence[AnyRunner], in_flight: int, timeout: float) -> None:
    check_list(runners, "Pipeline")
    if not isinstance(in_flight, int) or in_flight < 1:
        raise BuildError(f"in_flight is {in_flight}; at least 1 batch is under way (default: 2)")
    if not isinstance(timeout, int | float) or not timeout > 0:
        raise BuildError(f"timeout is {timeout!r}; give seconds, more than 0 (default: 30)")


class OpenPipeline:
    """What ``Pipeline`` rests on: agreement, connections, and their end. See there."""

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
        _check_arguments(runners, in_flight, timeout)
        lane = own_lane(lanes)
        self.rank, self.size = lane.stage, lane.size
        self.dropped: Mapping[str, str] = {}
        self._runners = list(runners)
        self._device = runners[0].device
        self._numbers = {runner.runner: number for number, runner in enumerate(runners)}
        self._names = [transport or runner.transport for runner in runners]
        me, name = lane.ranks[lane.stage], f"ppcgc/{next(_opened)}"
        host = host_of_own() if store is None else None
        world = range(sum(map(len, lanes or [lane.ranks])))

        def board(name: str, members: Sequence[int]) -> Board:
            kept = store or own_store()
            return Board(kept, name, rank=me, members=members, timeout=timeout, host=host)

        self._board = board(name, world)
        self._faults = Faults(self._board, timeout)
        self._groups = Groups()
        self._break_off = BreakOff()
        self._failed: str | None = None
        self._closed = self._connected = self._captured = False
        self._handoffs: list[HandOff] = []
        try:
            teams = find_teams(self._board, lanes or [lane.ranks], lane, spot_of(runners))
            number, team = next((n, t) for n, t in enumerate(teams) if t.own is not None)
            self._team = team
            if len(teams) > 1:
                self._board = board(f"{name}/{number}", team.ranks)
                self._faults = Faults(self._board, timeout)
            self._agree(teams)
            self._connect(in_flight)
        except BaseException as problem:
            self._give_up(problem)
            raise

    def _agree(self, teams: Sequence[Team]) -> None:
        """Compare with the others what was built, then make the groups of all teams."""
        self._handoffs = [HandOff(runner) for runner in self._runners]
        for runner in self._runners:
            runner.among_ranks = len(self._team.ranks) > 1
        check_transports(self._names, self._device)
        scattered = check_scattered(self._handoffs, self._names)
        terms = terms_of(self._handoffs, self._names)
        self.fingerprint = agree(self._board, terms, self._team.lanes)
        open_groups(
            self._groups,
            teams,
            self._device,
            self._faults,
            captured="captured" in self._names,
            scattered=scattered,
        )
        self._break_off.add(self._groups.aborts())
        self._break_off.add(aborts(groups_of(self._runners[0].dims)))
        if self._device.type == "cuda":
            self._faults.watch(self._break_off.start)

    def _connect(self, in_flight: int) -> None:
        ends = (self._device, self._groups.incoming, self._groups.outgoing, self._faults)
        self._messages = EagerTransport(*ends)
        self._transports: dict[str, Transport] = {
            name: open_transport(name, *ends) for name in dict.fromkeys(self._names)
        }
        incoming = max(side.nbytes if (side := h.takes) else 0 for h in self._handoffs)
        outgoing = max(side.nbytes if (side := h.hands) else 0 for h in self._handoffs)
        # before a communicator is aborted: a replay that goes on then must not be handed on
        self._break_off.add([made.break_off for made in self._transports.values()])
        keeper = self._transports[self._names[0]]
        self._incoming, self._outgoing = keeper.blocks(incoming, outgoing)
        for handoff in self._handoffs:
            handoff.place(self._incoming, self._outgoing)
        self._outbox = Outbox(in_flight, outgoing, self._device)
        columns = max(len(next(iter(runner.buckets))) for runner in self._runners)
        team, me = self._team, self._board.rank
        self._channel = HeaderChannel(
            self._groups.control,
            *team.headers(me),
            self._faults,
            columns=columns,
            ahead=in_flight,
        )
        groups = groups_of(self._runners[0].dims)
        together = (me, *team.meets)
        self._counting = Counting(groups, together, self._groups.control, self._faults)
        self._collectives = Collectives(
            groups,
            self._groups.joining,
            team.meets,
            self._faults,
            self._device,
        )
        shared = None
        if self._groups.firsts is not None:
            chosen = (self._groups.firsts, team.firsts, self._runners, self._faults)
            shared = SharedChoice(*chosen, columns=columns)
        self._steps = Steps(
            rank=me,
            first=team.first,
            collectives=self._collectives,
            counting=self._counting,
            shared=shared,
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

    # ------------------------------------------------------------ the end

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
        text = f"{type(problem).__name__}: {problem}".removesuffix(": ")
        self._failed = str(problem) if isinstance(problem, PeerError) else text
        if not isinstance(problem, PeerError | AgreementError):  # an agreement fails on all alike
            own = Failure(rank=self._board.rank, step=self.step, what=text.splitlines()[0])
            with suppress(PeerError):  # the store is gone too: the others see that for themselves
                self._board.publish(own)
        if self._connected and not isinstance(problem, PeerError):
            self._channel.linger(LINGER_S)
        self._let_go()
        if not dist.is_initialized() and not isinstance(problem, PpcgcError):
            raise BuildError(
                f"the process group was destroyed while the pipeline was open ({text}); close the "
                "pipeline before `destroy_process_group`"
            ) from problem

    def _let_go(self) -> None:
        """All of it, whatever one part of it raises."""
        # Note [graphs close before NCCL]: a graph may hold messages of a communicator.
        failed = self._failed is not None
        if failed:
            self._break_off.start()  # see Note [graphs and communicators let go together]
        with ExitStack() as last_first:
            last_first.callback(self._close_groups)
            last_first.callback(self._faults.end_watch)
            if self._connected:
                last_first.callback(self._outbox.drop)
                last_first.callback(self._channel.drop)
            for handoff in reversed(self._handoffs):
                if failed:  # of a CUDA context that is lost
                    last_first.enter_context(suppress(RuntimeError))
                last_first.callback(handoff.release)

    def _close_groups(self) -> None:
        if self._break_off.finished(self._board.timeout):
            self._groups.close()

    def close(self) -> None:
        """Finish what is under way, close graphs, then groups. Idempotent.

        Every wait in it ends within the timeout. A rank that failed meanwhile is a warning here,
        and raised where a ``with`` block ends that went well; DisagreementError where the others
        have steps that this rank has not.
        """
        problem = self._closed_with()
        if problem is not None:
            warnings.warn(f"the pipeline closed after: {problem}", stacklevel=2)

    def _closed_with(self) -> PeerError | None:
        """Close, and the failure of another rank that shows only now."""
        if self._closed:
            return None
        self._closed = True
        if self._failed is not None:
            return None
        try:
            self._faults.check()
            if self._connected:
                self._end("end of the pipeline", drain=True)
        except BaseException as problem:
            self._give_up(problem)
            if isinstance(problem, PeerError):
                return problem
            raise
        self._let_go()
        return None

    def _end(self, what: str, *, drain: bool = False) -> None:
        """Meet all ranks behind the same last step. Raises PeerError kinds, DisagreementError."""
        self._steps.end()
        self._outbox.settle(on_host=True, moved=self._board.moved)
        self._channel.settle()
        if drain:
            self._drain()
        self._board.exchange(what, "end", step=self.step)

    def _drain(self) -> None:
        """Wait for what is queued on the GPU. Raises PeerError kinds."""
        edges = (self._groups.incoming, self._groups.outgoing)
        peers = (*(edge.peer for edge in edges if edge is not None), *self._team.meets)
        if self._device.type == "cuda" and peers:
            Queued(self._faults, peers[0], self.step, passed(self._device)).confirm()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if problem is not None and self._failed is None and not self._closed:
            self._give_up(problem)
        late = self._closed_with()
        if late is not None:
            raise late
