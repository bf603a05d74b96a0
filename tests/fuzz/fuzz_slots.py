"""Slots drawn from the words of the language."""

from __future__ import annotations

from typing import Any

import yaml
from fuzz_drawn import FLOATS, INTEGERS, OTHERS, Drawn, Tree, padding, with_axis

ROLES = {
    "ids": "{name: input_ids, axis: tokens, dtype: int64, padding: zero, role: index, of: vocab}",
    "places": "{name: mm.places, axis: tokens, shape: [3, tokens], dtype: int64, padding: zero, "
    "role: index, of: vocab}",
    "writes": "{name: slot_mapping, axis: tokens, dtype: int64, padding: zero, role: write_index, "
    "of: state.kv}",
    "ends": "{name: cu_seqlens, axis: requests, shape: [requests + 1], dtype: int32, "
    "padding: repeat_last, role: offsets, of: tokens}",
    "starts": "{name: starts, axis: requests, dtype: int32, padding: {fill: live.tokens}, "
    "role: offsets, of: tokens}",
    "lengths": "{name: lengths, axis: requests, dtype: int32, padding: zero, role: lengths, "
    "of: tokens}",
    "seq_lens": "{name: seq_lens, axis: requests, dtype: int32, padding: {fill: 1}, role: lengths, "
    "of: vocab}",
    "mask": "{name: mask, axis: tokens, dtype: int32, padding: zero, role: mask}",
    "last": "{name: last_token, axis: requests, dtype: int64, padding: zero, role: index, "
    "of: tokens}",
    "count": "{name: count, axis: none, shape: [1], dtype: int32, role: count, of: tokens, "
    "source: {compute: live.tokens}}",
}


def slot_of_role(drawn: Drawn, role: str) -> Tree:
    """A slot with a meaning that kernels share."""
    slot: Tree = yaml.load(ROLES[role], yaml.SafeLoader)
    slot.setdefault("source", f"batch.{slot['name']}")
    if role != "count" and drawn.chance(2):
        slot["residency"] = "host"
    return slot


def data_slot(drawn: Drawn, name: str) -> Tree:
    """A slot of plain data with any words."""
    axis: Any = drawn.pick(["tokens", "tokens", "requests", *drawn.axes, "none"])
    if drawn.chance(6):
        axis = drawn.pick([["requests", "tokens"], ["tokens", "requests"], drawn.axes[-2:]])
    dtype = drawn.pick(["int32", "float32", "int64", *FLOATS, *INTEGERS, *OTHERS])
    slot: Tree = {"name": name, "axis": axis, "dtype": dtype}
    if isinstance(axis, list):
        slot["shape"] = drawn.pick(
            [list(axis), axis[::-1], [2, *axis], [axis[0], f"{axis[1]} + 1"]]
        )
        if drawn.chance(3):
            del slot["shape"]
    elif drawn.chance(2) or axis == "none":
        fixed = [drawn.pick(["hidden", 2, "wide"]) for _ in range(drawn.pick([0, 1, 1, 2]))]
        slot["shape"] = with_axis(drawn, axis, fixed)
    source = drawn.pick(["batch"] * 8 + ["compute", "const", "caller", "graph", "boundary", "hook"])
    words = {"batch": from_batch, "compute": from_compute, "const": from_const, "hook": from_hook}
    if source in words:
        slot |= words[source](drawn, slot)
    elif source == "caller":
        slot |= {"source": "caller"}
        if drawn.chance(3):
            slot["capture"] = {"fill": 1} if drawn.chance(2) else from_giver(drawn)
    elif source == "graph":
        return slot | {"source": "graph", "mutable": True}
    else:
        key = drawn.pick(drawn.keys)
        shown = {word: key[word] for word in ("axis", "shape", "dtype", "padding")}
        if key["axis"] == "none":
            del shown["padding"]
        return {"name": name, **shown, "source": f"boundary.{key['name']}", "stages": "later"}
    if axis != "none" and source not in ("compute", "const"):
        slot["padding"] = padding(drawn, dtype)
        if isinstance(axis, list) and drawn.chance(2):
            slot["padding"] = {name: padding(drawn, dtype) for name in axis}
    if drawn.chance(3):
        stages: list[Any] = ["first", "later", "last", "all", ["first", "last"]]
        stages += [["first", {"owns": kind}] for kind in drawn.kinds]
        slot["stages"] = drawn.pick(stages)
    if drawn.chance(5):
        slot["when"] = drawn.existence()
    return slot


def from_batch(drawn: Drawn, slot: Tree) -> Tree:
    name = slot["name"]
    words: Tree = {
        "source": drawn.pick(
            [f"batch.{name}", f"batch.{name}", f"batch.more.{name.replace('.', '_')}"]
        )
    }
    if drawn.chance(2):
        words["residency"] = "host"
        if drawn.chance(5):
            words["place"] = "host"
    elif drawn.chance(5):
        words["mirror"] = {"source": f"batch.{name.replace('.', '_')}_cpu"}
        if drawn.chance(2):
            words["mirror"]["absent"] = "none"
    if drawn.chance(4):
        words["absent"] = drawn.pick([{"fill": 1}, "eager", "key", "error"])
    if drawn.chance(8):
        words["cast"] = True
    if drawn.chance(6):
        words["mutable"] = True
    if drawn.chance(6):
        words["capture"] = {"fill": drawn.pick([1, 0, "padded.tokens", "hidden"])}
    elif drawn.chance(6):
        words["capture"] = from_giver(drawn)
    shape = slot.get("shape", [0])
    if drawn.chance(2) and len(shape) > 1 and isinstance(shape[0], int):
        words["broadcast"] = True
    return words


def from_compute(drawn: Drawn, slot: Tree) -> Tree:
    names = drawn.per_step()
    names += [f"padded.{axis}" for axis in drawn.axes]
    names += [f"{group}.{word}" for group in drawn.groups for word in ("rank", "size")]
    axes = slot["axis"] if isinstance(slot["axis"], list) else [slot["axis"]]
    names += [f"row.{axis}" for axis in axes if axis != "none"] * 3
    return {"dtype": drawn.pick(["int64", "int32"]), "source": {"compute": drawn.number(names)}}


def from_const(drawn: Drawn, slot: Tree) -> Tree:
    return {"source": {"const": drawn.pick([1, 0, 1, drawn.number(drawn.fixed(), 1)])}}


def from_giver(drawn: Drawn) -> str:
    """Rows while capturing, by a hook."""
    drawn.hooks.setdefault("giver", {"at": "capture"})
    return "hook.giver"


def from_hook(drawn: Drawn, slot: Tree) -> Tree:
    filler = drawn.hooks.setdefault(
        "filler", {"at": drawn.pick(["load", ["load", "plan"]]), "writes": []}
    )
    filler["writes"].append(slot["name"])
    return {"source": "hook.filler"}
