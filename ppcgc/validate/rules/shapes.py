"""Shapes: every axis stands in exactly one dimension, and no other axis stands anywhere."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.expr.printing import to_text
from ppcgc.ir import Extent, Family
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import Tensor, fixed, fixed_dims, listed, tensors


@checked("PPC210", "axis-not-in-shape", cases=(9, 14, 15, 19, 35))
def axis_not_in_shape(family: Family) -> Iterator[Finding]:
    """The declared axis does not stand in the shape, or stands in it twice.

    **What.** The dimension that carries the axis is the one that is padded and sliced, so there
    is exactly one.

    **Why it hurts.** A buffer of a fixed number of rows is overrun by the first larger bucket;
    a slice of the wrong dimension silently mixes rows and columns.
    Seen in: xLLM-AI/xllm#1939, vllm-project/vllm#15269, lightseekorg/tokenspeed#667,
    vllm-project/vllm#13418, xLLM-AI/xllm#884.

    **Bad**

    ```yaml
    {name: seq_lens, axis: requests, shape: [50], dtype: int32, padding: zero,
     source: batch.seq_lens}
    ```

    **Good**

    ```yaml
    {name: seq_lens, axis: requests, shape: [requests], dtype: int32, padding: zero,
     source: batch.seq_lens}
    ```
    """
    for tensor in tensors(family):
        for axis in tensor.node.axes:
            count = sum(extent.axis == axis for extent in tensor.node.shape)
            if count != 1:
                yield Finding(
                    tensor.node.span_of("shape"),
                    f"{tensor.what} has axis {axis}, which stands in {count} of the "
                    f"{len(tensor.node.shape)} dimensions of its shape {_shown(tensor)}",
                    f"write {axis} in exactly one dimension",
                )


@checked("PPC211", "undeclared-axis-in-shape", cases=(9, 45))
def undeclared_axis_in_shape(family: Family) -> Iterator[Finding]:
    """A shape carries an axis that is not the tensor's own.

    **What.** The axis word says what is padded and sliced. With `axis: none` nothing is.

    **Why it hurts.** The rows of the other axis would be neither padded nor cut: a stage would
    read a buffer of the wrong length.
    Seen in: sgl-project/sglang#30774.

    **Bad**

    ```yaml
    {name: hidden_states, axis: requests, shape: [tokens, hidden], dtype: model, padding: zero}
    ```

    **Good**

    ```yaml
    {name: hidden_states, axis: tokens, shape: [tokens, hidden], dtype: model, padding: zero}
    ```
    """
    for tensor in tensors(family):
        declared = tensor.node.axes
        for extent in tensor.node.shape:
            if extent.axis is not None and extent.axis not in declared:
                yield Finding(
                    extent.span,
                    f"{tensor.what} has axis {listed(declared) or 'none'}, "
                    f"but its shape {_shown(tensor)} carries {extent.axis}",
                    f"write 'axis: {extent.axis}', or a fixed size such as {extent.axis}.max",
                )


@checked("PPC212", "empty-extent")
def empty_extent(family: Family) -> Iterator[Finding]:
    """A fixed dimension has no rows, or fewer.

    **What.** Integers and expressions of known dims are at least 1.

    **Why it hurts.** A tensor of no elements hides every mistake in its slot.

    **Bad**

    ```yaml
    shape: [tokens, 0]
    ```

    **Good**

    ```yaml
    shape: [tokens, 8]
    ```
    """
    known = fixed_dims(family)
    for tensor in tensors(family):
        for extent in tensor.node.shape:
            size = fixed(extent.expr, known) if extent.axis is None else None
            if size is not None and size < 1:
                yield Finding(
                    extent.span,
                    f"{tensor.what} has a dimension of {_size_text(extent, size)} rows",
                    "an extent is at least 1",
                )


def _size_text(extent: Extent, size: int) -> str:
    written = to_text(extent.expr)
    return written if written == str(size) else f"{written} = {size}"


def _shown(tensor: Tensor) -> str:
    parts = [to_text(extent.expr).replace("padded.", "") for extent in tensor.node.shape]
    return f"[{', '.join(parts)}]".replace("dims.", "")
