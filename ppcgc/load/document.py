"""``load``: the whole first pass, from text to :class:`~ppcgc.nodes.Document`."""

from __future__ import annotations

from ppcgc.diagnostics.model import Diagnostic, Span, in_order
from ppcgc.load import findings
from ppcgc.load.compose import Composer
from ppcgc.load.text import check_text, normalised
from ppcgc.nodes import Document, Node, Scalar


def load(text: str, file: str) -> tuple[Document | None, list[Diagnostic]]:
    """Read a spec. ``file`` is its name as findings print it.

    Returns the document, or None when there are errors, and the findings. Never raises for what
    the text holds.
    """
    found = check_text(text, file)
    if any(finding.is_error for finding in found):
        return None, in_order(found)
    text = normalised(text)
    composer = Composer(text, file)
    root = composer.compose()
    found += composer.found
    if _says_nothing(root) and not composer.found:
        found.append(_empty(root, file))
    if root is None or any(finding.is_error for finding in found):
        return None, in_order(found)
    return Document(file=file, text=text, root=root), in_order(found)


def _says_nothing(root: Node | None) -> bool:
    return root is None or (isinstance(root, Scalar) and root.value is None)


def _empty(root: Node | None, file: str) -> Diagnostic:
    written = isinstance(root, Scalar) and root.text != ""
    return Diagnostic(
        rule=findings.EMPTY_SPEC,
        span=root.span if root is not None and written else Span(file, 1, 1, 1, 1),
        message="the file holds only `null`" if written else "the file holds no spec",
        help="start with `version: 1` and `family: <name>`",
    )
