"""What the templates of a family print: dims, state, layer ranges, boundary, exports."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc.emit.expressions import python
from ppcgc.emit.imports import import_line, in_import_order
from ppcgc.emit.names import names_for
from ppcgc.emit.runner_view import RunnerView
from ppcgc.emit.source import Code, Identifier, call, code, docstring, identifier, literal, tuple_of
from ppcgc.emit.tensors import TensorView, boundary_view
from ppcgc.expr.tree import Expr
from ppcgc.expr.walk import refs
from ppcgc.ir import BuildDim, ConfigDim, EvenStages, ExprDim, Family
from ppcgc.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class DimView:
    name: Identifier
    note: Code
    value: Code


@dataclass(frozen=True, slots=True, kw_only=True)
class StateView:
    name: Identifier
    note: Code
    check: Code


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyView:
    name: Identifier
    doc: Code
    fingerprint: Code
    dims: tuple[DimView, ...]
    build_dims: tuple[Identifier, ...]
    from_config: Code
    local_dims: tuple[Code, ...]
    make_dims: Code
    states: tuple[StateView, ...]
    ranges: Code
    ranges_line: Code
    boundary: tuple[TensorView, ...]
    boundary_axes: tuple[Identifier, ...]
    boundary_keys: Code
    boundary_unpack: Code
    resets: bool
    boundary_imports_torch: bool
    imports: tuple[Code, ...]
    exports: Code
    name_text: Code


def family_view(plan: Plan, runners: tuple[RunnerView, ...]) -> FamilyView:
    family = plan.family
    build = tuple(identifier(d.name) for d in family.dims if isinstance(d.source, BuildDim))
    boundary = tuple(boundary_view(family, key) for key in family.pipeline.boundary)
    keys = tuple(key.key for key in boundary)
    dims = tuple(_dim_views(family))
    return FamilyView(
        name=identifier(family.name),
        doc=docstring(family.doc or f"The family {family.name}"),
        fingerprint=literal(plan.fingerprint),
        dims=dims,
        build_dims=build,
        from_config=_from_config(build),
        local_dims=tuple(code("{} = {}", dim.name, dim.value) for dim in dims),
        make_dims=call(
            Code("return cls"), tuple(code("{}={}", dim.name, dim.name) for dim in dims), 8
        ),
        states=tuple(_state_views(family)),
        ranges=_ranges(family),
        ranges_line=Code(f"# {family.source}:{family.pipeline.span.line}"),
        boundary=boundary,
        boundary_axes=tuple(identifier(axis) for axis in boundary_axes(family)),
        boundary_keys=tuple_of(keys),
        boundary_unpack=tuple_of(tuple(key.name for key in boundary))
        if len(boundary) == 1
        else Code(", ".join(str(key.name) for key in boundary)),
        boundary_imports_torch=any(key.dtype != "model" for key in family.pipeline.boundary),
        resets=any(key.reset is not None for key in boundary),
        imports=_imports(family, runners),
        exports=_exports(family, runners),
        name_text=literal(family.name),
    )


def _exported(family: Family, runners: tuple[RunnerView, ...]) -> dict[str, list[str]]:
    """The public names of each module of the package."""
    public = {"family": ["FINGERPRINT", "Dims", "stage_layers"]}
    if family.states:
        public["family"].append("State")
    if family.pipeline.boundary:
        public["boundary"] = ["Boundary"]
    for runner in runners:
        public[str(runner.name)] = [str(runner.extents), str(runner.outputs)]
        for kind in runner.kinds:
            classes = [str(place.name) for place in kind.places]
            public[str(kind.module)] = [str(kind.batch), str(kind.slots), *classes]
    return public


def _imports(family: Family, runners: tuple[RunnerView, ...]) -> tuple[Code, ...]:
    exported = _exported(family, runners)
    return tuple(
        import_line(module, in_import_order(exported[module])) for module in sorted(exported)
    )


def _exports(family: Family, runners: tuple[RunnerView, ...]) -> Code:
    names = [name for names in _exported(family, runners).values() for name in names]
    inner = "".join(f"\n    {literal(name)}," for name in in_import_order(names))
    return Code(f"__all__ = [{inner}\n]")


def boundary_axes(family: Family) -> tuple[str, ...]:
    """The axes that keys of the boundary carry, in the order met."""
    return tuple(
        dict.fromkeys(
            extent.axis
            for key in family.pipeline.boundary
            for extent in key.shape
            if extent.axis is not None
        )
    )


def _from_config(build: tuple[Identifier, ...]) -> Code:
    """The signature of ``Dims.from_config``: build dims are keywords of the caller."""
    parts = [Code("cls"), Code("config: object")]
    if build:
        parts += [Code("*"), *(code("{}: int", name) for name in build)]
    return call(Code("def from_config"), tuple(parts), 4, " -> Dims:")


def _dim_views(family: Family) -> list[DimView]:
    views = []
    for dim in family.dims:
        name, line = identifier(dim.name), f"{family.source}:{dim.span.line}"
        match dim.source:
            case ConfigDim(path=path):
                views.append(_config_dim(name, path, line))
            case BuildDim():
                value = code("rt.build_int({}, {})", literal(dim.name), name)
                views.append(
                    DimView(name=name, note=Code(f"# given by the caller, {line}"), value=value)
                )
            case ExprDim(expr=expr):
                views.append(
                    DimView(name=name, note=Code(f"# computed, {line}"), value=_over_locals(expr))
                )
    count, line = family.pipeline.layer_count, f"{family.source}:{family.pipeline.span.line}"
    name = identifier("layer_count")
    if isinstance(count, ConfigDim):
        views.append(_config_dim(name, count.path, line))
    else:
        views.append(DimView(name=name, note=Code(f"# {line}"), value=_over_locals(count)))
    return views


def _over_locals(expr: Expr) -> Code:
    """An expression of dims over the local variables of ``from_config``."""
    return python(expr, {ref: identifier(ref.name) for ref in refs(expr)})


def _config_dim(name: Identifier, path: tuple[str, ...], line: str) -> DimView:
    dotted = ".".join(path)
    return DimView(
        name=name,
        note=Code(f"# config.{'.'.join(str(identifier(step)) for step in path)}, {line}"),
        value=code("rt.config_int(config, {})", literal(dotted)),
    )


def _state_views(family: Family) -> list[StateView]:
    views = []
    for state in family.states:
        names = names_for(state.rows, dims="dims", live="live", padded="padded")
        rows = python(state.rows, names)
        name = identifier(state.name)
        reserved = ", ".join(map(str, state.reserved))
        views.append(
            StateView(
                name=name,
                note=Code(
                    f"# rows {reserved} belong to padding, {family.source}:{state.span.line}"
                ),
                check=call(
                    Code("rt.check_state"),
                    (literal(state.name), code("self.{}", name), rows, Code("device")),
                    8,
                ),
            )
        )
    return views


def _ranges(family: Family) -> Code:
    stages = family.pipeline.stages
    if isinstance(stages, EvenStages):
        return Code("rt.even_ranges(dims.layer_count, of)")
    pairs = tuple(tuple_of((literal(r.start), literal(r.end))) for r in stages)
    return call(Code("rt.declared_ranges"), (Code("dims.layer_count"), tuple_of(pairs)), 4)
