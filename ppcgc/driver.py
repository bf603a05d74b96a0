"""Runs the passes over specs, and stops between two passes when there are errors.

Each pass is imported when it runs: ``validate`` on a file that is not YAML never waits for
jsonschema, and nothing but ``generate`` waits for jinja2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ppcgc.diagnostics.catalogue import rule
from ppcgc.diagnostics.model import Diagnostic, Related, Span, in_order
from ppcgc.load import decode, load

if TYPE_CHECKING:
    from ppcgc.ir import Family
    from ppcgc.nodes import Document

SAME_FAMILY = rule(
    "PPC018",
    "same-family",
    """
    A family is defined by one spec.

    **What.** Two specs that are generated together have the same `family`.

    **Why it hurts.** Both would write the package of that name, and which one wins would depend
    on the order in which they were given.

    **Bad.** `ppcgc generate a.yaml b.yaml`, where both say:

    ```yaml
    family: llama
    ```

    **Good.** Two names, `llama` and `llama_hf`.
    """,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A spec before it is read. ``file`` is its name as findings print it."""

    file: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is known of a spec after its checks. ``family`` is None when there are errors."""

    file: str
    text: str
    family: Family | None
    family_span: Span | None
    findings: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """Specs compiled together: generated files by path, empty when any spec has errors.

    ``texts`` holds the source of each spec by file name, for printers.
    """

    files: dict[str, str]
    findings: tuple[Diagnostic, ...]
    texts: dict[str, str]


def check_source(source: Source) -> Checked:
    """Load, validate the form, resolve, validate the rules. Never raises for a bad spec."""
    text, found = decode(source.data, source.file)
    family: Family | None = None
    span: Span | None = None
    if not found:
        document, found = load(text, source.file)
        if document is not None:
            span = document.span_at(("family",))
            family, later = _check_document(document)
            found += later
    return Checked(
        file=source.file,
        text=text,
        family=None if _has_errors(found) else family,
        family_span=span,
        findings=tuple(in_order(found)),
    )


def compile_sources(sources: Iterable[Source]) -> Compiled:
    """Check every spec, then plan and emit all of them, or none when there are errors."""
    checked = [check_source(source) for source in sources]
    found = [finding for one in checked for finding in one.findings]
    found += _same_family(checked)
    files: dict[str, str] = {}
    if not _has_errors(found):
        for one in checked:
            if one.family is not None:
                files |= _generate(one.family)
    return Compiled(
        files=files,
        findings=tuple(in_order(found)),
        texts={one.file: one.text for one in checked},
    )


def _check_document(document: Document) -> tuple[Family | None, list[Diagnostic]]:
    """The passes from the form to the rules."""
    from ppcgc.validate import schema

    found = list(schema.check(document))
    if _has_errors(found):
        return None, found

    from ppcgc.resolve import resolve

    family, later = resolve(document)
    found += later
    if family is None or _has_errors(found):
        return None, found

    from ppcgc.validate import rules

    found += rules.check(family)
    return family, found


def _generate(family: Family) -> dict[str, str]:
    from ppcgc.emit import emit
    from ppcgc.plan import plan

    return emit(plan(family))


def _same_family(checked: list[Checked]) -> list[Diagnostic]:
    first: dict[str, Span] = {}
    found: list[Diagnostic] = []
    for one in checked:
        if one.family is None or one.family_span is None:
            continue
        name = one.family.name
        if name in first:
            found.append(
                Diagnostic(
                    rule=SAME_FAMILY,
                    span=one.family_span,
                    message=f"family `{name}` is also defined by {first[name].file}",
                    help="rename one of the two, or generate only one of the files",
                    related=(Related(first[name], "defined here first"),),
                )
            )
        else:
            first[name] = one.family_span
    return found


def _has_errors(found: Iterable[Diagnostic]) -> bool:
    return any(finding.is_error for finding in found)
