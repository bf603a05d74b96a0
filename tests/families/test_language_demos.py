"""What a spec alone can say: keyed scalars, prefix chunks, absent indices, streams on the side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from demo_specs import Packages
from models.demos import FINE, Adapted, DemoConfig, Drafter, PrefixSums, Verifier
from torch import Tensor

from ppcgc.runtime import LayerRange, capture, open_backend
from ppcgc.runtime.errors import PpcgcError

CONFIG = DemoConfig()
ONE_LAYER = LayerRange(0, 1, 1)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    return Packages(tmp_path_factory)


def says(token: int) -> int:
    """The verifier's next token, once more in plain Python."""
    return (3 * token + 1) % 32


# ---------------------------------------------------------------- verify and extend


def verify_pipeline(package: Packages, device: str) -> list[Any]:
    speculative = package("speculative")
    dims = speculative.Dims.from_config(CONFIG)
    classes = (speculative.VerifyFirst, speculative.VerifyMiddle, speculative.VerifyLast)
    backend = open_backend(device)
    runners = [
        make(
            model=Verifier(layer, CONFIG),
            layers=LayerRange(layer, layer + 1, 3),
            dims=dims,
            dtype=torch.bfloat16,
            backend=backend,
        )
        for layer, make in enumerate(classes)
    ]
    for sender, receiver in pairwise(runners):
        sender.feed(receiver)
    capture(runners)
    return runners


def drafts(rows: Sequence[Sequence[int]], num_draft: int) -> Any:
    flat = [token for row in rows for token in row]
    return SimpleNamespace(
        num_requests=len(rows), num_tokens=len(flat), num_draft=num_draft, input_ids=flat
    )


def verified(runners: Sequence[Any], batch: Any) -> tuple[Any, list[Any]]:
    handed: list[Any] = []
    for runner in runners:
        handed.append(runner.run(batch, *handed[-1:]))
    return handed[-1], handed[:-1]


def test_each_number_of_drafts_has_its_own_graph(package: Packages, device: str) -> None:
    runners = verify_pipeline(package, device)
    assert len(runners[0].table) == 6  # 1, 2 or 4 requests, 1 or 3 drafts
    right = [2, says(2), says(says(2)), says(says(says(2)))]
    early = [5, says(5), 9, says(9)]
    wrong = [7, 8, says(8), 3]
    for num_draft, expected in ((3, [3, 1, 0]), (1, [1, 1, 0])):
        out, _ = verified(runners, drafts([right, early, wrong], num_draft))
        assert out.accepted.tolist() == expected
        assert runners[0].last_step.choice.padded[:2] == (4, 16)
    out, _ = verified(runners, drafts([wrong], 3))  # behind a fuller batch
    assert out.accepted.tolist() == [0]


def test_a_number_of_drafts_without_a_graph_never_replays(package: Packages, device: str) -> None:
    runners = verify_pipeline(package, device)
    try:
        runners[0].run(drafts([[1, 2, 3, 4]], 2))
    except PpcgcError as error:
        assert "num_draft" in str(error)
        assert "2" in str(error)
    else:
        assert runners[0].last_step.choice.padded is None
    out, _ = verified(runners, drafts([[1, says(1), 3, 4]], 1))
    assert out.accepted.tolist() == [1]


def test_rows_that_are_not_four_to_a_request_are_refused(package: Packages, device: str) -> None:
    runners = verify_pipeline(package, device)
    batch = drafts([[1, 2, 3, 4], [1, 2, 3]], 1)
    with pytest.raises(PpcgcError, match=r"7.*8|8.*7"):
        runners[0].run(batch)


def test_the_stream_for_the_draft_model_crosses_behind_its_layer(
    package: Packages, device: str
) -> None:
    runners = verify_pipeline(package, device)
    out, handed = verified(runners, drafts([[1, 2, 3, 4], [5, 6, 7, 8]], 3))
    assert [list(boundary) for boundary in handed] == [["hidden_states"], ["hidden_states", "aux"]]
    expected = [[k * token + 1 + FINE for k in (1, 2, 3)] for token in range(1, 9)]
    assert out.aux.dtype == torch.float32
    assert out.aux.tolist() == expected  # in bfloat16 the fraction would be lost
    assert handed[1].hidden_states.dtype == torch.bfloat16


def test_the_draft_model_is_extended_by_what_was_accepted(package: Packages, device: str) -> None:
    draft = package("draft")
    runner = draft.ExtendOnly(
        model=Drafter(),
        layers=ONE_LAYER,
        dims=draft.Dims.from_config(CONFIG),
        dtype=torch.float32,
        backend=open_backend(device),
    )
    capture([runner])
    for accepted in ([3, 1, 4, 4], [2, 1]):  # 12 tokens of 16, then 3 of 4
        ids = list(range(10, 10 + sum(accepted)))
        aux = torch.arange(3.0 * len(ids), device=device).view(-1, 3) + FINE
        batch = SimpleNamespace(
            num_requests=len(accepted), input_ids=ids, aux=aux, accepted=accepted
        )
        ends = [sum(accepted[: i + 1]) - 1 for i in range(len(accepted))]
        expected = [[3 * e + k + FINE + (k + 1) * (10 + e) for k in range(3)] for e in ends]
        assert runner.run(batch).states.tolist() == expected
        assert runner.last_step.choice.padded is not None


# ---------------------------------------------------------------- chunks of a prefix


