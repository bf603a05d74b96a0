"""Whole specs drawn from the words of the language: sound by construction, most of them.

Nothing here knows the rules beyond what makes an average spec sound; what a draw gets wrong is
for the compiler to say. Sizes are small, so that what is accepted can be run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml
from hypothesis import strategies as st

Tree = dict[str, Any]

FLOATS = ["model", "float32", "bfloat16", "float16", "float64"]
INTEGERS = ["int64", "int32", "int16", "uint8", "int8"]
OTHERS = ["bool", "float8_e4m3fn", "float8_e5m2"]


class Drawn:
    """A spec under way: the draws, and the names declared so far."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.axes = ["tokens", "requests"]
        self.dims = ["hidden", "vocab", "wide"]
        self.keys: list[Tree] = []  # of the boundary
        self.key_scalars: list[str] = []
        self.free_scalars: list[str] = []
        self.options: list[str] = []
        self.kinds: list[str] = []
        self.groups: list[str] = []  # of ranks
        self.hooks: Tree = {}

    def pick(self, choices: Sequence[Any]) -> Any:
        """One of some choices; simpler ones stand in front, for shrinking."""
        return self._draw(st.sampled_from(choices))

    def chance(self, one_in: int) -> bool:
        return bool(self._draw(st.integers(0, one_in - 1)) == one_in - 1)

    # ------------------------------------------------------------ expressions

    def number(self, symbols: Sequence[str], depth: int = 2) -> str:
        """The text of an integer expression; most have a value at or above zero."""
        if depth == 0 or self.chance(2):
            return str(self.pick([*range(1, 5), *symbols, *symbols]))
        one, two = self.number(symbols, depth - 1), self.number(symbols, depth - 1)
        form = self.pick(
            ["{} + {}", "{} * 2", "max({}, {})", "min({}, {})", "({}) // 2", "({}) % 3"]
            + ["ceil(({}) / 2)", "(({0}) if {1} > 2 else ({1}))", "({}) - ({})", "({}) * ({})"]
            + ["-({})", "({}) // ({})"] * (self.chance(6))
        )
        return str(form.format(one, two))

    def condition(self, symbols: Sequence[str]) -> str:
        """The text of a condition."""
        left = self.number(symbols, 1)
        form = self.pick(
            [
                "{} >= {}",
                "{} == {}",
                "{} < {}",
                "not {} > {}",
                "{} in (1, 2, {})",
                "{} != {} or 1 > 2",
            ]
        )
        return str(form.format(left, self.number(symbols, 1)))

    def fixed(self) -> list[str]:
        """Names that are known when a runner is built."""
        return [*self.dims, *(f"options.{name}" for name in self.options if name == "block")]

    def per_step(self) -> list[str]:
        """Names whose value is known at each step."""
        scalars = [f"scalar.{name}" for name in (*self.key_scalars, *self.free_scalars)]
        return [*(f"live.{axis}" for axis in self.axes), *scalars, *self.dims]

    def existence(self) -> str:
        """A condition of `when`."""
        choices = [f"scalar.{name} > 0" for name in self.key_scalars]
        choices += [f"options.{name}" for name in self.options if name == "extra"]
        choices += ["options.layout == 'nhd'" for name in self.options if name == "layout"]
        return str(self.pick([self.condition(self.fixed()), *choices]))


# ---------------------------------------------------------------- the head


def head(drawn: Drawn) -> Tree:
    """Dims, axes, state, options, scalars, groups: everything above the pipeline."""
    vocab = drawn.pick(["config.vocab_size", "build", 11])
    tree: Tree = {"version": 1, "family": "drawn"}
    if drawn.chance(4):
        tree["doc"] = drawn.pick(
            ["A family.", 'Ends in a "quote"', "back\\slash", "two\n\nlines é"]
        )
    tree["dims"] = {
        "hidden": drawn.pick(["config.hidden_size", "config.text.hidden_size", 3]),
        "vocab": vocab,
        "wide": drawn.number(["hidden"], 1),
        "kv_rows": drawn.pick(["build", 64]),
    }
    if drawn.chance(3):
        tree["options"] = {"extra": True, "block": 2}
        drawn.options = ["extra", "block"]
    if drawn.chance(4):
        layout = {"type": "enum", "default": "nhd", "choices": ["nhd", "h.n-d"]}
        tree.setdefault("options", {})["layout"] = layout
        drawn.options.append("layout")
    if drawn.chance(4):
        drawn.groups = drawn.pick([["dp"], ["tp"], ["tp", "dp"]])
        tree["parallel"] = dict.fromkeys(drawn.groups, "build")
    tree["axes"] = axes(drawn)
    tree["state"] = {"kv": {"rows": "kv_rows", "reserved": drawn.pick([[0], [0, 5]])}}
    if drawn.chance(3):
        tree["scalars"] = scalars(drawn, "")
    return tree


