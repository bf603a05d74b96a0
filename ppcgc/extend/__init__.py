"""The pass between load and schema: ``extends: name`` becomes one node tree.

``chain`` reads the specs that a spec stands on, ``drop`` takes entries away from what is
inherited, ``merge`` lays one spec over another, ``rules`` holds the rules. Every node keeps the
span of the file that it was written in, so that a finding is printed where its text stands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ppcgc.diagnostics.model import Diagnostic, Related, in_order
from ppcgc.extend.chain import DROP, EXTENDS, Chain, read_chain
from ppcgc.extend.drop import drop_entries
from ppcgc.extend.merge import merge
from ppcgc.extend.rules import BAD_DROP, OTHER_VERSION, SAME_FAMILY
from ppcgc.nodes import Document, Mapping, Node, Scalar

__all__ = ["Extended", "extend"]

# said by each file for itself; `doc` and everything else is inherited
_OWN = frozenset({"version", "family"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Extended:
    """A spec with all that it inherits. ``document`` is None when there are errors.

    ``texts`` holds the sources of the specs that it extends, ``ways`` for each of their files
    where it is extended: the nearest place first.
    """

    document: Document | None
    findings: tuple[Diagnostic, ...]
    texts: dict[str, str]
    ways: dict[str, tuple[Related, ...]]

    def with_way(self, finding: Diagnostic) -> Diagnostic:
        """A finding in an inherited file also shows who extends that file."""
        way = self.ways.get(finding.span.file, ())
        return replace(finding, related=(*finding.related, *way)) if way else finding


def extend(document: Document, folder: Path | None) -> Extended:
    """Lay a spec over the specs that it extends. Never raises for what they hold.

    ``folder`` is where the spec lies; None when it lies nowhere (standard input).
    """
    chain = read_chain(document, folder)
    found = list(chain.findings)
    merged: Document | None = None
    if not any(finding.is_error for finding in found):
        merged, later = _merged(chain)
        found += later
    return Extended(
        document=None if any(finding.is_error for finding in found) else merged,
        findings=tuple(in_order(found)),
        texts=chain.texts(),
        ways=chain.ways(),
    )


def _merged(chain: Chain) -> tuple[Document, list[Diagnostic]]:
    """The first spec of a chain over all others, from the last one on."""
    *heirs, base = chain.documents
    found = _drop_without_parent(base)
    if not heirs:
        return base, found
    for heir in reversed(heirs):
        found += _same_version(heir, base)
        root, later = _over(heir, base)
        found += [*later, *_new_family(heir, chain)]
        base = replace(heir, root=root)
    return base, found


def _over(heir: Document, parent: Document) -> tuple[Mapping, list[Diagnostic]]:
    """One spec over the next: first what is dropped goes, then the two are merged."""
    inherited = _without(parent.root, _OWN)
    found: list[Diagnostic] = []
    dropped = heir.at((DROP,))
    if dropped is not None:
        inherited, found = drop_entries(dropped, inherited, parent.name)
    root, later = merge(_without(heir.root, frozenset({DROP, EXTENDS})), inherited)
    return root, found + later


def _without(root: Node, keys: frozenset[str]) -> Mapping:
    if not isinstance(root, Mapping):
        raise TypeError(f"{root.span}: only a mapping extends or is extended")
    kept = tuple(entry for entry in root.entries if entry.key not in keys)
    return replace(root, entries=kept)


# ---------------------------------------------------------------- what the specs must agree on


def _drop_without_parent(base: Document) -> list[Diagnostic]:
    dropped = base.root.entry(DROP) if isinstance(base.root, Mapping) else None
    if dropped is None:
        return []
    return [
        Diagnostic(
            BAD_DROP,
            dropped.key_span,
            "`drop` in a spec that extends no other",
            "remove the entries themselves, or say which spec is meant with `extends`",
        )
    ]


def _same_version(heir: Document, parent: Document) -> list[Diagnostic]:
    own, other = heir.at(("version",)), parent.at(("version",))
    if not (isinstance(own, Scalar) and isinstance(other, Scalar)) or own.value == other.value:
        return []
    return [
        Diagnostic(
            OTHER_VERSION,
            own.span,
            f"version {own.text} extends {parent.name}, which is version {other.text}",
            "bring both specs to the same version",
            (Related(other.span, "the version of the extended spec"),),
        )
    ]


def _new_family(heir: Document, chain: Chain) -> list[Diagnostic]:
    """A finding when a spec has the family of one that it stands on."""
    own = heir.at(("family",))
    place = [document.file for document in chain.documents].index(heir.file)
    for parent in chain.documents[place + 1 :]:
        other = parent.at(("family",))
        if isinstance(own, Scalar) and isinstance(other, Scalar) and own.value == other.value:
            return [
                Diagnostic(
                    SAME_FAMILY,
                    own.span,
                    f"family `{own.text}` is the family of {parent.name}, which this spec extends",
                    "give the extending spec a family of its own: it is a package of its own",
                    (Related(other.span, "defined here first"),),
                )
            ]
    return []
