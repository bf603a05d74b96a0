"""Hooks and slots: who writes a slot, what a plan reads, where a hook's object is bound."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.diagnostics.model import Related
from ppcgc.ir import (
    CallerSource,
    ComputeSource,
    ConstSource,
    Family,
    HookSource,
    HookValue,
    Place,
    Residency,
    Role,
    Slot,
)
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import listed
from ppcgc.validate.rules.padding import source_word


@checked("PPC630", "hook-slot-unwritten", cases=(7, 68))
def hook_slot_unwritten(family: Family) -> Iterator[Finding]:
    """A slot names a hook that does not write it.

    **What.** The hook of `source: hook.<name>` is called at `load` and lists the slot in
    `writes`.

    **Why it hurts.** Nobody fills the slot: each replay reads what an earlier one left there.
    Seen in: NVIDIA/TensorRT-LLM#18207, flashinfer-ai/flashinfer#4398.

    **Bad**

    ```yaml
    hooks: {pages: {at: load, writes: [other]}}
    slots: [{name: table, axis: requests, dtype: int32, padding: zero, source: hook.pages}]
    ```

    **Good**

    ```yaml
    hooks: {pages: {at: load, writes: [table]}}
    ```
    """
    for runner in family.runners:
        hooks = {hook.name: hook for hook in runner.hooks}
        for slot in runner.slots:
            hook = hooks.get(slot.source.hook) if isinstance(slot.source, HookSource) else None
            if hook is None or ("load" in hook.at and slot.qualified in hook.writes):
                continue
            calls = "is not called at load" if "load" not in hook.at else "does not list it"
            yield Finding(
                slot.span_of("source"),
                f"slot '{slot.qualified}' is to be written by hook '{hook.name}', which {calls}",
                f"write at: load and writes: [{listed((*hook.writes, slot.qualified))}]"
                if "load" in hook.at
                else "add load to 'at', and the slot to 'writes'",
                (Related(hook.span, "the hook"),),
            )


@checked("PPC631", "slot-of-two-authors")
def slot_of_two_authors(family: Family) -> Iterator[Finding]:
    """A hook writes a slot that takes its rows from elsewhere.

    **What.** A slot in `writes` says `source: hook.<name>`, of one hook.

    **Why it hurts.** Two authors for the same rows: which one wins depends on the order of
    copies.

    **Bad**

    ```yaml
    hooks: {pages: {at: load, writes: [table]}}
    slots: [{name: table, axis: requests, dtype: int32, padding: zero, source: batch.table}]
    ```

    **Good**

    ```yaml
    slots: [{name: table, axis: requests, dtype: int32, padding: zero, source: hook.pages}]
    ```
    """
    for runner in family.runners:
        slots = {slot.qualified: slot for slot in runner.slots}
        for hook in runner.hooks:
            for slot in (slots[name] for name in hook.writes if name in slots):
                if slot.source != HookSource(hook=hook.name):
                    yield Finding(
                        slot.span_of("source"),
                        f"hook '{hook.name}' writes slot '{slot.qualified}', "
                        f"whose source is {source_word(slot.source)}",
                        f"write source: hook.{hook.name}, or take the slot out of 'writes'",
                        (Related(hook.span, "the hook"),),
                    )


@checked("PPC634", "plan-reads-device", cases=(83,), warning=True)
def plan_reads_device(family: Family) -> Iterator[Finding]:
    """A plan has nothing on the host to read.

    **What.** A `plan` hook reads slots that have host values: `residency: host`, a `mirror`,
    `place: host`, a `compute`, or what another hook or the caller gives on the host.

    **Why it hurts.** Sizes that are read back from the device stop the host at each replay.
    Seen in: sgl-project/sglang#29921, sgl-project/sglang#29371.

    **Bad**

    ```yaml
    hooks: {attention: {at: plan, reads: [seq_lens]}}
    slots: [{name: seq_lens, axis: requests, dtype: int32, padding: zero, source: batch.seq_lens}]
    ```

    **Good**

    ```yaml
    slots: [{name: seq_lens, axis: requests, dtype: int32, padding: zero, source: batch.seq_lens,
             mirror: {source: batch.seq_lens_cpu}}]
    ```
    """
    for runner in family.runners:
        slots = {slot.qualified: slot for slot in runner.slots}
        for hook in runner.hooks:
            if "plan" not in hook.at:
                continue
            if not hook.reads:
                message = f"hook '{hook.name}' plans and reads no slot"
                yield Finding(hook.span, message, "list the slots with host values in 'reads'")
            for slot in (slots[name] for name in hook.reads if name in slots):
                if not _has_host_values(slot):
                    yield Finding(
                        hook.span_of("reads"),
                        f"hook '{hook.name}' plans from slot '{slot.qualified}', "
                        "whose values are on the device only",
                        "give the slot a mirror, or residency: host",
                        (Related(slot.span_of("source"), "the slot"),),
                    )


def _has_host_values(slot: Slot) -> bool:
    computed = isinstance(slot.source, ComputeSource | ConstSource | CallerSource | HookSource)
    return computed or slot.host_only or slot.mirror is not None or slot.residency is Residency.HOST


@checked("PPC505", "hook-without-object")
def hook_without_object(family: Family) -> Iterator[Finding]:
    """The forward is given the object of a hook that makes none.

    **What.** `hook.<name>` is what the hook returns at `key`, once for each graph.

    **Why it hurts.** The model would get None where it expects its attention plan.

    **Bad**

    ```yaml
    hooks: {attention: {at: plan, reads: [seq_lens]}}
    forward:
      first: {input_ids: slot.input_ids, attention: hook.attention}
    ```

    **Good**

    ```yaml
    hooks: {attention: {at: [key, plan], reads: [seq_lens]}}
    ```
    """
    for runner in family.runners:
        keyed = {hook.name for hook in runner.hooks if "key" in hook.at}
        bound = dict.fromkeys(
            (binding.span, binding.keyword, binding.value.name)
            for place in Place
            for binding in runner.forward.at(place)
            if isinstance(binding.value, HookValue)
        )
        for span, keyword, name in bound:
            if name not in keyed:
                message = f"'{keyword}' binds hook '{name}', which is not called at key"
                yield Finding(span, message, f"add key to 'at' of hook '{name}'")


@checked("PPC636", "capture-hook")
def capture_hook(family: Family) -> Iterator[Finding]:
    """A slot wants its rows at capture from a hook that cannot give them.

    **What.** The hook of `capture: hook.<name>` is called at `capture`, and the slot is not written
    through: rows of `write_index` slots are reserved ones while capturing, whatever anybody says.

    **Why it hurts.** Warm-up and capture run the model on these rows. Without them a kernel may
    fault; with real write indices it overwrites what the state holds.

    **Bad**

    ```yaml
    hooks: {lens: {at: plan, reads: [seq_lens]}}
    slots:
      - {name: seq_lens, axis: requests, dtype: int32, padding: zero, source: batch.seq_lens,
         residency: host, capture: hook.lens}
    ```

    **Good**

    ```yaml
    hooks: {lens: {at: [capture, plan], reads: [seq_lens]}}
    ```
    """
    for runner in family.runners:
        hooks = {hook.name: hook for hook in runner.hooks}
        for slot in runner.slots:
            hook = hooks.get(slot.capture_hook or "")
            if hook is not None and "capture" not in hook.at:
                yield Finding(
                    slot.span_of("capture"),
                    f"slot '{slot.qualified}' wants rows of hook '{hook.name}' at capture, which "
                    "is not called then",
                    "add capture to 'at'",
                    (Related(hook.span, "the hook"),),
                )
            if hook is not None and slot.role.role is Role.WRITE_INDEX:
                yield Finding(
                    slot.span_of("capture"),
                    f"slot '{slot.qualified}' is a write_index, which points at reserved rows "
                    f"while capturing, not at rows of hook '{hook.name}'",
                    "remove 'capture'",
                )
