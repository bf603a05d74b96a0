"""BART's decoder: a cache of its own, and cross-attention over pooled rows of the encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
import torch
from hf_family import (
    PATHS,
    VOCAB,
    Pipeline,
    build_runners,
    check_serving,
    poisoned,
)
from torch import Tensor
from transformers import BartConfig, BartForConditionalGeneration
from transformers.modeling_outputs import BaseModelOutput

from examples.serving import Pages, pack_decode, pack_prefill
from examples.serving import Sequence as PagedSequence
from generated import bart
from ppcgc.hf.kv import KVPool
from ppcgc.hf.probe import randomize
from ppcgc.hf.seq2seq import Seq2SeqDecode, Seq2SeqStage, seq2seq_prefill_module, split_decoder

KV_ROWS, CONTEXT = 20 * 16, 32
SOURCE = 12  # the most encoder positions
CROSS_ROWS = 1 + 8 * SOURCE
HIDDEN = 48


def small_bart(device: str) -> Any:
    config = BartConfig(
        vocab_size=VOCAB,
        d_model=HIDDEN,
        encoder_layers=1,
        decoder_layers=4,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=96,
        scale_embedding=True,
        pad_token_id=1,
        attn_implementation="eager",
    )
    model = BartForConditionalGeneration(config).eval()
    randomize(model, seed=7)
    model.final_logits_bias.copy_(torch.linspace(-1, 1, VOCAB))
    return model.to(device)


@dataclass(slots=True, kw_only=True)
class Translation(PagedSequence):
    """A sequence and its encoder output [positions, hidden], kept from row ``at`` of the pools."""

    states: Tensor
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossPrefillBatch:
    num_requests: int
    num_tokens: int
    input_ids: Tensor
    positions: Tensor
    slot_mapping: Tensor
    cu_seqlens: Tensor
    last_token: Tensor
    cross_table: Tensor
    source_lens: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossDecodeBatch:
    num_requests: int
    num_tokens: int
    input_ids: Tensor
    positions: Tensor
    slot_mapping: Tensor
    slot_table: Tensor
    seq_lens: Tensor
    cross_table: Tensor
    source_lens: Tensor


class Translator:
    """Sequences whose encoder outputs have very different lengths, 1 among them."""

    LENGTHS = (12, 1, 7, 3, 9, 5, 12)

    def __init__(self, stages: Sequence[tuple[Seq2SeqStage, KVPool]], device: str) -> None:
        self._stages, self._device = stages, device
        self._pages = Pages(KV_ROWS)
        self._made = 0
        self._generator = torch.Generator().manual_seed(11)

    def start(self, ids: list[int]) -> Translation:
        length, at = self.LENGTHS[self._made], 1 + self._made * SOURCE
        self._made += 1
        states = torch.randn(length, HIDDEN, generator=self._generator).to(self._device)
        rows = torch.arange(at, at + length, device=self._device)
        for stage, cross_pool in self._stages:
            stage.admit(cross_pool, states, rows)
        return Translation(ids=ids, states=states, at=at)

    def prefill(self, sequences: Sequence[Translation]) -> CrossPrefillBatch:
        batch = pack_prefill(self._fitted(sequences))
        return CrossPrefillBatch(
            num_requests=batch.num_requests,
            num_tokens=batch.num_tokens,
            input_ids=batch.input_ids,
            positions=batch.positions,
            slot_mapping=batch.slot_mapping,
            cu_seqlens=batch.cu_seqlens,
            last_token=batch.last_token,
            cross_table=_tables(sequences),
            source_lens=_lengths(sequences),
        )

    def decode(self, sequences: Sequence[Translation]) -> CrossDecodeBatch:
        batch = pack_decode(self._fitted(sequences), context=CONTEXT)
        return CrossDecodeBatch(
            num_requests=batch.num_requests,
            num_tokens=batch.num_tokens,
            input_ids=batch.input_ids,
            positions=batch.positions,
            slot_mapping=batch.slot_mapping,
            slot_table=batch.slot_table,
            seq_lens=batch.seq_lens,
            cross_table=_tables(sequences),
            source_lens=_lengths(sequences),
        )

    def _fitted(self, sequences: Sequence[Translation]) -> Sequence[Translation]:
        for sequence in sequences:
            self._pages.fit(sequence)
        return sequences


def _tables(sequences: Sequence[Translation]) -> Tensor:
    table = torch.zeros(len(sequences), SOURCE, dtype=torch.int64)
    for request, s in enumerate(sequences):
        table[request, : len(s.states)] = torch.arange(s.at, s.at + len(s.states))
    return table


def _lengths(sequences: Sequence[Translation]) -> Tensor:
    return torch.tensor([len(s.states) for s in sequences], dtype=torch.int32)


@torch.no_grad()
def translated(model: Any, sequence: Translation) -> Tensor:
    """Logits [vocab] of the last token, by the unsplit model over the encoder's output."""
    output = model(
        encoder_outputs=BaseModelOutput(last_hidden_state=sequence.states[None]),
        decoder_input_ids=torch.tensor([sequence.ids], device=model.device),
    )
    logits: Tensor = output.logits[0, -1]
    return logits


