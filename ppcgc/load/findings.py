"""The rules of reading a file: PPC001 to PPC017."""

from __future__ import annotations

from ppcgc.diagnostics.catalogue import rule
from ppcgc.diagnostics.model import Severity

NOT_UTF8 = rule(
    "PPC001",
    "not-utf8",
    """
    A spec is UTF-8 text.

    **What.** The file holds a byte sequence that is not UTF-8.

    **Why it hurts.** Guessing an encoding gives each machine its own reading of the same file,
    and generated code must be the same everywhere.

    **Bad.** A file saved as UTF-16 or Latin-1.

    **Good.** The same file saved as UTF-8, without a byte order mark.
    """,
)

FORBIDDEN_CHARACTER = rule(
    "PPC002",
    "forbidden-character",
    """
    A spec holds no characters that a reader cannot see.

    **What.** The text holds a NUL, a control character, a byte order mark, a Unicode line
    separator, a lone carriage return or a character that changes the writing direction.

    **Why it hurts.** What a reviewer sees and what the compiler reads are then two things: lines
    are counted differently, names that look equal are not.

    **Bad**

    ```yaml
    family: "llama\\u202e"   # written as the character itself
    ```

    **Good**

    ```yaml
    family: llama
    ```
    """,
)

CARRIAGE_RETURNS = rule(
    "PPC003",
    "carriage-returns",
    """
    Lines of a spec end with a line feed alone.

    **What.** Lines end with carriage return and line feed. They are read as line feeds.

    **Why it hurts.** It does not change what is generated, but the file differs between
    machines, and so do the diffs.

    **Bad.** A checkout where git turns line ends into those of Windows.

    **Good.** The line `*.yaml text eol=lf` in `.gitattributes`.
    """,
    severity=Severity.WARNING,
)

TAB_INDENTATION = rule(
    "PPC004",
    "tab-indentation",
    """
    Lines are indented with spaces.

    **What.** A tab stands before the first word of a line.

    **Why it hurts.** YAML's structure is its indentation, and editors disagree about the width
    of a tab. YAML forbids it.

    **Bad.** A tab before `tokens`:

    ```yaml
    axes:
    \\ttokens: {max: 2048, live: batch.num_tokens}
    ```

    **Good**

    ```yaml
    axes:
      tokens: {max: 2048, live: batch.num_tokens}
    ```
    """,
)

NOT_YAML = rule(
    "PPC005",
    "not-yaml",
    """
    A spec is well-formed YAML.

    **What.** The parser met something that it could not read on from. Only the first such place
    is reported, since what follows depends on it.

    **Why it hurts.** Nothing can be said about a file whose structure is unknown.

    **Bad**

    ```yaml
    buckets: {tokens: [16, 32, requests: max}
    ```

    **Good**

    ```yaml
    buckets: {tokens: [16, 32], requests: max}
    ```
    """,
)

EMPTY_SPEC = rule(
    "PPC006",
    "empty-spec",
    """
    A spec says something.

    **What.** The file is empty, holds only comments, or only `null`.

    **Why it hurts.** A runner cannot be made from nothing, and an empty file is more often a
    failed write than an intention.

    **Bad**

    ```yaml
    # to be written
    ```

    **Good**

    ```yaml
    version: 1
    family: llama
    ```
    """,
)

SEVERAL_DOCUMENTS = rule(
    "PPC007",
    "several-documents",
    """
    A file holds one spec.

    **What.** A second document starts after a line `---`.

    **Why it hurts.** Most tools would read the first one and drop the rest in silence.

    **Bad**

    ```yaml
    version: 1
    family: llama
    ---
    version: 1
    family: qwen
    ```

    **Good.** Two files, `llama.yaml` and `qwen.yaml`.
    """,
)

TAG_NOT_ALLOWED = rule(
    "PPC008",
    "tag-not-allowed",
    """
    Values carry no YAML tags.

    **What.** A value or a directive names a tag (`!!str`, `!include`, `%TAG`).

    **Why it hurts.** Tags let a file choose how it is read, up to making objects and reading
    other files. A spec is data, and a value's type is seen from how it is written.

    **Bad**

    ```yaml
    version: !!int "1"
    ```

    **Good**

    ```yaml
    version: 1
    ```
    """,
)

