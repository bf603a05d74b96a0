"""The generated runners of llama, which hand over the residual stream, over the reference model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hf_models import alone, random_prompts, small_model
from torch import Tensor

from examples.models.residual_llama import ResidualLlamaStage
from examples.serving import PAGE, Pages, Sequence, pack_decode, pack_prefill
from generated import llama
from ppcgc.runtime import capture, open_backend

CONTEXT = 48
KV_ROWS = 16 * PAGE


@dataclass(frozen=True, slots=True)
class Prefill:
    num_requests: int
    num_tokens: int
    input_ids: Tensor
    positions: Tensor
    slot_mapping: Tensor
    cu_seqlens: Tensor
    seq_lens: Tensor


def pack(sequences: list[Sequence]) -> Prefill:
    packed = pack_prefill(sequences)
    return Prefill(
        num_requests=packed.num_requests,
        num_tokens=packed.num_tokens,
        input_ids=packed.input_ids,
        positions=packed.positions,
        slot_mapping=packed.slot_mapping,
        cu_seqlens=packed.cu_seqlens,
        seq_lens=packed.cu_seqlens.diff(),
    )


@pytest.mark.parametrize("family", ["llama", "llama-tied"])
def test_two_stages_equal_the_unsplit_model(family: str) -> None:
    model = small_model(family)
    dims = llama.Dims.from_config(model.config, kv_rows=KV_ROWS, context=CONTEXT)
    layers = [llama.stage_layers(dims, stage=i, of=2) for i in range(2)]
    first, last = (
        ResidualLlamaStage.from_hf(model.config, model.state_dict(), r.start, r.end) for r in layers
    )
    pools = [stage.new_pool(KV_ROWS) for stage in (first, last)]
    states = [llama.State(kv=pool.tensors()) for pool in pools]
    common: dict[str, Any] = {
        "dims": dims,
        "dtype": torch.float32,
        "backend": open_backend("cpu"),
    }
    prefill_first = llama.PrefillFirst(
        model=first.prefill(pools[0]), layers=layers[0], state=states[0], **common
    )
    prefill_last = llama.PrefillLast(
        model=last.prefill(pools[1]), layers=layers[1], state=states[1], **common
    )
    decode_first = llama.DecodeFirst(
        model=first.decode(pools[0]), layers=layers[0], state=states[0], **common
    )
    decode_last = llama.DecodeLast(
        model=last.decode(pools[1]), layers=layers[1], state=states[1], **common
    )
    prefill_first.feed(prefill_last)
    decode_first.feed(decode_last)
    capture([prefill_first, prefill_last, decode_first, decode_last])

    pages = Pages(KV_ROWS)
    sequences = [Sequence(ids=ids.tolist()) for ids in random_prompts((9, 1, 14, 20, 3))]
    for step in range(4):
        for sequence in sequences:
            pages.fit(sequence)
        if step == 0:
            packed = pack(sequences)
            hidden = prefill_last.run(packed, prefill_first.run(packed)).hidden_states
            assert str(prefill_last.last_step) == "replay 47→64"
            hidden = hidden[(packed.cu_seqlens[1:] - 1).long()]
        else:
            batch = pack_decode(sequences, context=CONTEXT)
            hidden = decode_last.run(batch, decode_first.run(batch)).hidden_states
            assert str(decode_last.last_step) == "replay 5→8"
        logits = last.logits(hidden)
        expected = torch.stack([alone(model, torch.tensor(s.ids)) for s in sequences])
        torch.testing.assert_close(logits, expected, atol=2e-5, rtol=0)
        for sequence, token in zip(sequences, logits.argmax(-1).tolist(), strict=True):
            sequence.ids.append(token)
