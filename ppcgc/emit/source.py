"""The only types that may become Python text, and the only functions that make them.

Note [spec text never becomes code]
    A template prints nothing but these types (the environment refuses a bare ``str``). Text from
    a spec gets in as an identifier that was checked, as a literal that was quoted, or as a
    comment or docstring that was cleaned.
"""

from __future__ import annotations

import keyword
import math
import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from ppcgc.emit.unfolding import WIDTH

_ORDER = re.compile(r"(fmt|isort|mypy|noqa|pragma|pylint|pyright|ruff|type|yapf)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Code:
    """Python text that ppcgc wrote."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Identifier(Code):
    """A checked Python name."""


def identifier(name: str) -> Identifier:
    """A name as an identifier. Raises ValueError, which only a bug of an earlier pass can cause."""
    if not name.isidentifier() or keyword.iskeyword(name) or not name.isascii():
        raise ValueError(f"{name!r} is no identifier")
    return Identifier(name)


def literal(value: int | float | bool | str | None) -> Code:
    """A value as a Python literal."""
    if isinstance(value, float) and not math.isfinite(value):
        return Code(f'float("{value}")')
    if isinstance(value, str):
        return _quoted(value)
    return Code(repr(value))


def _quoted(text: str) -> Code:
    """A string literal with the quotes that a formatter would choose: those with less to escape."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    body = "".join(_in_quotes(character, quote) for character in text)
    return Code(f"{quote}{body}{quote}")


def _in_quotes(character: str, quote: str) -> str:
    if character in "'\"":
        return f"\\{quote}" if character == quote else character
    return repr(character)[1:-1]


def code(template: str, *parts: Code) -> Code:
    """``template`` is text of ppcgc's own with ``{}`` for each part."""
    return Code(template.format(*(part.text for part in parts)))


def dotted(path: tuple[str, ...]) -> Code:
    """An attribute path, each step a checked identifier."""
    return Code(".".join(identifier(step).text for step in path))


def comment(text: str, indent: int = 0) -> Code:
    """Text as comment lines within the width, the first one not indented.

    No line of it is an order to a tool: "fmt: off" is put in brackets, a second "#" is left out.
    """
    wrapped = _wrapped(_one_line(text.replace("#", " ")), WIDTH - indent - 4)
    calm = (f"({line})" if _ORDER.match(line) else line for line in wrapped)
    return Code(f"\n{' ' * indent}".join(f"# {line}".rstrip() for line in calm))


def docstring(text: str, indent: int = 0) -> Code:
    """Text as a docstring within the width, the first line not indented."""
    clean = _one_line(text).replace("\\", "\\\\").replace('"', "'") or "No words."
    lines = _wrapped(clean, WIDTH - indent - 6)
    pad = f"\n{' ' * indent}"
    if len(lines) == 1:
        return Code(f'"""{lines[0]}"""')
    return Code(f'"""{pad.join(lines)}{pad}"""')


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of whole words: a word that is cut could end in half an escape."""
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return lines or [""]


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def call(head: Code, arguments: Iterable[Code], tail: str = "") -> Code:
    """``head(arguments)tail``."""
    return Code(f"{head}({', '.join(map(str, arguments))}){tail}")


def signature(name: str, parameters: tuple[Code, ...], result: Code) -> Code:
    """``def name(self, parameters) -> result:``."""
    return call(Code(f"def {name}"), (Code("self"), *parameters), f" -> {result}:")


def subscript(head: Code, arguments: tuple[Code, ...]) -> Code:
    """``head[arguments]``; ``head`` alone where there are none."""
    return Code(f"{head}[{', '.join(map(str, arguments))}]") if arguments else head


def class_header(name: Code, *bases: tuple[Code, tuple[Code, ...]]) -> Code:
    """``class name(base[arguments], ...):``."""
    shown = (subscript(base, arguments) for base, arguments in bases)
    return call(code("class {}", name), shown, ":")


def tuple_of(items: tuple[Code, ...]) -> Code:
    """A tuple display."""
    return Code(f"({', '.join(map(str, items))}{',' if len(items) == 1 else ''})")


def lines(parts: list[Code], indent: int) -> Code:
    """Statements one a line at ``indent``; the first line not indented."""
    return Code(f"\n{' ' * indent}".join(map(str, parts)))
