"""Host sides of slots, and sources of fewer dimensions."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.diagnostics.model import Related
from ppcgc.ir import (
    BatchSource,
    CallerSource,
    ComputeSource,
    ConstSource,
    Family,
    Place,
    Residency,
    Slot,
    SlotValue,
)
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import slots
from ppcgc.validate.rules.padding import source_word


@checked("PPC235", "mirror-of-device", cases=(83, 84))
def mirror_of_device(family: Family) -> Iterator[Finding]:
    """A host twin takes its values from a tensor on the device.

    **What.** `mirror` has a host source of its own. The device is never read back.

    **Why it hurts.** A copy from the device waits for it at every step, which is what the twin
    is there to avoid.
    Seen in: sgl-project/sglang#29921, sgl-project/sglang#29371, sgl-project/sglang#28633.

    **Bad**

    ```yaml
    {name: seq_lens, axis: requests, dtype: int32, padding: zero, source: batch.seq_lens,
     mirror: {source: batch.seq_lens}}
    ```

    **Good**

    ```yaml
    {name: seq_lens, axis: requests, dtype: int32, padding: zero, source: batch.seq_lens,
     mirror: {source: batch.seq_lens_cpu}}
    ```
    """
    for runner in family.runners:
        on_device = {
            slot.source.path: slot
            for slot in runner.slots
            if isinstance(slot.source, BatchSource) and slot.residency is Residency.DEVICE
        }
        for slot in runner.slots:
            source = None if slot.mirror is None else on_device.get(slot.mirror.path)
            if slot.mirror is not None and source is not None:
                yield Finding(
                    slot.mirror.span,
                    f"the host twin of slot '{slot.qualified}' reads "
                    f"batch.{'.'.join(slot.mirror.path)}, which is on the device",
                    "name a host path, or state residency: host",
                    (Related(source.span_of("source"), "read on the device here"),),
                )


@checked("PPC236", "host-slot-source")
def host_slot_source(family: Family) -> Iterator[Finding]:
    """A slot on the host takes its rows from the device.

    **What.** `place: host` is a slot without a device side: its source is `compute`, `const`,
    or a batch path or the caller with `residency: host`.

    **Why it hurts.** Each step would read the device back and wait for it.

    **Bad**

    ```yaml
    {name: lens, axis: requests, dtype: int32, padding: zero, source: batch.lens, place: host}
    ```

    **Good**

    ```yaml
    {name: lens, axis: requests, dtype: int32, padding: zero, source: batch.lens,
     residency: host, place: host}
    ```
    """
    for _, slot in slots(family):
        if slot.host_only and not _on_host(slot):
            yield Finding(
                slot.span_of("source"),
                f"slot '{slot.qualified}' is on the host and its source, "
                f"{source_word(slot.source)}, on the device",
                "state residency: host, or remove 'place: host'",
            )


def _on_host(slot: Slot) -> bool:
    if isinstance(slot.source, ComputeSource | ConstSource):
        return True
    stated = isinstance(slot.source, BatchSource | CallerSource)
    return stated and slot.residency is Residency.HOST


@checked("PPC507", "host-slot-bound", cases=(77, 79))
def host_slot_bound(family: Family) -> Iterator[Finding]:
    """The captured forward is given a slot on the host.

    **What.** A slot with `place: host` is read by hooks, outside the graph.

    **Why it hurts.** What a forward reads on the host it reads once, at capture; a copy from
    there is recorded with an address that may be gone at the next replay.
    Seen in: sgl-project/sglang#38663, huggingface/transformers#45323.

    **Bad**

    ```yaml
    slots: [{name: lens, axis: requests, dtype: int32, padding: zero, source: batch.lens,
             residency: host, place: host}]
    forward:
      first: {input_ids: slot.input_ids, lens: slot.lens}
    ```

    **Good**

    ```yaml
    hooks: {attention: {at: [key, plan], reads: [lens]}}
    forward:
      first: {input_ids: slot.input_ids, attention: hook.attention}
    ```
    """
    for runner in family.runners:
        on_host = {slot.qualified for slot in runner.slots if slot.host_only}
        bound = dict.fromkeys(
            (binding.span, binding.keyword, binding.value.name)
            for place in Place
            for binding in runner.forward.at(place)
            if isinstance(binding.value, SlotValue)
        )
        for span, keyword, name in bound:
            if name in on_host:
                message = f"'{keyword}' binds slot '{name}', which is on the host"
                yield Finding(span, message, "let a hook read it, or remove 'place: host'")


@checked("PPC215", "nothing-to-broadcast", cases=(20,))
def nothing_to_broadcast(family: Family) -> Iterator[Finding]:
    """A slot broadcasts its source and has no dimension that the source may lack.

    **What.** A source may lack the dimensions before the one that carries the slot's axis.

    **Why it hurts.** The author expects sources of two ranks; one of them is refused.
    Seen in: vllm-project/vllm#9546.

    **Bad**

    ```yaml
    {name: positions, axis: tokens, shape: [tokens, 3], dtype: int64, padding: zero,
     source: batch.positions, broadcast: true}
    ```

    **Good**

    ```yaml
    {name: positions, axis: tokens, shape: [3, tokens], dtype: int64, padding: zero,
     source: batch.positions, broadcast: true}
    ```
    """
    for _, slot in slots(family):
        leading = slot.shape[0].axis is None and len(slot.shape) > 1 if slot.shape else False
        if slot.broadcast and not leading:
            yield Finding(
                slot.span_of("broadcast"),
                f"slot '{slot.qualified}' broadcasts, and its shape has no dimension "
                "before its axis",
                "remove 'broadcast', or put the axis behind the other dimension",
            )
