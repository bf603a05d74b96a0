"""Runs the passes over specs, and stops between two passes when there are errors.

Each pass is imported when it runs: ``validate`` on a file that is not YAML never waits for
jsonschema, and nothing but ``generate`` waits for jinja2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ppcgc.diagnostics.model import Diagnostic, Related, Rule, Span, in_order
from ppcgc.extend import extend
from ppcgc.extend.rules import SAME_FAMILY
from ppcgc.load import decode, load

if TYPE_CHECKING:
    from ppcgc.bind import Binding
    from ppcgc.ir import Family
    from ppcgc.nodes import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A spec before it is read. ``file`` is its name as findings print it.

    ``folder`` is where `extends` looks for other specs; None when the spec lies nowhere.
    ``origin`` is its name in the headers of generated files, by default the name without folders.
    """

    file: str
    data: bytes
    folder: Path | None = None
    origin: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is known of a spec after its checks. ``family`` is None when there are errors.

    ``texts`` holds its own source and those of the specs that it extends, by file name.
    """

    file: str
    text: str
    texts: dict[str, str]
    origin: str | None
    family: Family | None
    family_span: Span | None
    findings: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """Specs compiled together: generated files by path, empty when any spec has errors.

    ``texts`` holds the source of each spec read, parents included, by file name, for printers.
    """

    files: dict[str, str]
    findings: tuple[Diagnostic, ...]
    texts: dict[str, str]


def check_source(source: Source) -> Checked:
    """Load, extend, validate the form, resolve, validate the rules. Never raises for a bad spec."""
    text, found = decode(source.data, source.file)
    texts = {source.file: text}
    family: Family | None = None
    span: Span | None = None
    if not found:
        document, found = load(text, source.file)
        if document is not None:
            span = document.span_at(("family",))
            family, later, parents = _check_loaded(document, source.folder)
            found += later
            texts = parents | texts
    return Checked(
        file=source.file,
        text=text,
        texts=texts,
        origin=source.origin,
        family=None if _has_errors(found) else family,
        family_span=span,
        findings=tuple(in_order(found)),
    )


def compile_sources(sources: Iterable[Source], binding: Binding | None = None) -> Compiled:
    """Check every spec, then plan and emit all of them, or none when there are errors.

    With a ``binding`` the code is for one config. Raises ``NotKnownError`` for names or values of
    it that a spec does not have.
    """
    checked = [check_source(source) for source in sources]
    found = [*findings_of(checked), *_same_family(checked)]
    files: dict[str, str] = {}
    if not _has_errors(found):
        for one in checked:
            if one.family is not None:
                made, later = _generate(one.family, one.origin, binding)
                files |= made
                found += later
    if _has_errors(found):
        files = {}
    return Compiled(files=files, findings=tuple(in_order(found)), texts=texts_of(checked))


def findings_of(checked: Iterable[Checked]) -> list[Diagnostic]:
    """The findings of several specs, each once.

    What is wrong in a spec that others extend is found with each of them: it becomes one finding
    that shows all of those places.
    """
    found: dict[tuple[Rule, Span, str], Diagnostic] = {}
    for finding in (finding for one in checked for finding in one.findings):
        key = (finding.rule, finding.span, finding.message)
        known = found.get(key, finding)
        related = dict.fromkeys((*known.related, *finding.related))
        found[key] = replace(known, related=tuple(related))
    return in_order(list(found.values()))


def texts_of(checked: Iterable[Checked]) -> dict[str, str]:
    """The sources of several specs and of those that they extend, by file name."""
    return {file: text for one in checked for file, text in one.texts.items()}


def _check_loaded(
    document: Document, folder: Path | None
) -> tuple[Family | None, list[Diagnostic], dict[str, str]]:
    """The passes after load: the family, what was found, the texts of extended specs."""
    extended = extend(document, folder)
    found = list(extended.findings)
    family: Family | None = None
    if extended.document is not None:
        family, later = _check_document(extended.document)
        found += later
    return family, [extended.with_way(finding) for finding in found], extended.texts


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


def _generate(
    family: Family, origin: str | None, binding: Binding | None
) -> tuple[dict[str, str], list[Diagnostic]]:
    """The files of a family; none after a finding, which only a binding can still bring."""
    from ppcgc.emit import emit
    from ppcgc.plan import plan

    planned = plan(family)
    if binding is None:
        return emit(planned, origin), []

    from ppcgc.bind import bind
    from ppcgc.validate import rules

    bound, found = bind(family, binding)
    if bound is None:
        return {}, found
    found += rules.check_sizes(bound)  # those that no number was known for before
    if _has_errors(found):
        return {}, found
    # the fingerprint is the spec's: ranks with and without a binding fit together
    return emit(replace(plan(bound), fingerprint=planned.fingerprint), origin), found


def _same_family(checked: list[Checked]) -> list[Diagnostic]:
    first: dict[str, Span] = {}
    found: list[Diagnostic] = []
    for one in checked:
        if one.family is None or one.family_span is None:
            continue
        name = one.family.name.casefold()  # some disks do not tell `Llama` from `llama`
        if name in first:
            found.append(
                Diagnostic(
                    rule=SAME_FAMILY,
                    span=one.family_span,
                    message=f"family `{one.family.name}` is also defined by {first[name].file}",
                    help="rename one of the two, or generate only one of the files",
                    related=(Related(first[name], "defined here first"),),
                )
            )
        else:
            first[name] = one.family_span
    return found


def _has_errors(found: Iterable[Diagnostic]) -> bool:
    return any(finding.is_error for finding in found)