def axes(drawn: Drawn) -> Tree:
    counts = [*["batch.num_tokens"] * 4, "rows", "live.requests * 2"]
    tree: Tree = {
        "requests": {"max": drawn.pick([4, 2, 3]), "live": "batch.num_requests"},
        "tokens": {"max": drawn.pick([16, 8]), "live": drawn.pick(counts)},
    }
    if drawn.chance(3):
        tree["chunks"] = {"max": 4, "live": drawn.pick(["batch.counts.chunks", "live.requests"])}
        drawn.axes.append("chunks")
        if tree["chunks"]["live"].startswith("batch") and drawn.chance(2):
            tree["chunks"]["zero"] = "key"
    if drawn.groups and drawn.chance(2):
        over = drawn.groups[-1]
        tree["requests"]["group"] = {"over": over, "live": "batch.all_requests"}
        if drawn.chance(2):
            tree["tokens"]["group"] = {"over": over, "live": "batch.all_tokens"}
    return tree


def scalars(drawn: Drawn, prefix: str) -> Tree:
    tree: Tree = {}
    for name in drawn.pick([["width"], ["step"], ["width", "step"], ["half", "width"], ["long"]]):
        entry: Tree = {"source": f"batch.{prefix}{name}"}
        if name == "half":
            entry["source"] = drawn.number(["live.requests"], 1)
        mode = drawn.pick(["key", "free", "const", "buckets"])
        if mode == "key":
            entry["key"] = drawn.pick([[0, 1], [1, 4], [-1, 2, 3]])
        elif mode == "buckets":
            entry["buckets"] = drawn.pick([[8], [4, 16]])
        elif mode == "const":
            entry["const"] = drawn.pick([1, 0, -3])
        known = drawn.key_scalars if mode in ("key", "const") else drawn.free_scalars
        if mode != "buckets":
            known.append(prefix + name)
        tree[prefix + name] = entry
    return tree


# ---------------------------------------------------------------- the pipeline


def pipeline(drawn: Drawn) -> Tree:
    layers: Tree = {"count": drawn.pick(["config.num_layers", 6, "2 * 3", "hidden * 2"])}
    if drawn.chance(3):
        kinds = {
            "odd": {"if": "layer % 2 == 1"},
            "some": {"ids": drawn.pick([[0], [1, 3], [5]])},
            "named": {"where": "config.layer_types", "is": drawn.pick(["full", 1, True])},
        }
        drawn.kinds = drawn.pick([["odd"], ["some"], ["odd", "some"], ["named"]])
        layers["kinds"] = {name: kinds[name] for name in drawn.kinds}
    tree: Tree = {"layers": layers}
    explicit = [[[0, 2], [2, 3], [3, 6]], [[0, 6]], [[0, 5], [5, 6]]]
    if drawn.chance(4):
        layers["count"] = drawn.pick([6, "config.num_layers"])
        tree["stages"] = drawn.pick(explicit)
    names = ["hidden_states", "residual", "aux"][: drawn.pick([1, 2, 3])]
    tree["boundary"] = [boundary_key(drawn, name) for name in names]
    return tree


