"""Forward: what each place binds exists there."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.expr.tree import Expr
from ppcgc.ir import Binding, Family, LiteralValue, Place, Runner, Slot, SlotValue
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.conditions import may_hold
from ppcgc.validate.rules.facts import LATER, listed, runner_places, slot_places


@checked("PPC501", "slot-not-on-stage", cases=(50,))
def slot_not_on_stage(family: Family) -> Iterator[Finding]:
    """A binding names a slot that none of its stages has.

    **What.** `slot.x` is None on stages without it. A binding that is None on every stage it is
    written for is a mistake.

    **Why it hurts.** The model takes another path without its input, and says nothing.
    Seen in: sgl-project/sglang#29385.

    **Bad**

    ```yaml
    slots: [{name: input_ids, axis: tokens, dtype: int64, padding: zero,
             source: batch.input_ids, stages: first}]
    forward:
      later: {input_ids: slot.input_ids, pp_proxy_tensors: boundary}
    ```

    **Good**

    ```yaml
    forward:
      first: {input_ids: slot.input_ids}
      later: {pp_proxy_tensors: boundary}
    ```
    """
    for runner in family.runners:
        found = {slot.qualified: slot for slot in runner.slots}
        for binding, bound_at in _slot_bindings(runner):
            slot = found[_slot_name(binding)]
            if not slot_places(slot) & set(bound_at):
                yield Finding(
                    binding.span,
                    f"'{binding.keyword}' binds slot '{slot.qualified}', which the "
                    f"{listed(place.value for place in bound_at)} stage does not have",
                    "widen 'stages' of the slot, or leave the keyword out: it is then None",
                )


def _slot_bindings(runner: Runner) -> Iterator[tuple[Binding, tuple[Place, ...]]]:
    """Each binding of a slot as written once, with the places that it was written for."""
    at: dict[tuple[object, str], tuple[Binding, list[Place]]] = {}
    for place in Place:
        for binding in runner.forward.at(place):
            if isinstance(binding.value, SlotValue):
                key = (binding.span, binding.keyword)
                at.setdefault(key, (binding, []))[1].append(place)
    yield from ((binding, tuple(bound)) for binding, bound in at.values())


def _slot_name(binding: Binding) -> str:
    return binding.value.name if isinstance(binding.value, SlotValue) else ""


@checked("PPC502", "input-ids-on-later-stage", cases=(50, 51), warning=True)
def input_ids_on_later_stage(family: Family) -> Iterator[Finding]:
    """A later stage is given `input_ids`.

    **What.** Only the first stage embeds tokens. A few models (hash routing) do read token ids
    later; then the warning may stand.

    **Why it hurts.** A stage with ids looks them up in an embedding table that it does not own.
    Seen in: sgl-project/sglang#29385, vllm-project/vllm#17916, sgl-project/sglang#19692.

    **Bad**

    ```yaml
    forward:
      later: {input_ids: slot.input_ids, pp_proxy_tensors: boundary}
    ```

    **Good**

    ```yaml
    forward:
      later: {pp_proxy_tensors: boundary}
    ```
    """
    for runner in family.runners:
        possible = runner_places(family, runner)
        found = {slot.qualified: slot for slot in runner.slots}
        for binding, bound_at in _slot_bindings(runner):
            later = [place for place in bound_at if place in LATER and place in possible]
            present = _present(found[_slot_name(binding)], later)
            if binding.keyword == "input_ids" and present:
                yield Finding(
                    binding.span,
                    f"the {listed(place.value for place in present)} stage of runner "
                    f"'{runner.name}' is given input_ids",
                    "leave it out: later stages then get None",
                )


def _present(slot: Slot, later: list[Place]) -> list[Place]:
    return [place for place in later if place in slot.stages]


@checked("PPC503", "ids-and-embeds", cases=(52,))
def ids_and_embeds(family: Family) -> Iterator[Finding]:
    """One stage is given both token ids and embeddings.

    **What.** `input_ids` and `inputs_embeds` exclude each other; the unbound one is None.

    **Why it hurts.** Models refuse both, or prefer one in silence: what capture recorded is not
    what the step meant.
    Seen in: vllm-project/vllm#48648.

    **Bad**

    ```yaml
    forward:
      first: {input_ids: slot.input_ids, inputs_embeds: slot.inputs_embeds}
    ```

    **Good**

    ```yaml
    forward:
      first: {input_ids: slot.input_ids}
      later: {inputs_embeds: boundary.hidden_states}
    ```
    """
    for runner in family.runners:
        reported = set()
        for place in runner_places(family, runner):
            given = {
                binding.keyword: binding
                for binding in runner.forward.at(place)
                if _is_given(runner, binding, place)
            }
            both = given.get("input_ids"), given.get("inputs_embeds")
            if both[0] is None or both[1] is None or both[1].span in reported:
                continue
            if may_hold(runner, _conditions(runner, both)):
                reported.add(both[1].span)
                yield Finding(
                    both[1].span,
                    f"the {place.value} stage of runner '{runner.name}' is given both "
                    "input_ids and inputs_embeds",
                    "bind one of them; the other is then None",
                )


def _conditions(runner: Runner, bindings: tuple[Binding | None, ...]) -> list[Expr]:
    """The conditions under which the slots of bindings exist."""
    names = {_slot_name(binding) for binding in bindings if binding is not None}
    bound = [slot for slot in runner.slots if slot.qualified in names]
    return [slot.when for slot in bound if slot.when is not None]


def _is_given(runner: Runner, binding: Binding, place: Place) -> bool:
    match binding.value:
        case LiteralValue(value=None):
            return False
        case SlotValue(name=name):
            return any(s.qualified == name and place in slot_places(s) for s in runner.slots)
        case _:
            return True


@checked("PPC504", "forward-without-input", cases=(16,))
def forward_without_input(family: Family) -> Iterator[Finding]:
    """The forward of a first stage is given nothing of the batch.

    **What.** `first` binds a slot or the `view` at least.

    **Why it hurts.** A graph without inputs returns the same answer to every batch.
    Seen in: vllm-project/vllm#6214.

    **Bad**

    ```yaml
    forward:
      first: {use_cache: {literal: false}}
    ```

    **Good**

    ```yaml
    forward:
      first: {input_ids: slot.input_ids, use_cache: {literal: false}}
    ```
    """
    for runner in family.runners:
        starts = [place for place in runner_places(family, runner) if place not in LATER]
        given = [binding.value for place in starts for binding in runner.forward.at(place)]
        if starts and all(isinstance(value, LiteralValue) for value in given):
            yield Finding(
                runner.forward.span,
                f"the first stage of runner '{runner.name}' is given no slot",
                "bind slot.<name> or view in 'first'",
            )
