"""Subjects that verify little or nothing: said, or refused, and never passed over."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from probe_family import build, prefill_batch, subject
from probe_model import ToyDecode, ToyPrefill

from ppcgc.runtime import Subject, verify
from ppcgc.runtime.errors import BuildError
from ppcgc.runtime.verification import Verdict, by_request


def nothing(live: Any, seed: int) -> None:
    return None


def too_large(live: Any, seed: int) -> Any:
    return prefill_batch(live._replace(tokens=17), seed)  # which runs eagerly


@pytest.mark.parametrize("batches", [[], nothing, too_large])
@pytest.mark.parametrize("checks", [None, ["parity"]])
def test_nothing_replayed_is_nothing_verified(batches: Any, checks: list[str] | None) -> None:
    found = verify(dataclasses.replace(subject(build()), batches=batches), checks=checks)
    assert not found.ok
    (finding,) = found.findings
    assert "nothing was verified" in finding.what
    assert "4 x 4, 8 x 4, 16 x 4" in finding.mend
    verdicts = [result.verdict for result in found.results]
    assert verdicts.count(Verdict.FAILED) == 1


class SeesOtherRequests(ToyPrefill):
    def mask(self, view: Any) -> Any:
        rows = torch.arange(view.positions.shape[0])
        return rows[:, None] >= rows[None]


@pytest.mark.parametrize("named", ["input_ids", None])
@pytest.mark.parametrize("known", [("input_ids",), ()])
def test_the_words_of_a_batch_are_found(
    named: str | None, known: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the subject, by their name, or as the one index that the first stage takes alone."""
    monkeypatch.setattr(by_request, "KNOWN_CONTENT", known)
    faulty = subject(build(models=(ToyPrefill, SeesOtherRequests)), content=named)
    found = verify(faulty, quick=True)["loading"]
    assert any("of other requests" in finding.what for finding in found.findings)


class MixesRequests(ToyDecode):
    def extra(self, hidden: torch.Tensor, view: Any) -> Any:
        return hidden + hidden[:1]


