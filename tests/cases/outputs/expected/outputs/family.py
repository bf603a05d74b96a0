# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:70852ee30e9dd3150034fe106d7caef838dfd044e75bb01550f561b5abd47f24
"""Sizes, state and layer ranges: what every runner of the family is built from."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc import runtime as rt

rt.require_abi(4, __name__)

FINGERPRINT = "sha256:70852ee30e9dd3150034fe106d7caef838dfd044e75bb01550f561b5abd47f24"

# spec.yaml:9: the layers of each stage, half open
STAGES = ((0, 2),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dims:
    """Sizes that are known when a runner is built."""

    hidden: int  # config.hidden_size, spec.yaml:4
    vocab: int  # config.vocab_size, spec.yaml:4
    layer_count: int  # spec.yaml:9

    @classmethod
    def from_config(cls, config: object) -> Dims:
        """Read the sizes from a model's config. Raises DimError for one that is not there."""
        hidden = rt.config_int(config, "hidden_size")
        vocab = rt.config_int(config, "vocab_size")
        layer_count = 2
        return cls(hidden=hidden, vocab=vocab, layer_count=layer_count)


def stage_layers(dims: Dims, *, stage: int, of: int) -> rt.LayerRange:
    """The layers of stage number ``stage`` out of ``of``. Raises LayerError."""
    ranges = rt.declared_ranges(dims.layer_count, STAGES)  # spec.yaml:9
    return rt.stage_of(ranges, stage, of)
