"""Sizes that are known when a runner is built: read from a config, given, or computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Protocol, get_type_hints

import torch

from ppcgc.runtime.errors import DimError

MOST = 2**63 - 1  # torch counts rows in int64


class Sizes(Protocol):
    """What the runtime itself reads of a family's ``Dims``."""

    @property
    def layer_count(self) -> int: ...


def config_int(config: object, path: str) -> int:
    """The integer at a dotted path of a config object or mapping. Raises DimError."""
    return build_int(f"config.{path}", _at(config, path))


def config_length(config: object, path: str) -> int:
    """The length of the list, or string, at a dotted path of a config. Raises DimError."""
    value = _at(config, path)
    if not isinstance(value, Sequence):
        raise DimError(f"config.{path} is {value!r}, not a list or a string")
    return build_int(f"the length of config.{path}", len(value))


def check_config(config: object) -> None:
    """Raises DimError for the name of a config's file, or no config, in the config's place."""
    if config is None or isinstance(config, str | bytes | PathLike):
        raise DimError(
            f"config is {config!r}; give a mapping or an object with the model's sizes: "
            "`json.loads(Path(file).read_text())` reads a config.json, "
            "`AutoConfig.from_pretrained(name)` that of a model"
        )


def _at(config: object, path: str) -> object:
    check_config(config)
    value = config
    for step in path.split("."):
        inner = value.get(step) if isinstance(value, Mapping) else getattr(value, step, None)
        if inner is None:
            has = step in value if isinstance(value, Mapping) else hasattr(value, step)
            lacks = f"its {step!r} is None" if has else f"the config has no {step!r}"
            raise DimError(f"config.{path}: {lacks}")
        value = inner
    return value


def check_value(
    slot: str,
    value: int,
    dtype: torch.dtype,
    line: str,
    *,
    below: int | None = None,
    skips_negative: bool = False,
) -> None:
    """What padding or a constant puts into a slot of integers, where sizes decide the value.

    ``below`` is the first value past the role's size. Raises DimError for a value that the dtype
    or the role forbids.
    """
    limits = torch.iinfo(dtype)
    low, high = (limits.min, limits.max) if below is None else (0, min(below - 1, limits.max))
    if not (low <= value <= high or (limits.min <= value < 0 and skips_negative)):
        raise DimError(
            f"slot {slot} ({line}): with these sizes its padding or constant is {value}, legal are "
            f"{low} to {high}; build Dims with other sizes, or mend the spec"
        )


def build_int(name: str, value: object) -> int:
    """A size as an int. Raises DimError for anything but a positive integer of 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise DimError(f"{name} is {value!r}; a size must be an integer")
    if value < 1:
        raise DimError(f"{name} is {value}; a size must be at least 1")
    if value > MOST:
        raise DimError(f"{name} is {value}; a size must fit into 64 bits, at most {MOST}")
    return value


def check_options(given: object, kind: type[object], **words: Sequence[str]) -> None:
    """The choices of a build; ``words`` are those of an option that has a few.

    Raises DimError for another object, a value of another type, or none of the words.
    """
    if not isinstance(given, kind):
        raise DimError(
            f"options is a {type(given).__name__}; give the family's own, "
            f"options={kind.__name__}(...)"
        )
    for name, wanted in get_type_hints(kind).items():
        value = getattr(given, name)
        if type(value) is not wanted:
            raise DimError(f"options.{name} is {value!r}; it is of type {wanted.__name__}")
        if name in words and value not in words[name]:
            legal = ", ".join(map(repr, words[name]))
            raise DimError(f"options.{name} is {value!r}; one of {legal}")


def floor_div(left: int, right: int) -> int:
    """``left // right``. Raises DimError for a zero divisor."""
    if right == 0:
        raise _by_zero(f"{left} // {right}")
    return left // right


def ceil_div(left: int, right: int) -> int:
    """``ceil(left / right)``. Raises DimError for a zero divisor."""
    if right == 0:
        raise _by_zero(f"ceil({left} / {right})")
    return -(-left // right)


def remainder(left: int, right: int) -> int:
    """``left % right``. Raises DimError for a zero divisor."""
    if right == 0:
        raise _by_zero(f"{left} % {right}")
    return left % right


def _by_zero(division: str) -> DimError:
    return DimError(
        f"{division}: the divisor is zero; a size of this build, or a live count of this batch, is "
        "0 where an expression of the spec divides by it: write `max(…, 1)` there"
    )


def check_shape(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without a negative extent. Raises DimError naming the slot and the shape."""
    if any(extent < 0 for extent in shape):
        raise DimError(f"{name}: shape {list(shape)} has a negative extent")
    return shape
