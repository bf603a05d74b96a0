# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:d537729046a0e090de41a413e09a7ba112f6e5b0d839b71aaeedf67e3ee80f30
"""Sizes, state and layer ranges: what every runner of the family is built from."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc import runtime as rt

rt.require_abi(4, __name__)

FINGERPRINT = "sha256:d537729046a0e090de41a413e09a7ba112f6e5b0d839b71aaeedf67e3ee80f30"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dims:
    """Sizes that are known when a runner is built."""

    heads: int  # config.num_heads, spec.yaml:4
    hidden: int  # config.hidden_size, spec.yaml:4
    head_dim: int  # computed, spec.yaml:4
    layer_count: int  # spec.yaml:9

    @classmethod
    def from_config(cls, config: object) -> Dims:
        """Read the sizes from a model's config. Raises DimError for one that is not there."""
        heads = rt.config_int(config, "num_heads")
        hidden = rt.config_int(config, "hidden_size")
        head_dim = rt.floor_div(hidden, heads)
        layer_count = heads
        return cls(heads=heads, hidden=hidden, head_dim=head_dim, layer_count=layer_count)


def stage_layers(dims: Dims, *, stage: int, of: int) -> rt.LayerRange:
    """The layers of stage number ``stage`` out of ``of``. Raises LayerError."""
    ranges = rt.even_ranges(dims.layer_count, of)  # spec.yaml:9
    return rt.stage_of(ranges, stage, of)
