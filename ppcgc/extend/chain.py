"""Reads the specs that a spec extends, one after the other, from files beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path, PurePath

from ppcgc.diagnostics.model import Diagnostic, Related, Span
from ppcgc.extend.rules import CIRCULAR_EXTENDS, NO_PARENT
from ppcgc.load import decode, load
from ppcgc.load.text import MAX_BYTES
from ppcgc.nodes import Document, Mapping, Node, Scalar

EXTENDS = "extends"
DROP = "drop"
SUFFIX = ".yaml"
_A_SPEC = "name a spec: a mapping that begins with `version: 1`"

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


@dataclass(slots=True, kw_only=True)
class Chain:
    """A spec, the one that it extends, and so on. ``links[i]`` is where ``documents[i]`` says
    which one comes next."""

    documents: list[Document]
    links: list[Span] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)  # texts that are not specs, by file

    def texts(self) -> dict[str, str]:
        """The sources of all files but the first, by name."""
        return {document.file: document.text for document in self.documents[1:]} | self.unread

    def ways(self) -> dict[str, tuple[Related, ...]]:
        """For each file but the first: where it is extended, the nearest place first."""
        files = [document.file for document in self.documents[1:]] + list(self.unread)
        related = [Related(span, "extended here") for span in self.links]
        return {file: tuple(reversed(related[: end + 1])) for end, file in enumerate(files)}


def read_chain(document: Document, folder: Path | None) -> Chain:
    """Follow ``extends`` until a spec has none, or until something is wrong with the next one."""
    chain = Chain(documents=[document])
    while True:
        node = _extends(chain.documents[-1].root)
        if node is None or not _read_next(chain, node, folder):
            return chain


def _extends(root: Node) -> Node | None:
    return root.get(EXTENDS) if isinstance(root, Mapping) else None


def _read_next(chain: Chain, node: Node, folder: Path | None) -> bool:
    """Read the file that ``node`` names; False after a finding that ends the chain."""
    name = _checked_name(chain, node)
    if name is None:
        return False
    if folder is None:
        message = f"a spec from standard input cannot extend `{name}`: it lies in no folder"
        return _refuse(chain, node, message, "save it to a file beside the one that it extends")
    if _is_circle(chain, node, name):
        return False
    data = _read(chain, node, folder, name)
    if data is None:
        return False
    file = (PurePath(chain.documents[0].file).parent / (name + SUFFIX)).as_posix()
    chain.links.append(node.span)
    text, found = decode(data, file)
    parent: Document | None = None
    if not found:
        parent, found = load(text, file)
    chain.findings += found
    if parent is None:
        chain.unread[file] = text
        return False
    chain.documents.append(parent)
    if isinstance(parent.root, Mapping):
        return True
    # of another shape than a spec: nothing can be inherited from it
    message = f"{parent.name} is a list or a single value, not a spec"
    return _refuse(chain, node, message, _A_SPEC, (Related(parent.root.span, "its contents"),))


def _checked_name(chain: Chain, node: Node) -> str | None:
    """The name of the file that is meant; None after a finding."""
    value = node.value if isinstance(node, Scalar) else None
    if not isinstance(value, str):
        help = "write the name of a spec beside this one, without `.yaml`"
        written = f"`{node.text}`" if isinstance(node, Scalar) and node.text else "no text"
        _refuse(chain, node, f"`extends` is {written}, not the name of a spec", help)
        return None
    if value.endswith((SUFFIX, ".yml")) or _NAME.fullmatch(value) is None:
        stem = PurePath(value.replace("\\", "/")).name.removesuffix(SUFFIX).removesuffix(".yml")
        help = "letters, digits, `_`, `-` and `.`: the name of a file beside this one"
        if _NAME.fullmatch(stem) and stem.strip("."):
            help = f"write `{EXTENDS}: {stem}`; the file lies beside this one"
        _refuse(chain, node, f"`{value}` is not the name of a spec beside this one", help)
        return None
    return value


def _is_circle(chain: Chain, node: Node, name: str) -> bool:
    names = [document.name for document in chain.documents]
    if name + SUFFIX not in names:
        return False
    circle = [*names[names.index(name + SUFFIX) :], name + SUFFIX]
    chain.findings.append(
        Diagnostic(
            CIRCULAR_EXTENDS,
            node.span,
            f"`extends` leads back here: {' -> '.join(circle)}",
            "move what the specs share to a spec that extends none of them",
            tuple(Related(span, "extended here") for span in reversed(chain.links)),
        )
    )
    return True


def _read(chain: Chain, node: Node, folder: Path, name: str) -> bytes | None:
    """The bytes of a parent; None after a finding."""
    path = folder / (name + SUFFIX)
    if not path.is_file():
        what = "is not a file" if path.exists() else "does not exist"
        message = f"{path.name} {what} beside {chain.documents[-1].name}"
        _refuse(chain, node, message, _nearest(folder, name, chain.documents[0].name))
        return None
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)  # one more than is legal shows that there is more
    except OSError as error:
        help = "make it a file that this user may read"
        _refuse(chain, node, f"{path.name} cannot be read: {error.strerror}", help)
        return None


def _nearest(folder: Path, name: str, own: str) -> str:
    if (folder / f"{name}.yml").is_file():
        return f"rename {name}.yml to {name}{SUFFIX}"
    files = [path for path in folder.glob(f"*{SUFFIX}") if path.is_file() and path.name != own]
    stems = sorted(path.stem for path in files)
    close = get_close_matches(name, stems, 1, 0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"specs beside it: {', '.join(stems[:8])}" if stems else "no other spec lies beside it"


def _refuse(
    chain: Chain,
    node: Node,
    message: str,
    help: str,
    related: tuple[Related, ...] = (),
) -> bool:
    chain.findings.append(Diagnostic(NO_PARENT, node.span, message, help, related))
    return False
