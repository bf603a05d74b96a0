"""Kinds of layer: ids that the model has."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.ir import Family, KindIds
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import listed
from ppcgc.validate.rules.pipeline import layer_count


@checked("PPC403", "kind-ids", cases=(55, 56, 59))
def kind_ids(family: Family) -> Iterator[Finding]:
    """A kind of layer lists ids twice, or ids that the model does not have.

    **What.** Ids are global: 0 to the number of layers - 1, each once. A number of layers that
    comes from the config is compared when a runner is built.

    **Why it hurts.** A count of layers by kind decides what a stage holds and hands on: one id
    too many and a stage without such layers believes that it has one.
    Seen in: sgl-project/sglang#36331, vllm-project/vllm#40649, sgl-project/sglang#22475.

    **Bad**

    ```yaml
    layers: {count: 8, kinds: {sparse: {ids: [4, 6, 8]}}}
    ```

    **Good**

    ```yaml
    layers: {count: 8, kinds: {sparse: {ids: [3, 5, 7]}}}
    ```
    """
    count = layer_count(family)
    for kind in family.pipeline.kinds:
        if not isinstance(kind.rule, KindIds):
            continue
        ids = kind.rule.ids
        twice = sorted({layer for layer in ids if ids.count(layer) > 1})
        foreign = sorted({layer for layer in ids if count is not None and layer >= count})
        if twice:
            message = f"kind '{kind.name}' lists layers twice: {listed(twice)}"
            yield Finding(kind.span, message, "list each layer once")
        if foreign:
            message = f"kind '{kind.name}' lists layers {listed(foreign)} of a model with {count}"
            yield Finding(kind.span, message, f"ids are 0 to {(count or 1) - 1}")
