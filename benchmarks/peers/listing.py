"""The peers by the word that ``--peers`` takes."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator

import torch

from benchmarks.peers.base import Build, Peer, UnavailableError
from benchmarks.peers.by_hand import ByHand, Eager, HandWritten, OneCopy, OneCopyNoMemsets
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
    "floor-no-memsets": OneCopyNoMemsets,
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


# Note [who records with torch's graph trees comes first]
#   torch.compile(mode="reduce-overhead") frees the workspaces of cuBLAS, all of the process, each
#   time it warms up or records. A graph that was captured before it by other means, and whose
#   workspace was not its pool's own, then writes where another tensor lies by now: seen as
#   infinities in the outputs of whoever owns that memory. Ours keep theirs (Note [a graph's own
#   workspace] in ``ppcgc.runtime.backends.cuda``); torch's make_graphed_callables does not.
FIRST = ("reduce-overhead",)


def open_peers(
    scenario: Scenario, names: Iterable[str], say: Callable[[str], None]
) -> Iterator[Peer]:
    """The named peers one after the other, those left out that cannot run here, with the reason."""
    for name in sorted(names, key=lambda name: name not in FIRST):
        say(f"build {name}")
        try:
            yield PEERS[name](scenario)
        except UnavailableError as problem:
            say(f"{name} left out: {problem}")
        except Exception as problem:  # a peer that breaks must not take the others along
            say(f"{name} failed: {type(problem).__name__}: {str(problem).splitlines()[:1]}")
            free(scenario)


def close_peers(scenario: Scenario, peers: Iterable[Peer], say: Callable[[str], None]) -> None:
    """Close them all, whatever one of them raises, and give their memory back."""
    for peer in peers:
        try:
            peer.close()
        except Exception as problem:
            say(f"{peer.name} did not close: {type(problem).__name__}: {problem}")
    free(scenario)


def free(scenario: Scenario) -> None:
    """Give the memory of what is no longer used back to the device."""
    gc.collect()
    if scenario.on_gpu:
        torch.cuda.empty_cache()
