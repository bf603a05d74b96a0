"""Slots as wholes: words that have no effect, slots that nobody reads."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.expr.tree import Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import (
    BatchSource,
    CallerSource,
    ComputeSource,
    ConstSource,
    Family,
    GraphSource,
    Place,
    Role,
    Runner,
    Slot,
    SlotValue,
    Source,
    ViewValue,
)
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import listed, runner_places, slot_places, slots
from ppcgc.validate.rules.padding import source_word

_INDICES = (Role.INDEX, Role.WRITE_INDEX)


@checked("PPC220", "word-without-effect", cases=(37,))
def word_without_effect(family: Family) -> Iterator[Finding]:
    """A slot states a word that its source or role never looks at.

    **What.** `absent`, `cast`, `broadcast` and `residency` speak of a tensor of the batch
    (`residency` also of what the caller writes); `mirror` of one on the device; `capture` of
    rows that the batch or the caller gives; `consumer_skips_negative` of an index.

    **Why it hurts.** The author believes in a guard that does not exist.
    Seen in: NVIDIA/TensorRT-LLM#5014.

    **Bad**

    ```yaml
    {name: count, axis: none, shape: [1], dtype: int32, source: {compute: live.tokens}, cast: true}
    ```

    **Good**

    ```yaml
    {name: count, axis: none, shape: [1], dtype: int32, source: {compute: live.tokens}}
    ```
    """
    for _, slot in slots(family):
        for word, reason in _idle_words(slot):
            yield Finding(
                slot.span_of(word),
                f"'{word}' has no effect on slot '{slot.qualified}': {reason}",
                f"remove '{word}'",
            )


def _idle_words(slot: Slot) -> Iterator[tuple[str, str]]:
    source = f"its source is {source_word(slot.source)}"
    from_batch = isinstance(slot.source, BatchSource)
    if not from_batch:
        idle = ("absent", "cast", "broadcast")
        yield from ((word, source) for word in idle if word in slot.spans)
    if "residency" in slot.spans and not (from_batch or isinstance(slot.source, CallerSource)):
        yield "residency", source
    if "capture" in slot.spans and not isinstance(slot.source, BatchSource | CallerSource):
        yield "capture", source
    if "mirror" in slot.spans and (slot.host_only or _from_host(slot.source)):
        yield "mirror", "the slot is on the host" if slot.host_only else source
    if "consumer_skips_negative" in slot.spans and slot.role.role not in _INDICES:
        yield "consumer_skips_negative", f"its role is {slot.role.role.value}"


def _from_host(source: Source) -> bool:
    return isinstance(source, ComputeSource | ConstSource)


@checked("PPC221", "unread-slot", warning=True)
def unread_slot(family: Family) -> Iterator[Finding]:
    """No forward reads the slot.

    **What.** A slot is read where the forward of its stages binds it or gets the `view`, or by
    a hook.

    **Why it hurts.** It is loaded at each step for nothing; more often, a binding was forgotten
    and the model runs without its input.

    **Bad**

    ```yaml
    slots: [{name: scale, axis: none, shape: [1], dtype: float32, source: batch.scale}]
    forward:
      first: {input_ids: slot.input_ids}
    ```

    **Good**

    ```yaml
    slots: [{name: scale, axis: none, shape: [1], dtype: float32, source: batch.scale}]
    forward:
      first: {input_ids: slot.input_ids, scale: slot.scale}
    ```
    """
    for runner, slot in slots(family):
        own = [place for place in runner_places(family, runner) if place in slot_places(slot)]
        if any(slot.qualified in hook.reads for hook in runner.hooks):
            continue
        if own and not any(_reads(runner, place, slot) for place in own):
            yield Finding(
                slot.span_of("name"),
                f"no forward of runner '{runner.name}' reads slot '{slot.qualified}'",
                f"bind slot.{slot.qualified} or view in 'forward', or remove the slot",
            )


def _reads(runner: Runner, place: Place, slot: Slot) -> bool:
    return any(
        isinstance(binding.value, ViewValue) or binding.value == SlotValue(name=slot.qualified)
        for binding in runner.forward.at(place)
    )


@checked("PPC222", "constant-written")
def constant_written(family: Family) -> Iterator[Finding]:
    """A `const` slot is mutable.

    **What.** `const` rows are written once, when the runner is built.

    **Why it hurts.** After the first replay they hold what the forward left there, and a
    recorded increment adds up from step to step.
    Seen in: NVIDIA/TensorRT-LLM#7737.

    **Bad**

    ```yaml
    {name: counter, axis: none, shape: [1], dtype: int32, source: {const: 0}, mutable: true}
    ```

    **Good**

    ```yaml
    {name: counter, axis: none, shape: [1], dtype: int32, source: {compute: 0}, mutable: true}
    ```
    """
    for _, slot in slots(family):
        if slot.mutable and isinstance(slot.source, ConstSource):
            yield Finding(
                slot.span_of("mutable"),
                f"slot '{slot.qualified}' is constant and mutable",
                "use {compute: e}, which is written at each step, or remove 'mutable'",
            )


@checked("PPC223", "graph-slot-not-mutable")
def graph_slot_not_mutable(family: Family) -> Iterator[Finding]:
    """A slot written inside the graph does not say that it is mutable.

    **What.** `source: graph` means that the captured forward writes the slot.

    **Why it hurts.** The check at capture, which finds slots that a forward changes by mistake,
    would refuse this one.

    **Bad**

    ```yaml
    {name: scratch, axis: tokens, dtype: float32, source: graph}
    ```

    **Good**

    ```yaml
    {name: scratch, axis: tokens, dtype: float32, source: graph, mutable: true}
    ```
    """
    for _, slot in slots(family):
        if isinstance(slot.source, GraphSource) and not slot.mutable:
            yield Finding(
                slot.span_of("source"),
                f"slot '{slot.qualified}' is written by the graph and not mutable",
                "add mutable: true",
            )


@checked("PPC224", "foreign-row")
def foreign_row(family: Family) -> Iterator[Finding]:
    """A `compute` uses the row number of an axis that the slot does not have.

    **What.** `row.<axis>` counts the rows of an axis of the slot: of its only one, or of either of
    two, whose cells are then computed one by one.

    **Why it hurts.** There is no such row to count.

    **Bad**

    ```yaml
    {name: number, axis: tokens, dtype: int32, source: {compute: row.requests}}
    ```

    **Good**

    ```yaml
    {name: number, axis: tokens, dtype: int32, source: {compute: row.tokens}}
    ```
    """
    for _, slot in slots(family):
        if not isinstance(slot.source, ComputeSource):
            continue
        rows = {ref.name for ref in refs(slot.source.expr) if ref.symbol is Symbol.ROW}
        for axis in sorted(rows - set(slot.axes)):
            yield Finding(
                slot.span_of("source"),
                f"slot '{slot.qualified}' has axis {listed(slot.axes) or 'none'}, "
                f"so row.{axis} has no value",
                f"use row.{slot.axes[0]}" if slot.axes else "give the slot an axis",
            )


@checked("PPC225", "slot-without-stage", cases=(54,))
def slot_without_stage(family: Family) -> Iterator[Finding]:
    """No stage of the pipeline has the slot.

    **What.** The pipeline's explicit ranges leave no stage of the slot's kind.

    **Why it hurts.** The slot is declared and never exists; graphs of stages that never
    replay them only cost memory.
    Seen in: vllm-project/vllm#52230.

    **Bad**

    ```yaml
    pipeline: {layers: {count: 30}, stages: [[0, 30]]}
    # in a runner
    {name: extra, axis: tokens, dtype: int64, padding: zero, source: batch.extra, stages: later}
    ```

    **Good**

    ```yaml
    pipeline: {layers: {count: 30}, stages: [[0, 15], [15, 30]]}
    ```
    """
    for runner, slot in slots(family):
        possible = set(runner_places(family, runner))
        if possible and not possible & slot_places(slot):
            yield Finding(
                slot.span_of("stages"),
                f"no stage of this pipeline has slot '{slot.qualified}'",
                "change 'stages' of the slot or of the pipeline",
            )
