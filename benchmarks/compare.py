"""The main table: every peer on every bucket, outputs checked against eager."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from benchmarks.peers import Peer
from benchmarks.scenario import Case, Scenario
from benchmarks.timing import device_ms, host_samples, lower_quartile, stream_ms

# A padded batch in half precision is summed in another order than the unpadded one; what a stale
# or misplaced row does is some hundred times larger.
TOLERANCE = {torch.bfloat16: 3e-2, torch.float16: 1e-2, torch.float32: 1e-4}

HOT = 256  # tokens; see Note [a hot device]
HEAT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One peer on one case. ``error`` is relative, of all live rows; ``bitwise`` against raw."""

    peer: str
    live: int
    bucket: int
    host_us: float  # of a step among several, see ``timing.host_samples``
    host_once_us: float  # of one step after a wait
    host_us_median: float  # of what host_us is the lower quartile of
    stream_ms: float
    stream_spread: float  # (slowest - fastest) / median over the rounds
    device_ms: float | None
    error: float
    bitwise: bool | None

    def data(self) -> dict[str, Any]:
        return asdict(self)


def error_of(made: Sequence[Tensor], wanted: Sequence[Tensor]) -> float:
    """The largest relative error of the tensors, by norm; infinite for one that is not finite."""
    worst = 0.0
    for one, other in zip(made, wanted, strict=True):
        off = ((one.float() - other.float()).norm() / other.float().norm()).item()
        worst = max(worst, off if off == off else float("inf"))
    return worst


class WrongOutputsError(Exception):
    """A peer's outputs differ from eager's: its figures would be worth nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A peer that could not be measured on a case: wrong outputs, or an error of its own."""

    peer: str
    case: str
    what: str

    def __str__(self) -> str:
        return f"{self.peer} left out at {self.case}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """``rows`` of what ran, ``problems`` of what did not."""

    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]

    def data(self) -> list[dict[str, Any]]:
        return [row.data() for row in self.rows]


def check(scenario: Scenario, peer: Peer, case: Case) -> float:
    """The error of the peer's outputs against eager. Raises WrongOutputsError."""
    made = [rows.clone() for rows in peer.outputs(case)]
    wanted = scenario.eager(case)
    error = error_of(made, wanted)
    if error > TOLERANCE[scenario.shape.dtype]:
        raise WrongOutputsError(
            f"wrong outputs, relative error {error:.3g} against eager, {where(made, wanted)}"
        )
    return error


def where(made: Sequence[Tensor], wanted: Sequence[Tensor]) -> str:
    """What is wrong, for people: the largest difference, how many rows, the first of them."""
    differences = [
        (one.float() - other.float()).abs().amax(1) for one, other in zip(made, wanted, strict=True)
    ]
    worst = torch.stack(differences).nan_to_num(nan=float("inf")).amax(0)
    off = (worst > 0.1 * max(other.float().abs().max().item() for other in wanted)).nonzero()
    first = f", the first is {int(off[0])}" if len(off) else ""
    return f"max diff {worst.max().item():.3g}; {len(off)} of {len(worst)} live rows far off{first}"


def measure(
    scenario: Scenario, peers: Sequence[Peer], *, rounds: int = 3, seconds: float = 0.12
) -> Measured:
    """All peers on all cases. Peers take turns within a round, so that drift hits all alike.

    Note [a hot device]
        From some 256 tokens on the device is at the limit of its power, and how fast it runs
        depends on the second before: the same graph takes 4 % less right behind a pause. So the
        device is worked until it is hot before each round, each round begins with another peer,
        and eager, whose host lets the device wait, is the last of each.

    A peer with wrong outputs, or one that raises, is left out of that case; the others go on.
    """
    rows: list[Row] = []
    problems: list[Problem] = []
    for case in scenario.cases:
        turns = Turns(scenario, peers, case)
        turns.check_all()
        for number in range(rounds):
            turns.first = number * len(peers) // rounds
            if case.bucket >= HOT:
                turns.heat()
            turns.stream_all(2 * seconds if case.bucket >= HOT else seconds)
            turns.host_all()
        turns.first = 0
        rows += turns.rows()
        problems += turns.problems
    return Measured(rows=tuple(rows), problems=tuple(problems))


