"""Boundaries of a family: the pipeline's, and one of its own for a runner that overrides fields."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc.emit.source import Code, Identifier, call, identifier, tuple_of
from ppcgc.emit.tensors import BoundaryKeyView, boundary_view
from ppcgc.ir import BoundaryKey, Family, Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryView:
    """A boundary module."""

    module: Identifier
    keys: tuple[BoundaryKeyView, ...]
    axes: tuple[Identifier, ...]
    forwarded: Code | None
    conditional: bool
    infos: Code
    held: Code
    trimmed: Code
    imports_torch: bool
    split: Code | None
    scattered: Code | None


def boundary_of(family: Family, runner: Runner) -> tuple[BoundaryKey, ...]:
    """The keys that a runner's stages hand over."""
    return family.pipeline.boundary if runner.boundary is None else runner.boundary


def boundary_module(runner: Runner) -> str:
    """The module with a runner's boundary."""
    return "boundary" if runner.boundary is None else f"{runner.name}_boundary"


def boundary_views(family: Family) -> tuple[BoundaryView, ...]:
    """Every boundary module of a family."""
    views = []
    if any(runner.boundary is None for runner in family.runners) and family.pipeline.boundary:
        views.append(_view(family, "boundary", family.pipeline.boundary))
    for runner in family.runners:
        if runner.boundary is not None:
            views.append(_view(family, boundary_module(runner), runner.boundary))
    return tuple(views)


def _view(family: Family, module: str, keys: tuple[BoundaryKey, ...]) -> BoundaryView:
    views = tuple(boundary_view(family, key) for key in keys)
    crossing = [key for key in keys if not key.never]
    axes = dict.fromkeys(extent.axis for key in crossing for extent in key.shape if extent.axis)
    forwarded = tuple(view.key for view in views if view.by_runtime)
    split = tuple(view.split for view in views if view.split is not None)
    scattered = tuple(view.key for view in views if view.scattered)
    return BoundaryView(
        module=identifier(module),
        keys=views,
        axes=tuple(identifier(axis) for axis in axes),
        forwarded=_tuple("FORWARDED", forwarded) if forwarded else None,
        conditional=any(key.when is not None for key in keys),
        infos=tuple_of(tuple(view.info for view in views)),
        held=call(Code("Boundary"), tuple(view.member for view in views)),
        trimmed=call(Code("Boundary"), tuple(view.trim for view in views)),
        split=Code(f"{{{', '.join(map(str, split))}}}") if split else None,
        scattered=Code(f"frozenset({{{', '.join(map(str, scattered))}}})") if scattered else None,
        imports_torch=any(key.dtype != "model" for key in crossing),
    )


def _tuple(name: str, items: tuple[Code, ...]) -> Code:
    """``FORWARDED = ("a", "b")``."""
    return Code(f"{name} = {tuple_of(items)}")
