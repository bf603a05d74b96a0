"""Code that `ppcgc generate --bind` made for one config: a build with another is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ppcgc.runtime.errors import BoundError
from ppcgc.runtime.layers import LayerRange


def check_bound(dims: object, bound: Mapping[str, object], config: str) -> None:
    """Compare sizes with the constants of the code, by their path. Raises BoundError."""
    for path, constant in bound.items():
        value = dims
        for step in path.split("."):
            value = getattr(value, step)
        if value != constant:
            raise BoundError(
                f"{path} is {value} in this build, the code has {constant}, from {config}; "
                "build with that config, or generate again with --bind and this one"
            )


def check_stage(layers: LayerRange, stages: Sequence[tuple[int, int]]) -> None:
    """A stage is one of those that the code was generated for. Raises BoundError."""
    if (layers.start, layers.end) not in stages or layers.count != stages[-1][1]:
        listed = ", ".join(f"[{start}, {end})" for start, end in stages)
        raise BoundError(
            f"the stage owns layers {layers}, the code is for stages {listed} of "
            f"{stages[-1][1]}; generate again with --bind and --stages, or use `stage_layers`"
        )
