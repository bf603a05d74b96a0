"""PPC101 to PPC107: how a spec can break the JSON Schema."""

from __future__ import annotations

from ppcgc.diagnostics.catalogue import rule

UNKNOWN_KEY = rule(
    "PPC101",
    "unknown-key",
    """
    A mapping has a key that the language does not know.

    **What.** Every mapping of a spec has a closed set of keys.

    **Why it hurts.** A misspelt word would be dropped in silence and its default taken: a
    `pading: zero` that does nothing leaves stale rows.

    **Bad**

    ```yaml
    {name: positions, axis: tokens, dtype: int64, pading: zero, source: batch.positions}
    ```

    **Good**

    ```yaml
    {name: positions, axis: tokens, dtype: int64, padding: zero, source: batch.positions}
    ```
    """,
)
MISSING_KEY = rule(
    "PPC102",
    "missing-key",
    """
    A mapping lacks a key that it must have.

    **What.** A few words have no default because no default would be safe.

    **Why it hurts.** A slot without a dtype or a source would take its form from whatever
    batch came first, and the graph would keep that form.

    **Bad**

    ```yaml
    {name: positions, axis: tokens, padding: zero, source: batch.positions}
    ```

    **Good**

    ```yaml
    {name: positions, axis: tokens, dtype: int64, padding: zero, source: batch.positions}
    ```
    """,
)
WRONG_TYPE = rule(
    "PPC103",
    "wrong-type",
    """
    A value has the wrong type.

    **What.** Integers are integers: `8.0`, `"8"` and `true` are not.

    **Why it hurts.** Sizes that are rounded or converted on the way differ between the code
    that captures and the code that replays.
    Seen in: NVIDIA/TensorRT-LLM#6615.

    **Bad**

    ```yaml
    buckets: {requests: [1, 2, "4", 8.0]}
    ```

    **Good**

    ```yaml
    buckets: {requests: [1, 2, 4, 8]}
    ```
    """,
    cases=(37,),
)
UNKNOWN_WORD = rule(
    "PPC104",
    "unknown-word",
    """
    A value is not one of the words that the language has there.

    **What.** Roles, dtypes, stages and policies are closed lists. There is no policy that
    leaves padding uninitialised.

    **Why it hurts.** Rows made by an uninitialised allocation differ from run to run.
    Seen in: NVIDIA/TensorRT-LLM#7235.

    **Bad**

    ```yaml
    padding: uninit
    ```

    **Good**

    ```yaml
    padding: zero
    ```
    """,
    cases=(8,),
)
MALFORMED = rule(
    "PPC105",
    "malformed-text",
    """
    A name or a short form is not written as the language asks.

    **What.** Names are ASCII identifiers; sources, forward values and output paths have fixed
    forms. Names become Python identifiers, so nothing else can pass.

    **Why it hurts.** A misread path would bind another tensor than the one meant.

    **Bad**

    ```yaml
    source: input_ids
    ```

    **Good**

    ```yaml
    source: batch.input_ids
    ```
    """,
)
OUT_OF_RANGE = rule(
    "PPC106",
    "out-of-range",
    """
    A number lies outside the range that makes sense there.

    **What.** Capacities are positive and fit 32 bits, counts are not negative.

    **Why it hurts.** A capacity of 0 has no bucket; a size past 32 bits overflows the index
    types of most kernels.

    **Bad**

    ```yaml
    tokens: {max: 0, live: batch.num_tokens}
    ```

    **Good**

    ```yaml
    tokens: {max: 2048, live: batch.num_tokens}
    ```
    """,
)
WRONG_LENGTH = rule(
    "PPC107",
    "wrong-length",
    """
    A list, mapping or text has too few or too many entries.

    **What.** A stage range has two ends, a spec has a runner, a `keep` has a reason.

    **Why it hurts.** An empty list means "no graph at all", which is never what was meant.

    **Bad**

    ```yaml
    stages: [[0, 15, 30]]
    ```

    **Good**

    ```yaml
    stages: [[0, 15], [15, 30]]
    ```
    """,
)
