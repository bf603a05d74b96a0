# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:740bc790888aacc66747fbb88bbd813989e7e5e4aa888ea10c37331d7d662819
"""Sizes, state and layer ranges: what every runner of the family is built from."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc import runtime as rt

rt.require_abi(4, __name__)

FINGERPRINT = "sha256:740bc790888aacc66747fbb88bbd813989e7e5e4aa888ea10c37331d7d662819"

# spec.yaml:7: the layers of each stage, half open
STAGES = ((0, 2),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dims:
    """Sizes that are known when a runner is built."""

    layer_count: int  # spec.yaml:7

    @classmethod
    def from_config(cls, config: object) -> Dims:
        """Read the sizes from a model's config. Raises DimError for one that is not there."""
        layer_count = 2
        return cls(layer_count=layer_count)


def stage_layers(dims: Dims, *, stage: int, of: int) -> rt.LayerRange:
    """The layers of stage number ``stage`` out of ``of``. Raises LayerError."""
    ranges = rt.declared_ranges(dims.layer_count, STAGES)  # spec.yaml:7
    return rt.stage_of(ranges, stage, of)
