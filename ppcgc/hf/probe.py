"""Can a family be cut into stages? Asked of a small random model of it, by its numbers.

A pipeline plan says which modules there are, not what the forward does between them, and a
family that cannot be cut often runs without an error. Granite is one: it multiplies
``inputs_embeds`` inside its forward, so every later stage would multiply again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from ppcgc.hf.attention import PrefillAttention
from ppcgc.hf.stage import HFStage, split

# lengths of the packed prompts, and rows that no prompt owns
PROMPTS = (9, 1, 14)
PADDING_ROWS = 8

# the default initialisation (0.02) hides mistakes in masks: scores are nearly equal
WEIGHT_STD = 0.15

SMALL = {
    "num_hidden_layers": 8,
    "hidden_size": 64,
    "intermediate_size": 96,
    "moe_intermediate_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 128,
    "max_position_embeddings": 256,
    "sliding_window": 6,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "q_lora_rank": 32,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "n_group": 1,
    "topk_group": 1,
}
PER_LAYER = ("layer_types", "mlp_layer_types", "no_rope_layers")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What the probe of a family found.

    Errors are the largest absolute differences of logits, in the unit of ``logit_scale`` (the
    largest absolute logit): two stages against one, and one stage on packed prompts against the
    model itself on one prompt at a time. Both are infinite where the probe could not run.
    """

    family: str
    splits: bool
    split_error: float
    packing_error: float
    logit_scale: float
    reason: str

    def __str__(self) -> str:
        verdict = "can be cut into stages" if self.splits else "cannot be cut into stages"
        return f"{self.family} {verdict}: {self.reason}"


def probe(config: Any, *, tolerance: float = 1e-3, seed: int = 0) -> ProbeResult:
    """Build a small float32 model of the config's family, keeping its switches and multipliers.

    ``tolerance`` is relative to the largest logit. An error inside the model's code is a result
    and not an exception: then the family cannot be cut, and ``reason`` says why.
    """
    family = str(config.model_type)
    try:
        model = AutoModelForCausalLM.from_config(
            shrink(config), attn_implementation="eager", dtype=torch.float32
        ).eval()
        randomize(model, seed=seed)
        return _compare(family, model, tolerance)
    except Exception as error:  # what third-party code raises is what the probe reports
        infinite = float("inf")
        return ProbeResult(
            family=family,
            splits=False,
            split_error=infinite,
            packing_error=infinite,
            logit_scale=0.0,
            reason=f"a small model of it does not run as stages ({type(error).__name__}: {error})",
        )


def shrink(config: Any) -> Any:
    """The config with small sizes; everything that is not a size stays as it is."""
    values = config.to_dict()
    grouped = values.get("num_key_value_heads") not in (None, values.get("num_attention_heads"))
    for name, size in SMALL.items():
        if isinstance(values.get(name), int):
            values[name] = min(values[name], size)
    if not grouped:
        values["num_key_value_heads"] = values["num_attention_heads"]
    if isinstance(values.get("qk_rope_head_dim"), int):  # MLA: two widths that follow from others
        values["head_dim"] = values["qk_rope_head_dim"]
        values["qk_head_dim"] = values["qk_nope_head_dim"] + values["qk_rope_head_dim"]
    for name in PER_LAYER:
        if isinstance(values.get(name), list):
            values[name] = values[name][: values["num_hidden_layers"]]
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        values[name] = None  # may lie outside of the small vocabulary
    return type(config)(**values)


def randomize(model: Any, *, seed: int, std: float = WEIGHT_STD) -> None:
    """Give every parameter noise of ``std``: matrices that alone, vectors on top of their own."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator) * std
            parameter.copy_(noise if parameter.dim() > 1 else parameter + noise)


# ---------------------------------------------------------------- comparing


@dataclass(frozen=True, slots=True, kw_only=True)
class _Packed:
    """Prompts one after the other, then rows that no prompt owns."""

    input_ids: Tensor
    positions: Tensor
    slot_mapping: Tensor
    cu_seqlens: Tensor


def _pack(prompts: Sequence[Tensor]) -> _Packed:
    padding = torch.zeros(PADDING_ROWS, dtype=torch.int64)
    lengths = torch.tensor([len(prompt) for prompt in prompts])
    live = int(lengths.sum())
    return _Packed(
        input_ids=torch.cat([*prompts, padding]),
        positions=torch.cat([*(torch.arange(len(prompt)) for prompt in prompts), padding]),
        slot_mapping=torch.cat([torch.arange(1, live + 1), padding]),
        cu_seqlens=torch.cat([padding[:1], lengths.cumsum(0)]).to(torch.int32),
    )


@torch.no_grad()
def _compare(family: str, model: Any, tolerance: float) -> ProbeResult:
    layers = model.config.get_text_config().num_hidden_layers
    generator = torch.Generator().manual_seed(1)
    vocab = model.config.get_text_config().vocab_size
    prompts = [torch.randint(1, vocab, (n,), generator=generator) for n in PROMPTS]
    live = sum(PROMPTS)
    alone = torch.cat([model(input_ids=prompt[None]).logits[0] for prompt in prompts])
    batch = _pack(prompts)
    one = _run(split(model, [(0, layers)]), batch).logits[:live]
    handed = _run(split(model, [(0, layers // 2), (layers // 2, layers)]), batch)
    split_error = (handed.logits[:live] - one).abs().max().item()
    packing_error = (one - alone).abs().max().item()
    scale = alone.abs().max().item()
    limit = tolerance * scale
    splits = split_error <= limit and packing_error <= limit  # false for NaN as well
    return ProbeResult(
        family=family,
        splits=splits,
        split_error=split_error,
        packing_error=packing_error,
        logit_scale=scale,
        reason=_reason(splits, split_error, packing_error, scale, limit, handed.entry_factor),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Logits [tokens, vocab], and by what the last stage scaled what it was handed."""

    logits: Tensor
    entry_factor: float


def _run(stages: Sequence[HFStage], batch: _Packed) -> _Run:
    rows = len(batch.input_ids) + 1
    entered: list[Tensor] = []
    last = stages[-1]
    layers = getattr(last.model.base_model, last.plan.layers)
    # layers take their hidden states as the first argument
    hook = layers[last.start_layer].register_forward_pre_hook(
        lambda _module, inputs: entered.append(inputs[0][0])
    )
    hidden: Tensor | None = None
    for stage in stages:
        handed = hidden
        hidden = stage(
            input_ids=batch.input_ids,
            inputs_embeds=handed,
            positions=batch.positions,
            attention=PrefillAttention(batch, stage.new_pool(rows)),
        )
    hook.remove()
    assert hidden is not None  # there is at least one stage
    factor = 1.0 if handed is None else (entered[-1].norm() / handed.norm()).item()
    return _Run(logits=hidden, entry_factor=factor)


def _reason(
    splits: bool,
    split_error: float,
    packing_error: float,
    scale: float,
    limit: float,
    factor: float,
) -> str:
    if splits:
        return f"two stages differ from one by {split_error:.1e}, logits reach {scale:.1f}"
    if abs(factor - 1) > 1e-3:
        return (
            f"its forward changes inputs_embeds before the first layer (by a factor of "
            f"{factor:.3g}), so every later stage would do it again; two stages differ from one by "
            f"{split_error:.2g}, logits reach {scale:.1f}"
        )
    if not split_error <= limit:
        return f"two stages differ from one by {split_error:.2g}, logits reach {scale:.1f}"
    return (
        f"packed prompts differ from prompts alone by {packing_error:.2g}, logits reach "
        f"{scale:.1f}: something mixes rows outside of the attention hook"
    )
