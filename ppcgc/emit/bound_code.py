"""Code that is generated for one config: its constants, and what refuses a build with others."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc.emit.source import Code, call, code, identifier, literal, tuple_of
from ppcgc.ir import Bound, Family


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundView:
    """What the family's module has besides, where it is bound."""

    header: Code
    config: Code
    table: Code
    kinds: bool  # all kinds of layers are constants


def bound_view(family: Family) -> BoundView | None:
    """None where the code is for any config."""
    bound = family.bound
    if bound is None:
        return None
    whole = bool(bound.kinds) and len(bound.kinds) == len(family.pipeline.kinds)
    return BoundView(
        header=_header(bound),
        config=literal(bound.config),
        table=_table(bound, whole),
        kinds=whole,
    )


def _header(bound: Bound) -> Code:
    config = "".join(c if c.isprintable() else "?" for c in bound.config)
    return Code(f"# bound: {config} {bound.fingerprint}")


def _table(bound: Bound, whole: bool) -> Code:
    """``{"hidden": 64, "options.lora": True}``: every constant by its path on ``Dims``."""
    entries = [(name, literal(size)) for name, size in bound.dims]
    if bound.layers is not None:
        entries.append(("layer_count", literal(bound.layers)))
    entries += [(f"options.{name}", literal(value)) for name, value in bound.options]
    entries += [(f"{group}.size", literal(size)) for group, size in bound.ranks]
    if whole:
        entries.append(("kinds", Code("KINDS")))
    else:
        entries += [(f"kinds.{name}", layer_set(ids)) for name, ids in bound.kinds]
    return Code(f"{{{', '.join(f'{literal(name)}: {value}' for name, value in entries)}}}")


def layer_set(ids: tuple[int, ...]) -> Code:
    """``frozenset((1, 3))``."""
    listed = (tuple_of(tuple(literal(layer) for layer in ids)),) if ids else ()
    return call(Code("frozenset"), listed)


def dim_default(family: Family, name: str) -> Code | None:
    """The constant that a size is bound to."""
    if family.bound is None:
        return None
    sizes = dict(family.bound.dims)
    if family.bound.layers is not None:
        sizes["layer_count"] = family.bound.layers
    return literal(sizes[name]) if name in sizes else None


def keyword_with_default(family: Family, name: str) -> Code:
    """``kv_rows: int``, or with the constant that it is bound to."""
    default = dim_default(family, name)
    keyword = code("{}: int", identifier(name))
    return keyword if default is None else code("{} = {}", keyword, default)