def test_the_words_of_a_decode_batch_are_found_by_their_role(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(by_request, "KNOWN_CONTENT", ())
    found = verify(subject(build("decode", models=(MixesRequests,))), quick=True)["loading"]
    assert any("of other requests" in finding.what for finding in found.findings)


@pytest.mark.parametrize(
    "other",
    [
        {"tokens": 5},
        {"ids": ["first", "second"]},
        {"ids": [1, 2]},
        {"token_ids": torch.zeros(2, 2)},
    ],
)
def test_a_known_name_for_something_else_is_not_taken(
    other: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A count, the names of requests: no words, row by row."""
    monkeypatch.setattr(by_request, "KNOWN_CONTENT", tuple(other))

    def with_more(live: Any, seed: int) -> Any:
        batch = prefill_batch(live, seed)
        return None if batch is None else SimpleNamespace(**vars(batch), **other)

    for models, leaks in (((), False), ((ToyPrefill, SeesOtherRequests), True)):
        given = dataclasses.replace(subject(build(models=models)), batches=with_more)
        found = verify(given, quick=True)["loading"]
        assert any("of other requests" in finding.what for finding in found.findings) == leaks
        assert "not told apart" not in found.evidence


def test_words_that_the_model_does_not_read_are_said() -> None:
    """A probe whose change nobody sees proves nothing."""

    class ReadsNoWords(ToyPrefill):
        def enter(self, input_ids: Any, handed: Any) -> Any:
            return super().enter(None if input_ids is None else input_ids * 0, handed)

        def scaled(self, hidden: torch.Tensor, view: Any) -> Any:
            return hidden * self.slope

    models = (ReadsNoWords, ReadsNoWords)
    found = verify(subject(build(models=models)), quick=True)["loading"]
    assert "other input_ids of a request changed no output" in found.evidence


def test_words_that_nothing_names_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_request, "KNOWN_CONTENT", ())
    found = verify(subject(build(stages=1)), quick=True)["loading"]
    assert found.verdict is Verdict.PASSED
    assert "requests were not told apart" in found.evidence
    assert "Subject(content='input_ids')" in found.evidence


def test_a_batch_of_one_request_is_said() -> None:
    live = SimpleNamespace(tokens=3, requests=1)
    alone = Subject(runners=build(), batches=[prefill_batch(live, 1)])
    evidence = verify(alone, quick=True)["loading"].evidence
    assert "requests were not told apart: no batch has two requests with rows" in evidence


def test_words_that_no_batch_has_are_a_finding() -> None:
    found = verify(subject(build(), content="input_idz"), quick=True)["loading"]
    (finding,) = found.findings
    assert (finding.subject, "'input_idz'" in finding.what) == ("content", True)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda runners: {"runners": runners[0]}, "runners is a PrefillFirst: give a list"),
        (lambda runners: {"runners": [runners[0].model]}, "runners: a ToyPrefill is no runner"),
        (lambda runners: {"unsplit": runners}, "unsplit: a list is no runner"),
        (lambda runners: {"unsplit": torch.nn.ModuleList()}, "unsplit: a ModuleList is no runner"),
        (lambda runners: {"peers": runners}, "peers: a PrefillFirst is no list of runners"),
        (lambda runners: {"peers": [[3]]}, "peers: a int is no runner"),
        (lambda runners: {"batches": 3}, "batches is a int: give a list of batches"),
        (lambda runners: {"batches": "abc"}, "batches is a str: give a list of batches"),
        (lambda runners: {"content": ("input_ids",)}, "content is a tuple: give one path"),
    ],
)
def test_a_subject_of_the_wrong_kind_says_what_is_wanted(change: Any, text: str) -> None:
    runners = build()
    given = {"runners": runners, "batches": prefill_batch} | change(runners)
    with pytest.raises(BuildError, match=text.replace("(", r"\(")):
        Subject(**given)


def test_an_error_of_the_maker_has_its_line() -> None:
    def broken(live: Any, seed: int) -> Any:
        raise KeyError("no such key")

    found = verify(dataclasses.replace(subject(build()), batches=broken))
    (finding,) = found.findings
    assert "KeyError: 'no such key'" in finding.what
    assert "test_verify_subject.py" in finding.what
    assert "broken" in finding.what


def stages_of(*numbers: int, kind: str = "prefill") -> list[Any]:
    every = build(kind)
    return [every[number] for number in numbers]


@pytest.mark.parametrize(
    ("stages", "text"),
    [
        (lambda: stages_of(0), r"layers \[0, 1\) of 2: give all stages"),
        (lambda: stages_of(1), r"layers \[1, 2\) of 2: give all stages"),
        (lambda: stages_of(1, 0), "give the stages in pipeline order"),
        (
            lambda: [*stages_of(0), *stages_of(1, kind="decode")],
            "prefill first.* is followed by .*decode last.*: a subject is one runner",
        ),
    ],
)
def test_stages_that_are_not_those_of_one_runner(stages: Any, text: str) -> None:
    with pytest.raises(BuildError, match=text):
        subject(stages())


@pytest.mark.parametrize("peer", [(0,), (1, 0)])
def test_peers_that_are_other_stages(peer: tuple[int, ...]) -> None:
    with pytest.raises(BuildError, match=r"peers: stages .* are not .*first.*last"):
        subject(build(), peers=[stages_of(*peer)])


@pytest.mark.parametrize("field", ["tolerance", "padding_tolerance"])
@pytest.mark.parametrize("value", [-1.0, 1.0, float("nan"), float("inf"), "1e-4", True])
def test_a_tolerance_that_is_none(field: str, value: Any) -> None:
    with pytest.raises(BuildError, match=f"^{field} is {value!r}: give a number from 0"):
        subject(build(), **{field: value})


@pytest.mark.parametrize("field", ["owned", "before_finish"])
def test_what_is_no_function(field: str) -> None:
    with pytest.raises(BuildError, match=f"^{field} is a list: give a function"):
        subject(build(), **{field: [1]})
