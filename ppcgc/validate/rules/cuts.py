"""Cuts: keys that cross only some of them, and keys that the runtime hands on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ppcgc.expr.evaluate import EvaluationError, evaluate
from ppcgc.expr.tree import Below, Expr, In, Int, Name, Ref, Symbol
from ppcgc.expr.walk import nodes
from ppcgc.ir import BoundaryKey, EvenStages, Family, KindIds, KindIf, Place
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.expressions import names_cut
from ppcgc.validate.rules.facts import boundary_of, fixed_dims, listed, places
from ppcgc.validate.rules.pipeline import layer_count


@checked("PPC415", "key-crosses-no-cut", cases=(49,), warning=True)
def key_crosses_no_cut(family: Family) -> Iterator[Finding]:
    """A key of the boundary crosses none of the cuts that the pipeline has.

    **What.** `when` is evaluated at each cut, with the first layer after it. Where the stages
    and the layers of a kind are written in the spec, the cuts are known.

    **Why it hurts.** With another split the key is needed and sent; with this one the
    declaration misleads. More often the condition means the layer before the cut.
    Seen in: sgl-project/sglang#28532, sgl-project/sglang#29014.

    **Bad**

    ```yaml
    layers: {count: 8, kinds: {reuses_topk: {ids: [1, 3, 5, 7]}}}
    stages: [[0, 4], [4, 8]]
    boundary:
      - {name: topk, axis: tokens, shape: [tokens, 64], dtype: int32, padding: zero,
         when: cut.layer in kinds.reuses_topk}
    ```

    **Good**

    ```yaml
    stages: [[0, 3], [3, 8]]
    ```
    """
    cuts = _cuts(family)
    for key in family.pipeline.boundary:
        if key.when is None or not cuts:
            continue
        crossed = [_holds(family, key.when, layer) for layer in cuts]
        if all(each is False for each in crossed):
            yield Finding(
                key.span_of("when"),
                f"boundary key '{key.name}' crosses no cut: not before layer {listed(cuts)}",
                "change the condition or the stages, or remove the key",
            )


def _cuts(family: Family) -> tuple[int, ...]:
    """The first layer after each cut; none when the build decides or there is no cut."""
    stages = family.pipeline.stages
    return () if isinstance(stages, EvenStages) else tuple(stage.start for stage in stages[1:])


def _holds(family: Family, condition: Expr, layer: int) -> bool | None:
    """The condition at a cut; None where it depends on what only the build knows."""
    known: dict[Ref, int] = {**fixed_dims(family), Ref(Symbol.CUT, "layer"): layer}
    if any(isinstance(node, Below) for node in nodes(condition)):
        return None
    try:
        value = evaluate(_with_layers(family, condition, known), known)
    except EvaluationError:
        return None
    return value if isinstance(value, bool) else None


def _with_layers(family: Family, condition: Expr, known: Mapping[Ref, int]) -> Expr:
    """``e in kinds.k`` as a list of layer ids, where the whole condition is one such test."""
    match condition:
        case In(item, (Name(("kinds", kind)),)):
            ids = _layers_of(family, kind, known)
            return condition if ids is None else In(item, tuple(Int(layer) for layer in ids))
        case _:
            return condition


def _layers_of(family: Family, name: str, known: Mapping[Ref, int]) -> list[int] | None:
    rule = next(kind.rule for kind in family.pipeline.kinds if kind.name == name)
    if isinstance(rule, KindIds):
        return list(rule.ids)
    count = layer_count(family)
    if not isinstance(rule, KindIf) or count is None:
        return None
    try:
        layers = range(count)
        here = Ref(Symbol.LAYER, "layer")
        return [layer for layer in layers if evaluate(rule.expr, {**known, here: layer}) is True]
    except EvaluationError:
        return None


@checked("PPC416", "runtime-key-form")
def runtime_key_form(family: Family) -> Iterator[Finding]:
    """A key that the runtime hands on changes from cut to cut, or there is no stage between.

    **What.** `by: runtime` sends a key from a middle stage as it was received: its shape does
    not use `cut.layer`, and the pipeline can have a middle stage.

    **Why it hurts.** The next stage would wait for other rows than those that arrive; without a
    middle stage the word does nothing.

    **Bad**

    ```yaml
    {name: blocks, axis: tokens, shape: [tokens, cut.layer, hidden], dtype: model, padding: zero,
     by: runtime}
    ```

    **Good**

    ```yaml
    {name: embeds, axis: tokens, shape: [tokens, hidden], dtype: model, padding: zero, by: runtime}
    ```
    """
    between = Place.MIDDLE in places(family)
    for key in _keys(family):
        if not key.by_runtime:
            continue
        for extent in key.shape:
            if names_cut(extent.expr):
                yield Finding(
                    extent.span,
                    f"boundary key '{key.name}' is handed on as received, "
                    "and its shape differs from cut to cut",
                    "let the model hand it on: remove 'by: runtime'",
                )
        if not between:
            yield Finding(
                key.span_of("by"),
                f"boundary key '{key.name}' is handed on by no stage: the pipeline has no middle",
                "remove 'by: runtime'",
            )


def _keys(family: Family) -> tuple[BoundaryKey, ...]:
    own = (key for runner in family.runners for key in boundary_of(family, runner))
    return tuple(dict.fromkeys((*family.pipeline.boundary, *own)))
