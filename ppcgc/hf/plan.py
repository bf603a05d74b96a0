"""Which modules of a transformers decoder stand before, in and after its layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

from torch import Tensor, nn

from ppcgc.runtime.errors import BuildError, LayerError

DEFAULT_PLAN = ("embed_tokens", "layers", "norm")
DEFAULT_HEAD = ("lm_head",)


class PassThrough(nn.Module):
    """Stands in for a module that another stage owns: returns its first argument."""

    def forward(self, first: Tensor, *_others: object, **_named: object) -> Tensor:
        return first


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePlan:
    """Module names: ``before`` and ``after`` the layers in the base model, ``head`` in the whole.

    They come from ``config.base_model_pp_plan`` and the class' ``_pp_plan``, or are the names
    that nearly every family uses where it has no plan.
    """

    before: tuple[str, ...]
    layers: str
    after: tuple[str, ...]
    head: tuple[str, ...]
    layer_count: int


def read_plan(model: Any) -> PipelinePlan:
    """The plan of a ``...ForCausalLM``. Raises BuildError where its names lead to no modules."""
    base = model.base_model
    names = tuple(getattr(model.config, "base_model_pp_plan", None) or DEFAULT_PLAN)
    head = tuple(getattr(type(model), "_pp_plan", None) or DEFAULT_HEAD)
    missing = [n for n in names if not isinstance(getattr(base, n, None), nn.Module)]
    missing += [n for n in head if not isinstance(getattr(model, n, None), nn.Module)]
    lists = [n for n in names if isinstance(getattr(base, n, None), nn.ModuleList)]
    if missing or len(lists) != 1:
        raise BuildError(
            f"{type(model).__name__}: its pipeline plan {[*names, *head]} has {len(lists)} lists "
            f"of layers and names no modules {missing}; it needs one list and no unknown name"
        )
    at = names.index(lists[0])
    return PipelinePlan(
        before=names[:at],
        layers=names[at],
        after=names[at + 1 :],
        head=head,
        layer_count=len(getattr(base, names[at])),
    )


def check_ranges(ranges: Sequence[tuple[int, int]], layer_count: int) -> None:
    """Raise LayerError unless the half open ranges cover ``layer_count`` layers in order."""
    at = 0
    for pair in ranges:
        start, end = _pair(pair)
        if start != at:
            raise LayerError(
                f"stage [{start}, {end}) does not go on from layer {at}: stages are half open "
                f"ranges in order that cover [0, {layer_count})"
            )
        check_range(start, end, layer_count)
        at = end
    if at != layer_count:
        raise LayerError(f"the stages end at layer {at} and the model at {layer_count}")


def _pair(given: object) -> tuple[int, int]:
    """A stage's start and end. Raises LayerError for anything else, a ``range`` among it."""
    if isinstance(given, tuple | list) and len(given) == 2:
        start, end = given
        return start, end
    mend = f"; give ({given.start}, {given.stop})" if isinstance(given, range) else ""
    raise LayerError(f"stage {given!r} is not a pair (start, end), half open{mend}")


def check_range(start: int, end: int, layer_count: int) -> None:
    """Raise LayerError unless ``[start, end)`` has a layer and lies within the model."""
    if not all(isinstance(one, SupportsIndex) for one in (start, end)):
        raise LayerError(f"stage [{start!r}, {end!r}): layers are counted in integers")
    if not 0 <= start < end <= layer_count:
        raise LayerError(f"stage [{start}, {end}) has no layer, or not of [0, {layer_count})")


def drop_unowned(model: Any, plan: PipelinePlan, start: int, end: int) -> None:
    """Replace what a stage ``[start, end)`` does not own, in place."""
    base = model.base_model
    layers = getattr(base, plan.layers)
    for i in range(plan.layer_count):
        if not start <= i < end:
            layers[i] = PassThrough()
    if start > 0:
        _replace(base, plan.before)
    if end < plan.layer_count:
        _replace(base, plan.after)
        _replace(model, plan.head)


def _replace(parent: nn.Module, names: Sequence[str]) -> None:
    for name in names:
        setattr(parent, name, PassThrough())
