"""What the templates of a family print: sizes, options, kinds of layers, state, ranges, exports."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc.emit.bound_code import (
    BoundView,
    bound_view,
    dim_default,
    keyword_with_default,
    layer_set,
)
from ppcgc.emit.build_checks import stage_ranges
from ppcgc.emit.imports import export_list, import_lines
from ppcgc.emit.runner_view import RunnerView
from ppcgc.emit.scope import Scope
from ppcgc.emit.shapes import line_of
from ppcgc.emit.source import Code, Identifier, call, code, docstring, identifier, literal, tuple_of
from ppcgc.expr.tree import Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import (
    BuildDim,
    ConfigDim,
    ConfigLength,
    Dim,
    ExprDim,
    Family,
    KindIds,
    KindIf,
    KindWhere,
    LayerKind,
    Option,
)
from ppcgc.plan import Plan
from ppcgc.plan.counts import in_order_of_need


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldView:
    """A field of one of the family's classes, and how its value is found."""

    name: Identifier
    type: Code  # with the constant behind it, where the code is bound to one
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
    name_text: Code
    doc: Code
    fingerprint: Code
    bound: BoundView | None
    options: tuple[FieldView, ...]
    check_options: Code
    kinds: tuple[FieldView, ...]
    make_kinds: Code
    dims: tuple[FieldView, ...]
    from_config: Code
    local_dims: tuple[Code, ...]
    make_dims: Code
    states: tuple[StateView, ...]
    stages: Code | None  # the layers of each, where the build does not say
    stages_line: Code
    ranges: Code
    ranges_line: Code
    imports: tuple[Code, ...]
    exports: Code


def family_view(plan: Plan, runners: tuple[RunnerView, ...]) -> FamilyView:
    family = plan.family
    dims = _dim_fields(family)
    given = _given_fields(family)
    kinds = tuple(_kind_field(family, kind) for kind in family.pipeline.kinds)
    return FamilyView(
        name=identifier(family.name),
        name_text=literal(family.name),
        doc=docstring(family.doc or f"The family {family.name}"),
        fingerprint=literal(plan.fingerprint),
        bound=bound_view(family),
        options=tuple(_option_field(family, option) for option in family.options),
        check_options=_check_options(family),
        kinds=kinds,
        make_kinds=call(
            Code("kinds = Kinds"),
            tuple(kind.value for kind in kinds),
        ),
        dims=(*dims, *given),
        from_config=_from_config(family),
        local_dims=tuple(code("{} = {}", dim.name, dim.value) for dim in dims),
        make_dims=call(
            Code("return cls"),
            tuple(code("{}={}", field.name, field.name) for field in (*dims, *given)),
        ),
        states=tuple(_state_views(family)),
        stages=stage_ranges(family),
        stages_line=Code(f"# {line_of(family.pipeline.span)}: the layers of each stage, half open"),
        ranges=_ranges(family),
        ranges_line=Code(f"# {line_of(family.pipeline.span)}"),
        imports=_imports(family, runners),
        exports=_exports(family, runners),
    )


# ---------------------------------------------------------------- the package


def _exported(family: Family, runners: tuple[RunnerView, ...]) -> dict[str, list[str]]:
    """The public names of each module of the package."""
    public = {"family": ["FINGERPRINT", "Dims", "stage_layers"]}
    if family.states:
        public["family"].append("State")
    if family.options:
        public["family"].append("Options")
    if any(runner.boundary is None for runner in family.runners) and family.pipeline.boundary:
        public["boundary"] = ["Boundary"]
    for runner in runners:
        outputs = [str(runner.outputs)] if runner.output_tensors else []
        public[str(runner.name)] = [str(runner.extents), *outputs]
        for kind in runner.kinds:
            classes = [str(place.name) for place in kind.places]
            hooks = [str(kind.hooks_class)] if kind.hooks else []
            public[str(kind.module)] = [str(kind.batch), str(kind.slots), *hooks, *classes]
    return public


def _imports(family: Family, runners: tuple[RunnerView, ...]) -> tuple[Code, ...]:
    return import_lines(_exported(family, runners))


def _exports(family: Family, runners: tuple[RunnerView, ...]) -> Code:
    exported = _exported(family, runners)
    return export_list([name for names in exported.values() for name in names])


# ---------------------------------------------------------------- sizes


def _from_config(family: Family) -> Code:
    """The signature of ``Dims.from_config``: what the config does not say are keywords."""
    asked = [
        keyword_with_default(family, dim.name)
        for dim in family.dims
        if isinstance(dim.source, BuildDim)
    ]
    if family.options:
        asked.append(Code("options: Options = DEFAULTS"))
    asked += [Code(f"{group}: rt.Ranks = rt.ALONE") for group in sorted(family.parallel)]
    parts = [Code("cls"), Code("config: object"), *([Code("*"), *asked] if asked else [])]
    return call(Code("def from_config"), tuple(parts), " -> Dims:")


def _dim_fields(family: Family) -> tuple[FieldView, ...]:
    """Sizes, each after those that it is computed from; the number of layers last."""
    by_name = {dim.name: dim for dim in family.dims}
    needs = {dim.name: _dims_of(dim) for dim in family.dims}
    fields = [_dim_field(family, by_name[name]) for name in in_order_of_need(needs)]
    count, line = family.pipeline.layer_count, line_of(family.pipeline.span)
    name = identifier("layer_count")
    if isinstance(count, ConfigDim):
        return (*fields, _config_field(family, name, count, line))
    value = _locals(family).python(count)
    note = Code(f"# {line}")
    type_ = _int_type(family, name)
    return (*fields, FieldView(name=name, type=type_, note=note, value=value))


