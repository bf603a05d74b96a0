"""`ppcgc generate --bind`: the numbers of one model's config, put into the typed spec.

``request`` is what was asked for, ``checks`` finds what is wrong with it, ``fold`` puts values
into expressions. The emitted code has the same classes as without a binding; where it would
compute a number at build it has the number.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

from ppcgc.bind.checks import OTHER_SIZES, check_config, check_extents, check_layers
from ppcgc.bind.fold import Folding
from ppcgc.bind.request import Binding, read_binding
from ppcgc.bind.rules import BOUND_EXTENT, BOUND_LAYERS
from ppcgc.diagnostics.model import Diagnostic, Rule
from ppcgc.expr.evaluate import Value
from ppcgc.expr.tree import Ref, Symbol
from ppcgc.ir import Bound, Family, Runner
from ppcgc.known.sizes import Known, NotKnownError, gather
from ppcgc.known.stages import Stage, stages_of

__all__ = ["Binding", "bind", "read_binding"]


def bind(family: Family, binding: Binding) -> tuple[Family | None, list[Diagnostic]]:
    """The family with what is known of its sizes, layers and stages as constants.

    Options and ranks are bound where they are given by name. None after a finding. Raises
    ``NotKnownError`` for a name or a value that the command line gives and the spec has not.
    """
    found = check_config(family, binding)
    if found:
        return None, found
    try:
        known = gather(family, binding.config, binding.given, defaults=False)
    except NotKnownError as error:
        return None, [_located(BOUND_EXTENT, error, OTHER_SIZES)]
    found = check_layers(family, known)
    stages: tuple[Stage, ...] | None = None
    help = "make stages and layers agree: the ranges here, `--stages` or the config"
    try:
        stages = stages_of(family, known, binding.stages)
    except NotKnownError as error:
        found.append(_located(BOUND_LAYERS, error, help))
    cuts = tuple(stage.start for stage in (stages or ())[1:])
    found += check_extents(family, known, cuts)
    if found:
        return None, found
    return _folded(family, known, _bound(family, binding, known, stages)), []


def _located(rule: Rule, error: NotKnownError, help: str) -> Diagnostic:
    if error.span is None:
        raise error
    return Diagnostic(rule=rule, span=error.span, message=str(error), help=help)


def _bound(
    family: Family, binding: Binding, known: Known, stages: tuple[Stage, ...] | None
) -> Bound:
    def value(symbol: Symbol, name: str) -> Value | None:
        return known.env.get(Ref(symbol, name))

    dims = ((dim.name, value(Symbol.DIM, dim.name)) for dim in family.dims)
    options = ((option.name, value(Symbol.OPTION, option.name)) for option in family.options)
    ranks = ((group, value(Symbol.PARALLEL, f"{group}.size")) for group in sorted(family.parallel))
    kinds = (kind.name for kind in family.pipeline.kinds if kind.name in known.kinds)
    return Bound(
        config=PurePath(binding.file).name,
        fingerprint=binding.fingerprint,
        dims=tuple((name, size) for name, size in dims if isinstance(size, int)),
        layers=known.layers,
        options=tuple((name, chosen) for name, chosen in options if chosen is not None),
        ranks=tuple((group, size) for group, size in ranks if isinstance(size, int)),
        kinds=tuple((name, tuple(sorted(known.kinds[name]))) for name in kinds),
        stages=None if stages is None else tuple((stage.start, stage.end) for stage in stages),
    )


def _folded(family: Family, known: Known, bound: Bound) -> Family:
    """The family with constants in every expression of its tensors, states and runners."""
    folding = Folding(env=known.env, kinds=known.kinds, cuts=bound.cuts)
    pipeline = replace(family.pipeline, boundary=folding.node(family.pipeline.boundary))
    capacities = {Ref(Symbol.AXIS_MAX, axis.name) for axis in family.axes}  # a runner may lower one
    of_any = {ref: value for ref, value in known.env.items() if ref not in capacities}
    return replace(
        family,
        axes=replace(folding, env=of_any).node(family.axes),
        states=folding.node(family.states),
        pipeline=pipeline,
        runners=tuple(_folded_runner(family, folding, runner) for runner in family.runners),
        bound=bound,
    )


def _folded_runner(family: Family, folding: Folding, runner: Runner) -> Runner:
    capacities = {Ref(Symbol.AXIS_MAX, axis.name): runner.capacity(axis) for axis in family.axes}
    whole = folding.node(runner.boundary)
    own = replace(folding, env={**folding.env, **capacities})
    return replace(own.node(runner), boundary=whole)
