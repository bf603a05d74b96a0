"""What a rank of a pipeline holds and did, for people."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ppcgc.runtime.report import Report

#: Settings that change what a hand-off does, inside a graph above all.
TELLING = ("NCCL_", "TORCH_NCCL_", "TORCH_SYMM_MEM_")


def environment() -> tuple[str, ...]:
    """The settings of NCCL and symmetric memory in this process, as ``NAME=value``."""
    return tuple(
        f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(TELLING)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineReport:
    """``last_steps`` are runner, path in words, and whether a graph was replayed.

    ``block_bytes`` counts the blocks of the hand-off.
    """

    rank: int
    size: int
    fingerprint: str
    transports: tuple[str, ...]
    backend: str
    steps: int
    last_steps: tuple[tuple[str, str, bool], ...]
    block_bytes: int
    environment: tuple[str, ...]
    runners: tuple[Report, ...]

    def __str__(self) -> str:
        lines = [
            f"rank {self.rank} of {self.size}, {self.steps} steps, "
            f"transport {', '.join(self.transports)}, hand-off blocks {self.block_bytes:,} bytes",
            f"plan {self.fingerprint}",
            *(
                f"last step of {runner}: {words}, {self.backend} graph: {replayed}"
                for runner, words, replayed in self.last_steps
            ),
        ]
        if self.environment:
            lines.append(f"environment: {' '.join(self.environment)}")
        return "\n".join([*lines, *(str(report) for report in self.runners)])
