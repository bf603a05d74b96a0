"""Text made safe and measurable for a terminal."""

from __future__ import annotations

import unicodedata

TAB = "    "


def visible(text: str) -> str:
    """The text on one line, with escapes for what a terminal would act on or not show."""
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character == "\t":
        return TAB
    if character == " " or character.isprintable():
        return character
    return ascii(character)[1:-1]


def width(text: str) -> int:
    """Columns that a text takes in a terminal once it went through :func:`visible`."""
    return sum(_columns(character) for character in visible(text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
