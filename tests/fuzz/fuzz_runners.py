"""Runners drawn from the words of the language."""

from __future__ import annotations

from typing import Any

from fuzz_drawn import FLOATS, OTHERS, Drawn, Tree, with_axis
from fuzz_head import scalars
from fuzz_slots import ROLES, data_slot, slot_of_role


def runner(drawn: Drawn, prefix: str, axes: Tree) -> Tree:
    known = (list(drawn.key_scalars), list(drawn.free_scalars), list(drawn.bucket_scalars))
    drawn.hooks = {}
    own_scalars = scalars(drawn, f"{prefix}_") if drawn.chance(5) else None
    tree: Tree = {"buckets": buckets(drawn, axes)}
    if own_scalars:
        tree["scalars"] = own_scalars
    if drawn.chance(4) and tree["buckets"]["tokens"] == "max" and axes["tokens"]["max"] > 8:
        tree["axes"] = {"tokens": {"max": 8}}
    if drawn.chance(3):
        tree["limits"] = [drawn.pick(limits(drawn))]
    if drawn.chance(2):
        tree["dispatch"] = dispatch(drawn)
    chosen = [role for role in ROLES if drawn.chance(3)] or ["ids"]
    slots = [slot_of_role(drawn, role) for role in chosen]
    names = ["alpha", "beta", "mm.gamma", "delta", "mm.eps", "zeta"]
    slots += [data_slot(drawn, name) for name in names[: drawn.pick([2, 3, 4, 6])]]
    if "chunks" in drawn.axes:
        chunked = {"name": "chunk_rows", "axis": "chunks", "dtype": "int32", "padding": "zero"}
        slots.append({**chunked, "source": "batch.chunk_rows"})
    if drawn.chance(3):
        slots = slots[::-1]
    tree["slots"] = slots
    if drawn.chance(5):
        moments = [["key"], ["key", "plan"], ["plan"]]
        at = drawn.pick(moments)
        drawn.hooks["planner"] = {"at": at, "reads": [slots[0]["name"]]}
        if "plan" in at and drawn.chance(2):
            drawn.hooks["planner"]["staging"] = 2
        if drawn.chance(2):
            drawn.hooks["planner"]["workspace"] = drawn.number(drawn.fixed(), 1)
    if drawn.hooks:
        tree["hooks"] = drawn.hooks
    if drawn.chance(5):
        tree["eager_when"] = eager_when(drawn)
    if drawn.chance(2) and "equals" in tree["buckets"]["tokens"]:
        tree["uneven"] = drawn.pick(["eager", "error"])
    if drawn.chance(8):
        tree["transport"] = drawn.pick(["eager", "captured", "symmetric"])
    if drawn.chance(8):
        tree["compile"] = drawn.pick(["none", "inductor"])
    if drawn.chance(8):
        tree["stages"] = drawn.pick(["all", "first", "later", ["first", "last"], "last"])
    if drawn.chance(6):
        name = drawn.pick(drawn.keys)["name"]
        tree["boundary"] = [{"name": name, "dtype": drawn.pick(["float32", "model", "int32"])}]
    tree["max_graphs"] = 512
    tree["forward"] = forward(drawn, tree)
    tree["outputs"] = {"last": outputs(drawn)}
    drawn.key_scalars, drawn.free_scalars, drawn.bucket_scalars = known
    return tree


def buckets(drawn: Drawn, axes: Tree) -> Tree:
    most = {name: axis["max"] for name, axis in axes.items()}
    tree: Tree = {"requests": drawn.pick([[1, most["requests"]], "max", [most["requests"]]])}
    listed: list[Any] = [[4, most["tokens"]], "max", [1, 3, 4, most["tokens"]]]
    if axes["tokens"]["live"] == "batch.num_tokens":
        listed += [
            {"equals": "requests"},
            {"equals": "requests * 2"},
            {"padded": f"requests * {most['tokens'] // most['requests']}"},
        ]
        if drawn.chance(3):
            listed += followed(drawn)
    tree["tokens"] = drawn.pick(listed)
    if "chunks" in axes:
        tree["chunks"] = drawn.pick([[1, 4], "max", [2, 4]])
    if drawn.chance(4):
        tree = dict(reversed(tree.items()))
    return tree


