"""Reading an attribute path of the batch, where None anywhere on it makes the source None."""

from __future__ import annotations

from ppcgc.emit.source import Code, code, dotted


def source_expression(path: tuple[str, ...]) -> Code:
    """``batch.a.b``, or None where a step of the path is None."""
    full = code("batch.{}", dotted(path))
    steps = [code("batch.{}", dotted(path[: end + 1])) for end in range(len(path) - 1)]
    if not steps:
        return full
    nothing = " or ".join(f"{step} is None" for step in steps)
    return Code(f"None if {nothing} else {full}")


def in_test(source: Code) -> Code:
    """A source as an operand: in brackets where it is a conditional itself."""
    return Code(f"({source})") if " " in str(source) else source


def under(statement: Code) -> Code:
    """A statement under an ``if``; its further lines were made for that indent already."""
    return Code(f"    {statement}")
