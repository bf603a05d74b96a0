"""The command line in this process, and what it printed."""

from __future__ import annotations

import io
from pathlib import Path

from ppcgc.cli import main


class Result:
    """``ppcgc`` with these words: its exit code and what it wrote to either stream."""

    def __init__(self, *argv: str | Path) -> None:
        stdout, stderr = io.StringIO(), io.StringIO()
        self.code = main([str(word) for word in argv], stdout, stderr)
        self.out = stdout.getvalue()
        self.err = stderr.getvalue()
