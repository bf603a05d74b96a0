"""What ``ppcgc bench`` runs: peers side by side, outputs checked, one table."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.compare import WrongOutputsError, measure
from benchmarks.environment import environment
from benchmarks.peers import PEERS, close_peers, open_peers
from benchmarks.peers.listing import ON_CPU
from benchmarks.results import save
from benchmarks.scenario import scenario
from benchmarks.tables import peers_table


class UnknownPeerError(Exception):
    """A word of ``--peers`` that names none."""


def bench(
    *, peers: Sequence[str], tiny: bool, out: Path | None, say: Callable[[str], None]
) -> tuple[str, dict[str, Any]]:
    """The tables, and the figures behind them. Without a GPU the tiny stage is measured.

    A peer that is wrong or breaks on a case is left out there, and the text says so. Raises
    UnknownPeerError, and WrongOutputsError when that peer is a runner of ours.
    """
    unknown = [name for name in peers if name not in PEERS]
    if unknown:
        raise UnknownPeerError(f"no peer {', '.join(unknown)}; there are {', '.join(PEERS)}")
    small = tiny or not torch.cuda.is_available()
    if small:
        torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    stage = scenario(tiny=small)
    say(f"{stage.shape.name} on {stage.device}")
    chosen = list(open_peers(stage, peers or (ON_CPU if small else PEERS), say))
    try:
        measured = measure(stage, chosen, rounds=2 if small else 3)
    finally:
        close_peers(stage, chosen, say)
    rows = measured.data()
    data = {
        "environment": environment(),
        "stage": stage.shape.name,
        "does": {peer.name: peer.does for peer in chosen},
        "peers": rows,
        "problems": [str(problem) for problem in measured.problems],
    }
    if out is not None:
        save(data, out)
    ours = [str(one) for one in measured.problems if one.peer.startswith("ppcgc")]
    if ours:
        raise WrongOutputsError("\n".join(ours))
    return _text(data, small), data


def _text(data: dict[str, Any], small: bool) -> str:
    rows = data["peers"]
    parts = [
        *data["problems"],
        "host microseconds of a step, by padded tokens",
        peers_table(rows, "host_us"),
        "\nmilliseconds of a step in a stream of steps",
        peers_table(rows, "stream_ms"),
    ]
    if any(row["peer"] == "raw" for row in rows):
        parts += ["\nthe same, over raw", peers_table(rows, "stream_ms", over="raw")]
    if small:
        parts.append("\nA tiny stage on the CPU backend: it shows that the harness runs, no speed.")
    return "\n".join(parts)
