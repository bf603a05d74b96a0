"""Comparing tensors to the bit, and saying where they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

Tensors = Mapping[str, Tensor]


def tensors_of(view: Any, prefix: str = "") -> dict[str, Tensor]:
    """The tensors of a generated view (slots, boundary, outputs) by dotted name."""
    found: dict[str, Tensor] = {}
    for field in () if view is None else fields(view):
        value = getattr(view, field.name)
        if isinstance(value, Tensor):
            found[prefix + field.name] = value
        elif is_dataclass(value):  # a group of slots
            found |= tensors_of(value, f"{prefix}{field.name}.")
    return found


def blanked(tensor: Tensor, rows: Iterable[int]) -> Tensor:
    """A copy with some rows zero, where it has them: padding rows all write them, in any order."""
    kept = tensor.clone()
    kept[[row for row in rows if row < kept.shape[0]]] = 0
    return kept


def bits(tensor: Tensor) -> Tensor:
    """The bytes of a tensor, one row for each of its own."""
    if tensor.dim() == 0:
        return tensor.reshape(1).view(torch.uint8).reshape(1, -1)
    rows = tensor.shape[0]
    return (
        tensor.contiguous().flatten().view(torch.uint8).reshape(rows, -1 if tensor.numel() else 0)
    )


def same_bits(left: Tensor, right: Tensor) -> bool:
    """Equal shape, dtype and bits: NaN equals NaN, 0.0 differs from -0.0."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    return torch.equal(bits(left), bits(right))


def changed_rows(before: Tensor, after: Tensor) -> list[int]:
    """Rows of dimension 0 whose bits differ."""
    different = (bits(before) != bits(after)).any(dim=1)
    return [int(row) for row in different.nonzero().flatten().tolist()]


def rows_apart(before: Tensor, after: Tensor, relative: float) -> list[int]:
    """As ``changed_rows``, but for rows that stay within ``relative``, see ``apart``."""
    rows = changed_rows(before, after)
    if relative == 0.0 or not rows:
        return rows
    different = apart(before, after, relative)
    return [row for row in rows if bool(different[row].any())]


# Note [what stands for no number is no scale]
#   Sums of large terms leave small values with errors as large as the terms', so a difference is
#   held against the largest value. But a masked logit is -inf, -1e9 or the lowest number there is,
#   and against that nothing would be a difference. Values that stand apart from all others, by a
#   factor of 2 ** GAP, are held against themselves alone.
GAP = 7


def scale_of(values: Tensor) -> float:
    """The largest of the ordinary values, at least 1."""
    sizes = values.double().abs()
    sizes = sizes[(sizes > 0) & sizes.isfinite()].clamp(min=1)
    if not sizes.numel():
        return 1.0
    powers = torch.frexp(sizes).exponent
    used = powers.unique().tolist()  # type: ignore[no-untyped-call]  # torch's
    ordinary = used[0]
    for power in used:
        if power > ordinary + GAP:
            break
        ordinary = power
    return float(sizes[powers <= ordinary].max())


def _same(left: Tensor, right: Tensor) -> Tensor:
    """Which values are equal, NaN and NaN among them."""
    return (left == right) | (left.isnan() & right.isnan())


def apart(expected: Tensor, given: Tensor, relative: float) -> Tensor:
    """Which values differ by more than ``relative`` of the largest; an infinity or NaN by any."""
    wanted, found = expected.double(), given.double()
    near = (wanted - found).abs() <= relative * wanted.abs().clamp(min=scale_of(expected))
    return ~_same(wanted, found) & ~(near & wanted.isfinite() & found.isfinite())


def differing(left: Tensors, right: Tensors, *, relative: float = 0.0) -> dict[str, str]:
    """For each tensor that differs, how. ``relative`` to the largest value; 0 is to the bit."""
    found = {}
    for name, expected in left.items():
        given = right.get(name)
        if given is None:
            found[name] = "is not there"
        elif given.shape != expected.shape:
            found[name] = f"has shape {list(given.shape)} instead of {list(expected.shape)}"
        elif not same_bits(expected, given) and not _close(expected, given, relative):
            found[name] = difference(expected, given)
    return found


def _close(expected: Tensor, given: Tensor, relative: float) -> bool:
    if relative == 0.0 or not expected.dtype.is_floating_point:
        return False
    return not bool(apart(expected, given, relative).any())


def difference(expected: Tensor, given: Tensor) -> str:
    """``rows 3, 4 of 9 differ, by up to 0.12``."""
    rows = changed_rows(expected, given)
    wanted, found = expected.double(), given.double()
    by = (wanted - found).abs().where(~_same(wanted, found), 0.0).nan_to_num(nan=float("inf"))
    most = float(by.max()) if by.numel() else 0.0
    count = expected.shape[0] if expected.dim() else 1
    return f"rows {listed(rows)} of {count} differ, by up to {most:.3g}"


def value_difference(expected: Tensor, given: Tensor) -> str:
    """The first value that differs, then how many rows do."""
    wrong = (expected != given).flatten()
    at = int(wrong.nonzero()[0]) if bool(wrong.any()) else 0
    want, have = expected.flatten()[at].item(), given.flatten()[at].item()
    return f"expected {want}, found {have}; {difference(expected, given)}"


def listed(items: Iterable[object], most: int = 6) -> str:
    """``1, 2, 3, ... (20 in all)``."""
    every = list(items)
    text = ", ".join(map(str, every[:most]))
    return text if len(every) <= most else f"{text}, ... ({len(every)} in all)"
