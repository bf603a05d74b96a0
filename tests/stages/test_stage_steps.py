"""Steps of a runner: what each wrong one says, and that the next good one is right."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fake_backend import FakeBackend
from toy_model import POOL_ROWS, through, toy_batch, toy_stages

from ppcgc import runtime as rt
from ppcgc.runtime.errors import (
    AbsentSourceError,
    BuildError,
    LimitError,
    NotCapturedError,
    PpcgcError,
    SourceError,
    StaleStepError,
)


@pytest.fixture(scope="module")
def stages(toy: Any) -> list[Any]:
    """Two captured stages that these tests leave usable."""
    runners = toy_stages(toy, 2)
    rt.capture(runners)
    return runners


@pytest.fixture(autouse=True)
def the_next_good_step_is_right(request: pytest.FixtureRequest) -> Any:
    """After each test of shared stages: a good step, bitwise equal to its eager self."""
    yield
    if "stages" in request.fixturenames:
        runners = request.getfixturevalue("stages")
        assert_good(runners, toy_batch(3, 2, seed=9))


def assert_good(runners: list[Any], batch: Any) -> None:
    replayed = through(runners, batch)
    assert [runner.last_step.path for runner in runners] == ["replay"] * len(runners)
    eager = through(runners, batch, "eager")
    for field in dataclasses.fields(replayed):
        assert torch.equal(getattr(replayed, field.name), getattr(eager, field.name))


def changed(**values: Any) -> SimpleNamespace:
    """A good batch of five tokens with some attributes changed."""
    batch = toy_batch(3, 2, seed=4)
    for name, value in values.items():
        setattr(batch, name, value)
    return batch


def lacking(name: str) -> SimpleNamespace:
    batch = toy_batch(3, 2, seed=4)
    delattr(batch, name)
    return batch


# ---------------------------------------------------------------- wrong batches

INT64 = torch.int64
WRONG: list[tuple[str, Any, type[PpcgcError], str]] = [
    ("lacks a slot", lacking("positions"), SourceError, "no attribute 'positions'"),
    ("lacks a device slot", lacking("scale"), SourceError, "no attribute 'scale'"),
    ("lacks a count", lacking("num_tokens"), SourceError, "no attribute 'num_tokens'"),
    ("is None", None, SourceError, "'NoneType' object has no attribute 'num_tokens'"),
    ("count on a device", changed(num_tokens=torch.tensor(5)), SourceError, "a host integer"),
    ("negative count", changed(num_tokens=-1), SourceError, "is -1"),
    ("absent count", changed(num_requests=None), AbsentSourceError, "num_requests is None"),
    ("more rows than live", changed(num_tokens=4), SourceError, r"\[5\], the live rows need \[4\]"),
    ("fewer rows than live", changed(num_tokens=6), SourceError, r"\[5\], .* need \[6\]"),
    ("None", changed(ids=None), AbsentSourceError, "slot ids: the source is None"),
    ("None on the device", changed(scale=None), AbsentSourceError, "slot scale"),
    ("wrong dtype", changed(ids=torch.ones(5).int()), SourceError, "slot ids: .*torch.int32"),
    ("wrong device dtype", changed(scale=torch.ones(5).half()), SourceError, "slot scale"),
    ("wrong rank", changed(positions=torch.ones(5, 1, dtype=INT64)), SourceError, r"\[5, 1\]"),
    ("wrong kind", changed(positions="12345"), SourceError, "slot positions: .* is a str"),
    ("wrong device kind", changed(scale=[1.0] * 5), SourceError, "slot scale: .* is a list"),
    ("on another device", changed(scale=torch.ones(5, device="meta")), SourceError, "on meta"),
    ("host source on a device", changed(ids=torch.ones(5, device="meta")), SourceError, "meta"),
    ("id over the vocabulary", changed(ids=[1, 2, 7, 1, 1]), SourceError, "legal are 0 to 6"),
    ("negative id", changed(ids=[1, 2, -1, 1, 1]), SourceError, "from -1 to 2"),
    (
        "row over the state",
        changed(mapping=[1, 3, 4, 6, POOL_ROWS]),
        SourceError,
        f"rows 0 to {POOL_ROWS - 1}",
    ),
    (
        "offsets past the rows",
        changed(offsets=torch.tensor([0, 3, 8], dtype=torch.int32)),
        SourceError,
        r"slot offsets: offsets \[0, 3, 8\] must start at 0",
    ),
    (
        "sparse",
        changed(ids=torch.ones(5, dtype=INT64).to_sparse()),
        SourceError,
        "slot ids: .*spar",
    ),
    ("sparse device", changed(scale=torch.ones(5).to_sparse()), SourceError, "slot scale: .*spar"),
    ("grad", changed(scale=torch.ones(5, requires_grad=True)), SourceError, "requires grad"),
]


@pytest.mark.parametrize("how", ["run", "eager"])
@pytest.mark.parametrize(
    ("batch", "kind", "message"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG]
)
def test_a_wrong_batch_is_refused_before_the_model_runs(
    stages: list[Any], how: str, batch: Any, kind: type[PpcgcError], message: str
) -> None:
    first = stages[0]
    fuller = toy_batch(4, 4, seed=3)
    through(stages, fuller)
    calls, pool = len(first.model.seen), first.state.pool[0].clone()
    record = first.last_step
    with pytest.raises(kind, match=message):
        getattr(first, how)(batch)
    assert len(first.model.seen) == calls
    assert torch.equal(first.state.pool[0], pool)
    assert first.last_step is record


def test_a_batch_that_breaks_a_limit_names_it(stages: list[Any]) -> None:
    with pytest.raises(LimitError, match=r"toy.prefill: .*`tokens >= requests` \(toy.yaml:\d+\)"):
        stages[0].run(changed(num_tokens=1))


def test_other_kinds_of_host_sources_give_the_same_numbers(stages: list[Any]) -> None:
    batch = toy_batch(3, 2, seed=5)
    wanted = through(stages, batch).hidden_states.clone()
    arrays = changed(
        **{
            name: getattr(batch, name).numpy()
            for name in ("ids", "positions", "mapping", "offsets")
        },
        scale=batch.scale,
    )
    assert torch.equal(through(stages, arrays).hidden_states, wanted)
    lists = changed(
        **{
            name: getattr(batch, name).tolist()
            for name in ("ids", "positions", "mapping", "offsets")
        },
        scale=batch.scale,
        num_tokens=np.int64(5),
    )
    assert torch.equal(through(stages, lists).hidden_states, wanted)


# ---------------------------------------------------------------- wrong boundaries


@dataclasses.dataclass
class Pair:
    hidden_states: Any
    residual: Any


def pair(hidden: Any, residual: Any) -> Pair:
    return Pair(hidden_states=hidden, residual=residual)


@pytest.mark.parametrize("how", ["run", "eager"])
@pytest.mark.parametrize(
    ("boundary", "message"),
    [
        (None, r"a NoneType without 'hidden_states'; .* toy.Boundary\(hidden_states=..., resid"),
        ({"hidden_states": 1}, r"a dict without 'hidden_states'; .* toy.Boundary\(hidden"),
        (SimpleNamespace(hidden_states=torch.ones(5, 3)), "a SimpleNamespace without 'residual'"),
        (pair(torch.ones(4, 3), torch.ones(3, 4)), r"\[4, 3\] on cpu, .* \[5, 3\]"),
        (pair(torch.ones(5, 3), torch.ones(5, 3)), r"boundary.residual: .*\[5, 3\].*\[3, 5\]"),
        (pair(torch.ones(5, 3).double(), torch.ones(3, 5)), "received torch.float64"),
        (pair(torch.ones(5, 3), torch.ones(3, 5).to_sparse()), "is a torch.sparse_coo tensor"),
        (pair(None, torch.ones(3, 5)), "received a NoneType"),
        (pair(torch.ones(5, 3, device="meta"), torch.ones(3, 5)), "on meta"),
    ],
)
def test_a_wrong_boundary_is_refused(
    stages: list[Any], how: str, boundary: Any, message: str
) -> None:
    last = stages[1]
    through(stages, toy_batch(4, 4, seed=3))
    calls = len(last.model.seen)
    with pytest.raises(SourceError, match=message):
        getattr(last, how)(changed(), boundary)
    assert len(last.model.seen) == calls


@pytest.mark.parametrize("how", ["run", "eager"])
@pytest.mark.parametrize(
    ("residual", "message"),
    [
        (torch.ones(3, 5).to_sparse(), "is a torch.sparse_coo tensor"),
        (torch.ones(3, 5, requires_grad=True), "requires grad"),
        ([1.0] * 5, "received a list"),
        (None, "received a NoneType"),
    ],
)
def test_a_wrong_tensor_in_a_boundary_of_the_family_is_refused(
    stages: list[Any], how: str, residual: Any, message: str
) -> None:
    first, last = stages
    kind = type(first.run(toy_batch(4, 4, seed=3)))
    with pytest.raises(SourceError, match=message):
        getattr(last, how)(changed(), kind(hidden_states=torch.ones(5, 3), residual=residual))


def test_any_object_with_the_keys_is_a_boundary(stages: list[Any]) -> None:
    first, last = stages
    batch = changed()
    handed = first.run(batch)
    wanted = last.run(batch, handed).hidden_states.clone()
    mine = SimpleNamespace(
        hidden_states=handed.hidden_states.clone(), residual=handed.residual.clone()
    )
    assert torch.equal(last.run(batch, mine).hidden_states, wanted)


# ---------------------------------------------------------------- begin and finish


def test_a_step_is_finished_once(stages: list[Any]) -> None:
    first = stages[0]
    step = first.begin(changed())
    first.finish(step)
    with pytest.raises(StaleStepError, match="it was finished"):
        first.finish(step)


def test_an_older_step_is_stale(stages: list[Any]) -> None:
    first = stages[0]
    older = first.begin(changed())
    newer = first.begin(toy_batch(2, seed=6))
    with pytest.raises(StaleStepError, match="another was begun since"):
        first.finish(older)
    first.finish(newer)


def test_a_step_whose_slots_a_refused_batch_wrote_is_stale(stages: list[Any]) -> None:
    """The refused batch may have got as far as some of the slots."""
    first = stages[0]
    step = first.begin(changed())
    with pytest.raises(SourceError):
        first.begin(changed(scale=None))
    with pytest.raises(StaleStepError):
        first.finish(step)


def test_a_step_of_another_runner_is_refused(stages: list[Any]) -> None:
    first, last = stages
    batch = changed()
    step = first.begin(batch)
    mine = last.begin(batch, first.finish(step))
    step = first.begin(batch)
    with pytest.raises(StaleStepError, match="another runner's"):
        last.finish(step)
    last.finish(mine)
    first.finish(step)


def test_a_step_begun_before_close_does_not_run(toy: Any) -> None:
    (runner,) = toy_stages(toy, 1)
    rt.capture([runner])
    step = runner.begin(changed())
    runner.close()
    with pytest.raises((NotCapturedError, StaleStepError)):
        runner.finish(step)
    rt.capture([runner])
    with pytest.raises(StaleStepError):
        runner.finish(step)
    assert_good([runner], changed())


def test_an_eager_step_whose_model_fails_leaves_the_runner_usable(stages: list[Any]) -> None:
    first = stages[0]
    model = first.model

    def broken(**words: Any) -> Any:
        raise RuntimeError("out of memory")

    first.model = broken
    try:
        with pytest.raises(RuntimeError, match="out of memory"):
            first.eager(changed())
    finally:
        first.model = model


# ---------------------------------------------------------------- counts and report


def test_steps_are_counted_with_their_reasons(toy: Any) -> None:
    (runner,) = toy_stages(toy, 1, backend=FakeBackend())
    rt.capture([runner])
    for lengths in ((3,), (2, 2), (5,), (17,)):
        runner.run(toy_batch(*lengths))
    runner.eager(toy_batch(3))
    report = runner.report()
    assert [(b.padded, b.replays, b.padding_rows) for b in report.buckets] == [
        ((4, 4), 2, (1, 3 + 2)),
        ((8, 4), 1, (3, 3)),
        ((16, 4), 0, (0, 0)),
    ]
    assert dict(report.eager) == {"over capacity": 1, "asked to run eagerly": 1}
    assert (report.replays, report.eager_steps) == (3, 2)


def test_counters_outlive_what_is_remembered_of_steps(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ppcgc.runtime.stage.MOST_KNOWN", 3)
    (runner,) = toy_stages(toy, 1, backend=FakeBackend())
    rt.capture([runner])
    for tokens in (1, 2, 3, 4, 5, 6, 7, 8, 1, 2):
        runner.run(toy_batch(tokens))
        assert str(runner.last_step) == f"replay {tokens}→{4 if tokens <= 4 else 8}"
    runner.finish(runner.begin(toy_batch(16)))
    assert [(b.replays, b.padding_rows) for b in runner.report().buckets] == [
        (6, (3 + 2 + 1 + 0 + 3 + 2, 6 * 3)),
        (4, (3 + 2 + 1 + 0, 4 * 3)),
        (1, (0, 3)),
    ]


def test_each_part_of_a_step_is_ordered_after_the_step_before(toy: Any) -> None:
    backend = FakeBackend()
    (only,) = toy_stages(toy, 1, backend=backend)
    rt.capture([only])
    captured = backend.joined
    assert captured > 0, "the load of a capture comes after replays on any stream"
    only.run(toy_batch(3))
    assert backend.joined == captured + 1
    step = only.begin(toy_batch(3))
    assert backend.joined == captured + 2
    only.finish(step)
    assert backend.joined == captured + 3, (
        "the caller may finish on another stream than it began on"
    )


def test_a_view_of_the_same_live_rows_is_the_same_view(toy: Any) -> None:
    first, _ = toy_stages(toy, 2)
    rt.capture([first])
    once, other, again = (first.run(toy_batch(*lengths)) for lengths in ((3, 2), (4, 2), (2, 3)))
    assert once is again and other is not once
    assert [rows.hidden_states.shape[0] for rows in (once, other, again)] == [5, 6, 5]


def test_a_copy_is_made_at_each_step(toy: Any) -> None:
    (only,) = toy_stages(toy, 1)
    rt.capture([only])
    kept = only.run(toy_batch(3, 2, seed=1))
    wanted = {field.name: getattr(kept, field.name).clone() for field in dataclasses.fields(kept)}
    other = only.run(toy_batch(3, 2, seed=2))
    assert other is not kept
    assert torch.equal(kept.kept, wanted["kept"]) and not torch.equal(other.kept, kept.kept)


@pytest.mark.parametrize("captured", [True, False])
def test_an_eager_step_copies_what_is_kept_too(toy: Any, captured: bool) -> None:
    """A forward may give what it was given, which the next step overwrites."""
    (only,) = toy_stages(toy, 1)
    if captured:
        rt.capture([only])
    given: list[Any] = []
    model = only.model

    def spying(**keywords: Any) -> Any:
        given[:] = model(**keywords)
        return tuple(given)

    only.model = spying
    out = only.eager(toy_batch(3, 2, seed=1))
    assert out.hidden_states.data_ptr() == given[0].data_ptr()
    assert torch.equal(out.kept, given[2]) and torch.equal(out.sums, given[1])
    for rows in (out.kept, out.sums):
        assert rows.data_ptr() not in {one.data_ptr() for one in given}


def test_more_rows_than_a_ring_has_are_a_copy_of_their_own(toy: Any) -> None:
    (only,) = toy_stages(toy, 1)
    rt.capture([only])
    batch = toy_batch(*[1] * 5)  # more requests than any bucket has
    once, again = only.run(batch), only.run(batch)
    assert only.last_step.path == "eager" and once.sums.shape[0] == 5
    assert torch.equal(once.sums, again.sums) and once.sums.data_ptr() != again.sums.data_ptr()


def test_the_report_measures_bytes(toy: Any) -> None:
    runners = toy_stages(toy, 2)
    before = runners[0].report()
    assert (before.slot_bytes, before.host_block_bytes, before.buckets) == (0, 0, ())
    rt.capture(runners)
    first, last = (runner.report() for runner in runners)
    scale, boundary = 16 * 4, 2 * 16 * 3 * 4
    assert first.slot_bytes == scale + boundary  # handed on
    outputs = 2 * 16 * 3 * 4 + 4 * 3 * 4 + 2 * 4 * 3 * 4  # view, clone; sums and their ring of 2
    assert last.slot_bytes == scale + boundary + outputs
    # counts, ids, positions, mapping of 16 tokens; offsets; count: each rounded up to 64 bytes
    assert first.host_block_bytes == 64 + 3 * 128 + 64 + 64
    assert last.host_block_bytes == first.host_block_bytes - 128  # no ids
    assert first.pool_bytes == last.pool_bytes > 0


def test_the_report_prints_a_table(toy: Any) -> None:
    (runner,) = toy_stages(toy, 1, backend=FakeBackend())
    rt.capture([runner])
    runner.run(toy_batch(3, 2))
    lines = str(runner.report()).splitlines()
    assert lines[0] == (
        "toy.prefill, only stage, layers [0, 3) of 3 on fake, buckets by tokens × requests"
    )
    assert lines[1].split() == (
        ["bucket", "graph", "operations", "replays", "padding", "tokens", "padding", "requests"]
    )
    assert lines[3].split() == ["8", "×", "4", "yes", "-", "1", "3", "2"]
    assert len({len(line) for line in lines[1:5]}) == 1
    assert lines[5] == "eager steps: none"
    assert lines[6].startswith("bytes: slots and outputs ")


# ---------------------------------------------------------------- build


def test_a_range_that_stands_elsewhere_is_refused(toy: Any) -> None:
    (runner,) = toy_stages(toy, 1)
    words = {
        "model": runner.model,
        "dims": runner.dims,
        "state": runner.state,
        "dtype": torch.float32,
        "backend": runner.backend,
    }
    for kind, owned in (
        (toy.PrefillFirst, rt.LayerRange(0, 3, 3)),
        (toy.PrefillOnly, rt.LayerRange(0, 2, 3)),
        (toy.PrefillLast, rt.LayerRange(1, 2, 3)),
        (toy.PrefillMiddle, rt.LayerRange(0, 1, 3)),
    ):
        with pytest.raises(BuildError, match=f"{kind.__name__} is for the"):
            kind(layers=owned, **words)
    with pytest.raises(BuildError, match=r"model's layers are \[0, 3\), .* for \[0, 2\) of 3"):
        toy.PrefillFirst(layers=rt.LayerRange(0, 2, 3), **words)


@pytest.mark.parametrize("later", [0, 1])
def test_feed_takes_only_the_stage_that_follows(toy: Any, later: int) -> None:
    first, middle, last = toy_stages(toy, 3)
    with pytest.raises(BuildError, match=r"ends at layer 1 on cpu, .* starts at layer 2"):
        first.feed(last)
    with pytest.raises(BuildError, match="ends at layer 2"):
        middle.feed((first, middle)[later])


def test_feed_wants_one_runner_of_one_build(toy: Any) -> None:
    first = toy_stages(toy, 2)[0]
    decode = toy_stages(toy, 2, runner="Decode")[1]
    with pytest.raises(BuildError, match="different specs or runners"):
        first.feed(decode)
    other = toy_stages(toy, 2)[1]
    other.dtype = torch.bfloat16
    with pytest.raises(BuildError, match=r"torch\.float32, the other for .* torch\.bfloat16"):
        first.feed(other)
    other.dtype, other.dims = torch.float32, dataclasses.replace(other.dims, pool_rows=9)
    with pytest.raises(BuildError, match="pool_rows=9"):
        first.feed(other)


def test_feed_comes_before_capture(toy: Any) -> None:
    first, last = toy_stages(toy, 2)
    rt.capture([first])
    with pytest.raises(BuildError, match="has its buffers already: call feed before capture"):
        first.feed(last)
