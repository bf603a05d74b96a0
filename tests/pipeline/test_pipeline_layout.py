"""Blocks and headers: where each key lies, how much travels, and that headers come back whole."""

from __future__ import annotations

import torch
from toy_pipeline import build, prefill_batch

from ppcgc.runtime import capture
from ppcgc.runtime.carried import TensorInfo
from ppcgc.runtime.choice import Reason
from ppcgc.runtime.pipeline.handoff import HandOff
from ppcgc.runtime.pipeline.header import Header, Path, decode, encode, header_size, note_bytes
from ppcgc.runtime.pipeline.layout import BlockArena, Entry, block_bytes, layout_of, wire_bytes


def test_keys_lie_one_behind_the_other_aligned() -> None:
    def tensors(rows: int) -> tuple[TensorInfo, ...]:
        return (
            TensorInfo("a", (rows, 3), torch.float32),
            TensorInfo("b", (3, rows), torch.int64),
            TensorInfo("c", (rows,), torch.bool),
        )

    padded = layout_of(tensors(8))
    assert padded == (
        Entry("a", 0, (8, 3), torch.float32),  # 96 bytes, up to 128
        Entry("b", 128, (3, 8), torch.int64),  # 192 bytes, up to 320
        Entry("c", 320, (8,), torch.bool),
    )
    assert block_bytes(padded) == 384
    assert wire_bytes(padded, layout_of(tensors(5))) == 320 + 5
    # a key alone travels with its live rows only; nothing at all travels for none
    assert wire_bytes(padded[:1], layout_of(tensors(5))[:1]) == 5 * 12
    assert wire_bytes(padded[:1], layout_of(tensors(0))[:1]) == 0
    # rows in another dimension than the first are no prefix of the bytes
    assert wire_bytes(padded[:2], layout_of(tensors(5))[:2]) == 128 + 192


def test_two_stages_over_blocks_of_their_own() -> None:
    """What a transport does, by hand: the first bytes of one block copied to the other."""
    first, last = (build(stage, 2).runners["prefill"] for stage in range(2))
    senders, receivers = HandOff(first), HandOff(last)
    assert senders.hands is not None and receivers.takes is not None
    assert senders.hands.layouts == receivers.takes.layouts
    outgoing, incoming = (torch.zeros(senders.hands.nbytes, dtype=torch.uint8) for _ in range(2))
    senders.place(None, outgoing)
    receivers.place(incoming, None)
    capture([first, last])
    assert isinstance(last.arena, BlockArena)
    plain_first, plain_last = (build(stage, 2).runners["prefill"] for stage in range(2))
    capture([plain_first, plain_last])
    for tokens in (700, 9, 100):  # a block is laid out anew by every bucket
        batch = prefill_batch([tokens], seed=tokens)
        first.run(batch)
        live, choice = last.decide(batch)
        incoming.fill_(255)
        wire = receivers.takes.wire(choice.padded, live)
        assert wire == senders.hands.wire(choice.padded, live) and len(wire.pieces) == 1
        incoming[wire.pieces[0]].copy_(outgoing[wire.pieces[0]])
        views = receivers.takes.live_views(last.table[choice.padded].boundary, live, choice.padded)
        begun = last.begin_as(batch, views, live, choice)
        made = last.finish(begun).hidden_states
        expected = plain_last.run(batch, plain_first.run(batch)).hidden_states
        torch.testing.assert_close(made, expected, atol=0, rtol=0)


def test_a_header_comes_back_whole() -> None:
    headers = [
        Header(step=7, runner=1, path=Path.REPLAY, live=(47, 2), padded=(64, 16)),
        Header(step=8, runner=0, path=Path.EAGER, reason=Reason.OVER_CAPACITY, live=(9,), note="ü"),
        Header(step=9, runner=0, path=Path.REFUSED, note="SourceError: slot ids"),
        Header(step=2**40, runner=0, path=Path.END),
        Header(step=1, runner=0, path=Path.REPLAY, live=(0, -3, 5), padded=(1, -3, 8)),
    ]
    for header in headers:
        numbers, note = encode(header, 3)
        assert numbers.shape == (header_size(3),) and numbers.dtype == torch.int64
        assert note_bytes(numbers) == len(header.note.encode())
        assert decode(numbers, note) == header
