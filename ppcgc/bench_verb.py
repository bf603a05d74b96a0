"""The verb `ppcgc bench`: hands over to the measurements of a checkout.

Nothing here is imported before the verb runs, so that the other verbs need no torch.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click


class NoBenchError(Exception):
    """The measurements are not at hand, or cannot run here."""


def bench(*, peers: tuple[str, ...], tiny: bool, out: Path | None) -> str:
    """The tables. Raises NoBenchError for what cannot run, and for outputs that are wrong."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        from benchmarks.command import UnknownPeerError
        from benchmarks.command import bench as run
        from benchmarks.compare import WrongOutputsError
    except ImportError as problem:
        raise NoBenchError(
            f"{problem}: the measurements are in a checkout's `benchmarks/`, not in the package; "
            "run this in its root, with `pip install 'ppcgc[bench]'`"
        ) from problem
    try:
        text, _ = run(peers=peers, tiny=tiny, out=out, say=lambda line: click.echo(line, err=True))
    except (UnknownPeerError, WrongOutputsError) as problem:
        raise NoBenchError(str(problem)) from problem
    return text
