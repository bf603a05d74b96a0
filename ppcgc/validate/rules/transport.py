"""Transport: a hand-off inside the graphs needs both of its ends in a graph."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.diagnostics.model import Span
from ppcgc.ir import AbsentEager, AbsentKey, Family, Place, Runner, Slot
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import LATER, boundary_of, runner_places, slot_places


@checked("PPC651", "hand-off-without-peer", cases=(87, 89))
def hand_off_without_peer(family: Family) -> Iterator[Finding]:
    """One stage can leave the graph while its neighbour waits inside of it.

    **What.** With `transport: captured` the boundary travels inside the graphs, with `symmetric`
    straight into the next stage's slots, so all stages take the same path. A slot that only some
    of them have must not decide that by its absence.

    **Why it hurts.** The stage that sees the slot missing runs eagerly and sends nothing that
    the captured receive of the next one would get: both wait for ever.
    Seen in: pegainfer-project/pegainfer#498, pie-project/pie#499.

    **Bad**

    ```yaml
    transport: captured
    slots:
      - {name: pixels, axis: tokens, dtype: int64, padding: zero, source: batch.pixels,
         stages: first, absent: eager}
    ```

    **Good**

    ```yaml
    transport: captured
    slots:
      - {name: pixels, axis: tokens, dtype: int64, padding: zero, source: batch.pixels,
         stages: first, absent: {fill: 0}}
    ```
    """
    for runner in family.runners:
        if runner.transport == "eager":
            continue
        for slot in runner.slots:
            missing = set(runner_places(family, runner)) - slot_places(slot)
            if _decides(slot) and (missing or slot.owns):
                yield Finding(
                    slot.span_of("absent"),
                    f"slot '{slot.qualified}' decides by its absence whether a stage replays, "
                    f"and not every stage has it; runner '{runner.name}' hands on inside the graph",
                    "write absent: error or {fill: v}, give the slot to all stages, "
                    "or transport: eager",
                )


def _decides(slot: Slot) -> bool:
    return isinstance(slot.absent, AbsentEager | AbsentKey)


@checked("PPC652", "transport-capability", cases=(89,))
def transport_capability(family: Family) -> Iterator[Finding]:
    """A transport is asked for what it cannot do.

    **What.** With `captured` and `symmetric` keys travel whole: `scatter_gather` joins its parts
    by a collective beside the graphs. `symmetric` writes into the next stage's
    buffers, so what a middle stage sends is made there: it has no `by: runtime`. A pipeline of
    one stage hands nothing on.

    **Why it hurts.** A combination that nobody supports fails at capture, or later in the next
    collective, which names neither.
    Seen in: pie-project/pie#499.

    **Bad**

    ```yaml
    boundary:
      - {name: hidden_states, axis: tokens, shape: [tokens, hidden], dtype: model, padding: zero,
         wire: scatter_gather}
    # in a runner
    transport: captured
    ```

    **Good**

    ```yaml
    transport: eager
    ```
    """
    for runner in family.runners:
        for span, problem in _incapable(family, runner):
            message = f"transport: {runner.transport} of runner '{runner.name}' {problem}"
            yield Finding(span, message, "write transport: eager, or change the key")


def _incapable(family: Family, runner: Runner) -> Iterator[tuple[Span, str]]:
    if runner.transport == "eager":
        return
    there = runner_places(family, runner)
    if not set(LATER) & set(there) or not boundary_of(family, runner):
        yield runner.span_of("transport"), "hands nothing on: it has no stage after another"
    for key in boundary_of(family, runner):
        if key.wire == "scatter_gather":
            yield key.span_of("wire"), f"cannot join the parts of boundary key '{key.name}'"
        if key.by_runtime and runner.transport == "symmetric" and Place.MIDDLE in there:
            yield key.span_of("by"), f"cannot hand on boundary key '{key.name}' as received"
