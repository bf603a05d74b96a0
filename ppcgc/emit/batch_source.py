"""Reading an attribute path of the batch, where None anywhere on it makes the source None."""

from __future__ import annotations

from ppcgc.emit.source import Code, code, dotted


def source_expression(path: tuple[str, ...]) -> Code:
    """``batch.a.b``, or None where a step of the path is None."""
    *before, full = _steps(path)
    if not before:
        return full
    nothing = " or ".join(f"{step} is None" for step in before)
    return Code(f"None if {nothing} else {full}")


def is_absent(path: tuple[str, ...]) -> Code:
    """The test that a source, or a step before it, is None."""
    return Code(" or ".join(f"{step} is None" for step in _steps(path)))


def is_present(path: tuple[str, ...]) -> Code:
    """The test that no step up to a source is None."""
    return Code(" and ".join(f"{step} is not None" for step in _steps(path)))


def _steps(path: tuple[str, ...]) -> list[Code]:
    """``batch.a``, ``batch.a.b``: every object on the way to a source, and the source."""
    return [code("batch.{}", dotted(path[: end + 1])) for end in range(len(path))]


def under(statement: Code) -> Code:
    """A statement under an ``if``; its further lines were made for that indent already."""
    return Code(f"    {statement}")