DUPLICATE_KEY = rule(
    "PPC009",
    "duplicate-key",
    """
    A key is given once in its mapping.

    **What.** The same key appears twice in one mapping.

    **Why it hurts.** YAML readers keep the last of the two and say nothing, so that half of what
    the author wrote has no effect.

    **Bad**

    ```yaml
    buckets: {tokens: [16, 32], requests: max, tokens: [64]}
    ```

    **Good**

    ```yaml
    buckets: {tokens: [16, 32, 64], requests: max}
    ```
    """,
)

KEY_NOT_A_NAME = rule(
    "PPC010",
    "key-not-a-name",
    """
    A key is a single word or text.

    **What.** A key is a list, a mapping, an alias, or empty.

    **Why it hurts.** No place of a spec takes such a key. It comes from a stray `?` or colon, or
    from a template whose braces were left in.

    **Bad**

    ```yaml
    dims: {{hidden}: config.hidden_size}
    ```

    **Good**

    ```yaml
    dims: {hidden: config.hidden_size}
    ```
    """,
)

MERGE_KEY = rule(
    "PPC011",
    "merge-key",
    """
    Mappings are not merged with `<<`.

    **What.** A mapping has the key `<<`.

    **Why it hurts.** Merge keys were never part of YAML 1.2, readers differ on which side wins,
    and a finding inside a merged value could not say which text to change.

    **Bad**

    ```yaml
    - {<<: *index_slot, name: positions}
    ```

    **Good.** An alias for a whole value, or the words written out:

    ```yaml
    - {name: positions, axis: tokens, dtype: int64, padding: zero, source: batch.positions}
    ```
    """,
)

BAD_ANCHOR = rule(
    "PPC012",
    "bad-anchor",
    """
    An alias names one anchor, given once and before it.

    **What.** An alias has no anchor, an anchor is given twice, or a value contains itself.

    **Why it hurts.** With two anchors of one name the nearest one wins, and moving a line
    changes what another line means. A value inside itself has no end.

    **Bad**

    ```yaml
    shape: &rows [tokens, *rows]
    ```

    **Good**

    ```yaml
    shape: &rows [tokens, hidden]
    ```
    """,
)

TOO_LARGE = rule(
    "PPC013",
    "file-too-large",
    """
    A spec is at most 1 MiB.

    **What.** The file is larger. It was not read.

    **Why it hurts.** The largest families need some tens of kilobytes. A larger file is something
    else under this name, and reading it would take memory and time for nothing.

    **Bad.** `ppcgc validate model.safetensors`

    **Good.** `ppcgc validate specs/llama.yaml`
    """,
)

TOO_DEEP = rule(
    "PPC014",
    "nested-too-deep",
    """
    Values are nested at most 32 deep.

    **What.** Lists and mappings lie inside each other deeper than that.

    **Why it hurts.** The language itself needs about ten levels. More is a slip in a generated
    file, or a file made to exhaust the reader.

    **Bad**

    ```yaml
    shape: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[tokens]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]
    ```

    **Good**

    ```yaml
    shape: [tokens]
    ```
    """,
)

TOO_MANY_VALUES = rule(
    "PPC015",
    "too-many-values",
    """
    A spec holds at most 50 000 values, aliases counted in full.

    **What.** There are more keys, items and scalars than that, once every alias is replaced by
    what it stands for.

    **Why it hurts.** Ten lines of aliases to aliases stand for billions of values.

    **Bad**

    ```yaml
    a: &a [x, x, x, x, x, x, x, x, x]
    b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]
    c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]   # and so on
    ```

    **Good.** Values written out, or an alias where a value is really used twice.
    """,
)

NUMBER_OUT_OF_RANGE = rule(
    "PPC016",
    "number-out-of-range",
    """
    Numbers fit 64 bits.

    **What.** An integer lies outside -2^63 to 2^64 - 1, or a decimal number is too large for a
    double.

    **Why it hurts.** No tensor holds it: it would be cut to another number, or to infinity.

    **Bad**

    ```yaml
    padding: {fill: 1e999}
    ```

    **Good**

    ```yaml
    padding: {fill: .inf}   # if infinity is meant
    ```
    """,
)

SPLIT_TEXT = rule(
    "PPC017",
    "split-text",
    """
    Text with a comma or open brackets is quoted inside `[...]` and `{...}`.

    **What.** Inside brackets, YAML cut a text at its comma, or a text has a bracket without its
    partner.

    **Why it hurts.** `[min(a, b)]` is a list of two texts, `min(a` and `b)`. YAML does this in
    silence.

    **Bad**

    ```yaml
    shape: [min(tokens, 8), hidden]
    ```

    **Good**

    ```yaml
    shape: ["min(tokens, 8)", hidden]
    ```
    """,
)