def boundary_key(drawn: Drawn, name: str) -> Tree:
    axis = drawn.pick(["tokens", "tokens", "requests", "none"])
    entry: Tree = {"name": name, "axis": axis}
    fixed = [drawn.pick(["hidden", "wide", 2, 1]) for _ in range(drawn.pick([1, 1, 0, 2]))]
    if drawn.chance(5):
        fixed.append(
            drawn.pick(["ceil(cut.layer / 2)", "cut.layer", "hidden * 2", "cut.layer - 1"])
        )
    if drawn.kinds and drawn.chance(3):
        fixed.append(f"kinds.{drawn.kinds[0]}.below(cut.layer) + 1")
    entry["shape"] = with_axis(drawn, axis, fixed)
    entry["dtype"] = drawn.pick(["model", "model", *FLOATS, *INTEGERS, *OTHERS])
    entry["padding"] = padding(drawn, entry["dtype"], fixed_only=True)
    if drawn.chance(5):
        conditions = ["cut.layer > 2", drawn.condition(["cut.layer", *drawn.fixed()])]
        entry["when"] = drawn.pick([*conditions, *(f"cut.layer in kinds.{k}" for k in drawn.kinds)])
    if "tp" in drawn.groups and drawn.chance(3):
        entry["content"] = drawn.pick(["replicated", "per_rank", {"sharded": "tp"}])
    if "tp" in drawn.groups and drawn.chance(4):
        entry["wire"] = "scatter_gather"
    if drawn.chance(6) and "cut" not in str(entry["shape"]):
        entry["by"] = "runtime"
    drawn.keys.append(entry)
    return entry


def with_axis(drawn: Drawn, axis: str, fixed: list[Any]) -> list[Any]:
    if axis == "none":
        return fixed or [1]
    form = drawn.pick(["{}"] * 6 + ["{} + 1", "2 * {}", "3 * {} + 2"])
    at = drawn.pick(range(len(fixed) + 1)) if drawn.chance(2) else 0
    return [*fixed[:at], form.format(axis), *fixed[at:]]


def padding(drawn: Drawn, dtype: str, *, fixed_only: bool = False) -> Any:
    literal: Any = drawn.pick([1, 2, 7])
    if dtype == "bool":
        literal = drawn.pick([True, False])
    elif dtype not in INTEGERS:
        literal = drawn.pick([1, 0.5, -2])
    choices: list[Any] = ["zero", "zero", "zero", "repeat_last", {"fill": literal}]
    if not fixed_only:
        choices.append({"keep": "nobody reads them", "initial": literal})
    if dtype in ("int64", "int32", "float64"):
        names = drawn.fixed() if fixed_only else drawn.per_step()
        choices.append({"fill": drawn.number(names, 1)})
    return drawn.pick(choices)


# ---------------------------------------------------------------- slots


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


def from_hook(drawn: Drawn, slot: Tree) -> Tree:
    filler = drawn.hooks.setdefault(
        "filler", {"at": drawn.pick(["load", ["load", "plan"]]), "writes": []}
    )
    filler["writes"].append(slot["name"])
    return {"source": "hook.filler"}


# ---------------------------------------------------------------- runners


def runner(drawn: Drawn, prefix: str, axes: Tree) -> Tree:
    known = (list(drawn.key_scalars), list(drawn.free_scalars))
    drawn.hooks = {}
    tree: Tree = {"buckets": buckets(drawn, axes)}
    if drawn.chance(5):
        tree["scalars"] = scalars(drawn, f"{prefix}_")
    if drawn.chance(4) and tree["buckets"]["tokens"] == "max" and axes["tokens"]["max"] > 8:
        tree["axes"] = {"tokens": {"max": 8}}
    if drawn.chance(3):
        tree["limits"] = [
            drawn.pick(["tokens >= requests", "tokens <= requests * 8", "requests >= 1"])
        ]
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
    drawn.key_scalars, drawn.free_scalars = known
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
    tree["tokens"] = drawn.pick(listed)
    if "chunks" in axes:
        tree["chunks"] = drawn.pick([[1, 4], "max", [2, 4]])
    if drawn.chance(4):
        tree = dict(reversed(tree.items()))
    return tree


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


@st.composite
def drawn_specs(draw: st.DrawFn) -> Tree:
    """The tree of a whole spec."""
    drawn = Drawn(draw)
    tree = head(drawn)
    tree["pipeline"] = pipeline(drawn)
    names = ["prefill", "decode"] if drawn.chance(4) else ["prefill"]
    tree["runners"] = {name: runner(drawn, name, tree["axes"]) for name in names}
    if len(names) > 1 and drawn.chance(4):
        tree["runners"]["prefill"]["overlaps"] = ["decode"]
        tree["runners"]["decode"]["overlaps"] = ["prefill"]
    return tree
