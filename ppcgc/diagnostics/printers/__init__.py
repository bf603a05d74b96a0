"""Findings as text: one module a format, all with the same ``render``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from ppcgc.diagnostics.model import Diagnostic, in_order
from ppcgc.diagnostics.printers import concise, full, github, json_format, sarif


class Printer(Protocol):
    def __call__(
        self, found: list[Diagnostic], texts: Mapping[str, str], *, colour: bool
    ) -> str: ...


PRINTERS: dict[str, Printer] = {
    "full": full.render,
    "concise": concise.render,
    "json": json_format.render,
    "github": github.render,
    "sarif": sarif.render,
}
MACHINE_FORMATS = frozenset({"json", "github", "sarif"})


def render(
    form: str, found: Iterable[Diagnostic], texts: Mapping[str, str], *, colour: bool = False
) -> str:
    """The findings, sorted and without repeats, in one of :data:`PRINTERS`' formats.

    ``texts`` holds the source of each file by the name in the spans; a file that it lacks gets
    no excerpt. The text ends with a line feed unless it is empty.
    """
    text = PRINTERS[form](in_order(list(found)), texts, colour=colour)
    return f"{text}\n" if text else ""