def followed(drawn: Drawn) -> list[Tree]:
    """Sizes that follow scalars and numbers of a build; some that never could."""
    numbers = [f"scalar.{name}" for name in (*drawn.key_scalars, *drawn.bucket_scalars)]
    numbers += [*drawn.fixed(), *(f"{group}.size" for group in drawn.groups)]
    number = drawn.pick(
        [*numbers, *numbers, "tp.size", *(f"scalar.{n}" for n in drawn.free_scalars)]
    )
    forms = ["requests * {}", "requests * max({}, 1)", "ceil(requests / {})", "requests + {}"]
    forms += ["4 - requests + {}", "requests % 2 + {}", "{}"] * drawn.chance(4)
    return [{drawn.pick(["equals", "padded"]): drawn.pick(forms).format(number)}] * 6


def limits(drawn: Drawn) -> list[str]:
    found = ["tokens >= requests", "tokens <= requests * 8", "requests >= 1"]
    found += [f"scalar.{name} <= 3 or requests <= 1" for name in drawn.key_scalars]
    found += [f"requests <= scalar.{name}" for name in drawn.bucket_scalars]
    found += ["tokens <= requests * options.block"] * ("block" in drawn.options)
    found += ["options.extra or tokens >= 1"] * ("extra" in drawn.options)
    found += [f"tokens % {group}.size == 0" for group in drawn.groups]
    return [*found, "requests * hidden >= tokens"]


def dispatch(drawn: Drawn) -> Tree:
    tree: Tree = {"over_capacity": drawn.pick(["eager", "error"])}
    if drawn.chance(3):
        tree["max_padding"] = {"tokens": drawn.pick([2.0, 4, 1.5])}
        tree["always_replay_below"] = {"tokens": drawn.pick([4, 0])}
    if tree["over_capacity"] == "error" and drawn.chance(4):
        tree["require_graph"] = True
    return tree


def eager_when(drawn: Drawn) -> Tree:
    tree: Tree = {}
    for reason in drawn.pick([["images"], ["greedy", "long"], ["slow"], ["images", "long"]]):
        tree[reason] = {
            "images": {"present": "batch.images"},
            "greedy": {"is_true": "batch.greedy"},
            "slow": {"is_false": "batch.fast"},
            "long": {"above": ["batch.longest", drawn.number(drawn.per_step(), 1)]},
        }[reason]
    return tree


def forward(drawn: Drawn, tree: Tree) -> Tree:
    values: Tree = {"view": "view"}
    for scalar in (name for name in drawn.key_scalars if drawn.chance(2)):
        values[f"scalar_{scalar}"] = f"scalar.{scalar}"
    if drawn.chance(4):
        values["rows"] = f"padded.{drawn.pick(drawn.axes)}"
    if drawn.chance(4):
        values["word"] = {"literal": drawn.pick([None, True, 3, 0.5, "it's", 'a "b"', -1])}
    if "planner" in tree.get("hooks", {}) and "key" in tree["hooks"]["planner"]["at"]:
        values["plan"] = "hook.planner"
    for slot in tree["slots"]:
        everywhere = slot.get("stages", "all") == "all" and slot.get("place") != "host"
        if everywhere and drawn.chance(4):
            values[slot["name"].replace(".", "_")] = f"slot.{slot['name']}"
    places: Tree = {"first": dict(values), "later": {**values, "received": "boundary"}}
    if drawn.chance(3):
        places["later"] = {
            **values,
            **{f"in_{key['name']}": f"boundary.{key['name']}" for key in drawn.keys},
        }
    if drawn.chance(5):
        places["last"] = {"view": "view", "received": "boundary"}
    if drawn.chance(6):
        places["only"] = {"view": "view", "alone": {"literal": True}}
    where = tree.get("stages", "all")
    if where == "first":
        places.pop("later")
        places.pop("last", None)
    elif where in ("later", "last"):
        places.pop("first")
        places.pop("only", None)
    return places


def outputs(drawn: Drawn) -> list[Tree]:
    names = drawn.pick([["logits"], ["logits", "states"], ["logits", "states", "loads"]])
    by_index = drawn.chance(2)
    found = []
    for number, name in enumerate(names):
        axis = drawn.pick(["requests", "tokens", "tokens", "none"])
        fixed = [drawn.pick(["vocab", "hidden", 2]) for _ in range(drawn.pick([0, 1, 1]))]
        output: Tree = {"name": name, "axis": axis, "shape": with_axis(drawn, axis, fixed)}
        output["dtype"] = drawn.pick(["model", "float32", "int64", *FLOATS, *OTHERS])
        if len(names) > 1 or drawn.chance(2):
            output["from"] = f"result.{number if by_index else name}"
        if drawn.chance(3):
            output["keep"] = drawn.pick(["view", "clone", "ring(2)", "ring(3)"])
        found.append(output)
    return found
