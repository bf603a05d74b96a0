"""What a plain scalar means: the core schema of YAML 1.2, not PyYAML's reading of 1.1.

``on``, ``no`` and ``16:32`` are text, ``012`` is 12, ``1e3`` is a number.
"""

from __future__ import annotations

import math
import re

from ppcgc.nodes import ScalarValue

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITY = re.compile(r"([-+]?)\.(inf|Inf|INF)")
_NAN = frozenset({".nan", ".NaN", ".NAN"})

MIN_INTEGER = -(2**63)
MAX_INTEGER = 2**64 - 1
# Python refuses to read integers of more than some thousand digits, and takes quadratic time
# below that; no legal one is longer than this
_MAX_DIGITS = 24


class OutOfRangeError(ValueError):
    """A number that no tensor holds."""


def read_plain(text: str) -> ScalarValue:
    """The value of a scalar without quotes. Raises :class:`OutOfRangeError`."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _DECIMAL.fullmatch(text):
        return _integer(text, 10)
    if _OCTAL.fullmatch(text):
        return _integer(text[2:], 8)
    if _HEXADECIMAL.fullmatch(text):
        return _integer(text[2:], 16)
    if _FLOAT.fullmatch(text):
        return _finite(text)
    infinity = _INFINITY.fullmatch(text)
    if infinity:
        return -math.inf if infinity.group(1) == "-" else math.inf
    return math.nan if text in _NAN else text


def _integer(digits: str, base: int) -> int:
    sign = "-" if digits.startswith("-") else ""
    significant = digits.lstrip("+-").lstrip("0") or "0"
    if len(significant) > _MAX_DIGITS:
        raise OutOfRangeError(digits)
    value = int(sign + significant, base)
    if not MIN_INTEGER <= value <= MAX_INTEGER:
        raise OutOfRangeError(digits)
    return value


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise OutOfRangeError(text)
    return value
