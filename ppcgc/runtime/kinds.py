"""Kinds of layers: sets of global layer ids, known when a runner is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ppcgc.runtime.dims import check_config
from ppcgc.runtime.errors import LayerError
from ppcgc.runtime.layers import LayerRange

KindIds = frozenset[int]


def kind_of_ids(name: str, ids: Sequence[int], count: int) -> KindIds:
    """The listed layers. Raises LayerError for an id outside the model."""
    foreign = [layer for layer in ids if not 0 <= layer < count]
    if foreign:
        raise LayerError(f"kind {name}: layers {foreign} are not among the model's [0, {count})")
    return frozenset(ids)


def kind_where(name: str, config: object, path: str, word: object, count: int) -> KindIds:
    """Layers whose entry in a list (or character in a string) of the config equals ``word``.

    Raises LayerError when the config has no such list, or one of another length, DimError for a
    config that is none.
    """
    check_config(config)
    value = config
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else getattr(value, step, None)
    if not isinstance(value, Sequence):
        raise LayerError(f"kind {name}: config.{path} is {value!r}, not a list or a string")
    if len(value) != count:
        raise LayerError(
            f"kind {name}: config.{path} has {len(value)} entries, the model has {count} layers"
        )
    return frozenset(layer for layer, entry in enumerate(value) if entry == word)


def kind_if(holds: Callable[[int], bool], count: int) -> KindIds:
    """Layers for which a condition holds."""
    return frozenset(layer for layer in range(count) if holds(layer))


def layers_below(kind: KindIds, limit: int) -> int:
    """How many layers of a kind have an id below ``limit``."""
    return sum(1 for layer in kind if layer < limit)


def owns(layers: LayerRange, kind: KindIds) -> bool:
    """Whether a stage has a layer of a kind."""
    return any(layer in layers for layer in kind)


def census(layers: LayerRange, kinds: Mapping[str, KindIds]) -> dict[str, int]:
    """How many layers of each kind a stage has."""
    return {name: sum(1 for layer in kind if layer in layers) for name, kind in kinds.items()}
