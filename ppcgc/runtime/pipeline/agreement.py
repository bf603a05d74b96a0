"""What the ranks of a pipeline must have in common, compared before anything is captured.

Every rank sees the terms of all and finds the same first difference, so all of them raise the
same error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import Any

from ppcgc.runtime.abi import ABI
from ppcgc.runtime.errors import AgreementError, BuildError
from ppcgc.runtime.parallel import Ranks
from ppcgc.runtime.pipeline.board import Board
from ppcgc.runtime.pipeline.handoff import AnyRunner, HandOff

FIXES = {
    "ABI": "install one ppcgc on all ranks",
    "spec": "generate the runners of all ranks from one spec",
    "runners": "give every rank the same runners in the same order",
    "layers": "start the ranks in the order of their layers",
    "tp size": "build every rank with the same groups",
    "dp size": "build every rank with the same groups",
    "place in tp and dp": "give the ranks of one lane one place",
    "list of lanes": "give every rank the same `lanes`",
    "lanes": "give every lane a place of its own",
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
        shared[f"dims of {name}"] = _sizes(runner.dims)
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


def _sizes(dims: Any) -> str:
    """Dims in words. The places in tp and dp, which are each rank's own, are ``team``'s to check.

    The tp and dp of a spec are fields of these names; a dim cannot have them.
    """
    ours = [f for f in fields(dims) if not isinstance(getattr(dims, f.name), Ranks)]
    return f"Dims({', '.join(f'{f.name}={getattr(dims, f.name)!r}' for f in ours)})"


def _buckets(runner: AnyRunner) -> str:
    axes = " × ".join(runner.axes)
    return f"{axes}: " + ", ".join("×".join(map(str, padded)) for padded in runner.buckets)


def agree(board: Board, terms: Terms, lanes: Sequence[Sequence[int]]) -> str:
    """Compare with all ranks; the fingerprint of the plan that they share.

    ``lanes`` are the board's ranks in the order of their stages. Raises AgreementError, the same
    on every rank, naming two ranks and both values.
    """
    own = json.dumps(asdict(terms))
    texts = board.exchange("terms of the pipeline", own)
    everybody = dict(zip(board.members, map(_read, texts), strict=True))
    first = board.members[0]
    for rank, other in everybody.items():
        for name in everybody[first].shared | other.shared:
            mine, theirs = everybody[first].shared.get(name), other.shared.get(name)
            if mine != theirs:
                raise disagreement(name, first, mine, rank, theirs)
    for lane in lanes:
        _check_lane([(rank, everybody[rank]) for rank in lane])
    return plan_fingerprint(tuple(everybody.values()))


def _check_lane(lane: Sequence[tuple[int, Terms]]) -> None:
    _check_order(lane)
    for (rank, sender), (other, receiver) in pairwise(lane):
        for bucket in sender.hands | receiver.takes:
            handed, taken = sender.hands.get(bucket), receiver.takes.get(bucket)
            if handed != taken:
                raise disagreement(f"boundary of {bucket}", rank, handed, other, taken)


def _read(text: str) -> Terms:
    read = json.loads(text)
    return Terms(**(read | {"layers": tuple(read["layers"])}))


def _check_order(lane: Sequence[tuple[int, Terms]]) -> None:
    rank, terms = lane[0]
    start, end, count = terms.layers
    if start != 0:
        raise AgreementError(
            f"rank {rank} has layers [{start}, {end}) of {count}, the first rank starts at layer "
            f"0; {FIXES['layers']}"
        )
    for (rank, before), (other, after) in pairwise(lane):
        if before.layers[1] != after.layers[0]:
            raise disagreement(
                "layers",
                rank,
                f"[{before.layers[0]}, {before.layers[1]})",
                other,
                f"[{after.layers[0]}, {after.layers[1]})",
            )
    rank, terms = lane[-1]
    start, end, count = terms.layers
    if end != count:
        raise AgreementError(
            f"rank {rank}, the last, has layers [{start}, {end}) of {count}; "
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
