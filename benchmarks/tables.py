"""Figures as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, columns aligned to the right but for the first."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]

    def text(line: Sequence[str]) -> str:
        first, *rest = (
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        return "| " + " | ".join([first, *rest]) + " |"

    rule = (
        "|"
        + "|".join(
            "-" * (width + 1) + (":" if column else "-") for column, width in enumerate(widths)
        )
        + "|"
    )
    return "\n".join([text(lines[0]), rule, *map(text, lines[1:])])


def peers_table(rows: Sequence[dict[str, Any]], key: str, *, over: str | None = None) -> str:
    """Peers down, buckets across: ``key``, or its ratio to the peer ``over``."""
    buckets = sorted({row["bucket"] for row in rows})
    peers = list(dict.fromkeys(row["peer"] for row in rows))
    values = {(row["peer"], row["bucket"]): row[key] for row in rows}

    def cell(peer: str, bucket: int) -> str:
        value = values.get((peer, bucket))
        if value is None:
            return "-"
        if over is None:
            return f"{value:.1f}" if key.startswith("host_") else f"{value:.3f}"
        base = values.get((over, bucket))
        return "-" if not base else f"{value / base:.3f}"

    return table(
        ["peer", *map(str, buckets)],
        [[peer, *(cell(peer, bucket) for bucket in buckets)] for peer in peers],
    )


def handoff_table(rows: Sequence[dict[str, Any]]) -> str:
    """Ways down, tokens across: microseconds one way."""
    sizes = sorted({row["tokens"] for row in rows})
    values = {(row["way"], row["tokens"]): f"{row['us']:.1f}" for row in rows}
    return table(
        ["one way", *(str(size) if size else "8 bytes" for size in sizes)],
        [
            [way, *(values.get((way, size), "-") for size in sizes)]
            for way in dict.fromkeys(row["way"] for row in rows)
        ],
    )


def pipeline_table(rows: Sequence[dict[str, Any]]) -> str:
    """Ways down, streams across: batches a second, and over the slower stage's raw replay."""
    streams = list(dict.fromkeys(row["stream"] for row in rows))
    values = {
        (row["way"], row["stream"]): f"{row['batches_per_s']:.1f} ({row['over_raw']:.3f})"
        for row in rows
        if "over_raw" in row
    }
    return table(
        ["batches/s (over raw)", *streams],
        [
            [way, *(values.get((way, stream), "wrong") for stream in streams)]
            for way in dict.fromkeys(row["way"] for row in rows)
        ],
    )
