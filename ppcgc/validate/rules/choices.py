"""Options and lowered capacities: choices that are among those there are."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.ir import Family
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import bucket_of, listed


@checked("PPC602", "option-default")
def option_default(family: Family) -> Iterator[Finding]:
    """The default of an option is none of its choices, or a choice is listed twice.

    **What.** An `enum` option is one of its `choices`, its default too.

    **Why it hurts.** Every build that states nothing would take a value that no expression of
    the spec expects.

    **Bad**

    ```yaml
    options: {layout: {type: enum, default: ndh, choices: [nhd, hnd]}}
    ```

    **Good**

    ```yaml
    options: {layout: {type: enum, default: nhd, choices: [nhd, hnd]}}
    ```
    """
    for option in family.options:
        choices = option.choices
        if option.type != "enum":
            continue
        if option.default not in choices:
            message = f"default '{option.default}' of option '{option.name}' is none of its choices"
            yield Finding(option.span, message, f"one of: {listed(choices)}")
        twice = [word for word in dict.fromkeys(choices) if choices.count(word) > 1]
        if twice:
            message = f"option '{option.name}' lists {listed(twice)} twice"
            yield Finding(option.span, message, "list each choice once")


@checked("PPC317", "lowered-capacity", cases=(29, 38))
def lowered_capacity(family: Family) -> Iterator[Finding]:
    """A runner states a capacity that lowers nothing.

    **What.** `axes` of a runner lowers `max` of an axis that the runner has buckets for.

    **Why it hurts.** Two numbers for one capacity: buffers are sized by one and buckets meant
    for the other.
    Seen in: NVIDIA/TensorRT-LLM#10688, lightseekorg/tokenspeed#611.

    **Bad**

    ```yaml
    axes: {tokens: {max: 2048, live: batch.num_tokens}}
    # in a runner
    axes: {tokens: {max: 4096}}
    ```

    **Good**

    ```yaml
    axes: {tokens: {max: 512}}
    ```
    """
    for runner in family.runners:
        for name, rows in runner.axis_max:
            whole = family.axis(name).max
            if rows >= whole:
                reason = f"{rows} of {name} is not below its capacity {whole}"
            elif bucket_of(runner, name) is None:
                reason = f"runner '{runner.name}' has no buckets for {name}"
            else:
                continue
            message = f"'axes' of runner '{runner.name}' lowers nothing: {reason}"
            yield Finding(runner.span_of("axes"), message, f"remove {name}, or write less")