def _dims_of(dim: Dim) -> frozenset[str]:
    if not isinstance(dim.source, ExprDim):
        return frozenset()
    return frozenset(ref.name for ref in refs(dim.source.expr) if ref.symbol is Symbol.DIM)


def _dim_field(family: Family, dim: Dim) -> FieldView:
    name, line = identifier(dim.name), line_of(dim.span)
    match dim.source:
        case ConfigDim() as read:
            return _config_field(family, name, read, line)
        case BuildDim():
            value, note = code("rt.build_int({}, {})", literal(dim.name), name), "given at build"
        case ExprDim(expr=expr):
            value, note = _locals(family).python(expr), "computed"
    type_ = _int_type(family, name)
    return FieldView(name=name, type=type_, note=Code(f"# {note}, {line}"), value=value)


def _int_type(family: Family, name: Identifier) -> Code:
    """``int``, or ``int = 64`` where the code is bound to 64."""
    default = dim_default(family, name.text)
    return Code("int") if default is None else code("int = {}", default)


def _locals(family: Family) -> Scope:
    """Expressions over the local variables of ``from_config``."""
    return Scope(family=family, dims="")


def _config_field(family: Family, name: Identifier, read: ConfigDim, line: str) -> FieldView:
    shown = f"config.{'.'.join(str(identifier(step)) for step in read.path)}"
    reader = "rt.config_int"
    if isinstance(read, ConfigLength):
        shown, reader = f"len({shown})", "rt.config_length"
    return FieldView(
        name=name,
        type=_int_type(family, name),
        note=Code(f"# {shown}, {line}"),
        value=code("{}(config, {})", Code(reader), literal(".".join(read.path))),
    )


def _given_fields(family: Family) -> tuple[FieldView, ...]:
    """What is no number: options, groups of ranks, kinds of layers."""
    fields = []
    if family.options:
        fields.append(("options", "Options", "# given at build"))
    fields += [(g, "rt.Ranks", "# given at build") for g in sorted(family.parallel)]
    if family.pipeline.kinds:
        bound = bound_view(family)
        type_ = "Kinds = KINDS" if bound is not None and bound.kinds else "Kinds"
        fields.append(("kinds", type_, "# layers of each kind"))
    return tuple(
        FieldView(name=identifier(name), type=Code(type_), note=Code(note), value=Code(name))
        for name, type_, note in fields
    )


def _option_field(family: Family, option: Option) -> FieldView:
    bound = {} if family.bound is None else dict(family.bound.options)
    types = {"bool": "bool", "int": "int", "enum": "str"}
    choices = f", one of {', '.join(option.choices)}" if option.choices else ""
    return FieldView(
        name=identifier(option.name),
        type=Code(types[option.type]),
        note=Code(f"# {line_of(option.span)}{choices}"),
        value=literal(bound.get(option.name, option.default)),
    )


def _check_options(family: Family) -> Code:
    """The call that refuses another object, and a word that is none of an option's."""
    words = tuple(
        code("{}={}", identifier(option.name), tuple_of(tuple(map(literal, option.choices))))
        for option in family.options
        if option.choices
    )
    return call(Code("rt.check_options"), (Code("options"), Code("Options"), *words))


# ---------------------------------------------------------------- layers and state


def _kind_field(family: Family, kind: LayerKind) -> FieldView:
    """A kind; its value is the whole keyword argument of ``Kinds``."""
    name, count, head = literal(kind.name), Code("layer_count"), f"{identifier(kind.name)}=rt."
    match kind.rule:
        case KindIds(ids=ids):
            listed = tuple_of(tuple(literal(layer) for layer in ids))
            value = call(Code(f"{head}kind_of_ids"), (name, listed, count))
        case KindWhere(path=path, value=word):
            parts = (name, Code("config"), literal(".".join(path)), literal(word), count)
            value = call(Code(f"{head}kind_where"), parts)
        case KindIf(expr=expr):
            holds = code("lambda layer: {}", _locals(family).python(expr))
            value = call(Code(f"{head}kind_if"), (holds, count))
    bound = {} if family.bound is None else dict(family.bound.kinds)
    type_ = Code("rt.KindIds")
    if kind.name in bound:
        type_ = code("rt.KindIds = {}", layer_set(bound[kind.name]))
    return FieldView(
        name=identifier(kind.name),
        type=type_,
        note=Code(f"# {line_of(kind.span)}"),
        value=value,
    )


def _state_views(family: Family) -> list[StateView]:
    views = []
    scope = Scope(family=family, dims="dims")
    for state in family.states:
        name = identifier(state.name)
        reserved = ", ".join(map(str, state.reserved))
        rows = scope.python(state.rows)
        line = line_of(state.span)
        parts = (
            literal(state.name),
            code("self.{}", name),
            rows,
            Code("device"),
            literal(line),
        )
        views.append(
            StateView(
                name=name,
                note=Code(f"# rows {reserved} belong to padding, {line}"),
                check=call(Code("rt.check_state"), parts),
            )
        )
    return views


def _ranges(family: Family) -> Code:
    if stage_ranges(family) is None:
        return Code("rt.even_ranges(dims.layer_count, of)")
    return Code("rt.declared_ranges(dims.layer_count, STAGES)")
