"""Fakes of the passes after ``load``, so that the front is tested alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import ppcgc.validate
from ppcgc.diagnostics.model import Diagnostic, Rule
from ppcgc.nodes import Document, Scalar

ODD = Rule("PPC997", "odd-form", "A form that the fake schema refuses.")
RULED_OUT = Rule("PPC998", "ruled-out", "A family that the fake rules refuse.")
HEADER = "# ppcgc: generated from {source} by ppcgc 0; do not edit\n"


def text_at(document: Document, key: str) -> str | None:
    node = document.at((key,))
    return node.text if isinstance(node, Scalar) else None


def fake_resolve(document: Document) -> tuple[Any, list[Diagnostic]]:
    family = SimpleNamespace(
        name=text_at(document, "family"),
        body=text_at(document, "body"),
        span=document.root.span,
        source=document.name,
    )
    return family, []


def fake_emit(family: Any, origin: str | None = None) -> dict[str, str]:
    header = HEADER.format(source=origin or family.source)
    return {
        f"{family.name}/__init__.py": header,
        f"{family.name}/decode.py": f"{header}BODY = {family.body!r}\n",
    }


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fake passes: a top-level key ``odd`` is an error of form, ``family: bad`` one of the rules.

    Returns the names of the passes that ran, in order.
    """
    ran: list[str] = []

    def log(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            ran.append(name)
            return function(*arguments)

        return run

    def check_form(document: Document) -> list[Diagnostic]:
        if document.at(("odd",)) is None:
            return []
        return [Diagnostic(ODD, document.key_span_at(("odd",)), "key `odd` is odd")]

    def check_rules(family: Any) -> list[Diagnostic]:
        return [Diagnostic(RULED_OUT, family.span, "bad")] if family.name == "bad" else []

    def install(module: str, name: str, function: Callable[..., Any]) -> None:
        fake = ModuleType(module)
        setattr(fake, name, log(module.removeprefix("ppcgc."), function))
        monkeypatch.setitem(sys.modules, module, fake)
        if module.startswith("ppcgc.validate."):
            parent, child = ppcgc.validate, module.rpartition(".")[2]
            monkeypatch.setattr(parent, child, fake, raising=False)

    install("ppcgc.validate.schema", "check", check_form)
    install("ppcgc.resolve", "resolve", fake_resolve)
    install("ppcgc.validate.rules", "check", check_rules)
    install("ppcgc.plan", "plan", lambda family: family)
    install("ppcgc.emit", "emit", fake_emit)
    return ran
