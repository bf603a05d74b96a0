"""What the ranks of a pipeline must have in common, compared before anything is captured.

Every rank sees the terms of all and finds the same first difference, so all of them raise the
same error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from ppcgc.runtime.abi import ABI
from ppcgc.runtime.errors import AgreementError, BuildError
from ppcgc.runtime.pipeline.board import Board
from ppcgc.runtime.pipeline.handoff import AnyRunner, HandOff

FIXES = {
    "ABI": "install one ppcgc on all ranks",
    "spec": "generate the runners of all ranks from one spec",
    "runners": "give every rank the same runners in the same order",
    "layers": "start the ranks in the order of their layers",
    "calibration": "apply one kept calibration on all ranks",
}
DEFAULT_FIX = "build every rank with the same value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What one rank brings. ``shared`` must be equal on all ranks, by name.

    ``layers`` are start, end and count; ``takes`` and ``hands`` describe the boundary by bucket.
    """

    shared: dict[str, str]
    layers: tuple[int, int, int]
    takes: dict[str, str]
    hands: dict[str, str]


def terms_of(handoffs: Sequence[HandOff], transports: Sequence[str]) -> Terms:
    """The terms of a rank with these runners. Raises BuildError when they do not go together."""
    runners = [handoff.runner for handoff in handoffs]
    first = runners[0]
    if any((r.layers, r.device) != (first.layers, first.device) for r in runners):
        raise BuildError("the runners of a rank are for one range of layers, on one device")
    shared = {
        "ABI": str(ABI),
        "runners": ", ".join(f"{r.family}.{r.runner}" for r in runners),
        "spec": ", ".join(dict.fromkeys(r.fingerprint for r in runners)),
        "layer count": str(first.layers.count),
    }
    for runner, transport in zip(runners, transports, strict=True):
        name = runner.runner
        shared[f"bucket list of {name}"] = _buckets(runner)
        shared[f"dims of {name}"] = repr(runner.dims)
        shared[f"dtype of {name}"] = str(runner.dtype)
        shared[f"transport of {name}"] = transport
    takes: dict[str, str] = {}
    hands: dict[str, str] = {}
    for handoff in handoffs:
        if handoff.takes is not None:
            takes |= handoff.takes.described(handoff.runner.runner)
        if handoff.hands is not None:
            hands |= handoff.hands.described(handoff.runner.runner)
    layers = (first.layers.start, first.layers.end, first.layers.count)
    return Terms(shared=shared, layers=layers, takes=takes, hands=hands)


def _buckets(runner: AnyRunner) -> str:
    axes = " × ".join(runner.axes)
    return f"{axes}: " + ", ".join("×".join(map(str, padded)) for padded in runner.buckets)


def agree(board: Board, terms: Terms) -> str:
    """Compare with all ranks; the fingerprint of the plan that they share.

    Raises AgreementError, the same on every rank, naming two ranks and both values.
    """
    own = json.dumps(asdict(terms))
    everybody = [_read(text) for text in board.exchange("terms of the pipeline", own)]
    for rank, other in enumerate(everybody[1:], start=1):
        for name in everybody[0].shared | other.shared:
            mine, theirs = everybody[0].shared.get(name), other.shared.get(name)
            if mine != theirs:
                raise disagreement(name, 0, mine, rank, theirs)
    _check_order(everybody)
    for rank, (sender, receiver) in enumerate(pairwise(everybody)):
        for bucket in sender.hands | receiver.takes:
            handed, taken = sender.hands.get(bucket), receiver.takes.get(bucket)
            if handed != taken:
                raise disagreement(f"boundary of {bucket}", rank, handed, rank + 1, taken)
    return plan_fingerprint(everybody)


def _read(text: str) -> Terms:
    read = json.loads(text)
    return Terms(**(read | {"layers": tuple(read["layers"])}))


def _check_order(everybody: Sequence[Terms]) -> None:
    start, end, count = everybody[0].layers
    if start != 0:
        raise AgreementError(
            f"rank 0 has layers [{start}, {end}) of {count}, the first rank starts at layer 0; "
            f"{FIXES['layers']}"
        )
    for rank, (before, after) in enumerate(pairwise(everybody)):
        if before.layers[1] != after.layers[0]:
            raise disagreement(
                "layers",
                rank,
                f"[{before.layers[0]}, {before.layers[1]})",
                rank + 1,
                f"[{after.layers[0]}, {after.layers[1]})",
            )
    start, end, count = everybody[-1].layers
    if end != count:
        raise AgreementError(
            f"rank {len(everybody) - 1}, the last, has layers [{start}, {end}) of {count}; "
            f"{FIXES['layers']}, or start more ranks"
        )


def disagreement(
    name: str, rank: int, value: str | None, other: int, other_value: str | None
) -> AgreementError:
    return AgreementError(
        f"{name}: rank {rank} has {value or 'none'}, rank {other} has {other_value or 'none'}; "
        f"{FIXES.get(name, DEFAULT_FIX)}"
    )


def plan_fingerprint(everybody: Sequence[Terms]) -> str:
    """Of dims, ranges, buckets, dtype, transport and the spec, of all ranks together."""
    text = json.dumps([asdict(terms) for terms in everybody], sort_keys=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
