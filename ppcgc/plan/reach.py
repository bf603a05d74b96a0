"""Which counts of a batch a bucket serves: the fullest that its limits allow, if there are any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ppcgc.expr.evaluate import EvaluationError, evaluate
from ppcgc.expr.tree import Expr, Ref
from ppcgc.plan.intervals import Interval, bounds, disjoint, halves, impossible

MOST_BOXES = 20_000  # sensible limits need some tens; a cipher written as a limit never ends


class SearchError(ValueError):
    """Limits so intricate that no search within reason tells whether a batch meets them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The counts of a batch that one combination of sizes may serve.

    ``stated`` are numbers that a batch states, each with its least and greatest value.
    ``following`` are counts computed from them, in order, with the range that they must hit.
    """

    stated: Mapping[Ref, Interval]
    following: tuple[tuple[Ref, Expr, Interval], ...]
    limits: tuple[Expr, ...]


def patience() -> Iterator[int]:
    """How long searches that share it may take together: one number a box that was cut."""
    return iter(range(MOST_BOXES))


def fullest(space: Space, cuts: Iterator[int]) -> dict[Ref, int] | None:
    """Counts within the space, as full as its limits allow; None when there are none.

    The search is complete: boxes of counts are ruled out by interval arithmetic only, others
    are cut in two, the fuller half first. Raises SearchError when ``cuts`` runs out.
    """
    waiting = [dict(space.stated)]
    while waiting:
        box = waiting.pop()
        if _ruled_out(space, box):
            continue
        counts = _counts_at(space, {ref: high for ref, (_, high) in box.items()})
        if counts is not None:
            return counts
        if next(cuts, None) is None:
            raise SearchError(f"no answer after {MOST_BOXES} boxes of live counts")
        waiting += reversed(list(_halved(box)))
    return None


def _ruled_out(space: Space, box: Mapping[Ref, Interval]) -> bool:
    """True when interval arithmetic shows that no point of the box lies in the space."""
    spans = dict(box)
    for ref, expr, allowed in space.following:
        found = bounds(expr, spans)
        if found is not None and disjoint(found, allowed):
            return True
        low, high = found or allowed
        spans[ref] = max(low, allowed[0]), min(high, allowed[1])
    return any(impossible(limit, spans) for limit in space.limits)


def _counts_at(space: Space, stated: Mapping[Ref, int]) -> dict[Ref, int] | None:
    """Every count at a point, or None when the point is not in the space."""
    counts = dict(stated)
    try:
        for ref, expr, (low, high) in space.following:
            count = evaluate(expr, counts)
            if isinstance(count, str) or not low <= count <= high:
                return None
            counts[ref] = int(count)
        legal = all(evaluate(limit, counts) is True for limit in space.limits)
    except EvaluationError:  # a limit without a value, such as a zero divisor, is not met
        return None
    return counts if legal else None


def _halved(box: Mapping[Ref, Interval]) -> Iterator[dict[Ref, Interval]]:
    """The box cut in two along its widest side, the fuller half first; nothing for a point."""
    widest = max(box, key=lambda ref: box[ref][1] - box[ref][0], default=None)
    if widest is None or box[widest][0] == box[widest][1]:
        return
    lower, upper = halves(box[widest])
    yield {**box, widest: upper}
    yield {**box, widest: lower}
