"""PNG plots of a results file: ``python -m benchmarks.plots results.json``. Extra ``bench``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from benchmarks.results import read

WEIGHT = {"ppcgc": 2.5, "ppcgc + inductor": 2.5}  # widths of lines: ours stand out


def plots(data: Mapping[str, Any], folder: Path) -> Iterator[Path]:
    """Draw what the figures at hand allow; the files that were written."""
    title = _title(data)
    for key in ("peers", "inductor"):
        if data.get(key):
            yield _by_tokens(
                data[key], "stream_ms", "step in a stream, ms", title, folder / f"step_{key}.png"
            )
            yield _by_tokens(
                data[key], "host_us", "host time of a step, µs", title, folder / f"host_{key}.png"
            )
    for key in ("trace", "trace_inductor"):
        if data.get(f"crossover_{key}"):
            yield _crossover(data[f"crossover_{key}"], title, folder / f"crossover_{key}.png")
    if data.get("memory"):
        yield _memory(data["memory"], title, folder / "memory.png")
    if data.get("handoff"):
        yield _handoff(data["handoff"], title, folder / "handoff.png")
    if data.get("pipeline"):
        yield _pipeline(data["pipeline"], title, folder / "pipeline.png")


def _title(data: Mapping[str, Any]) -> str:
    here = data.get("environment", {})
    return f"{here.get('gpu') or here.get('cpu')}, torch {here.get('torch')}"


def _by_tokens(rows: Any, key: str, label: str, title: str, path: Path) -> Path:
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for peer in dict.fromkeys(row["peer"] for row in rows):
        own = sorted((row["bucket"], row[key]) for row in rows if row["peer"] == peer)
        sizes, values = zip(*own, strict=True)
        axes.plot(sizes, values, marker="o", label=peer, linewidth=WEIGHT.get(peer, 1.2))
    axes.set(xscale="log", yscale="log", xlabel="padded tokens", ylabel=label, title=title)
    axes.set_xticks(sizes, list(map(str, sizes)))
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    return _saved(figure, path)


def _crossover(data: Mapping[str, Any], title: str, path: Path) -> Path:
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    eager = sorted({tuple(pair) for one in data["buckets"] for pair in one["eager"]})
    axes.plot(
        *zip(*((live, 1e3 * seconds) for live, seconds in eager), strict=True),
        label="eager",
        marker=".",
    )
    column, before = data["column"], 0
    for one in data["buckets"]:
        padded, step = one["padded"][column], 1e3 * one["replay"]
        axes.plot([before + 1, padded], [step, step], color="tab:orange", linewidth=2)
        axes.fill_between([before + 1, padded], step, alpha=0.08, color="tab:orange")
        before = padded
    axes.plot([], [], color="tab:orange", linewidth=2, label="replay, padded to the bucket")
    axes.set(
        xlabel=f"live {data['axis']}", ylabel="step in a stream, ms", title=title, xscale="log"
    )
    axes.grid(alpha=0.3)
    axes.legend()
    return _saved(figure, path)


def _memory(rows: Any, title: str, path: Path) -> Path:
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    axes.bar([str(row["buckets"]) for row in rows], [row["taken_mib"] for row in rows])
    axes.set(
        xlabel="buckets captured, the largest first", ylabel="device memory taken, MiB", title=title
    )
    return _saved(figure, path)


def _handoff(rows: Any, title: str, path: Path) -> Path:
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    sizes = sorted({row["tokens"] for row in rows if row["tokens"]})
    for way in dict.fromkeys(row["way"] for row in rows if row["tokens"]):
        own = sorted((row["tokens"], row["us"]) for row in rows if row["way"] == way)
        width = 2.5 if way.startswith("ppcgc") else 1.2
        axes.plot(*zip(*own, strict=True), marker="o", label=way, linewidth=width)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="tokens of the boundary",
        ylabel="one way, µs",
        title=title,
    )
    axes.minorticks_off()
    axes.set_xticks(sizes, list(map(str, sizes)))
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    return _saved(figure, path)


def _pipeline(rows: Any, title: str, path: Path) -> Path:
    measured = [row for row in rows if row.get("batches_per_s")]
    streams = list(dict.fromkeys(row["stream"] for row in measured))
    figure, panels = plt.subplots(
        1, len(streams), figsize=(5 * len(streams), 4), layout="constrained", squeeze=False
    )
    for axes, stream in zip(panels[0], streams, strict=True):
        own = [row for row in measured if row["stream"] == stream]
        bars = axes.bar([row["way"] for row in own], [row["batches_per_s"] for row in own])
        axes.bar_label(bars, [f"{row['over_raw']:.2f}" for row in own])
        axes.set(title=f"{stream} a batch", ylabel="batches a second")
        axes.margins(y=0.1)
        axes.tick_params(axis="x", rotation=30)
    figure.suptitle(f"{title}; above the bars: over the raw replay of the slower stage")
    return _saved(figure, path)


def _saved(figure: Any, path: Path) -> Path:
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path


if __name__ == "__main__":
    file = Path(sys.argv[1])
    for written in plots(read(file), file.parent):
        sys.stdout.write(f"wrote {written}\n")
