"""PPC120 to PPC129: names, references and expressions that resolve cannot make sense of."""

from __future__ import annotations

from ppcgc.diagnostics.catalogue import rule

BAD_EXPRESSION = rule(
    "PPC120",
    "bad-expression",
    """
    A text is no expression of the language.

    **What.** Expressions have integers, names, `+ - * // %`, comparisons, `in`, `and or not`,
    `a if c else b`, `ceil(a / b)`, `min()` and `max()`; ppcgc parses them, never Python.
    Comparisons are not chained, and nothing is divided by zero. An expression with a comma is
    quoted as a whole.

    **Why it hurts.** What ppcgc does not understand it cannot check, and must not pass on.

    **Bad**

    ```yaml
    limits: ["1 <= requests <= tokens"]
    ```

    **Good**

    ```yaml
    limits: ["1 <= requests and requests <= tokens"]
    ```
    """,
)
UNKNOWN_NAME = rule(
    "PPC121",
    "unknown-name",
    """
    An expression names something that has no meaning there.

    **What.** Which names may be used depends on the place: shapes know dims and padded axes,
    limits know live counts, `compute` knows both and the row's number.

    **Why it hurts.** A name that is only known at run time would be frozen into the graph.

    **Bad**

    ```yaml
    shape: [tokens, hiden]
    ```

    **Good**

    ```yaml
    shape: [tokens, hidden]
    ```
    """,
)
EXPRESSION_TYPE = rule(
    "PPC122",
    "expression-type",
    """
    An expression has the wrong type: a condition where an integer is needed, or the reverse.

    **What.** Integers and conditions are not mixed, as Python would let them.

    **Why it hurts.** `rows: kv_rows > 0` would ask for one row.

    **Bad**

    ```yaml
    limits: ["tokens - requests"]
    ```

    **Good**

    ```yaml
    limits: ["tokens >= requests"]
    ```
    """,
)
UNKNOWN_REFERENCE = rule(
    "PPC123",
    "unknown-reference",
    """
    A word names an axis, dim, state, slot or boundary key that the spec does not declare.

    **What.** Everything that is used is declared in the same spec.

    **Why it hurts.** A forward that reads a key nobody declares gets stale rows or none.
    Seen in: vllm-project/vllm#37622.

    **Bad**

    ```yaml
    forward:
      later: {residual: boundary.residul}
    ```

    **Good**

    ```yaml
    forward:
      later: {residual: boundary.residual}
    ```
    """,
    cases=(47,),
)
DUPLICATE_NAME = rule(
    "PPC124",
    "duplicate-name",
    """
    Two things have the same name, or names that become the same identifier.

    **What.** Slots of a runner, keys of the boundary and outputs have names of their own; a
    group of slots is no slot; beside a slot `x` with a `mirror` nothing is called `x_host`;
    runners differ in more than case and underscores.

    **Why it hurts.** The second would replace the first in the generated code.

    **Bad**

    ```yaml
    slots:
      - {name: positions, axis: tokens, dtype: int64, padding: zero, source: batch.positions}
      - {name: positions, axis: tokens, dtype: int32, padding: zero, source: batch.positions}
    ```

    **Good**

    ```yaml
    slots:
      - {name: positions, axis: tokens, dtype: int64, padding: zero, source: batch.positions}
    ```
    """,
)
HAZARDOUS_NAME = rule(
    "PPC125",
    "hazardous-name",
    """
    A name cannot be used in the generated code, or means something else there.

    **What.** Python's keywords, names that begin with an underscore, and names that ppcgc's
    expressions or generated classes use themselves.

    **Why it hurts.** A slot called `class` does not parse; an axis called `live` cannot be told
    from the live counts; a slot called `run` would hide the method that runs the stage.

    **Bad**

    ```yaml
    axes: {live: {max: 16, live: batch.num_requests}}
    ```

    **Good**

    ```yaml
    axes: {requests: {max: 16, live: batch.num_requests}}
    ```
    """,
)
AMBIGUOUS_NAME = rule(
    "PPC126",
    "ambiguous-name",
    """
    A dim and an axis have the same name.

    **What.** Shapes name both without a prefix.

    **Why it hurts.** `[tokens, hidden]` could not be read if `tokens` were also a fixed size.

    **Bad**

    ```yaml
    dims: {tokens: 128}
    axes: {tokens: {max: 2048, live: batch.num_tokens}}
    ```

    **Good**

    ```yaml
    dims: {chunk: 128}
    axes: {tokens: {max: 2048, live: batch.num_tokens}}
    ```
    """,
)
EXTENT_FORM = rule(
    "PPC127",
    "extent-form",
    """
    A dimension that carries an axis is not of the form `a * AXIS + b`.

    **What.** `a` is an integer of at least 1, `b` an integer of at least 0, and one dimension
    carries one axis. A slot without an axis states its shape.

    **Why it hurts.** Only such a dimension can be cut at the live rows by one slice; resetting
    "the last dimension" instead clears columns of `[tokens, hidden]`.
    Seen in: xLLM-AI/xllm#884.

    **Bad**

    ```yaml
    shape: [tokens * tokens]
    ```

    **Good**

    ```yaml
    shape: [tokens * 2]
    ```
    """,
    cases=(19,),
)
CIRCULAR_DIMS = rule(
    "PPC128",
    "circular-dims",
    """
    Dims are computed from each other in a circle.

    **What.** A dim may be an expression of other dims, not of itself.

    **Why it hurts.** None of them would ever have a value.

    **Bad**

    ```yaml
    dims: {heads: hidden // 64, hidden: heads * 64}
    ```

    **Good**

    ```yaml
    dims: {heads: hidden // 64, hidden: config.hidden_size}
    ```
    """,
)
PADDING_BY_AXIS = rule(
    "PPC129",
    "padding-by-axis",
    """
    Padding by axis does not name exactly the two axes of its slot.

    **What.** A slot with two axes has one padding for both, or one for each: cells where the
    first axis is not live take its padding, cells where only the second is not take the
    second's.

    **Why it hurts.** Cells of the axis that is left out would hold what an earlier batch left.
    Seen in: sgl-project/sglang#24743.

    **Bad**

    ```yaml
    axis: [requests, chunks]
    padding: {requests: zero}
    ```

    **Good**

    ```yaml
    axis: [requests, chunks]
    padding: {requests: zero, chunks: repeat_last}
    ```
    """,
    cases=(1, 41),
)
