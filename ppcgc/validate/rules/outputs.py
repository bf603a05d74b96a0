"""Outputs: each is one part of the forward's result, kept long enough."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.diagnostics.model import Related
from ppcgc.ir import Family, KeepRing, Output
from ppcgc.validate.rules.checks import Finding, checked


@checked("PPC510", "output-conflict", cases=(82,))
def output_conflict(family: Family) -> Iterator[Finding]:
    """Two outputs take the result in ways that exclude each other.

    **What.** The result is one tensor (`result`), or has names, or has indices. Two outputs do
    not take the same part.

    **Why it hurts.** One forward cannot return a tensor and a tuple; a part that is taken twice
    is a part that is missing.
    Seen in: sgl-project/sglang#22317.

    **Bad**

    ```yaml
    last:
      - {name: logits, axis: tokens, dtype: float32, from: result}
      - {name: hidden, axis: tokens, dtype: model, from: result.hidden}
    ```

    **Good**

    ```yaml
    last:
      - {name: logits, axis: tokens, dtype: float32, from: result.logits}
      - {name: hidden, axis: tokens, dtype: model, from: result.hidden}
    ```
    """
    for runner in family.runners:
        for number, output in enumerate(runner.outputs):
            for other in runner.outputs[:number]:
                problem = _problem(other, output)
                if problem is not None:
                    yield Finding(
                        output.span_of("from"),
                        f"outputs '{other.name}' and '{output.name}' {problem}",
                        "take different parts of one form: names, or indices",
                        (Related(other.span_of("from"), "the other output"),),
                    )
                    break


def _problem(one: Output, two: Output) -> str | None:
    if one.path == two.path:
        return f"both take {_shown(one)}"
    if type(one.path) is not type(two.path):
        return f"take {_shown(one)} and {_shown(two)}: a result has one form"
    return None


def _shown(output: Output) -> str:
    return "result" if output.path is None else f"result.{output.path}"


@checked("PPC511", "ring-of-one", cases=(60, 99))
def ring_of_one(family: Family) -> Iterator[Finding]:
    """A ring has a single buffer.

    **What.** `ring(n)` copies the live rows into the next of n buffers; n is at least 2.

    **Why it hurts.** The next step writes over the only copy while the last one is still being
    read or sent. That is what `view` does, without the cost.
    Seen in: vllm-project/vllm#54962, pytorch/pytorch#148439.

    **Bad**

    ```yaml
    keep: ring(1)
    ```

    **Good**

    ```yaml
    keep: ring(2)
    ```
    """
    for runner in family.runners:
        for output in runner.outputs:
            if isinstance(output.keep, KeepRing) and output.keep.entries < 2:
                yield Finding(
                    output.span_of("keep"),
                    f"output '{output.name}' has a ring of {output.keep.entries} buffer",
                    "use ring(2) or more, view, or clone",
                )
