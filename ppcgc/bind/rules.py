"""PPC660 to PPC663: a spec and the config that its code is to be generated for."""

from __future__ import annotations

from ppcgc.diagnostics.catalogue import rule

CONFIG_LACKS = rule(
    "PPC660",
    "config-lacks-key",
    """
    The config of `generate --bind` has no value for something that the spec reads from it.

    **What.** Every `config.<path>` of the spec is in the config, at that path.

    **Why it hurts.** The size would be guessed, or the code generated for another model than the
    one that it is built with.

    **Bad**

    ```yaml
    dims: {hidden: config.hidden_size}   # and config.json: {"n_embd": 64}
    ```

    **Good**

    ```yaml
    dims: {hidden: config.n_embd}
    ```
    """,
)
CONFIG_VALUE = rule(
    "PPC661",
    "config-value",
    """
    A value of the config of `generate --bind` is not what the spec makes of it.

    **What.** A size is an integer of at least 1; the layers of a kind come from a list or a
    string with one entry a layer.

    **Why it hurts.** A text or a fraction becomes no extent, and a list of another length gives
    layers of another model.

    **Bad**

    ```yaml
    dims: {hidden: config.hidden_size}   # and config.json: {"hidden_size": "64"}
    ```

    **Good**

    ```yaml
    dims: {hidden: config.hidden_size}   # and config.json: {"hidden_size": 64}
    ```
    """,
)
BOUND_EXTENT = rule(
    "PPC662",
    "bound-extent",
    """
    With the config of `generate --bind` a size is negative or has no value.

    **What.** Extents, computed dims and workspaces are integers of at least 0; no divisor is 0.

    **Why it hurts.** The build would raise the same for every model with this config.

    **Bad**

    ```yaml
    dims: {heads: config.heads, spare: heads - 8}   # and config.json: {"heads": 4}
    ```

    **Good**

    ```yaml
    dims: {heads: config.heads, spare: "max(heads - 8, 0)"}
    ```
    """,
)
BOUND_LAYERS = rule(
    "PPC663",
    "bound-layers",
    """
    The stages or the kinds of layers do not fit the number of layers of the config.

    **What.** There are at least as many layers as stages; explicit ranges end at the last layer,
    and a kind lists layers that there are.

    **Why it hurts.** A stage without layers, or layers without a stage, are found when the model
    is cut, on the machine that was to serve it.

    **Bad**

    ```yaml
    pipeline: {layers: {count: config.layers}, stages: [[0, 8], [8, 16]]}   # {"layers": 24}
    ```

    **Good**

    ```yaml
    pipeline: {layers: {count: config.layers}, stages: even}
    ```
    """,
)
