"""The peers by the word that ``--peers`` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from benchmarks.peers.base import Build, Peer, UnavailableError
from benchmarks.peers.by_hand import ByHand, Eager, HandWritten, OneCopy
from benchmarks.peers.ours import Ours, OursFromTensors, OursInductor, OursOnDevice
from benchmarks.peers.sglang import SglangRegistry
from benchmarks.peers.torchs import GraphedCallables, InductorByHand, ReduceOverhead
from benchmarks.scenario import Scenario

# cheap ones first, so that a short run has the most rows
PEERS: dict[str, Build] = {
    "eager": Eager,
    "raw": ByHand,
    "ppcgc": Ours,
    "floor": OneCopy,
    "hand-written": HandWritten,
    "ppcgc-on-device": OursOnDevice,
    "ppcgc-tensors": OursFromTensors,
    "sglang": SglangRegistry,
    "graphed-callables": GraphedCallables,
    "ppcgc-inductor": OursInductor,
    "reduce-overhead": ReduceOverhead,
    "raw-inductor": InductorByHand,
}
# those that a CPU can run, for a look at the harness
ON_CPU = ("eager", "raw", "ppcgc", "floor", "hand-written", "ppcgc-on-device", "ppcgc-tensors")


def open_peers(
    scenario: Scenario, names: Iterable[str], say: Callable[[str], None]
) -> Iterator[Peer]:
    """The named peers one after the other, those left out that cannot run here, with the reason."""
    for name in names:
        say(f"build {name}")
        try:
            yield PEERS[name](scenario)
        except UnavailableError as problem:
            say(f"{name} left out: {problem}")
        except Exception as problem:  # a peer that breaks must not take the others along
            say(f"{name} failed: {type(problem).__name__}: {str(problem).splitlines()[:1]}")
