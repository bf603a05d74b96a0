"""The described plan as text for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

UNKNOWN = "?"


def as_json(plan: dict[str, Any]) -> str:
    return json.dumps(plan, indent=2)


def as_text(plan: dict[str, Any]) -> str:
    """Tables: sizes, stages, then for each runner its buckets and the slots of each bucket.

    ``?`` stands for a number that is not known. Any: the data of ``describe`` is plain JSON.
    """
    lines = [f"family {plan['family']}", f"fingerprint {plan['fingerprint']}", ""]
    lines += _sizes(plan)
    lines += _stages(plan)
    for runner in plan["runners"]:
        lines += ["", *_runner(runner)]
    return "\n".join(lines)


def _sizes(plan: dict[str, Any]) -> Iterator[str]:
    dims = plan["dims"]
    if dims:
        yield "dims: " + ", ".join(f"{name} {_number(size)}" for name, size in dims.items())
    missing = [name for name, size in dims.items() if size is None]
    if missing:
        yield f"not known: {', '.join(missing)} (give --config FILE, or --set {missing[0]}=N)"
    if plan["model_bytes"] is None and any(t["dtype"] == "model" for t in _tensors(plan)):
        yield "not known: bytes of `dtype: model` (give --dtype, or a --config FILE that has it)"


def _tensors(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Everything that the tables count bytes of."""
    for bucket in (bucket for runner in plan["runners"] for bucket in runner["buckets"]):
        for group in bucket["hand_offs"]:
            yield from group["tensors"]
        for kind in bucket["kinds"]:
            yield from kind["slots"]


def _stages(plan: dict[str, Any]) -> Iterator[str]:
    yield f"layers: {_number(plan['layers'])}"
    if plan["stages"] is None:
        yield "stages: not known (give --stages N and the number of layers with --config FILE)"
        return
    for number, stage in enumerate(plan["stages"]):
        kinds = "".join(f", {count} {kind}" for kind, count in stage["kinds"].items())
        count = stage["end"] - stage["start"]
        layers = f"[{stage['start']}, {stage['end']})"
        yield f"stage {number} {stage['place']}: layers {layers}, {count} layers{kinds}"


def _runner(runner: dict[str, Any]) -> Iterator[str]:
    graphs = (
        "? graphs, known to a build," if runner["graphs"] is None else f"{runner['graphs']} graphs"
    )
    yield f"runner {runner['name']}: {graphs} of at most {runner['max_graphs']}"
    for axis, covered in runner["coverage"].items():
        how = ", follows other axes" if covered["follows"] else ""
        largest, capacity = covered["largest"], covered["capacity"]
        yield f"  {axis}: up to {_number(largest)} live rows replay, capacity {capacity}{how}"
    yield ""
    yield from _table(_bucket_rows(runner))
    yield ""
    yield from _table(_slot_rows(runner))


def _bucket_rows(runner: dict[str, Any]) -> Iterator[list[str]]:
    columns = runner["columns"]
    yield ["graph", *columns, *(f"live {name}" for name in columns), "hand-off bytes"]
    for number, bucket in enumerate(runner["buckets"]):
        live = (_number(bucket["live"].get(name)) for name in columns)
        padded = (_number(bucket["padded"].get(name)) for name in columns)
        yield [str(number), *padded, *live, _hand_offs(bucket["hand_offs"])]


def _hand_offs(hand_offs: list[dict[str, Any]]) -> str:
    """One number where all cuts are alike, else one for each."""
    sizes = list(dict.fromkeys(_number(each["bytes"]) for each in hand_offs))
    if len(sizes) <= 1:
        return sizes[0] if sizes else "none"
    return ", ".join(f"at layer {each['layer']}: {_number(each['bytes'])}" for each in hand_offs)


def _slot_rows(runner: dict[str, Any]) -> Iterator[list[str]]:
    yield ["graph", "stages", "slot", "placement", "dtype", "shape", "bytes"]
    for number, bucket in enumerate(runner["buckets"]):
        for kind in bucket["kinds"]:
            places = "/".join(kind["places"])
            for slot in kind["slots"]:
                shape = f"[{', '.join(map(str, slot['shape']))}]"
                yield [
                    str(number),
                    places,
                    slot["name"],
                    slot["placement"],
                    slot["dtype"],
                    shape,
                    _number(slot["bytes"]),
                ]


def _table(rows: Iterator[list[str]]) -> Iterator[str]:
    """Columns of equal width, two spaces in."""
    listed = list(rows)
    widths = [max(len(row[column]) for row in listed) for column in range(len(listed[0]))]
    for row in listed:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()


def _number(value: object) -> str:
    return UNKNOWN if value is None else str(value)
