"""The boundary: every key is handed on, read, and reset past its live rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ppcgc.diagnostics.model import Related
from ppcgc.ir import (
    BoundaryKey,
    BoundarySource,
    BoundaryValue,
    Family,
    KeepPadding,
    Place,
    Runner,
)
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import LATER, boundary_of, listed, runner_places, slot_places


@checked("PPC410", "boundary-key-unread", cases=(47, 48))
def boundary_key_unread(family: Family) -> Iterator[Finding]:
    """A later stage does not read a key of the boundary.

    **What.** Every declared key is bound in `forward` of every later stage: by name, by
    `boundary` as a whole, or as the source of a slot. A runner that hands a key over at no cut
    says so: `boundary: [{name: k, when: false}]`.

    **Why it hurts.** Declared, produced and consumed keys then differ: one side sends what the
    other never reads, or waits for what nobody sends.
    Seen in: vllm-project/vllm#37622, vllm-project/vllm#55913.

    **Bad**

    ```yaml
    boundary:
      - {name: hidden_states, axis: tokens, shape: [tokens, hidden], dtype: model, padding: zero}
      - {name: residual, axis: tokens, shape: [tokens, hidden], dtype: model, padding: zero}
    # in a runner
    forward:
      later: {hidden_states: boundary.hidden_states}
    ```

    **Good**

    ```yaml
    forward:
      later: {hidden_states: boundary.hidden_states, residual: boundary.residual}
    ```
    """
    for runner in family.runners:
        for key in boundary_of(family, runner):
            blind = _blind_places(family, runner, key)
            if blind and not key.never:
                yield Finding(
                    key.span_of("name"),
                    f"the {' and '.join(place.value for place in blind)} stage of runner "
                    f"'{runner.name}' does not read boundary key '{key.name}'",
                    f"bind boundary.{key.name} or boundary in 'forward', or remove the key",
                    (Related(runner.forward.span, "its forward"),),
                )


def _blind_places(family: Family, runner: Runner, key: BoundaryKey) -> list[Place]:
    """The later places that read the boundary but not this key.

    A key that the runtime hands on is read by one of them at least.
    """
    later = [place for place in runner_places(family, runner) if place in LATER]
    reading = [place for place in later if _keys_read(family, runner, place)]
    blind = [place for place in reading if key.name not in _keys_read(family, runner, place)]
    return [] if key.by_runtime and len(blind) < len(reading) else blind


@checked("PPC411", "boundary-unread", cases=(44,))
def boundary_unread(family: Family) -> Iterator[Finding]:
    """A later stage reads nothing of the boundary.

    **What.** A stage that is not the first works on what the stage before hands it.

    **Why it hurts.** Its graph would compute on whatever its buffers held at capture.
    Seen in: vllm-project/vllm#13353, vllm-project/vllm#13417.

    **Bad**

    ```yaml
    forward:
      first: {input_ids: slot.input_ids}
      later: {positions: slot.positions}
    ```

    **Good**

    ```yaml
    forward:
      first: {input_ids: slot.input_ids}
      later: {positions: slot.positions, pp_proxy_tensors: boundary}
    ```
    """
    for runner in family.runners:
        blind = [
            place
            for place in runner_places(family, runner)
            if place in LATER and not _keys_read(family, runner, place)
        ]
        if blind:
            declared = bool(family.pipeline.boundary)
            yield Finding(
                runner.forward.span,
                f"the {' and '.join(place.value for place in blind)} stage of runner "
                f"'{runner.name}' reads nothing of the boundary",
                "bind boundary or boundary.<key> in 'later'"
                if declared
                else "declare 'pipeline.boundary' and bind it in 'later', or state one stage",
            )


def _keys_read(family: Family, runner: Runner, place: Place) -> set[str]:
    read: set[str] = set()
    for binding in runner.forward.at(place):
        if isinstance(binding.value, BoundaryValue):
            whole = [key.name for key in family.pipeline.boundary]
            read |= set(whole if binding.value.key is None else [binding.value.key])
    for slot in runner.slots:
        if isinstance(slot.source, BoundarySource) and place in slot_places(slot):
            read.add(slot.source.key)
    return read


@checked("PPC412", "boundary-axis", cases=(45,), warning=True)
def boundary_axis(family: Family) -> Iterator[Finding]:
    """A boundary key has another axis than its siblings.

    **What.** Boundary tensors have a row a token. A key on another axis is legal and rare; the
    usual one is `tokens` where that axis exists, else the axis of most keys.

    **Why it hurts.** Hidden states sized by requests are right as long as each request has one
    token, and lose rows in the first prefill.
    Seen in: sgl-project/sglang#30774.

    **Bad**

    ```yaml
    {name: hidden_states, axis: requests, shape: [requests, hidden], dtype: model, padding: zero}
    ```

    **Good**

    ```yaml
    {name: hidden_states, axis: tokens, shape: [tokens, hidden], dtype: model, padding: zero}
    ```
    """
    keys = family.pipeline.boundary
    if not keys:
        return
    usual = Counter(key.axes for key in keys).most_common(1)[0][0]
    if any(axis.name == "tokens" for axis in family.axes):
        usual = ("tokens",)
    for key in keys:
        if key.axes != usual:
            yield Finding(
                key.span_of("axis"),
                f"boundary key '{key.name}' has axis {listed(key.axes) or 'none'}, "
                f"not {listed(usual) or 'none'}",
                "make sure that its rows are not tokens",
            )


@checked("PPC413", "boundary-keeps-rows")
def boundary_keeps_rows(family: Family) -> Iterator[Finding]:
    """Padded rows of a boundary key keep an earlier batch.

    **What.** The receiver resets the rows past live inside its captured region, so a boundary
    key has a padding that resets.

    **Why it hurts.** Stale hidden rows choose experts and spread NaN: padded rows that come
    over the wire are never trusted.

    **Bad**

    ```yaml
    padding: {keep: nobody reads them, initial: 0}
    ```

    **Good**

    ```yaml
    padding: zero
    ```
    """
    own = (key for runner in family.runners for key in runner.boundary or ())
    for key in (*family.pipeline.boundary, *own):
        if isinstance(key.padding, KeepPadding):
            yield Finding(
                key.span_of("padding"),
                f"boundary key '{key.name}' keeps stale rows past the live ones",
                "use padding: zero",
            )


@checked("PPC414", "boundary-on-first-stage", cases=(50,))
def boundary_on_first_stage(family: Family) -> Iterator[Finding]:
    """The forward of a stage that receives nothing binds the boundary.

    **What.** The first stage, and the only one, have no stage before them.

    **Why it hurts.** The model would be handed buffers that nobody fills.
    Seen in: sgl-project/sglang#29385.

    **Bad**

    ```yaml
    forward:
      first: {input_ids: slot.input_ids, pp_proxy_tensors: boundary}
    ```

    **Good**

    ```yaml
    forward:
      first: {input_ids: slot.input_ids}
      later: {pp_proxy_tensors: boundary}
    ```
    """
    for runner in family.runners:
        spans = dict.fromkeys(
            (binding.span, binding.keyword)
            for place in (Place.ONLY, Place.FIRST)
            for binding in runner.forward.at(place)
            if isinstance(binding.value, BoundaryValue)
        )
        for span, keyword in spans:
            yield Finding(
                span,
                f"'{keyword}' of the first stage of runner '{runner.name}' binds the boundary, "
                "which that stage does not receive",
                "bind it in 'later'",
            )
