"""Planted: choices of a step that leave the bucket table, or the smallest bucket, aside."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from probe_family import build, caught, subject

from ppcgc.runtime import Choice, Reason, verify
from ppcgc.runtime.errors import CapacityError
from ppcgc.runtime.verification import choices

Choose = Callable[[Any], Any]


def choosing(runner: Any, change: Callable[[Choose, Any], Any]) -> None:
    """Let ``change(choose, live)`` choose in the place of the runner's own choice."""
    own = runner.choose
    runner.choose = lambda live: change(own, live)


def counting(live: Any, more: int) -> Any:
    """The same step with another number of tokens."""
    return live._replace(tokens=max(live.tokens + more, live.requests))


def never_the_least(own: Choose, live: Any) -> Any:
    return own(live._replace(tokens=max(live.tokens, 5)))


def unknown_size(own: Choose, live: Any) -> Any:
    found = own(live)
    padded = found.padded
    if padded is None or padded.tokens != 8:
        return found
    return Choice(padded._replace(tokens=9), Reason.FITS)


def refuses_the_largest(own: Choose, live: Any) -> Any:
    if live.tokens > 8:
        raise CapacityError("9 live tokens, the largest bucket has 8")
    return own(live)


def eager_for_the_largest(own: Choose, live: Any) -> Any:
    return Choice(None, Reason.OVER_CAPACITY, "tokens") if live.tokens > 8 else own(live)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda own, live: own(counting(live, -1)), "goes to bucket 4, 4, which is too small"),
        (lambda own, live: own(counting(live, 1)), "goes to bucket 8, 4, though 4, 4 holds it"),
        (never_the_least, "goes to bucket 8, 4, though 4, 4 holds it"),
        (unknown_size, "goes to bucket 9, 4, which is none of the runner's"),
        (refuses_the_largest, "is refused, bucket 16, 4 holds it"),
        (eager_for_the_largest, "runs eagerly (over capacity), bucket 16, 4 holds it"),
    ],
)
@pytest.mark.parametrize("stage", [0, 1])
def test_a_choice_that_is_not_the_smallest_bucket(
    stage: int, change: Callable[[Choose, Any], Any], text: str
) -> None:
    runners = build()
    choosing(runners[stage], change)
    caught(subject(runners), "choice", f"stage {stage}", text)


def test_counts_that_follow_others_are_not_held_against_the_choice() -> None:
    """Decode has as many tokens as requests; the grid also tries counts that cannot be."""
    found = verify(subject(build("decode")), checks=["choice"])["choice"]
    assert found.findings == ()


class Sizes(NamedTuple):
    tokens: int
    draft: int


def drafting(*, known: tuple[int, ...]) -> Any:
    """Buckets of 4 and 8 tokens for 1 and for 3 drafts; the choice knows these drafts."""
    buckets = {Sizes(tokens, draft): None for tokens in (4, 8) for draft in (1, 3)}

    def choose(live: Sizes) -> Choice[Sizes]:
        if live.draft not in known:
            return Choice(None, Reason.NO_KEY, "draft")
        fitting = [one for one in buckets if one.tokens >= live.tokens and one.draft == live.draft]
        if not fitting:
            return Choice(None, Reason.OVER_CAPACITY, "tokens")
        return Choice(min(fitting), Reason.FITS)

    return SimpleNamespace(
        buckets=buckets,
        axes=("tokens",),
        counts={"tokens": "num_tokens", "draft": "num_draft"},
        choose=choose,
    )


def test_an_eager_step_for_a_value_that_has_a_graph() -> None:
    runner = drafting(known=(1, 4))
    assert choices._wrong(runner, Sizes(3, 3)) == (
        "runs eagerly (scalar without a graph), bucket 4, 3 holds it"
    )
    assert choices._wrong(runner, Sizes(5, 1)) is None
    for draft in (1, 2, 3, 4):  # 2 and 4 have none
        for tokens in (1, 8, 9):
            assert choices._wrong(drafting(known=(1, 3)), Sizes(tokens, draft)) is None
