"""Good specs with faults put in: in their tree of values, and in their text."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

ROOT = Path(__file__).parent.parent.parent
# the ones written in C where there are such: a second and more of every thousand examples
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
Way = tuple[str | int, ...]  # keys and positions that lead to a value


@dataclass(frozen=True)
class Good:
    """A spec that compiles, and the folder where the specs that it extends lie."""

    name: str
    text: str
    folder: Path

    @cached_property
    def tree(self) -> Any:
        return yaml.load(self.text, LOADER)


def good_specs() -> list[Good]:
    """Every spec of the repository that compiles, the ones of the rules' passing cases too."""
    tests = ROOT / "tests"
    files = [
        *sorted((ROOT / "specs").glob("*.yaml")),
        *sorted((tests / "rules").glob("*/good.yaml")),
        tests / "middle" / "whole.yaml",
        *sorted((tests / "stages" / "specs").glob("*.yaml")),
    ]
    return [
        Good(str(file.relative_to(ROOT)), file.read_text(encoding="utf-8"), file.parent)
        for file in files
    ]


# ---------------------------------------------------------------- what is put in

# numbers at the edges of ranges, values of the wrong type, text that YAML or Python could trip on
STRANGE: list[Any] = [
    *(0, 1, -1, 2, 3, 7, 63, 64, 65, 2**31 - 1, 2**31, 2**63, -(2**63), 10**30, 1.5, -0.0, 1e308),
    *(float("inf"), float("nan"), True, False, None, [], {}, [[]], [{}], [1], {"a": 1}, ""),
    *(" ", "none", "None", "class", "self", "rt", "torch", "__init__", "_", "x" * 64, "x" * 65),
    *("é", "\x07", "a\nb", '"""', "'", "\\", "{}", "# x", "${x}", "{{ x }}", "%s", "-", "a.b.c"),
    *("1 // 0", "-1", "hidden //", "(" * 40 + "1" + ")" * 40, "1 +" * 90 + " 1", "10 ** 9"),
    *("live.tokens", "padded.tokens", "row.tokens", "tokens.max", "tokens", "requests", "hidden"),
    *("tokens + 1", "2 * tokens", "tokens - 1", "tokens * requests", "hidden - 9"),
    *("batch.x", "batch.num_tokens", "boundary.hidden_states", "hook.plan", "slot.input_ids"),
    *("config.hidden_size", "config.x", "build", "rows", "scalar.width", "options.block", "max"),
    *("tp.size", "tp.rank", "dp.size", "cut.layer", "layer", "layer % 0", "kinds.full", "True"),
    *("1 < 2", "not 1", "1 if 2 else 3", "'nhd'", "live.tokens // 0", "min(1)", "ceil(1 / 0)"),
]  # fmt: skip

FAULTS = [*["graft"] * 6, *["alike"] * 2, *["nudge"] * 3]
FAULTS += ["strange", "drop", "twice", "key", "add"]
MARKS = ["{", "}", "[", "]", ":", ",", "#", "&a", "*a", "!!int", "|", ">", "'", '"', "\t", "\0"]
MARKS += ["\r", "\ufeff", "é", "- ", "? ", "---\n", "...\n", "%YAML 9.9\n", "<<: *a", "\x85", "~"]


@dataclass(frozen=True, slots=True)
class Stock:
    """The parts of all good specs: values by their place, values by their key, and all keys."""

    by_place: dict[tuple[str, ...], list[Any]]
    by_key: dict[str, list[Any]]
    keys: list[str]
    scalars: list[Any]


def stock_of(specs: list[Good]) -> Stock:
    by_place: dict[tuple[str, ...], list[Any]] = {}
    by_key: dict[str, list[Any]] = {}
    scalars: list[Any] = []
    for spec in specs:
        for way, value in values(spec.tree):
            known = [by_place.setdefault(place_of(way), [])]
            if way and isinstance(way[-1], str):
                known.append(by_key.setdefault(way[-1], []))
            if not isinstance(value, dict | list):
                known.append(scalars)
            for those in known:
                if value not in those:
                    those.append(value)
    return Stock(by_place, by_key, sorted(by_key), scalars)


def place_of(way: Way) -> tuple[str, ...]:
    """The last two keys on a way; values of one place are of one kind, by and large."""
    return tuple("*" if isinstance(step, int) else step for step in way)[-2:]