def pipeline_of(model: Any, cuts: Sequence[int], device: str) -> tuple[Pipeline, Translator]:
    sizes = bart.Dims.from_config(
        model.config, kv_rows=KV_ROWS, context=CONTEXT, cross_rows=CROSS_ROWS, source=SOURCE
    )
    stages = split_decoder(model, list(pairwise([0, *cuts, sizes.layer_count])))
    cross_pools = [poisoned(stage.new_pool(CROSS_ROWS)) for stage in stages]
    parts = []
    for stage, cross_pool in zip(stages, cross_pools, strict=True):
        pool = poisoned(stage.new_pool(KV_ROWS))
        modules = {
            "prefill": seq2seq_prefill_module(stage, pool, cross_pool),
            "decode": Seq2SeqDecode(stage, pool, cross_pool),
        }
        state = bart.State(kv=pool.tensors(), cross_kv=cross_pool.tensors())
        parts.append((stage, modules, state))
    pipeline = build_runners(bart, sizes, parts, dtype=model.dtype, device=device)
    return pipeline, Translator(list(zip(stages, cross_pools, strict=True)), device)


@pytest.mark.parametrize("cuts", [(), (2,), (1, 3)], ids=["one", "two", "three"])
def test_every_step_equals_the_unsplit_model(cuts: Sequence[int], device: str) -> None:
    model = small_bart(device)
    pipeline, translator = pipeline_of(model, cuts, device)
    paths = check_serving(pipeline, lambda s: translated(model, s), translator)
    assert paths == PATHS


def test_rows_that_are_not_live_have_one_source_position(device: str) -> None:
    pipeline, translator = pipeline_of(small_bart(device), (2,), device)
    batch = translator.prefill([translator.start([5, 9, 2]), translator.start([7])])
    pipeline.step("prefill", batch)
    for runner in pipeline.runners["prefill"]:
        slots = runner.table[runner.last_step.choice.padded].slots
        assert slots.source_lens.tolist() == [12, 1, 1, 1, 1, 1, 1, 1]
        assert slots.cross_table[2:].eq(0).all()


def test_weights_are_the_models_own() -> None:
    model = small_bart("cpu")
    stages = split_decoder(model, [(0, 1), (1, 4)])
    theirs = {p.data_ptr() for p in model.parameters()}
    assert all(p.data_ptr() in theirs for stage in stages for p in stage.parameters())
    assert all(p.requires_grad for p in model.parameters())
    assert [cross.layer_id for cross in stages[1].crosses] == [1, 2, 3]
    with torch.no_grad():  # the model itself keeps its own attention
        again = model(input_ids=torch.tensor([[4, 8]]), decoder_input_ids=torch.tensor([[5, 6]]))
    assert torch.isfinite(again.logits).all()
