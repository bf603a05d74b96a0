"""Runners on some stages only: what they bind exists where they do."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.diagnostics.model import Span
from ppcgc.ir import Family, LiteralValue, Place, Runner
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import listed, runner_places


@checked("PPC404", "runner-without-stage", cases=(54,))
def runner_without_stage(family: Family) -> Iterator[Finding]:
    """No stage of the pipeline has the runner.

    **What.** `stages` of a runner names at least one stage that the pipeline's ranges have.

    **Why it hurts.** Its graphs would never be captured, and whoever calls it finds nothing.
    Seen in: vllm-project/vllm#52230.

    **Bad**

    ```yaml
    pipeline: {layers: {count: 8}, stages: [[0, 8]]}
    runners:
      draft: {stages: later}
    ```

    **Good**

    ```yaml
    runners:
      draft: {stages: last}
    ```
    """
    for runner in family.runners:
        if not runner_places(family, runner):
            message = f"no stage of this pipeline has runner '{runner.name}'"
            help = "change 'stages' of the runner or of the pipeline"
            yield Finding(runner.span_of("stages"), message, help)


@checked("PPC506", "binding-without-stage", cases=(54,))
def binding_without_stage(family: Family) -> Iterator[Finding]:
    """`forward` binds a keyword for stages that the runner does not have.

    **What.** A runner with `stages: first` binds nothing in `later`, and one with
    `stages: later` nothing in `first`.

    **Why it hurts.** The reader takes it for part of the model's input; it is never passed.
    Seen in: vllm-project/vllm#52230.

    **Bad**

    ```yaml
    stages: first
    forward:
      first: {pixels: slot.pixels}
      later: {pixels: slot.pixels}
    ```

    **Good**

    ```yaml
    stages: first
    forward:
      first: {pixels: slot.pixels}
    ```
    """
    for runner in family.runners:
        for (span, keyword), places in _bindings(runner).items():
            if not set(places) & runner.places:
                yield Finding(
                    span,
                    f"'{keyword}' is bound for the {listed(place.value for place in places)} "
                    f"stage, where runner '{runner.name}' does not exist",
                    "remove it, or widen 'stages' of the runner",
                )


def _bindings(runner: Runner) -> dict[tuple[Span, str], list[Place]]:
    """Each binding as written, with the places that it was written for."""
    found: dict[tuple[Span, str], list[Place]] = {}
    for place in Place:
        for binding in runner.forward.at(place):
            unbound = binding.value == LiteralValue(value=None)
            if not unbound or binding.span != runner.forward.span:
                found.setdefault((binding.span, binding.keyword), []).append(place)
    return {key: places for key, places in found.items() if key[0] != runner.forward.span}
