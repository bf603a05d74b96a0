"""What stands above the runners of a drawn spec: sizes, axes, scalars, the pipeline."""

from __future__ import annotations

from fuzz_drawn import FLOATS, INTEGERS, OTHERS, Drawn, Tree, padding, with_axis


def head(drawn: Drawn) -> Tree:
    """Dims, axes, state, options, scalars, groups: everything above the pipeline."""
    vocab = drawn.pick(["config.vocab_size", "build", 11])
    tree: Tree = {"version": 1, "family": "drawn"}
    if drawn.chance(4):
        tree["doc"] = drawn.pick(
            ["A family.", 'Ends in a "quote"', "back\\slash", "two\n\nlines é"]
        )
    tree["dims"] = {
        "hidden": drawn.pick(
            ["config.hidden_size", "config.text.hidden_size", 3, "len(config.hidden_parts)"]
        ),
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
    counts = [*["batch.num_tokens"] * 4, "rows", "live.requests * 2", "live.requests * hidden"]
    tree: Tree = {
        "requests": {"max": drawn.pick([4, 2, 3]), "live": "batch.num_requests"},
        "tokens": {"max": drawn.pick([16, 8]), "live": drawn.pick(counts)},
    }
    if drawn.chance(3):
        tree["chunks"] = {"max": 4, "live": drawn.pick(["batch.counts.chunks", "live.requests"])}
        drawn.axes.append("chunks")
        if drawn.chance(2):
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
        if mode == "buckets":
            known = drawn.bucket_scalars
        known.append(prefix + name)
        tree[prefix + name] = entry
    return tree


def pipeline(drawn: Drawn) -> Tree:
    counts = ["config.num_layers", 6, "2 * 3", "hidden * 2", "len(config.layer_types)"]
    layers: Tree = {"count": drawn.pick(counts)}
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
