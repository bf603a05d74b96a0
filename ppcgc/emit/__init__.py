"""Emission: a plan becomes ``{path: text}``; nothing here touches a disk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Undefined

from ppcgc.emit.boundaries import boundary_views
from ppcgc.emit.family_view import family_view
from ppcgc.emit.layout import laid_out
from ppcgc.emit.runner_view import runner_view
from ppcgc.emit.source import Code, literal
from ppcgc.plan import Plan
from ppcgc.version import ABI, VERSION

__all__ = ["emit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first lines of every generated module."""

    owner: Code
    fingerprint: Code
    bound: Code | None
    abi: Code


def emit(plan: Plan, origin: str | None = None) -> dict[str, str]:
    """The files of a family's package, by path below the output folder.

    ``origin`` is the spec as the headers name it, by default its file name.
    """
    runners = tuple(runner_view(plan.family, runner) for runner in plan.runners)
    boundaries = boundary_views(plan.family)
    family = family_view(plan, runners)
    bound = None if family.bound is None else family.bound.header
    header = _header(plan, origin or plan.family.source, bound)
    folder = plan.family.name
    files = {
        f"{folder}/__init__.py": _render("package.py.j2", header, family=family),
        f"{folder}/family.py": _render("family.py.j2", header, family=family),
    }
    for boundary in boundaries:
        files[f"{folder}/{boundary.module}.py"] = _render(
            "boundary.py.j2", header, boundary=boundary
        )
    for runner in runners:
        files[f"{folder}/{runner.name}.py"] = _render(
            "runner.py.j2", header, family=family, runner=runner
        )
        files[f"{folder}/{runner.name}_slots.py"] = _render("slots.py.j2", header, runner=runner)
        for kind in runner.kinds:
            files[f"{folder}/{kind.module}.py"] = _render(
                "stage.py.j2", header, family=family, runner=runner, kind=kind
            )
    return files


def _header(plan: Plan, origin: str, bound: Code | None) -> Header:
    source = "".join(c if c.isprintable() else "?" for c in origin)
    return Header(
        owner=Code(f"# ppcgc: generated from {source} by ppcgc {VERSION}, ABI {ABI}; do not edit"),
        fingerprint=Code(f"# spec: {plan.fingerprint}"),
        bound=bound,
        abi=literal(ABI),
    )


def _render(template: str, header: Header, **views: object) -> str:
    return laid_out(_environment().get_template(template).render(header=header, **views))


@cache
def _environment() -> Environment:
    """Strict: a misspelt field is an error, and only finished code is printed."""
    return Environment(
        loader=PackageLoader("ppcgc.emit", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        finalize=_only_code,
    )


def _only_code(value: object) -> object:
    """See Note [spec text never becomes code] in ``source``."""
    if isinstance(value, Undefined):
        str(value)  # raises, and names the field
    if not isinstance(value, Code):
        raise TypeError(f"a template printed {value!r}, which is no finished code")
    return value
