"""Layer ranges of pipeline stages, and lists aligned to global layer ids.

Global and local layer ids are different types. The one place where one becomes the other is
:class:`LayerRange`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NewType, TypeVar

from ppcgc.runtime.errors import LayerError

GlobalLayerId = NewType("GlobalLayerId", int)
LocalLayerId = NewType("LocalLayerId", int)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LayerRange:
    """The layers ``[start, end)`` of a stage, out of ``count`` in the model.

    Raises LayerError for bounds that are not integers, an empty range or one outside the model.
    """

    start: int
    end: int
    count: int

    def __post_init__(self) -> None:
        for name in ("start", "end", "count"):
            _check_integer("layer range", name, getattr(self, name))
        if not 0 <= self.start < self.end <= self.count:
            raise LayerError(
                f"layer range [{self.start}, {self.end}) is not a non-empty part of the "
                f"{self.count} layers [0, {self.count})"
            )

    def __len__(self) -> int:
        return self.end - self.start

    def __contains__(self, layer: object) -> bool:
        return isinstance(layer, int) and self.start <= layer < self.end

    def __str__(self) -> str:
        return f"[{self.start}, {self.end}) of {self.count}"

    @property
    def layers(self) -> tuple[GlobalLayerId, ...]:
        return tuple(GlobalLayerId(layer) for layer in range(self.start, self.end))

    def to_local(self, layer: GlobalLayerId) -> LocalLayerId:
        """The place of a layer within the stage. Raises LayerError for another stage's layer."""
        if layer not in self:
            raise LayerError(f"layer {layer} is not in this stage, which owns {self}")
        return LocalLayerId(layer - self.start)

    def to_global(self, layer: LocalLayerId) -> GlobalLayerId:
        """The layer's id in the whole model. Raises LayerError past the stage's last layer."""
        if not 0 <= layer < len(self):
            raise LayerError(f"local layer {layer} is not among the {len(self)} layers of {self}")
        return GlobalLayerId(layer + self.start)

    def align(self, found: Iterable[tuple[GlobalLayerId, T]]) -> tuple[T | None, ...]:
        """A list indexed by global layer id, with None for other stages' layers.

        ``found`` pairs each object with the id that the object itself states; the order does
        not matter. Raises LayerError for a layer that is missing, foreign or given twice.
        """
        aligned: list[T | None] = [None] * self.count
        given: set[int] = set()
        for layer, item in found:
            self.to_local(layer)
            if layer in given:
                raise LayerError(f"layer {layer} is given twice for the stage {self}")
            given.add(layer)
            aligned[layer] = item
        missing = sorted(set(range(self.start, self.end)) - given)
        if missing:
            raise LayerError(
                f"the stage owns {len(self)} layers, {self}, but {len(given)} were found; "
                f"missing: {missing}"
            )
        return tuple(aligned)


def _check_integer(where: str, name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise LayerError(f"{where}: {name} is {value!r}; it must be an integer")


def even_ranges(count: int, stages: int) -> tuple[LayerRange, ...]:
    """``count`` layers spread over ``stages``; the first stages get the remainder.

    Raises LayerError when there are fewer layers than stages, or no number of stages.
    """
    _check_integer("stage_layers", "of", stages)
    if stages < 1 or count < stages:
        raise LayerError(f"{count} layers cannot be spread over {stages} stages")
    size, extra = divmod(count, stages)
    ends = [size * (stage + 1) + min(stage + 1, extra) for stage in range(stages)]
    starts = [0, *ends[:-1]]
    return tuple(LayerRange(a, b, count) for a, b in zip(starts, ends, strict=True))


def declared_ranges(count: int, ranges: Sequence[tuple[int, int]]) -> tuple[LayerRange, ...]:
    """The explicit ranges of a spec. Raises LayerError unless they cover the model's layers."""
    made = tuple(LayerRange(start, end, count) for start, end in ranges)
    if made[-1].end != count:
        raise LayerError(
            f"the spec's stages end at layer {made[-1].end}, the model has {count} layers"
        )
    return made


def check_declared(layers: LayerRange, stages: Sequence[tuple[int, int]]) -> None:
    """A stage owns one of the spec's explicit ranges. Raises LayerError."""
    if layers not in declared_ranges(layers.count, stages):
        listed = ", ".join(f"[{start}, {end})" for start, end in stages)
        raise LayerError(
            f"the stage owns layers {layers}, the spec's stages are {listed}; use `stage_layers`, "
            "or list the range under `pipeline.stages`"
        )


def check_count(layers: LayerRange, count: int) -> None:
    """A range is a part of the model whose sizes the build has. Raises LayerError."""
    if layers.count != count:
        raise LayerError(
            f"the stage owns layers {layers}, the model has {count} layers (dims.layer_count); "
            f"give LayerRange(start={layers.start}, end={layers.end}, count={count}), or use "
            "`stage_layers`"
        )


def stage_of(ranges: Sequence[LayerRange], stage: int, of: int) -> LayerRange:
    """The range of one stage. Raises LayerError when the pipeline has another number of stages."""
    _check_integer("stage_layers", "stage", stage)
    _check_integer("stage_layers", "of", of)
    if len(ranges) != of:
        raise LayerError(f"the spec's pipeline has {len(ranges)} stages, the build asks for {of}")
    if not 0 <= stage < of:
        raise LayerError(f"stage {stage} of {of}: the first stage is 0, the last {of - 1}")
    return ranges[stage]


def check_model_range(model: object, layers: LayerRange) -> None:
    """Compare with the model's own ``start_layer`` and ``end_layer``, where it has them.

    Raises LayerError when they differ, when one is there without the other, or when one is no
    integer.
    """
    owner = getattr(model, "__self__", model)  # of a bound method, such as ``stage.forward``
    start, end = getattr(owner, "start_layer", None), getattr(owner, "end_layer", None)
    if start is None and end is None:
        return
    if start is None or end is None:
        has, lacks = ("start_layer", "end_layer") if end is None else ("end_layer", "start_layer")
        raise LayerError(f"the model has {has} but no {lacks}; give both or neither")
    for name, bound in (("start_layer", start), ("end_layer", end)):
        if isinstance(bound, bool) or not isinstance(bound, int):
            raise LayerError(f"the model's {name} is {bound!r}; it must be an integer")
    if (start, end) != (layers.start, layers.end):
        raise LayerError(
            f"the model's layers are [{start}, {end}), the stage was built for {layers}; "
            "give both the same range"
        )
