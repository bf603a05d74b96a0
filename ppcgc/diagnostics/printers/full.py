"""The format for people: the finding, the line it stands on, related places, the mend."""

from __future__ import annotations

from collections.abc import Mapping

from ppcgc.diagnostics.model import Diagnostic, Severity, Span
from ppcgc.diagnostics.printers.excerpt import Excerpt, excerpt
from ppcgc.diagnostics.printers.visible import visible

_COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33"}
_HELP_COLOUR = "36"


def render(found: list[Diagnostic], texts: Mapping[str, str], *, colour: bool) -> str:
    return "\n\n".join(_one(finding, texts, colour) for finding in found)


def _one(finding: Diagnostic, texts: Mapping[str, str], colour: bool) -> str:
    tone = _COLOURS[finding.severity]
    head = _paint(f"{finding.severity.value}[{finding.rule.code}]", tone, colour)
    lines = [f"{head} {finding.rule.name}: {visible(finding.message)}"]
    shown = _excerpts(finding, texts)
    gutter = max((len(str(part.number)) for _, part in shown if part), default=1)
    for span, part in shown:
        arrow = "-->" if span == finding.span else ":::"
        lines.append(f"{' ' * gutter}{arrow} {visible(str(span))}")
        if part is not None:
            sign_tone = tone if span == finding.span else _HELP_COLOUR
            lines += [
                f"{' ' * gutter} |",
                f"{part.number:>{gutter}} | {part.line}".rstrip(),
                f"{' ' * gutter} | {_paint_mark(part.mark, sign_tone, colour)}",
            ]
    lines += _without_text(finding, texts)
    if finding.help:
        label = _paint("help:", _HELP_COLOUR, colour)
        lines.append(f"{' ' * gutter} = {label} {visible(finding.help)}")
    return "\n".join(lines)


def _excerpts(finding: Diagnostic, texts: Mapping[str, str]) -> list[tuple[Span, Excerpt | None]]:
    places = [(finding.span, "^", "")]
    places += [(related.span, "-", related.note) for related in finding.related]
    return [
        (span, excerpt(texts[span.file], span, sign, visible(note)) if span.file in texts else None)
        for span, sign, note in places
    ]


def _without_text(finding: Diagnostic, texts: Mapping[str, str]) -> list[str]:
    """Notes of related places whose source is not at hand: nothing else shows them."""
    return [
        f"  = note: {visible(related.note)} ({visible(str(related.span))})"
        for related in finding.related
        if related.span.file not in texts
    ]


def _paint(text: str, tone: str, colour: bool) -> str:
    return f"\x1b[1;{tone}m{text}\x1b[0m" if colour else text


def _paint_mark(mark: str, tone: str, colour: bool) -> str:
    marks = mark.lstrip()
    return mark[: len(mark) - len(marks)] + _paint(marks, tone, colour)
