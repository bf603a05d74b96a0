"""A fingerprint of what a spec means, not of how it is written.

Two specs with the same fingerprint generate runners that fit together: ranks compare it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import Field, fields, is_dataclass
from enum import Enum

from ppcgc.ir import Family

_PROSE = frozenset({"doc", "text", "why"})  # says why, changes nothing
# mappings of the spec, whose order means nothing; that of ``buckets`` is the order of extents
_UNORDERED = {
    "Family": frozenset({"dims", "axes", "states", "runners", "options"}),
    "Dispatch": frozenset({"max_padding", "always_replay_below"}),
    "Forward": frozenset({"only", "first", "middle", "last"}),
    "Pipeline": frozenset({"kinds"}),
    "Runner": frozenset({"axis_max", "overlaps"}),
}


def fingerprint(family: Family) -> str:
    """``sha256:`` and 64 hex digits over the typed spec; spans, prose and free order left out."""
    return f"sha256:{hashlib.sha256(_canonical(_plain(family)).encode()).hexdigest()}"


def _canonical(plain: object) -> str:
    return json.dumps(plain, separators=(",", ":"), sort_keys=True)


def _plain(value: object) -> object:
    if is_dataclass(value):
        node = type(value).__name__
        named = {f.name: _plain(getattr(value, f.name)) for f in fields(value) if _means(f)}
        for name in _UNORDERED.get(node, frozenset()) & named.keys():
            named[name] = _sorted(named[name])
        return {"node": node, **named}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, frozenset):
        return _sorted([_plain(item) for item in value])
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    raise TypeError(f"{type(value).__name__} has no place in a fingerprint")


def _means(field: Field[object]) -> bool:
    return field.compare and field.name not in _PROSE


def _sorted(items: object) -> object:
    return sorted(items, key=_canonical) if isinstance(items, list) else items
