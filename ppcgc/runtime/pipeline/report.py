"""What a rank of a pipeline holds and did, for people."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc.runtime.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineReport:
    """``last_steps`` are runner, path in words, and whether a graph was replayed.

    ``environment`` are the settings of NCCL and symmetric memory, which change what a hand-off
    inside a graph does; ``block_bytes`` counts the blocks of the hand-off.
    """

    rank: int
    size: int
    fingerprint: str
    transports: tuple[str, ...]
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
                f"last step of {runner}: {words}, cuda graph: {replayed}"
                for runner, words, replayed in self.last_steps
            ),
        ]
        if self.environment:
            lines.append(f"environment: {' '.join(self.environment)}")
        return "\n".join([*lines, *(str(report) for report in self.runners)])
