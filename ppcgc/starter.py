"""``ppcgc init``: a first spec to change, with a comment on every word that it uses.

The spec is ``starter.yaml`` beside this module; two of its lines are written anew.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path, PurePath

from ppcgc.schema_file import NAME

SUFFIX = ".yaml"
_TEMPLATE = Path(__file__).with_name("starter.yaml")
_FAMILY = "family: my_model"
_SCHEMA = f"../schemas/{NAME}"
_NO_NAME = re.compile(r"[^A-Za-z0-9_]")


def starter_path(name: str) -> Path:
    """The file of a starter spec: ``name`` with the suffix of specs."""
    return Path(name if name.endswith((SUFFIX, ".yml")) else name + SUFFIX)


def as_argument(path: Path) -> str:
    """A path as a shell takes it, never for an option."""
    text = path.as_posix()
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def family_of(path: Path) -> str:
    """A family's name made from a file's."""
    return _NO_NAME.sub("_", path.name.removesuffix(path.suffix))


def starter_text(family: str, path: Path) -> str:
    """The spec. Its first line leads editors to the schema, seen from where the file lies."""
    text = _TEMPLATE.read_text(encoding="utf-8")
    schema = schema_seen_from(path)
    return text.replace(_FAMILY, f"family: {family}", 1).replace(_SCHEMA, schema, 1)


def schema_seen_from(path: Path) -> str:
    """The way to ``schemas/`` of the nearest folder above; the schema beside the file if none."""
    for up, folder in enumerate(path.resolve().parents):
        if (folder / "schemas" / NAME).is_file():
            return PurePath(*[".."] * up, "schemas", NAME).as_posix()
    return NAME
