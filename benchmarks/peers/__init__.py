"""Ways of running one step of the stage, one module each, behind one protocol."""

from benchmarks.peers.base import Peer, UnavailableError
from benchmarks.peers.listing import PEERS, close_peers, open_peers

__all__ = ["PEERS", "Peer", "UnavailableError", "close_peers", "open_peers"]
