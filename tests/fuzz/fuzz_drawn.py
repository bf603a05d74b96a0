"""A spec under way: draws, names declared so far, and the words that all tensors share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
        self.bucket_scalars: list[str] = []
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
