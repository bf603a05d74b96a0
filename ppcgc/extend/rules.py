"""The rules of ``extends``: PPC021 to PPC025, and PPC018, which the driver shares."""

from __future__ import annotations

from ppcgc.diagnostics.catalogue import rule

SAME_FAMILY = rule(
    "PPC018",
    "same-family",
    """
    A family is defined by one spec.

    **What.** Two specs that are generated together, or a spec and one that it extends, have the
    same `family`; of specs that are generated together, also in capitals and small letters.

    **Why it hurts.** Both would write the package of that name, and which one wins would depend
    on the order in which they were given.

    **Bad**

    ```yaml
    extends: llama  # which says `family: llama`
    family: llama
    ```

    **Good**

    ```yaml
    extends: llama
    family: llama_wide
    ```
    """,
)

NO_PARENT = rule(
    "PPC021",
    "no-such-parent",
    """
    `extends` names a spec that lies beside this one.

    **What.** `extends: llama` reads `llama.yaml` in the folder of the extending file. The name is
    a file's name without its folder and without `.yaml`; the file can be read. A spec from
    standard input lies in no folder and extends nothing.

    **Why it hurts.** A path would let a spec read any file of the machine that compiles it, and
    the same spec would mean different things in different checkouts.

    **Bad**

    ```yaml
    extends: ../base/llama.yaml
    ```

    **Good**

    ```yaml
    extends: llama
    ```
    """,
)

CIRCULAR_EXTENDS = rule(
    "PPC022",
    "circular-extends",
    """
    A spec does not extend itself.

    **What.** Following `extends` from file to file leads back to a file that was read before.

    **Why it hurts.** No file of the circle says what is inherited first.

    **Bad**

    ```yaml
    extends: llama  # in llama.yaml, or in a spec that llama.yaml extends
    ```

    **Good**

    ```yaml
    extends: llama  # in llama_wide.yaml
    ```
    """,
)

MERGE_CONFLICT = rule(
    "PPC023",
    "merge-conflict",
    """
    A spec extends another of the same build.

    **What.** Maps merge key by key, lists of named entries by name. A map over a list, a list or
    a single value over a map, and entries without names over named ones do not merge.

    **Why it hurts.** The inherited entries would all vanish in silence, where one more was meant.

    **Bad**

    ```yaml
    # the parent says: `dims: {hidden: config.hidden_size}`
    dims: [hidden]
    ```

    **Good**

    ```yaml
    drop: {dims: [hidden]}
    dims: {width: config.hidden_size}
    ```
    """,
)

BAD_DROP = rule(
    "PPC024",
    "bad-drop",
    """
    `drop` names entries that the extended spec has.

    **What.** `drop` is a list of keys, or a map that leads to such lists through keys and names
    of entries. Each of them is there in the spec that is extended.

    **Why it hurts.** A misspelt name would be inherited all the same, and so would one that the
    parent has meanwhile renamed.

    **Bad**

    ```yaml
    drop: {runners: {decode: {slots: [seq_length]}}}
    ```

    **Good**

    ```yaml
    drop: {runners: {decode: {slots: [seq_lens]}}}
    ```
    """,
)

OTHER_VERSION = rule(
    "PPC025",
    "other-version",
    """
    A spec and the ones that it extends are of one version.

    **What.** Each file says its `version`; an extending file says the same one as its parent.

    **Why it hurts.** The words of two versions would be mixed in one spec, and some of them mean
    something else.

    **Bad**

    ```yaml
    version: 2
    extends: llama  # which says `version: 1`
    ```

    **Good**

    ```yaml
    version: 1
    extends: llama
    ```
    """,
)
