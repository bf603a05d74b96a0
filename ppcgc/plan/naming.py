"""Names that generated packages have, for the code that makes them and for the rules of names."""

from __future__ import annotations

import re

# what a runner's modules are called behind its own name, beside the kinds of stage
MODULE_ENDINGS = frozenset({"boundary", "slots"})
# classes and constants of every package
PACKAGE_NAMES = frozenset({
    "Boundary", "BoundaryAxes", "BoundaryTensors", "Dims", "FINGERPRINT", "HandedOn", "Kinds",
    "Options", "Received", "State", "stage_layers",
})  # fmt: skip
_RUNNER_CLASS = re.compile(
    "(Only|First|Middle|Last|Later|Extents|Counts|Steps|Outputs|Results)[A-Za-z0-9]*"
)


def camel(name: str) -> str:
    """``draft_extend`` -> ``DraftExtend``."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def is_generated(name: str, runners: frozenset[str]) -> bool:
    """May a package with these runners have a class, or its module a name, that is called so?"""
    return name in PACKAGE_NAMES or any(
        _RUNNER_CLASS.fullmatch(name.removeprefix(camel(runner)))
        for runner in runners
        if name.startswith(camel(runner))
    )
