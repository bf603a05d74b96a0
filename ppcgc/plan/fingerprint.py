"""A fingerprint of what a spec means, not of how it is written.

Two specs with the same fingerprint generate runners that fit together: ranks compare it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from enum import Enum

from ppcgc.ir import Family

_PROSE = frozenset({"doc", "text", "why"})  # says why, changes nothing


def fingerprint(family: Family) -> str:
    """``sha256:`` and 64 hex digits over the typed spec, spans and prose left out."""
    canonical = json.dumps(_plain(family), separators=(",", ":"), sort_keys=True)
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"


def _plain(value: object) -> object:
    if is_dataclass(value):
        named = {f.name: _plain(getattr(value, f.name)) for f in fields(value) if _counts(f)}
        return {"node": type(value).__name__, **named}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, frozenset):
        return sorted(str(_plain(item)) for item in value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    raise TypeError(f"{type(value).__name__} has no place in a fingerprint")


def _counts(field: object) -> bool:
    return bool(getattr(field, "compare", True)) and getattr(field, "name", "") not in _PROSE
