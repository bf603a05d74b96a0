"""Bytes to text that an editor shows as the compiler reads it: UTF-8, line feeds, no tricks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from ppcgc.diagnostics.model import Diagnostic, Span
from ppcgc.load import findings

MAX_BYTES = 1 << 20

# C0 but tab and line feed, DEL and C1 (0x85, next line, among them), line and paragraph
# separators, a space of no width, direction marks, surrogates, byte order mark, noncharacters
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufeff\ufffe\uffff]"
)
_TAB_INDENT = re.compile(r"^ *(\t[ \t]*)(?=[^ \t\n#])", re.MULTILINE)


def decode(data: bytes, file: str) -> tuple[str, list[Diagnostic]]:
    """The text of a spec, and what is wrong with its bytes.

    The text can be shown beside the findings even when the bytes are not UTF-8. Of a file that
    is too large only the first :data:`MAX_BYTES` are looked at: a reader may stop one byte later.
    """
    if len(data) > MAX_BYTES:
        return "", [_too_large(file)]
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        return data.decode("utf-8", errors="replace"), [
            Diagnostic(
                rule=findings.NOT_UTF8,
                span=_span(before, len(before), file),
                message=f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8"
                + (" (the file looks like UTF-16)" if wide else ""),
                help="save the file as UTF-8",
            )
        ]


def normalised(text: str) -> str:
    """The text with line feeds for the line ends of Windows."""
    return text.replace("\r\n", "\n")


def check_text(text: str, file: str) -> list[Diagnostic]:
    """What is wrong with the characters of a text whose line ends are still as read."""
    if len(text) > MAX_BYTES:
        return [_too_large(file)]
    clean = normalised(text)
    found: list[Diagnostic] = []
    if len(clean) != len(text):
        first = text.index("\r\n")
        found.append(
            Diagnostic(
                rule=findings.CARRIAGE_RETURNS,
                span=_span(text, first, file),
                message=f"{len(text) - len(clean)} lines end with carriage return and line feed",
                help="save the file with line feeds; `*.yaml text eol=lf` in .gitattributes",
            )
        )
    return [*found, *_forbidden(clean, file), *_tabs(clean, file)]


def _forbidden(text: str, file: str) -> Iterator[Diagnostic]:
    """One finding for each forbidden character, at the first place where it stands."""
    places: dict[str, list[int]] = {}
    for match in _FORBIDDEN.finditer(text):
        places.setdefault(match.group(), []).append(match.start())
    for character, offsets in places.items():
        times = "" if len(offsets) == 1 else f", {len(offsets)} times"
        yield Diagnostic(
            rule=findings.FORBIDDEN_CHARACTER,
            span=_span(text, offsets[0], file),
            message=f"the text holds {_character_name(character)}{times}",
            help="remove it"
            if character != "\ufeff"
            else "save the file as UTF-8 without a byte order mark",
        )


def forbidden_escapes(value: str, span: Span) -> Iterator[Diagnostic]:
    """A finding for a quoted scalar whose escapes (``"\\0"``) make a forbidden character."""
    match = _FORBIDDEN.search(value)
    if match is not None:
        yield Diagnostic(
            rule=findings.FORBIDDEN_CHARACTER,
            span=span,
            message=f"an escape makes {_character_name(match.group())}",
            help="remove it",
        )


def _character_name(character: str) -> str:
    if character == "\ufeff":
        return "a byte order mark (U+FEFF)"
    if character == "\r":
        return "a carriage return without a line feed (U+000D)"
    known = unicodedata.name(character, "control character").lower()
    return f"a {known} (U+{ord(character):04X})"


def _tabs(text: str, file: str) -> Iterator[Diagnostic]:
    matches = list(_TAB_INDENT.finditer(text))
    if matches:
        times = "" if len(matches) == 1 else f"; {len(matches)} lines are"
        yield Diagnostic(
            rule=findings.TAB_INDENTATION,
            span=_span(text, matches[0].start(1), file, len(matches[0].group(1))),
            message=f"the line is indented with a tab{times}",
            help="indent with spaces",
        )


def _too_large(file: str) -> Diagnostic:
    return Diagnostic(
        rule=findings.TOO_LARGE,
        span=Span(file, 1, 1, 1, 1),
        message=f"the file is larger than {MAX_BYTES} bytes",
        help="a spec is a few kilobytes of YAML: is this the file that was meant?",
    )


def _span(text: str, offset: int, file: str, length: int = 1) -> Span:
    line = text.count("\n", 0, offset) + 1
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    return Span(file, line, column, line, column + length)
