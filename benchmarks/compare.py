"""The main table: every peer on every bucket, outputs checked against eager."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from benchmarks.peers import Peer
from benchmarks.scenario import Case, Scenario
from benchmarks.timing import device_ms, host_us, stream_ms

# A padded batch in half precision is summed in another order than the unpadded one; what a stale
# or misplaced row does is some hundred times larger.
TOLERANCE = {torch.bfloat16: 3e-2, torch.float16: 1e-2, torch.float32: 1e-4}

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One peer on one case. ``error`` is relative, of all live rows; ``bitwise`` against raw."""

    peer: str
    live: int
    bucket: int
    host_us: float
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


def check(scenario: Scenario, peer: Peer, case: Case) -> float:
    """The error of the peer's outputs against eager. Raises WrongOutputsError."""
    made = [rows.clone() for rows in peer.outputs(case)]
    wanted = scenario.eager(case)
    error = error_of(made, wanted)
    if error > TOLERANCE[scenario.shape.dtype]:
        raise WrongOutputsError(f"{peer.name}, {case}: relative error {error:.3g} against eager")
    return error


def measure(
    scenario: Scenario, peers: Sequence[Peer], *, rounds: int = 3, seconds: float = 0.12
) -> list[Row]:
    """All peers on all cases. Peers take turns within a round, so that drift hits all alike."""
    rows = []
    raw = next((peer for peer in peers if peer.name == "raw"), None)
    for case in scenario.cases:
        reference = None if raw is None else [rows.clone() for rows in raw.outputs(case)]
        streams: dict[str, list[float]] = {peer.name: [] for peer in peers}
        errors, same = {}, {}
        for peer in peers:
            errors[peer.name] = check(scenario, peer, case)
            same[peer.name] = None if reference is None else _equal(peer.outputs(case), reference)
        for _ in range(rounds):
            for peer in peers:
                streams[peer.name].append(stream_ms(scenario, peer.step(case), seconds))
        for peer in peers:
            step, times = peer.step(case), streams[peer.name]
            middle = statistics.median(times)
            rows.append(
                Row(
                    peer=peer.name,
                    live=case.live,
                    bucket=case.bucket,
                    host_us=host_us(scenario, step),
                    stream_ms=middle,
                    stream_spread=(max(times) - min(times)) / middle,
                    device_ms=device_ms(scenario, step),
                    error=errors[peer.name],
                    bitwise=same[peer.name],
                )
            )
    return rows


def _equal(made: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(made, wanted, strict=True))
