"""Whose a file below the output folder is: read from its first line, never from its name."""

from __future__ import annotations

import re
from pathlib import Path

MARK = "# ppcgc:"
_HEADER = re.compile(rf"{MARK} generated from (.+) by ppcgc .*")


class PublishError(Exception):
    """The output folder cannot be used as it is. The message says which path and why."""


def origin(first_line: str) -> str | None:
    """The spec in a header line ``# ppcgc: generated from specs/llama.yaml by ppcgc …``.

    None when the line is no such header.
    """
    match = _HEADER.fullmatch(first_line)
    return match.group(1) if match else None


def known_origin(first_line: str) -> str | None:
    """The spec of a header that says where the spec lies, else None.

    A name without a folder may be the name of several specs: nothing that is removed may be
    chosen by it.
    """
    found = origin(first_line)
    return found if found is not None and "/" in found else None


def first_line(text: str) -> str:
    return text.split("\n", 1)[0].rstrip("\r")


def read_first_line(path: Path) -> str:
    """The first line of a file on disk, as far as it is text. Raises :class:`PublishError`."""
    try:
        with path.open("rb") as file:
            return first_line(file.readline(4096).decode("utf-8", errors="replace"))
    except OSError as error:
        raise PublishError(f"{path}: {error.strerror}") from error


def is_owned(first: str) -> bool:
    return first.startswith(MARK)
