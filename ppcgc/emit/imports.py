"""Import lines as a sorter would leave them."""

from __future__ import annotations

from ppcgc.emit.source import WIDTH, Code, identifier


def in_import_order(names: list[str]) -> list[str]:
    """Constants, then classes, then the rest, each by name."""

    def kind(name: str) -> tuple[int, str]:
        if name.isupper():
            return 0, name
        return (1, name) if name[:1].isupper() else (2, name)

    return sorted(names, key=kind)


def import_line(module: str, names: list[str]) -> Code:
    """``from .module import names``, one name a line where it is long."""
    head = f"from .{identifier(module)} import "
    flat = head + ", ".join(names)
    if len(flat) <= WIDTH:
        return Code(flat)
    inner = "".join(f"\n    {name}," for name in names)
    return Code(f"{head}({inner}\n)")
