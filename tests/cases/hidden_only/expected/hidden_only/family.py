# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:273ac02076b5384be9554b57455730d885074abf805b9f2da54729d17f2ca3a9
"""Sizes, state and layer ranges: what every runner of the family is built from."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc import runtime as rt

rt.require_abi(4, __name__)

FINGERPRINT = "sha256:273ac02076b5384be9554b57455730d885074abf805b9f2da54729d17f2ca3a9"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dims:
    """Sizes that are known when a runner is built."""

    hidden: int  # config.hidden_size, spec.yaml:5
    vocab: int  # config.vocab_size, spec.yaml:6
    layer_count: int  # config.num_hidden_layers, spec.yaml:11

    @classmethod
    def from_config(cls, config: object) -> Dims:
        """Read the sizes from a model's config. Raises DimError for one that is not there."""
        hidden = rt.config_int(config, "hidden_size")
        vocab = rt.config_int(config, "vocab_size")
        layer_count = rt.config_int(config, "num_hidden_layers")
        return cls(hidden=hidden, vocab=vocab, layer_count=layer_count)


def stage_layers(dims: Dims, *, stage: int, of: int) -> rt.LayerRange:
    """The layers of stage number ``stage`` out of ``of``. Raises LayerError."""
    ranges = rt.even_ranges(dims.layer_count, of)  # spec.yaml:11
    return rt.stage_of(ranges, stage, of)
