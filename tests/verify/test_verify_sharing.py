"""Runners in the same memory under verify: clean ones pass, and faults are seen as ever."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from probe_family import build, caught, decode_batch, prefill_batch, slot_line, subject
from probe_model import ToyDecode, ToyPrefill
from torch import Tensor

from ppcgc.runtime import capture, open_backend, verify


def shared(device: str = "cpu", *, share: bool = True, **models: Any) -> dict[str, list[Any]]:
    """Prefill and decode of both stages; ``models`` are the faulty ones by runner."""
    backend = open_backend(device)
    made = {
        runner: build(runner, backend=backend, device=device, models=models.get(runner, ()))
        for runner in ("prefill", "decode")
    }
    capture([*made["prefill"], *made["decode"]], share=share)
    for one, other in zip(made["prefill"], made["decode"], strict=True):
        assert one.shared is other.shared
        assert (one.shared is not None) is share
    return made


@pytest.mark.parametrize("runner", ["prefill", "decode"])
def test_clean_runners_pass_and_go_on(runner: str) -> None:
    made = shared()
    found = verify(subject(made[runner]))
    assert [str(finding) for finding in found.findings] == []
    for runners in made.values():
        assert all(one.captured and one.check_addresses() == () for one in runners)
        assert verify(subject(runners), quick=True).findings == ()


class ReadsTheOther(ToyDecode):
    """Holds on to a slot of the other runner, which lies where its own never do."""

    other: Tensor | None = None

    def extra(self, hidden: Tensor, view: Any) -> Any:
        return hidden if self.other is None else hidden + self.other.float().sum() * 0


def test_a_read_of_the_other_runner_s_memory_is_nobody_s() -> None:
    made = shared(decode=(ToyDecode, ReadsTheOther))
    decode = made["decode"][1]
    own = max(
        buffer.data_ptr() + buffer.nbytes
        for buffer in (decode.host_bytes, *(b for _, b in decode.arena.named("received.")))
    )
    inputs = decode.shared.blocks[0]
    decode.model.other = inputs[own - inputs.data_ptr() :]
    capture(made["decode"])
    caught(subject(made["decode"]), "inputs", "decode last", "unregistered tensor torch.uint8")


class ClampsASlot(ToyPrefill):
    def extra(self, hidden: Tensor, view: Any) -> Any:
        view.positions.clamp_(max=2)
        return hidden


def test_a_written_slot_is_named() -> None:
    made = shared(prefill=(ToyPrefill, ClampsASlot))
    caught(subject(made["prefill"]), "purity", "prefill last", slot_line("positions"))


def served(made: dict[str, list[Any]], device: str, where: Callable[[], Any]) -> list[Tensor]:
    """Copies of the outputs of steps of both runners, in one random order, each ``where`` says."""
    order, steps = random.Random(3), []
    for seed in range(40):
        runner = order.choice(["prefill", "decode"])
        most = made[runner][0].full
        requests = order.randint(1, most.requests)
        tokens = order.randint(requests, most.tokens) if runner == "prefill" else requests
        maker = prefill_batch if runner == "prefill" else decode_batch
        live = most._replace(tokens=tokens, requests=requests)
        steps.append((made[runner], maker(live, seed, device)))
    if device != "cpu":
        torch.cuda.synchronize()  # the batches are there; steps are ordered by the runtime
    found = []
    for (first, last), batch in steps:
        with where():
            found.append(last.run(batch, first.run(batch)).hidden.clone())
    return found


DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
        ],
    ),
]


@pytest.mark.parametrize("device", DEVICES)
def test_steps_over_several_streams_equal_those_of_runners_apart(device: str) -> None:
    wanted = served(shared(device, share=False), device, nullcontext)
    streams: list[Any] = []
    if device == "cuda":
        stream: Any = torch.cuda.Stream
        streams = [torch.cuda.default_stream(), stream(), stream()]
    order = random.Random(5)

    def some_stream() -> Any:
        return torch.cuda.stream(order.choice(streams)) if streams else nullcontext()

    found = served(shared(device), device, some_stream)
    if device == "cuda":
        torch.cuda.synchronize()
    for rows, same in zip(found, wanted, strict=True):
        assert torch.equal(rows, same)
