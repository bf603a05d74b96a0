"""Hooks: what they are called for, and what they are given."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.ir import Family, Hook, HookSource, HookValue, Place, Runner
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import fixed, fixed_dims, listed


@checked("PPC632", "hook-word-without-effect", cases=(37,))
def hook_word_without_effect(family: Family) -> Iterator[Finding]:
    """A hook states a word for a moment at which it is not called.

    **What.** `writes` belongs to `load`, and a `load` has something to write; `staging` belongs
    to `plan`; a hook that is called at `capture` is named by `capture: hook.<name>` of a slot.

    **Why it hurts.** The author believes in a call that never comes.
    Seen in: NVIDIA/TensorRT-LLM#5014.

    **Bad**

    ```yaml
    hooks: {attention: {at: plan, reads: [seq_lens], writes: [table]}}
    ```

    **Good**

    ```yaml
    hooks: {attention: {at: [load, plan], reads: [seq_lens], writes: [table]}}
    ```
    """
    for runner, hook in _hooks(family):
        if "capture" in hook.at and all(s.capture_hook != hook.name for s in runner.slots):
            message = f"hook '{hook.name}' is called at capture and gives rows of no slot"
            help = f"say 'capture: hook.{hook.name}' in a slot"
            yield Finding(hook.span_of("at"), message, help)
        if hook.writes and "load" not in hook.at:
            message = f"hook '{hook.name}' writes {listed(hook.writes)} and is not called at load"
            yield Finding(hook.span_of("writes"), message, "add load to 'at', or remove 'writes'")
        if "load" in hook.at and not hook.writes:
            message = f"hook '{hook.name}' is called at load and writes no slot"
            yield Finding(hook.span_of("at"), message, "list the slots in 'writes'")
        if "staging" in hook.spans and "plan" not in hook.at:
            message = f"hook '{hook.name}' has a staging of {hook.staging} and no plan"
            yield Finding(hook.span_of("staging"), message, "add plan to 'at', or remove it")


def _hooks(family: Family) -> Iterator[tuple[Runner, Hook]]:
    for runner in family.runners:
        yield from ((runner, hook) for hook in runner.hooks)


@checked("PPC633", "hook-unused", warning=True)
def hook_unused(family: Family) -> Iterator[Finding]:
    """Nothing uses what a hook returns or writes.

    **What.** The object of a `key` hook is bound by `hook.<name>` in `forward`, unless the hook
    also plans; a slot takes its rows from a `load` or a `capture` hook.

    **Why it hurts.** The caller must give a hook that has no effect; more often a binding was
    forgotten and the model runs without its plan.

    **Bad**

    ```yaml
    hooks: {attention: {at: key}}
    forward:
      first: {input_ids: slot.input_ids}
    ```

    **Good**

    ```yaml
    forward:
      first: {input_ids: slot.input_ids, attention: hook.attention}
    ```
    """
    for runner in family.runners:
        bound = {
            binding.value.name
            for place in Place
            for binding in runner.forward.at(place)
            if isinstance(binding.value, HookValue)
        }
        bound |= {s.source.hook for s in runner.slots if isinstance(s.source, HookSource)}
        bound |= {slot.capture_hook for slot in runner.slots if slot.capture_hook}
        bound |= {condition.hook for condition in runner.eager_when if condition.hook}
        for hook in runner.hooks:
            if hook.name not in bound and "plan" not in hook.at:
                message = f"nothing in runner '{runner.name}' uses hook '{hook.name}'"
                help = f"bind hook.{hook.name} in 'forward' or in a slot, or remove the hook"
                yield Finding(hook.span, message, help)


@checked("PPC635", "workspace-size", cases=(68, 97))
def workspace_size(family: Family) -> Iterator[Finding]:
    """A workspace has no bytes.

    **What.** The bytes of a workspace are an expression of dims, fixed when the runner is
    built, and at least 1 where they are known before. They never depend on the batch.

    **Why it hurts.** A library that finds its workspace too small makes a larger one and frees
    the old: kernels that were captured still use that.
    Seen in: flashinfer-ai/flashinfer#4398, flashinfer-ai/flashinfer#4666,
    sgl-project/sglang#21647.

    **Bad**

    ```yaml
    hooks: {attention: {at: [key, plan], reads: [seq_lens], workspace: 0}}
    ```

    **Good**

    ```yaml
    hooks: {attention: {at: [key, plan], reads: [seq_lens], workspace: 128 * 1024 * 1024}}
    ```
    """
    known = fixed_dims(family)
    for _, hook in _hooks(family):
        size = None if hook.workspace is None else fixed(hook.workspace, known)
        if size is not None and size < 1:
            message = f"the workspace of hook '{hook.name}' has {size} bytes"
            yield Finding(hook.span_of("workspace"), message, "state the bytes, or leave it out")
