"""Eligibility: conditions that make a step eager look at host values, and can apply."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.diagnostics.model import Related
from ppcgc.ir import BatchSource, EagerWhen, EqualsBuckets, Family, Residency
from ppcgc.validate.rules.checks import Finding, checked


@checked("PPC640", "condition-reads-device", cases=(83,))
def condition_reads_device(family: Family) -> Iterator[Finding]:
    """A condition of `eager_when` looks at values on the device.

    **What.** `is_true`, `is_false` and `above` read host values. `present` only asks whether
    something is there.

    **Why it hurts.** Each step would wait for the device before it can choose its path.
    Seen in: sgl-project/sglang#29921, sgl-project/sglang#29371.

    **Bad**

    ```yaml
    eager_when: {long: {above: [batch.seq_lens, 1024]}}
    slots: [{name: seq_lens, axis: requests, dtype: int32, padding: zero, source: batch.seq_lens}]
    ```

    **Good**

    ```yaml
    eager_when: {long: {above: [batch.longest, 1024]}}
    ```
    """
    for runner in family.runners:
        tensors = {
            slot.source.path: slot for slot in runner.slots if isinstance(slot.source, BatchSource)
        }
        for condition in runner.eager_when:
            slot = tensors.get(condition.path)
            if slot is not None and condition.kind not in ("present", "hook"):
                where = "on the device" if slot.residency is Residency.DEVICE else "a tensor"
                yield Finding(
                    condition.span,
                    f"reason '{condition.reason}' reads batch.{'.'.join(condition.path)}, "
                    f"which is {where}",
                    "read a host number or flag of the batch",
                    (Related(slot.span_of("source"), "the slot"),),
                )


@checked("PPC641", "uneven-without-equals", cases=(41,))
def uneven_without_equals(family: Family) -> Iterator[Finding]:
    """`uneven` is stated and no axis of the runner equals another.

    **What.** It says what a batch does whose live counts break `{equals: e}`.

    **Why it hurts.** The author expects uneven batches to be caught, and nothing looks.
    Seen in: vllm-project/vllm-ascend#9863.

    **Bad**

    ```yaml
    buckets: {tokens: [16, 32], requests: max}
    uneven: eager
    ```

    **Good**

    ```yaml
    buckets: {requests: [16, 32], tokens: {equals: requests}}
    uneven: eager
    ```
    """
    for runner in family.runners:
        follows = any(isinstance(rule, EqualsBuckets) for rule in runner.buckets)
        if runner.uneven is not None and not follows:
            message = f"runner '{runner.name}' states 'uneven' and has no axis with equals"
            yield Finding(runner.span_of("uneven"), message, "remove it")


@checked("PPC642", "reason-repeated", cases=(101,))
def reason_repeated(family: Family) -> Iterator[Finding]:
    """Two reasons of `eager_when` are one condition.

    **What.** Each condition has one reason. The first that holds is recorded.

    **Why it hurts.** The second reason never shows in the counters, and whoever waits for it
    believes that the case does not happen.
    Seen in: sgl-project/sglang#23842, vllm-project/vllm#23739.

    **Bad**

    ```yaml
    eager_when: {images: {present: batch.images}, vision: {present: batch.images}}
    ```

    **Good**

    ```yaml
    eager_when: {images: {present: batch.images}}
    ```
    """
    for runner in family.runners:
        first: dict[tuple[object, ...], EagerWhen] = {}
        for condition in runner.eager_when:
            same = (condition.kind, condition.path, condition.above, condition.hook)
            other = first.setdefault(same, condition)
            if other is not condition:
                yield Finding(
                    condition.span,
                    f"reasons '{other.reason}' and '{condition.reason}' are one condition",
                    f"remove '{condition.reason}'",
                    (Related(other.span, "the other reason"),),
                )
