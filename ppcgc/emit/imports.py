"""Import lines and export lists as a sorter would leave them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ppcgc.emit.source import Code, identifier


def in_import_order(names: list[str]) -> list[str]:
    """Names of a ``from`` import: constants, classes, the rest; each without regard to case."""
    return sorted(names, key=lambda name: (_kind(name), _natural(name.lower()), _natural(name)))


def in_export_order(names: list[str]) -> list[str]:
    """Names of ``__all__``: constants, classes, the rest; each by name."""
    return sorted(names, key=lambda name: (_kind(name), _natural(name)))


def _kind(name: str) -> int:
    if len(name) > 1 and name.isupper():
        return 0
    return 1 if name[:1].isupper() else 2


def _natural(name: str) -> list[tuple[int, str]]:
    """Parts that compare numbers by value: ``step2`` before ``step10``."""
    parts = re.findall(r"\d+|\D+", name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def import_line(module: str, names: list[str]) -> Code:
    """``from .module import names``."""
    return Code(f"from .{identifier(module)} import {', '.join(in_import_order(names))}")


def import_lines(modules: Mapping[str, list[str]]) -> tuple[Code, ...]:
    """Imports of modules beside this one, without those that nothing is taken from."""
    ordered = sorted(modules, key=lambda module: (_natural(module.lower()), _natural(module)))
    return tuple(import_line(module, modules[module]) for module in ordered if modules[module])


def export_list(names: list[str]) -> Code:
    """``__all__ = [...]``."""
    listed = ", ".join(f'"{identifier(name)}"' for name in in_export_order(names))
    return Code(f"__all__ = [{listed}]")
