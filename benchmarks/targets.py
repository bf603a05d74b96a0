"""What the figures come to, beside what they ought to be: ratios inside one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Line = tuple[str, float, float, str]  # what, measured, at most, unit


def lines(data: Mapping[str, Any]) -> Iterator[Line]:
    """Every target that the figures at hand can tell of."""
    for group in ("peers", "inductor"):
        yield from _of_peers(_by_peer(data.get(group, ())), data.get("weights_read_ms"))
    yield from _of_memory(data.get("memory", ()))
    yield from _of_capture(data.get("capture", ()))
    yield from _of_trace(data)
    yield from _of_handoff(data.get("handoff", ()))
    yield from _of_pipeline(data.get("pipeline", ()))


def _by_peer(rows: Any) -> dict[tuple[str, int], Mapping[str, Any]]:
    return {(row["peer"], row["bucket"]): row for row in rows}


def _of_peers(
    rows: Mapping[tuple[str, int], Mapping[str, Any]], weights_ms: float | None
) -> Iterator[Line]:
    for bucket in sorted({bucket for _, bucket in rows}):

        def of(peer: str, key: str, bucket: int = bucket) -> float | None:
            row = rows.get((peer, bucket))
            return None if row is None else row[key]

        ours = of("ppcgc", "host_us")
        for sources, peer in (("numpy", "ppcgc"), ("CPU tensors", "ppcgc, CPU tensors")):
            for floor in ("floor", "floor, no memsets"):
                step, least = of(peer, "host_us"), of(floor, "host_us")
                if step is not None and least is not None:
                    name = f"host step at {bucket} from {sources}, over the {floor}"
                    yield name, step - least, 15.0, "µs"
        torchs = of("reduce-overhead", "host_us")
        if ours is not None and torchs is not None:
            yield f"host step at {bucket} / reduce-overhead", ours / torchs, 0.2, ""
        alike, its = of("ppcgc, on device", "host_us"), of("sglang registry", "host_us")
        if alike is not None and its is not None:
            yield f"host step at {bucket}, like for like / sglang registry", alike / its, 1 / 3, ""
        step, raw = of("ppcgc", "stream_ms"), of("raw", "stream_ms")
        if step is not None and raw is not None:
            yield f"step at {bucket} / raw", step / raw, 1.03, ""
        composed, reduced = of("ppcgc + inductor", "stream_ms"), of("reduce-overhead", "stream_ms")
        if composed is not None and reduced is not None:
            most = 1.0 if bucket <= 256 else 1.01
            yield (
                f"composed with Inductor at {bucket} / reduce-overhead",
                composed / reduced,
                most,
                "",
            )
        if composed is not None and weights_ms and bucket == 64:
            yield (
                "composed with Inductor at 64 / weights read once",
                composed / weights_ms,
                1.65,
                "",
            )


def _of_memory(rows: Any) -> Iterator[Line]:
    alone = next((row["taken_mib"] for row in rows if row["buckets"] == 1), None)
    for row in rows:
        if alone and row["buckets"] > 1:
            yield (
                f"memory of {row['buckets']} buckets / largest",
                row["taken_mib"] / alone,
                1.25,
                "",
            )


def _of_capture(rows: Any) -> Iterator[Line]:
    for row in rows[:-1]:  # the largest is the first, and loads kernels
        most = 3 * row["eager_ms"] / 1e3 + 0.1
        yield f"capture of {row['bucket']}", row["warm_up_s"] + row["capture_s"], most, "s"


def _of_trace(data: Mapping[str, Any]) -> Iterator[Line]:
    least = {256: 1.5, 1024: 1.0}
    for key in ("trace", "trace_inductor"):
        for one in data.get(key, {}).get("classes", ()):
            whole = one["from"] == 1 and one["to"] > 256
            wanted = 1.0 if whole else least.get(one["to"], 0.99)
            name = f"{key}, {one['from']} to {one['to']} tokens: eager's time needed"
            yield name, 1 / one["speedup"], 1 / wanted, ""


def _of_handoff(rows: Any) -> Iterator[Line]:
    us = {(row["way"], row["tokens"]): row["us"] for row in rows}
    for (way, tokens), took in us.items():
        if way not in ("ppcgc captured", "ppcgc symmetric"):  # inside the graphs
            continue
        what = f"{way.removeprefix('ppcgc ')} hand-off of {tokens} tokens"
        raw = us.get(("raw captured send", tokens))
        if raw:
            yield f"{what} / raw captured send", took / raw, 1.3, ""
        for other in ("eager send a key", "eager send"):  # a boundary as engines send it; one block
            eager = us.get((other, tokens))
            if eager and tokens <= 64:
                yield f"{what} / {other}", took / eager, 0.5, ""


def _of_pipeline(rows: Any) -> Iterator[Line]:
    for row in rows:
        if row["way"].startswith("ppcgc") and row.get("over_raw"):
            name = f"pipeline, {row['stream']}, {row['way']}: slower stage's raw rate needed"
            yield name, 1 / row["over_raw"], 1 / 0.9, ""


def text(data: Mapping[str, Any]) -> str:
    """A line a target: what, measured, at most, and whether it is met."""
    return "\n".join(
        f"{'met   ' if measured <= most else 'MISSED'}  {what}: {measured:.3f}{unit}, "
        f"at most {most:.3f}{unit}"
        for what, measured, most, unit in lines(data)
    )
