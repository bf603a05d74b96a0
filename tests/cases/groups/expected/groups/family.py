# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:60d459386d8bcb3f35623106fbaeb1751445f3d616ea8c6f033a1bf3df210b40
"""Sizes, state and layer ranges: what every runner of the family is built from."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc import runtime as rt

rt.require_abi(4, __name__)

FINGERPRINT = "sha256:60d459386d8bcb3f35623106fbaeb1751445f3d616ea8c6f033a1bf3df210b40"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dims:
    """Sizes that are known when a runner is built."""

    hidden: int  # config.text.hidden_size, spec.yaml:4
    layer_count: int  # config.text.num_layers, spec.yaml:8

    @classmethod
    def from_config(cls, config: object) -> Dims:
        """Read the sizes from a model's config. Raises DimError for one that is not there."""
        hidden = rt.config_int(config, "text.hidden_size")
        layer_count = rt.config_int(config, "text.num_layers")
        return cls(hidden=hidden, layer_count=layer_count)


def stage_layers(dims: Dims, *, stage: int, of: int) -> rt.LayerRange:
    """The layers of stage number ``stage`` out of ``of``. Raises LayerError."""
    ranges = rt.even_ranges(dims.layer_count, of)  # spec.yaml:8
    return rt.stage_of(ranges, stage, of)
