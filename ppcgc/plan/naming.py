"""Names of generated classes and modules, for the code that makes them and rules that guard them."""

from __future__ import annotations


def camel(name: str) -> str:
    """``draft_extend`` -> ``DraftExtend``."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


# what a runner's modules are called behind its own name, beside the kinds of stage
MODULE_ENDINGS = frozenset({"boundary", "slots"})
