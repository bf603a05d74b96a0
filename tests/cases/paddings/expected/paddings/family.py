# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:4aa9ba1a69bf7eca98cd0758fd684b7173544242b678df2027b62ca1f727b8ef
"""Sizes, state and layer ranges: what every runner of the family is built from."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc import runtime as rt

rt.require_abi(4, __name__)

FINGERPRINT = "sha256:4aa9ba1a69bf7eca98cd0758fd684b7173544242b678df2027b62ca1f727b8ef"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dims:
    """Sizes that are known when a runner is built."""

    hidden: int  # config.hidden_size, spec.yaml:4
    sink: int  # given at build, spec.yaml:4
    layer_count: int  # config.num_hidden_layers, spec.yaml:8

    @classmethod
    def from_config(cls, config: object, *, sink: int) -> Dims:
        """Read the sizes from a model's config. Raises DimError for one that is not there."""
        hidden = rt.config_int(config, "hidden_size")
        sink = rt.build_int("sink", sink)
        layer_count = rt.config_int(config, "num_hidden_layers")
        return cls(hidden=hidden, sink=sink, layer_count=layer_count)


def stage_layers(dims: Dims, *, stage: int, of: int) -> rt.LayerRange:
    """The layers of stage number ``stage`` out of ``of``. Raises LayerError."""
    ranges = rt.even_ranges(dims.layer_count, of)  # spec.yaml:8
    return rt.stage_of(ranges, stage, of)
