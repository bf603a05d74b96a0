"""Stages of a Hugging Face model behind the generated runners, all in one process."""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from examples.serving import DecodeBatch, PrefillBatch
from generated import llama_hf
from ppcgc.hf.runners import HFDecode, prefill_module
from ppcgc.hf.stage import split
from ppcgc.runtime import Backend, capture

PREFILL: dict[str, Any] = {
    "only": llama_hf.PrefillOnly,
    "first": llama_hf.PrefillFirst,
    "middle": llama_hf.PrefillMiddle,
    "last": llama_hf.PrefillLast,
}
DECODE: dict[str, Any] = {
    "only": llama_hf.DecodeOnly,
    "first": llama_hf.DecodeFirst,
    "middle": llama_hf.DecodeMiddle,
    "last": llama_hf.DecodeLast,
}


def place(stage: int, of: int) -> str:
    if of == 1:
        return "only"
    return "first" if stage == 0 else "last" if stage == of - 1 else "middle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """One runner a stage for prefill, one for decode; they share weights and KV pool."""

    prefill: list[Any]
    decode: list[Any]

    @classmethod
    def build(
        cls, model: Any, *, stages: int, backend: Backend, kv_rows: int, context: int
    ) -> Pipeline:
        """Split ``model`` and capture every bucket of every stage."""
        dims = llama_hf.Dims.from_config(model.config, kv_rows=kv_rows, context=context)
        layers = [llama_hf.stage_layers(dims, stage=i, of=stages) for i in range(stages)]
        made = cls(prefill=[], decode=[])
        parts = split(model, [(owned.start, owned.end) for owned in layers], longest=context)
        for i, (part, owned) in enumerate(zip(parts, layers, strict=True)):
            pool = part.new_pool(kv_rows)
            common: dict[str, Any] = {
                "layers": owned,
                "dims": dims,
                "state": llama_hf.State(kv=pool.tensors()),
                "dtype": model.dtype,
                "backend": backend,
            }
            kind = place(i, stages)
            made.prefill.append(PREFILL[kind](model=prefill_module(part, pool), **common))
            made.decode.append(DECODE[kind](model=HFDecode(part, pool), **common))
        for runners in (made.prefill, made.decode):
            for sender, receiver in pairwise(runners):
                sender.feed(receiver)  # its output is the receiver's input: nothing is copied
        capture([*made.prefill, *made.decode])
        return made

    def run_prefill(self, batch: PrefillBatch) -> Tensor:
        """Logits [requests, vocab]."""
        return run(self.prefill, batch)

    def run_decode(self, batch: DecodeBatch) -> Tensor:
        """Logits [requests, vocab]."""
        return run(self.decode, batch)


def run(runners: Items[Any], batch: PrefillBatch | DecodeBatch) -> Tensor:
    """One step through all stages."""
    first, *later = runners
    handed = first.run(batch)
    for runner in later:
        handed = runner.run(batch, handed)
    logits: Tensor = handed.logits
    return logits


@torch.no_grad()
def eager_again(runners: Items[Any]) -> Tensor:
    """The last step once more, by the model's own Python over the slots as they are loaded.

    The padded shape is the replay's, so the numbers must be the replay's to the last bit. Writes
    the KV pool as that step did.
    """
    for runner in runners:
        bucket = runner.table[runner.last_step.choice.padded]
        runner.body(bucket)()
    logits: Tensor = bucket.outputs.logits
    return logits


def path(runners: Items[Any]) -> str:
    """What the last step did on each stage: ``replay 47→64``, once where all did the same."""
    return " | ".join(dict.fromkeys(str(runner.last_step) for runner in runners))
