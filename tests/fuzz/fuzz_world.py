"""A build of any family: a config, sizes, layers, kinds; and the value of its expressions.

Everything is read off the typed spec, nothing off the generated code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ppcgc.expr.evaluate import EvaluationError, Value, evaluate
from ppcgc.expr.tree import (
    Arithmetic,
    Below,
    Bool,
    CeilDiv,
    Compare,
    Expr,
    Extreme,
    IfElse,
    In,
    Int,
    Logical,
    Name,
    Negate,
    Not,
    Ref,
    Symbol,
)
from ppcgc.ir import (
    BoundaryKey,
    BuildDim,
    ConfigDim,
    ConfigLength,
    EvenStages,
    ExprDim,
    Extent,
    Family,
    KindIds,
    KindIf,
    KindWhere,
    Runner,
)

Counts = dict[str, int]
LAYERS = 6
MODEL_DTYPE = torch.float32


@dataclass(frozen=True)
class World:
    """What a build of a family is given, and what its expressions are worth then."""

    family: Family
    config: dict[str, Any]
    build: Counts
    env: dict[Ref, Value]
    kinds: dict[str, frozenset[int]]
    layer_count: int
    ranks: dict[str, tuple[int, int]]  # group of ranks -> size, own rank

    def value(self, expr: Expr, env: Mapping[Ref, Value] | None = None) -> Value:
        """The value of an expression. Raises EvaluationError where it has none."""
        known = self.env if env is None else {**self.env, **env}
        return evaluate(self._without_kinds(expr, known), known)

    def number(self, value: Expr | float, env: Mapping[Ref, Value] | None = None) -> float:
        """A literal, or the value of an expression."""
        found = value if isinstance(value, bool | int | float) else self.value(value, env)
        assert not isinstance(found, str)
        return found

    def shape(self, shape: tuple[Extent, ...], rows: Mapping[str, int], cut: int = 0) -> list[int]:
        """Extents with these rows on the axes."""
        env: dict[Ref, Value] = {Ref(Symbol.CUT, "layer"): cut}
        return [
            extent.scale * rows[extent.axis] + extent.offset
            if extent.axis is not None
            else int(self.value(extent.expr, env))
            for extent in shape
        ]

    def crosses(self, key: BoundaryKey, cut: int) -> bool:
        when = key.when
        return when is None or bool(self.value(when, {Ref(Symbol.CUT, "layer"): cut}))

    def boundary(self, runner: Runner) -> tuple[BoundaryKey, ...]:
        own = runner.boundary
        return self.family.pipeline.boundary if own is None else own

    def _without_kinds(self, expr: Expr, env: Mapping[Ref, Value]) -> Expr:
        """The expression with what it asks of layer kinds answered."""

        def done(part: Expr) -> Expr:
            return self._without_kinds(part, env)

        match expr:
            case Below(kind, limit):
                below = int(evaluate(done(limit), env))
                return Int(sum(layer < below for layer in self.kinds[kind]))
            case In(item, (Name(("kinds", kind)),)):
                return Bool(evaluate(done(item), env) in self.kinds[kind])
            case In(item, choices):
                return In(done(item), tuple(map(done, choices)))
            case Negate(operand) | Not(operand):
                return type(expr)(done(operand))
            case CeilDiv(left, right):
                return CeilDiv(done(left), done(right))
            case Arithmetic(op, left, right) | Compare(op, left, right) | Logical(op, left, right):
                return type(expr)(op, done(left), done(right))
            case Extreme(op, operands):
                return Extreme(op, tuple(map(done, operands)))
            case IfElse(then, condition, otherwise):
                return IfElse(done(then), done(condition), done(otherwise))
            case _:
                return expr


def dtype_of(name: str) -> torch.dtype:
    found: torch.dtype = MODEL_DTYPE if name == "model" else getattr(torch, name)
    return found


def world_of(family: Family) -> World:
    """A build with small sizes. Raises EvaluationError where an expression has no value then."""
    config: dict[str, Any] = {}
    build: Counts = {}
    env: dict[Ref, Value] = {Ref(Symbol.AXIS_MAX, axis.name): axis.max for axis in family.axes}
    env |= {Ref(Symbol.OPTION, option.name): option.default for option in family.options}
    ranks = ranks_of(family)
    for group, (size, rank) in ranks.items():
        env[Ref(Symbol.PARALLEL, f"{group}.size")] = size
        env[Ref(Symbol.PARALLEL, f"{group}.rank")] = rank
    _put_dims(family, config, build, env)
    count = family.pipeline.layer_count
    if isinstance(count, ConfigDim):
        layer_count = _put_size(config, count, LAYERS)
    else:
        layer_count = int(evaluate(count, env))
    world = World(family, config, build, env, {}, layer_count, ranks)
    for kind in family.pipeline.kinds:
        world.kinds[kind.name] = _layers_of(world, kind.rule)
    for state in family.states:
        env[Ref(Symbol.STATE_ROWS, state.name)] = world.value(state.rows)
    return world


def _put_dims(family: Family, config: dict[str, Any], build: Counts, env: dict[Ref, Value]) -> None:
    pending = list(family.dims)
    for number, dim in enumerate(family.dims):
        if isinstance(dim.source, ConfigDim):
            env[Ref(Symbol.DIM, dim.name)] = _put_size(config, dim.source, 8 + number % 3)
        elif isinstance(dim.source, BuildDim):
            env[Ref(Symbol.DIM, dim.name)] = build[dim.name] = 64
    for _ in range(len(pending)):
        for dim in pending:
            ref = Ref(Symbol.DIM, dim.name)
            if isinstance(dim.source, ExprDim) and ref not in env:
                try:
                    env[ref] = evaluate(dim.source.expr, env)
                except EvaluationError as problem:
                    if "has no value here" not in str(problem):
                        raise


def _put_size(config: dict[str, Any], read: ConfigDim, size: int) -> int:
    """Puts a size, or a list of that length, where the config has none yet; returns the size."""
    for step in read.path[:-1]:
        config = config.setdefault(step, {})
    if isinstance(read, ConfigLength):
        return len(config.setdefault(read.path[-1], ["other"] * size))
    return int(config.setdefault(read.path[-1], size))


def _layers_of(world: World, rule: KindIds | KindWhere | KindIf) -> frozenset[int]:
    layers = range(world.layer_count)
    if isinstance(rule, KindIds):
        return frozenset(rule.ids)
    if isinstance(rule, KindIf):
        return frozenset(
            n for n in layers if world.value(rule.expr, {Ref(Symbol.LAYER, "layer"): n})
        )
    owner = world.config
    for step in rule.path[:-1]:
        owner = owner.setdefault(step, {})
    words = owner.setdefault(rule.path[-1], ["other" for _ in layers])
    if rule.value not in words:  # other kinds may be told by the same list
        free = [number for number, word in enumerate(words) if word == "other"]
        for number in free[1::2]:
            words[number] = rule.value
    return frozenset(n for n, word in enumerate(words) if word == rule.value)


def ranks_of(family: Family) -> dict[str, tuple[int, int]]:
    """Two ranks in each group, this one the second; alone where tensors are shared out."""
    keys = [*family.pipeline.boundary]
    keys += [key for runner in family.runners for key in runner.boundary or ()]
    whole = all(key.content == "replicated" and key.wire == "whole" for key in keys)
    return {
        group: (2, 1) if group == "dp" or whole else (1, 0) for group in sorted(family.parallel)
    }


def stage_counts(world: World) -> list[int]:
    """How many stages are built: all kinds of place between them, where the spec leaves it open."""
    stages = world.family.pipeline.stages
    if not isinstance(stages, EvenStages):
        return [len(stages)]
    return [1, 3] if world.layer_count >= 3 else [1]
