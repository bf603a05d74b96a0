"""What a runner is built with: each thing of the kind that its constructor says.

Generated constructors read what they are given at once. Without these checks a slip of a caller
without a type checker would come out as an AttributeError of the first thing that is read.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch

from ppcgc.runtime.errors import BuildError, LayerError
from ppcgc.runtime.layers import LayerRange


def check_given(
    runner: type, layers: object, dtype: object, backend: object, **of_family: tuple[object, type]
) -> None:
    """Raises BuildError, LayerError for layers, unless a build is given what it asks for.

    ``of_family`` has the values of the family's own classes beside their class.
    """
    named = runner.__name__
    if not isinstance(layers, LayerRange):
        raise LayerError(f"{named}: layers is {layers!r}; {_range_like(layers)}")
    if not isinstance(dtype, torch.dtype):
        raise BuildError(f"{named}: dtype is {dtype!r}; {_dtype_like(dtype)}")
    if not callable(getattr(backend, "capture", None)):
        name = backend if isinstance(backend, str | torch.device) else "cuda"
        raise BuildError(
            f'{named}: backend is {backend!r}; give what `open_backend("{name}")` returns, one '
            "for all runners that share a memory pool"
        )
    for name, (value, kind) in of_family.items():
        _check_class(named, name, value, kind)


def _check_class(runner: str, name: str, value: object, kind: Any) -> None:
    """``value`` has every field of the dataclass ``kind``, and the check that a state has."""
    names = [field.name for field in fields(kind)]
    asked = ["check"] if hasattr(kind, "check") else []
    lacking = [name for name in names if not hasattr(value, name)]
    lacking = lacking or [name for name in asked if not hasattr(value, name)]
    if isinstance(value, kind) or not lacking:
        return
    how = f"{kind.__name__}({', '.join(f'{field}=...' for field in names)})"
    if name == "dims":
        how = f"{kind.__name__}.from_config(config, ...)"
    raise BuildError(
        f"{runner}: {name} is a {type(value).__name__} without {', '.join(lacking)}; give {how}"
    )


def _range_like(layers: object) -> str:
    """How to write the range that ``layers`` may have meant."""
    start, end = "...", "..."
    match layers:
        case range(start=first, stop=last, step=1) | (int(first), int(last)):
            start, end = str(first), str(last)
    return (
        f"give LayerRange(start={start}, end={end}, count=dims.layer_count), or what "
        "`stage_layers` returns"
    )


def _dtype_like(dtype: object) -> str:
    known = isinstance(getattr(torch, str(dtype), None), torch.dtype)
    return f"give torch.{dtype}" if known else "give a torch.dtype, such as torch.bfloat16"