class Turns:
    """The peers that still run on one case, and what is known of them."""

    def __init__(self, scenario: Scenario, peers: Sequence[Peer], case: Case) -> None:
        self.scenario, self.case = scenario, case
        self.running = list(peers)
        self.first = 0  # who begins
        self.problems: list[Problem] = []
        self.errors: dict[str, float] = {}
        self.bitwise: dict[str, bool | None] = {}
        self.streams: dict[str, list[float]] = {peer.name: [] for peer in peers}
        self.hosts: dict[str, list[float]] = {peer.name: [] for peer in peers}
        self.hosts_once: dict[str, list[float]] = {peer.name: [] for peer in peers}

    def in_turn(self) -> list[Peer]:
        """All that run, from ``first`` on and round again; eager last."""
        turned = self.running[self.first :] + self.running[: self.first]
        return sorted(turned, key=lambda peer: peer.name == "eager")

    def each(self, act: Callable[[Peer], None]) -> None:
        """Do something with every peer; one that raises is left out from here on."""
        for peer in self.in_turn():
            try:
                act(peer)
            except Exception as problem:
                kind = "" if isinstance(problem, WrongOutputsError) else type(problem).__name__
                first_line = (str(problem).splitlines() or [""])[0]
                what = ": ".join(filter(None, (kind, first_line)))
                self.problems.append(Problem(peer=peer.name, case=str(self.case), what=what))
                self.running.remove(peer)

    def check_all(self) -> None:
        """Outputs against eager's, and bit for bit against those of ``raw``."""
        reference: list[Tensor] = []

        def keep(peer: Peer) -> None:
            if peer.name == "raw":
                reference.extend(rows.clone() for rows in peer.outputs(self.case))

        def compare(peer: Peer) -> None:
            self.errors[peer.name] = check(self.scenario, peer, self.case)
            made = peer.outputs(self.case) if reference else ()
            equal = all(torch.equal(*pair) for pair in zip(made, reference, strict=True))
            self.bitwise[peer.name] = equal if reference else None

        self.each(keep)
        self.each(compare)

    def heat(self) -> None:
        """Keep the device busy with the peer that is measured first. See Note [a hot device]."""
        with suppress(Exception):  # a peer that breaks is left out when it is measured
            step = self.in_turn()[0].step(self.case)
            begun = perf_counter()
            while perf_counter() - begun < HEAT_S:
                step()
                step()
                self.scenario.sync()

    def stream_all(self, seconds: float) -> None:
        def stream(peer: Peer) -> None:
            took = stream_ms(self.scenario, peer.step(self.case), seconds)
            self.streams[peer.name].append(took)

        self.each(stream)

    def host_all(self) -> None:
        def look(peer: Peer) -> None:
            step = peer.step(self.case)
            self.hosts[peer.name] += host_samples(self.scenario, step)
            self.hosts_once[peer.name] += host_samples(self.scenario, step, burst=1, most=6)

        self.each(look)

    def rows(self) -> list[Row]:
        """One of each peer that got this far."""
        made: dict[str, Row] = {}

        def add(peer: Peer) -> None:
            made[peer.name] = self._row(peer)

        self.each(add)
        return [made[peer.name] for peer in self.running]

    def _row(self, peer: Peer) -> Row:
        times, hosts = self.streams[peer.name], self.hosts[peer.name]
        middle = statistics.median(times)
        return Row(
            peer=peer.name,
            live=self.case.live,
            bucket=self.case.bucket,
            host_us=lower_quartile(hosts),
            host_once_us=lower_quartile(self.hosts_once[peer.name]),
            host_us_median=statistics.median(hosts),
            stream_ms=middle,
            stream_spread=(max(times) - min(times)) / middle,
            device_ms=device_ms(self.scenario, peer.step(self.case)),
            error=self.errors[peer.name],
            bitwise=self.bitwise[peer.name],
        )