def values(tree: Any, way: Way = ()) -> Iterator[tuple[Way, Any]]:
    """Every value of a tree with the way to it, the whole tree first."""
    yield way, tree
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from values(value, (*way, key))
    elif isinstance(tree, list):
        for at, value in enumerate(tree):
            yield from values(value, (*way, at))


def at(tree: Any, way: Way) -> Any:
    for step in way:
        tree = tree[step]
    return tree


# ---------------------------------------------------------------- faults in the tree


@st.composite
def mutated_trees(draw: st.DrawFn, specs: list[Good], stock: Stock) -> tuple[str, Path]:
    """The text of a good spec with one to three faults in its values, and its folder."""
    spec = draw(st.sampled_from(specs))
    tree = copy.deepcopy(spec.tree)
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        tree = _mutated(draw, tree, stock)
    return written(tree), spec.folder


def _mutated(draw: st.DrawFn, tree: Any, stock: Stock) -> Any:
    ways = [way for way, _ in values(tree) if way]
    if not ways:
        return tree
    way = draw(st.sampled_from(ways))
    owner, last = at(tree, way[:-1]), way[-1]
    old = owner[last]
    match draw(st.sampled_from(FAULTS)):
        case "strange":
            owner[last] = copy.deepcopy(draw(st.sampled_from(STRANGE)))
        case "graft":
            known = stock.by_place.get(place_of(way)) or stock.scalars
            owner[last] = copy.deepcopy(draw(st.sampled_from(known)))
        case "alike":
            known = stock.by_key.get(str(last)) or stock.scalars
            owner[last] = copy.deepcopy(draw(st.sampled_from(known)))
        case "drop":
            del owner[last]
        case "twice" if isinstance(owner, list):
            owner.insert(int(last), copy.deepcopy(old))
        case "key" | "twice" if isinstance(owner, dict):
            key = draw(st.sampled_from([*stock.keys, *owner]))
            owner[key] = owner.pop(last) if draw(st.booleans()) else copy.deepcopy(old)
        case "add" if isinstance(old, dict):
            key = draw(st.sampled_from(stock.keys))
            old[key] = copy.deepcopy(draw(st.sampled_from(stock.by_key[key])))
        case _:
            owner[last] = _nudged(draw, old, stock)
    return tree


def _nudged(draw: st.DrawFn, old: Any, stock: Stock) -> Any:
    """A value near the old one: another number, another word of a text, another order."""
    if isinstance(old, bool):
        return not old
    if isinstance(old, int | float):
        return old + draw(st.sampled_from([-1, 1, -2, 2, 16]))
    if isinstance(old, str):
        words = re.findall(r"\w+|\W", old) or [""]
        spot = draw(st.integers(0, len(words) - 1))
        words[spot] = str(draw(st.sampled_from([*stock.scalars, *STRANGE])))
        return "".join(words)
    if isinstance(old, list):
        return draw(st.permutations(old)) if len(old) < 20 else old[::-1]
    return old


def written(tree: Any) -> str:
    """A tree as the text of a spec."""
    text: str = yaml.dump(tree, Dumper=DUMPER, sort_keys=False, default_flow_style=None, width=200)
    return text


# ---------------------------------------------------------------- faults in the text


@st.composite
def mutated_texts(draw: st.DrawFn, specs: list[Good]) -> tuple[str, Path]:
    """A good spec with its text cut, stretched or scratched, and its folder."""
    spec = draw(st.sampled_from(specs))
    text = spec.text
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 1, 2, 5, 20, 200])))
        lines = text.splitlines(keepends=True) or [""]
        line = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["cut", "end", "mark", "line", "swap", "twice", "indent"])):
            case "cut":
                text = text[:start] + text[end:]
            case "end":
                text = text[:start]
            case "mark":
                text = text[:start] + draw(st.sampled_from(MARKS)) + text[start:]
            case "line":
                text = "".join(lines[:line] + lines[line + 1 :])
            case "swap":
                other = draw(st.integers(0, len(lines) - 1))
                lines[line], lines[other] = lines[other], lines[line]
                text = "".join(lines)
            case "twice":
                text = "".join(lines[: line + 1] + lines[line:])
            case _:
                lines[line] = draw(st.sampled_from([" ", "  ", "\t"])) + lines[line]
                text = "".join(lines)
    return text, spec.folder