@pytest.mark.parametrize("num_chunks", [0, 1, 2, 3, 4, 7, 16])
def test_prefixes_are_read_in_chunks(package: Packages, device: str, num_chunks: int) -> None:
    prefix = package("prefix")
    rows = 100
    cache = torch.zeros(rows, 3, device=device)
    runner = prefix.PrefillOnly(
        model=PrefixSums(cache),
        layers=ONE_LAYER,
        dims=prefix.Dims.from_config(CONFIG, kv_rows=rows),
        state=prefix.State(kv=[cache]),
        dtype=torch.float32,
        backend=open_backend(device),
    )
    capture([runner])
    assert len(runner.table) == 12  # two sizes of tokens; no prefix, 1, 2, 4, 8 or 16 chunks
    cache.copy_(torch.arange(rows, device=device)[:, None].expand(-1, 3))
    fullest = prefix_batch([9, 8, 7], [2, 1], [[(1, 4), (9, 4)]] * 16, rows)
    runner.run(fullest)  # leaves its chunks behind
    cache.copy_(torch.arange(rows, device=device)[:, None].expand(-1, 3))

    chunks = [[(1 + 4 * n, 4), (60 + n, 1)] for n in range(num_chunks)]
    out = runner.run(prefix_batch([5, 6, 7], [1, 2], chunks, rows))
    sizes = {0: 0, 1: 1, 2: 2, 3: 4, 4: 4, 7: 8, 16: 16}
    assert runner.last_step.choice.padded.chunks == sizes[num_chunks]
    read = [sum(sum(range(s, s + n)) for s, n in column) for column in zip(*chunks, strict=True)]
    first, second = read or (0, 0)
    assert out.sums.tolist() == [
        [5 * k + first for k in (1, 2, 3)],
        [13 * k + second for k in (1, 2, 3)],
    ]


def prefix_batch(
    ids: list[int], lengths: list[int], chunks: list[list[tuple[int, int]]], rows: int
) -> Any:
    """Two requests. ``chunks``: for each chunk, the start and the rows of each request's."""
    pairs = torch.tensor(chunks, dtype=torch.int64).reshape(-1, 2, 2)
    return SimpleNamespace(
        num_requests=2,
        num_tokens=len(ids),
        num_chunks=len(chunks),
        input_ids=ids,
        slot_mapping=list(range(rows - len(ids), rows)),
        cu_seqlens=[0, lengths[0], sum(lengths)],
        chunk_starts=pairs[:, :, 0].contiguous() if chunks else None,
        chunk_lens=pairs[:, :, 1].to(torch.int32).contiguous() if chunks else None,
    )


# ---------------------------------------------------------------- adapters


def adapted(package: Packages, name: str, device: str) -> Any:
    adapters = package("adapters")
    runner = getattr(adapters, f"{name}Only")(
        model=Adapted(CONFIG, device),
        layers=ONE_LAYER,
        dims=adapters.Dims.from_config(CONFIG),
        dtype=torch.float32,
        backend=open_backend(device),
    )
    capture([runner])
    return runner


def requests(
    ids: list[int], lora_ids: list[int] | None, device: str, *, twin: bool = True
) -> SimpleNamespace:
    lengths = [10 + i for i in range(len(ids))]
    return SimpleNamespace(
        num_requests=len(ids),
        input_ids=ids,
        lora_ids=lora_ids,
        seq_lens=torch.tensor(lengths, dtype=torch.int32, device=device),
        seq_lens_cpu=lengths if twin else None,
    )


def states(ids: list[int], moves: list[int]) -> list[list[float]]:
    return [
        [k * token + 10 + i + move for k in (1, 2, 3)]
        for i, (token, move) in enumerate(zip(ids, moves, strict=True))
    ]


@pytest.mark.parametrize(("name", "graphs"), [("Filled", 3), ("Keyed", 6)])
def test_a_batch_without_adapters(package: Packages, device: str, name: str, graphs: int) -> None:
    runner = adapted(package, name, device)
    assert len(runner.table) == graphs  # three sizes; two of each where presence is in the key
    ids = [1, 2, 3]
    assert runner.run(requests(ids, [4, 0, 2], device)).states.tolist() == states(
        ids, [400, 0, 200]
    )
    # the indices of the step before are still in the buffer
    assert runner.run(requests(ids, None, device)).states.tolist() == states(ids, [0, 0, 0])
    assert runner.run(requests(ids, [0, 0, 1], device)).states.tolist() == states(ids, [0, 0, 100])
    assert runner.eager_steps == {}


def test_lengths_have_a_twin_on_the_host(package: Packages, device: str) -> None:
    runner = adapted(package, "Filled", device)
    step = runner.begin(requests([1, 2, 3], None, device))
    twin: Tensor = step.slots.seq_lens_host
    assert twin.device.type == "cpu"
    assert twin.tolist() == [10, 11, 12, 1]  # padded as the slot itself
    assert step.slots.seq_lens.tolist() == [10, 11, 12, 1]
    runner.finish(step)


def test_a_batch_may_lack_an_optional_twin(package: Packages, device: str) -> None:
    assert adapted(package, "Keyed", device).run(requests([1], None, device, twin=False))
    runner = adapted(package, "Filled", device)
    with pytest.raises(PpcgcError, match="seq_lens"):
        runner.run(requests([1], None, device, twin=False))
    assert runner.run(requests([1], None, device)).states.tolist() == states([1], [0])
