"""The sizes that are known without a model: from a config, from the command line, computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, cast

from ppcgc.diagnostics.model import Span
from ppcgc.expr.evaluate import (
    EvaluationError,
    MissingValueError,
    Value,
    evaluate,
    evaluate_extent,
)
from ppcgc.expr.tokens import MAX_INTEGER_DIGITS
from ppcgc.expr.tree import Below, Expr, In, Int, Name, Ref, Symbol
from ppcgc.ir import (
    DTYPES,
    ConfigDim,
    ConfigLength,
    Dim,
    ExprDim,
    Family,
    KindIds,
    KindWhere,
    LayerKind,
    Option,
)

SIZE_FORM = f"a size is an integer of at least 1, of {MAX_INTEGER_DIGITS} digits at most"
# where configs of transformers keep the dtype, newest first
_DTYPE_KEYS = ("dtype", "torch_dtype")


class NotKnownError(Exception):
    """Something given for a plan is wrong: a name, a value, a config. The message says which.

    ``span`` is what the spec says of it, None where the fault is not one of a config.
    """

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(message)
        self.span = span


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """``env`` holds the references with a value; ``model_bytes`` is one element of dtype ``model``.

    ``layers`` is None while the number of layers is not known; ``kinds`` has the layer kinds
    whose layers are known.
    """

    env: dict[Ref, Value]
    model_bytes: int | None
    layers: int | None
    kinds: dict[str, frozenset[int]]

    def with_values(self, values: Mapping[Ref, Value]) -> Known:
        return replace(self, env={**self.env, **values})

    def value(self, expr: Expr) -> Value | None:
        """The value of an expression, None while a part of it is not known."""
        try:
            return evaluate(self._settled(expr), self.env)
        except MissingValueError:
            return None
        except EvaluationError as error:
            raise NotKnownError(str(error)) from error

    def extent(self, expr: Expr) -> int | None:
        """The value of a size, None while it is not known."""
        try:
            return evaluate_extent(self._settled(expr), self.env)
        except MissingValueError:
            return None
        except EvaluationError as error:
            raise NotKnownError(str(error)) from error

    def _settled(self, expr: Expr) -> Expr:
        """The expression with layer kinds replaced by the layers that they hold."""
        match expr:
            case In(item, (Name(("kinds", kind)),)) if kind in self.kinds:
                ids = tuple(Int(layer) for layer in sorted(self.kinds[kind]))
                return In(self._settled(item), ids)
            case Below(kind, limit) if kind in self.kinds:
                end = evaluate_extent(self._settled(limit), self.env)
                return Int(sum(layer < end for layer in self.kinds[kind]))
        changed = {
            field.name: self._settled_part(getattr(expr, field.name)) for field in fields(expr)
        }
        return cast(Expr, replace(cast(Any, expr), **changed))  # the same node, other operands

    def _settled_part(self, part: object) -> object:
        if isinstance(part, tuple):
            return tuple(self._settled_part(each) for each in part)
        return self._settled(cast(Expr, part)) if is_dataclass(part) else part


def gather(
    family: Family,
    config: Mapping[str, object] | None = None,
    given: Mapping[str, Value] | None = None,
    dtype: str | None = None,
    *,
    defaults: bool = True,
) -> Known:
    """Everything that follows from a model's config and the values given by name.

    ``given`` names dims, ``options.<name>``, ``tp.size`` and ``dp.size``; what is given goes
    before what the config says. ``defaults`` says whether options that are not given have
    their defaults. Raises :class:`NotKnownError`.
    """
    values = dict(given or {})
    _check_names(family, values)
    env: dict[Ref, Value] = {Ref(Symbol.AXIS_MAX, axis.name): axis.max for axis in family.axes}
    for option in family.options:
        name = f"options.{option.name}"
        if defaults or name in values:
            env[Ref(Symbol.OPTION, option.name)] = values.get(name, option.default)
    for size in (f"{group}.size" for group in sorted(family.parallel)):
        if size in values:
            env[Ref(Symbol.PARALLEL, size)] = values[size]
    for dim in family.dims:
        if dim.name in values:
            env[Ref(Symbol.DIM, dim.name)] = values[dim.name]
        elif isinstance(dim.source, ConfigDim) and config is not None:
            env[Ref(Symbol.DIM, dim.name)] = config_size(config, dim.source, dim.span)
    known = Known(env=env, model_bytes=_model_bytes(dtype, config), layers=None, kinds={})
    known = _with_computed_dims(family, known)
    for state in family.states:
        rows = known.extent(state.rows)
        if rows is not None:
            known = known.with_values({Ref(Symbol.STATE_ROWS, state.name): rows})
    known = replace(known, layers=_layers(family, known, config))
    for kind in family.pipeline.kinds:
        layers = _kind(kind, known, config)
        if layers is not None:
            known = replace(known, kinds={**known.kinds, kind.name: layers})
    return known


def _check_names(family: Family, given: Mapping[str, Value]) -> None:
    sizes = [dim.name for dim in family.dims if not isinstance(dim.source, ExprDim)]
    sizes += [f"{group}.size" for group in sorted(family.parallel)]
    options = [f"options.{option.name}" for option in family.options]
    for name, value in given.items():
        if name not in sizes and name not in options:
            listed = ", ".join([*sizes, *options]) or "nothing"
            raise NotKnownError(f"{family.name} has no `{name}` to set; it has: {listed}")
        if name in sizes and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise NotKnownError(f"{name} is {value}; {SIZE_FORM}")
    for option in family.options:
        value = given.get(f"options.{option.name}", option.default)
        if not _is_choice(option, value):
            legal = " or ".join(option.choices) or f"of type {option.type}"
            raise NotKnownError(f"options.{option.name} is {value}; it is {legal}")


def _is_choice(option: Option, value: Value) -> bool:
    if option.type == "enum":
        return value in option.choices
    return isinstance(value, bool) if option.type == "bool" else type(value) is int


def _with_computed_dims(family: Family, known: Known) -> Known:
    """Dims that follow from others, whatever their order: circles were refused before."""
    computed = [dim for dim in family.dims if isinstance(dim.source, ExprDim)]
    for _ in computed:
        found = {Ref(Symbol.DIM, dim.name): _computed(dim, known) for dim in computed}
        known = known.with_values({ref: size for ref, size in found.items() if size is not None})
    return known


def _computed(dim: Dim, known: Known) -> int | None:
    if not isinstance(dim.source, ExprDim):
        raise TypeError(f"dim {dim.name} is not computed")
    try:
        return known.extent(dim.source.expr)
    except NotKnownError as error:
        raise NotKnownError(f"dims.{dim.name}: {error}", dim.span) from error


def _layers(family: Family, known: Known, config: Mapping[str, object] | None) -> int | None:
    count = family.pipeline.layer_count
    if not isinstance(count, ConfigDim):
        return known.extent(count)
    return None if config is None else config_size(config, count, family.pipeline.span)


def _kind(
    kind: LayerKind, known: Known, config: Mapping[str, object] | None
) -> frozenset[int] | None:
    rule = kind.rule
    if isinstance(rule, KindIds):
        return frozenset(rule.ids)
    if isinstance(rule, KindWhere):
        listed = None if config is None else value_at(config, rule.path)
        if not isinstance(listed, list | str):
            return None
        return frozenset(layer for layer, word in enumerate(listed) if word == rule.value)
    if known.layers is None:
        return None
    held = {
        layer: known.with_values({Ref(Symbol.LAYER, "layer"): layer}).value(rule.expr)
        for layer in range(known.layers)
    }
    if None in held.values():
        return None
    return frozenset(layer for layer, holds in held.items() if holds is True)


def _model_bytes(dtype: str | None, config: Mapping[str, object] | None) -> int | None:
    if dtype is not None:
        return DTYPES[dtype]
    for key in _DTYPE_KEYS:
        named = None if config is None else config.get(key)
        if isinstance(named, str):
            return DTYPES.get(named.removeprefix("torch."))
    return None


def config_size(config: Mapping[str, object], read: ConfigDim, span: Span) -> int:
    """The size, or the length, at a path of a config. Raises :class:`NotKnownError`."""
    value = value_at(config, read.path)
    name = ".".join(read.path)
    if isinstance(read, ConfigLength) and value is not None:
        if not isinstance(value, list | str):
            problem = f"`{name}` of the config is {value!r}, not a list or a string"
            raise NotKnownError(problem, span)
        name, value = f"the length of {name}", len(value)
    if value is None:
        help = "give another one, or the size with --set"
        raise NotKnownError(f"the config has no `{name}`; {help}", span)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        problem = f"`{name}` of the config is {value!r}, not an integer of at least 1"
        raise NotKnownError(problem, span)
    if value >= 10**MAX_INTEGER_DIGITS:
        most = f"a size has {MAX_INTEGER_DIGITS} digits at most"
        problem = f"`{name}` of the config is {value}; {most}"
        raise NotKnownError(problem, span)
    return value


def value_at(config: Mapping[str, object], path: tuple[str, ...]) -> object:
    """What a config holds at a path, None where it holds nothing."""
    value: object = config
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value
