"""The dtypes that a spec may name."""

from __future__ import annotations

# bytes of one element; "model" is chosen when a runner is built
DTYPES: dict[str, int | None] = {
    "model": None,
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
}


INTEGER_DTYPES = frozenset({"uint8", "int8", "int16", "int32", "int64"})
