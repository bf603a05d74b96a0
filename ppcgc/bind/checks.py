"""What of a config does not fit a spec: keys, values, sizes, layers."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.bind.request import Binding
from ppcgc.bind.rules import BOUND_EXTENT, BOUND_LAYERS, CONFIG_LACKS, CONFIG_VALUE
from ppcgc.diagnostics.model import Diagnostic, Span
from ppcgc.expr.tree import Expr, Ref, Symbol
from ppcgc.ir import BoundaryKey, ConfigDim, ConfigLength, Extent, Family, KindIds, KindWhere
from ppcgc.known.sizes import SIZE_FORM, Known, NotKnownError, config_size, value_at


def check_config(family: Family, binding: Binding) -> list[Diagnostic]:
    """Findings for keys that the config lacks and for values of another type than the spec's."""
    found = list(_check_sizes(family, binding))
    layers = _layer_count(family, binding)
    for kind in family.pipeline.kinds:
        if isinstance(kind.rule, KindWhere):
            found += _check_listed(binding, kind.name, kind.rule.path, kind.span, layers)
    return found


def _check_sizes(family: Family, binding: Binding) -> Iterator[Diagnostic]:
    read = [(dim.name, dim.source, dim.span) for dim in family.dims]
    count = family.pipeline.layer_count
    sizes = [
        each for each in read if isinstance(each[1], ConfigDim) and each[0] not in binding.given
    ]
    if isinstance(count, ConfigDim):
        sizes.append(("layers", count, family.pipeline.span))
    for name, source, span in sizes:
        if not isinstance(source, ConfigDim):
            continue
        help = f"add it to the config, or give the size with --set {name}=N"
        if name == "layers":
            help = "add it to the config"
        if value_at(binding.config, source.path) is None:
            yield _lacks(binding, source.path, span, help)
            continue
        try:
            config_size(binding.config, source, span)
        except NotKnownError:
            counts = isinstance(source, ConfigLength)
            yield _wrong(
                binding, source.path, span, "a list with an entry at least" if counts else SIZE_FORM
            )


def _layer_count(family: Family, binding: Binding) -> int | None:
    """The number of layers where the config says it, and says it well."""
    count = family.pipeline.layer_count
    if not isinstance(count, ConfigDim):
        return None
    try:
        return config_size(binding.config, count, family.pipeline.span)
    except NotKnownError:
        return None


def _check_listed(
    binding: Binding, kind: str, path: tuple[str, ...], span: Span, layers: int | None
) -> Iterator[Diagnostic]:
    listed = value_at(binding.config, path)
    if listed is None:
        yield _lacks(binding, path, span, "add it to the config")
    elif not isinstance(listed, list | str):
        yield _wrong(binding, path, span, f"kind {kind} needs a list or a string")
    elif layers is not None and len(listed) != layers:
        yield Diagnostic(
            rule=CONFIG_VALUE,
            span=span,
            message=f"kind {kind}: `{'.'.join(path)}` of {binding.file} has {len(listed)} entries, "
            f"the model has {layers} layers",
            help="give one entry for each layer",
            related=binding.place_of(path),
        )


def _lacks(binding: Binding, path: tuple[str, ...], span: Span, help: str) -> Diagnostic:
    message = f"{binding.file} has no `{'.'.join(path)}`"
    return Diagnostic(rule=CONFIG_LACKS, span=span, message=message, help=help)


def _wrong(binding: Binding, path: tuple[str, ...], span: Span, help: str) -> Diagnostic:
    value = value_at(binding.config, path)
    return Diagnostic(
        rule=CONFIG_VALUE,
        span=span,
        message=f"`{'.'.join(path)}` of {binding.file} is {value!r}",
        help=help,
        related=binding.place_of(path),
    )


OTHER_SIZES = "change the expression, or bind other sizes: `--bind`, `--set`, `--stages`"


def check_layers(family: Family, known: Known) -> list[Diagnostic]:
    """Findings for kinds that list layers which the model has not."""
    found = []
    for kind in family.pipeline.kinds:
        if known.layers is None or not isinstance(kind.rule, KindIds):
            continue
        foreign = [layer for layer in kind.rule.ids if layer >= known.layers]
        if foreign:
            message = (
                f"kind {kind.name} lists layers {', '.join(map(str, foreign))}, "
                f"the model has {known.layers} layers"
            )
            help = f"layers are 0 to {known.layers - 1}"
            found.append(Diagnostic(rule=BOUND_LAYERS, span=kind.span, message=message, help=help))
    return found


def check_extents(family: Family, known: Known, cuts: tuple[int, ...]) -> list[Diagnostic]:
    """Findings for sizes that are negative or divide by zero, at any cut."""
    sizes = list(_sizes(family, known))
    found = [problem for expr, span in sizes if (problem := _problem(known, expr, span, ""))]
    overrides = [runner.boundary for runner in family.runners if runner.boundary is not None]
    for key in (key for keys in (family.pipeline.boundary, *overrides) for key in keys):
        found += _at_cuts(key, known, cuts)
    return found


def _sizes(family: Family, known: Known) -> Iterator[tuple[Expr, Span]]:
    yield from ((state.rows, state.span) for state in family.states)
    for runner in family.runners:
        there = [s for s in runner.slots if s.when is None or known.value(s.when) is not False]
        shapes = [*(slot.shape for slot in there), *(output.shape for output in runner.outputs)]
        for extent in (extent for shape in shapes for extent in shape):
            if extent.axis is None:
                yield extent.expr, extent.span
        for hook in runner.hooks:
            if hook.workspace is not None:
                yield hook.workspace, hook.span_of("workspace")


def _at_cuts(key: BoundaryKey, known: Known, cuts: tuple[int, ...]) -> Iterator[Diagnostic]:
    """The first cut where an extent of a key that crosses it has no size."""
    extents = [extent for extent in key.shape if extent.axis is None]
    for extent in extents:
        problems = (_key_problem(key, extent, known, cut) for cut in cuts or (None,))
        yield from [problem for problem in problems if problem is not None][:1]


def _key_problem(
    key: BoundaryKey, extent: Extent, known: Known, cut: int | None
) -> Diagnostic | None:
    where = ""
    if cut is not None:
        known = known.with_values({Ref(Symbol.CUT, "layer"): cut})
        where = f" at the cut before layer {cut}"
        try:
            if key.when is not None and known.value(key.when) is False:
                return None
        except NotKnownError as error:
            span, message = key.span_of("when"), f"{error}{where}"
            return Diagnostic(rule=BOUND_EXTENT, span=span, message=message, help=OTHER_SIZES)
    return _problem(known, extent.expr, extent.span, where)


def _problem(known: Known, expr: Expr, span: Span, where: str) -> Diagnostic | None:
    try:
        known.extent(expr)
    except NotKnownError as error:
        message = f"{error}{where}"
        return Diagnostic(rule=BOUND_EXTENT, span=span, message=message, help=OTHER_SIZES)
    return None
