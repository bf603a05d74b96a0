"""The batches that stages are tried on: each bucket's fewest rows and 1, b - 1, b, where legal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from torch import Tensor

from ppcgc.runtime.errors import LimitError, PpcgcError
from ppcgc.runtime.verification.subject import Subject

MOST_CASES = 4  # of one bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A batch, its live counts, its bucket, and the boundary that each stage takes."""

    batch: Any
    live: Any
    padded: Any
    seed: int = 0
    incoming: tuple[Any, ...] = ()

    @property
    def is_padded(self) -> bool:
        return any(live < padded for live, padded in zip(self.live, self.padded, strict=True))

    def changed(self, path: str, value: object) -> Case:
        """The case with another value at one path of its batch."""
        return replace(self, batch=Overlay(self.batch, path.split("."), value))


class Overlay:
    """A batch with one attribute path replaced; everything else is the batch's own."""

    def __init__(self, batch: Any, path: list[str], value: object) -> None:
        first, *rest = path
        inner = Overlay(getattr(batch, first, None), rest, value) if rest else value
        self.__dict__.update(_batch=batch, **{first: inner})

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_batch"], name)


def at_path(batch: Any, path: str) -> Any:
    """The value at a dotted path of a batch; None past an absent parent."""
    for step in path.split("."):
        if batch is None:
            return None
        batch = getattr(batch, step, None)
    return batch


def cases_of(subject: Subject, *, quick: bool) -> list[Case]:
    """Cases by bucket, the bucket's fullest first, smallest bucket first; nothing has run yet.

    Batches whose steps are eager are no cases.
    """
    if not callable(subject.batches):
        return [case for batch in subject.batches if (case := case_of(subject, batch)) is not None]
    runner = subject.runners[0]
    found: dict[Any, dict[Any, Case]] = {}
    for padded in some_buckets(tuple(runner.buckets)) if quick else runner.buckets:
        mine = found.setdefault(padded, {})
        for live in _wanted(runner, padded):
            batch = subject.batches(live, 1)
            case = None if batch is None else case_of(subject, batch)
            if case is not None and case.padded == padded:
                mine.setdefault(case.live, case)
            if len(mine) == (2 if quick else MOST_CASES):
                break
    return [case for mine in found.values() for case in mine.values()]


def some_buckets(buckets: tuple[Any, ...]) -> tuple[Any, ...]:
    """The second smallest (one that has padding) and a larger one."""
    return buckets if len(buckets) < 3 else (buckets[1], buckets[len(buckets) // 2 + 1])[:2]


def case_of(subject: Subject, batch: Any, seed: int = 1) -> Case | None:
    """A batch as a case; None where its step would be eager. Raises what the choice raises."""
    try:
        decided = [runner.decide(batch) for runner in subject.runners]
    except LimitError:
        return None
    if any(choice.padded is None for _, choice in decided):
        return None
    live, choice = decided[0]
    return Case(batch=batch, live=live, padded=choice.padded, seed=seed)


def untried(subject: Subject, cases: list[Case]) -> list[Any]:
    """The buckets that no case falls into."""
    tried = {case.padded for case in cases}
    return [padded for padded in subject.runners[0].buckets if padded not in tried]


def another(subject: Subject, case: Case) -> Case | None:
    """A case with the same live counts and other values; None where batches are a list."""
    if not callable(subject.batches):
        return None
    batch = subject.batches(case.live, case.seed + 1)
    return None if batch is None else case_of(subject, batch, case.seed + 1)


def _wanted(runner: Any, padded: Any) -> Iterator[Any]:
    """Live counts to try for a bucket; those of another bucket or breaking a limit drop out."""
    kind: Callable[..., Any] = type(padded)
    rows, scalars = padded[: len(runner.axes)], padded[len(runner.axes) :]
    several = (min(3, most) if at else max(1, most - 1) for at, most in enumerate(rows))
    fullest = runner.buckets[padded][: len(rows)]
    fewest = (_below(runner, at, most) + 1 for at, most in enumerate(rows))
    single = (1,) * len(rows)
    parts = _in_proportion(rows)
    for sizes in (several, fullest, *parts, fewest, single, *product(*map(_sizes, rows))):
        live = with_group_counts(runner, kind(*sizes, *scalars))
        try:
            chosen = runner.choose(live).padded
        except PpcgcError:
            continue
        if chosen == padded:
            yield live


def _in_proportion(rows: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Fewer rows of each axis, and as large a part of the others: `equals: 4 * requests`."""
    for leader in rows:
        for fewer in dict.fromkeys((leader - 1, min(3, leader - 1), 1)):
            if 0 < fewer < leader and all(most * fewer % leader == 0 for most in rows):
                yield tuple(most * fewer // leader for most in rows)


def _below(runner: Any, at: int, size: int) -> int:
    """The next smaller size of an axis; one row more is the fewest that a bucket serves."""
    return max((padded[at] for padded in runner.buckets if padded[at] < size), default=0)


def with_group_counts(runner: Any, live: Any) -> Any:
    """The counts, with this rank's own standing for the most of its group (``tokens_most``)."""
    most = {f"{axis}_most": getattr(live, axis) for axis in runner.axes}
    return live._replace(**{name: most[name] for name in runner.columns if name in most})


def _sizes(extent: int) -> tuple[int, ...]:
    return tuple(dict.fromkeys(size for size in (extent - 1, extent, 1) if size > 0))


def same_kind(value: Any, like: Any) -> Any:
    """A tensor in the form that the batch has it in: a tensor, or a list."""
    if isinstance(like, Tensor) or not isinstance(value, Tensor):
        return value
    if hasattr(like, "__array_interface__"):
        return value.numpy()
    return value.tolist()
