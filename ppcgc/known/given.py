"""What the command line gives for a plan: a config file and values by name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from ppcgc.expr.evaluate import Value
from ppcgc.known.sizes import NotKnownError

_INTEGER = re.compile(r"-?[0-9]{1,18}")
_WORDS: dict[str, Value] = {"true": True, "false": False}


def read_config(path: Path) -> dict[str, object]:
    """A model's config. Raises :class:`NotKnownError` for a file that is no JSON object."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_each_once)
    except OSError as error:
        raise NotKnownError(f"{path}: {error.strerror}") from error
    except _GivenTwiceError as twice:
        raise NotKnownError(f"{path}: key `{twice}` is given twice; keep one of them") from None
    except (ValueError, RecursionError) as error:
        raise NotKnownError(f"{path}: is not JSON: {error}") from error
    if not isinstance(config, dict):
        raise NotKnownError(f"{path}: is not a JSON object")
    return config


class _GivenTwiceError(Exception):
    """The key. Raised and caught here: JSON itself would take the last value in silence."""


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _GivenTwiceError(key)
        found[key] = value
    return found


def read_values(given: Iterable[str]) -> dict[str, Value]:
    """``NAME=VALUE`` words: integers, ``true``, ``false``, and words of options."""
    values: dict[str, Value] = {}
    for word in given:
        name, sign, value = word.partition("=")
        if not (name and sign and value):
            raise NotKnownError(f"--set {word}: write NAME=VALUE")
        if name in values:
            raise NotKnownError(f"--set {word}: {name} is given twice; keep one of them")
        values[name] = int(value) if _INTEGER.fullmatch(value) else _WORDS.get(value, value)
    return values
