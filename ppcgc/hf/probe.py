"""Can a family be cut into stages? Asked of a small random model of it, by its numbers.

A pipeline plan says which modules there are, not what the forward does between them, and a
family that cannot be cut often runs without an error. Granite is one: it multiplies
``inputs_embeds`` inside its forward, so every later stage would multiply again.

A prefill is captured as well, on the CPU: a forward that reads a tensor on the host has the right
numbers and no graph (JetMoE's experts ask how many rows each of them has).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from ppcgc.hf.attention import DecodeAttention, PrefillAttention
from ppcgc.hf.kv import KVPool
from ppcgc.hf.plan import read_plan
from ppcgc.hf.rotary import rope_limit
from ppcgc.hf.stage import HFStage, split
from ppcgc.runtime.backends.cpu import CpuBackend
from ppcgc.runtime.errors import CaptureError

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
    "rotary_dim": 8,
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
    largest absolute logit): two stages against one, one stage on packed prompts against the model
    itself on one prompt at a time, and a token more for each over the cache against the same. All
    are infinite where the probe could not run.
    """

    family: str
    splits: bool
    split_error: float
    packing_error: float
    decode_error: float
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
    except Exception as error:  # what third-party code raises is what the probe reports
        return _failed(
            family,
            f"no small model of it could be made, which tells nothing of the family: give a config "
            f"with consistent small sizes ({type(error).__name__}: {error})",
        )
    try:
        return _compare(family, model, tolerance)
    except Exception as error:  # the same
        what = f"{type(error).__name__}: {error}"
        return _failed(family, f"a small model of it does not run as stages ({what})")


def _failed(family: str, reason: str) -> ProbeResult:
    infinite = float("inf")
    return ProbeResult(
        family=family,
        splits=False,
        split_error=infinite,
        packing_error=infinite,
        decode_error=infinite,
        logit_scale=0.0,
        reason=reason,
    )


def shrink(config: Any) -> Any:
    """The config with small sizes; everything that is not a size stays as it is."""
    values = config.to_dict()
    own = {name: config.attribute_map.get(name, name) for name in SMALL}
    heads, groups = own["num_attention_heads"], own["num_key_value_heads"]
    vocab = values.get(own["vocab_size"])
    grouped = values.get(groups) not in (None, values.get(heads))
    for name, size in SMALL.items():
        if isinstance(values.get(own[name]), int):
            values[own[name]] = min(values[own[name]], size)
    if not grouped and heads in values:
        values[groups] = values[heads]
    if isinstance(values.get("qk_rope_head_dim"), int):  # MLA: two widths that follow from others
        values["head_dim"] = values["qk_rope_head_dim"]
        values["qk_head_dim"] = values["qk_nope_head_dim"] + values["qk_rope_head_dim"]
    for name in PER_LAYER:
        if isinstance(values.get(name), list):
            values[name] = values[name][: values[own["num_hidden_layers"]]]
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        if values.get(name) is not None and vocab != values.get(own["vocab_size"]):
            values[name] = 0  # its own may lie outside of the small vocabulary
    values["return_dict"] = True  # results are taken by their names
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
    layers = read_plan(model).layer_count  # before anything runs: without a plan it tells nothing
    generator = torch.Generator().manual_seed(1)
    vocab = model.config.get_text_config().vocab_size
    prompts = [torch.randint(1, vocab, (n,), generator=generator) for n in PROMPTS]
    live = sum(PROMPTS)
    alone = torch.cat([model(input_ids=prompt[None]).logits[0] for prompt in prompts])
    batch = _pack(prompts)
    longest = max(PROMPTS) + 1
    (whole,) = split(model, [(0, layers)], longest=longest)
    pool = whole.new_pool(_rows(batch))
    one = _run([whole], batch, [pool]).logits[:live]
    decode_error = _decode_error(model, whole, pool, prompts, generator)
    halves = split(model, [(0, layers // 2), (layers // 2, layers)], longest=longest)
    handed = _run(halves, batch, [half.new_pool(_rows(batch)) for half in halves])
    split_error = (handed.logits[:live] - one).abs().max().item()
    packing_error = (one - alone).abs().max().item()
    scale = alone.abs().max().item()
    most = rope_limit(model.config)
    limit = tolerance * scale
    errors = (split_error, packing_error, decode_error)
    splits = all(error <= limit for error in errors)  # false for NaN as well
    reason = _reason(errors, scale, limit, handed.entry_factor)
    if splits and (refusal := _refusal(whole, batch, pool)):
        splits, reason = False, f"no graph can hold its forward: {refusal}"
    if most is not None:
        reason += f"; no request may go past {most.positions} positions ({most.kind})"
    return ProbeResult(
        family=family,
        splits=splits,
        split_error=split_error,
        packing_error=packing_error,
        decode_error=decode_error,
        logit_scale=scale,
        reason=reason,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Logits [tokens, vocab], and by what the last stage scaled what it was handed."""

    logits: Tensor
    entry_factor: float


def _rows(batch: _Packed) -> int:
    """Rows of a pool: row 0 of nobody, one for each token, one more for each prompt's next."""
    return 1 + len(batch.input_ids) + len(PROMPTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Next:
    """One token more for each prompt."""

    slot_mapping: Tensor
    slot_table: Tensor
    seq_lens: Tensor


def _decode_error(
    model: Any, stage: HFStage, pool: KVPool, prompts: Sequence[Tensor], generator: torch.Generator
) -> float:
    """A decode step over what the prefill wrote, against the model on each prompt alone."""
    most = int(torch.cat(list(prompts)).max())
    tokens = torch.randint(1, 1 + most, (len(prompts),), generator=generator)
    lengths = torch.tensor([1 + len(prompt) for prompt in prompts])
    rows = 1 + sum(map(len, prompts)) + torch.arange(len(prompts))
    table = torch.zeros(len(prompts), int(lengths.max()), dtype=torch.int64)
    first = 1
    for number, prompt in enumerate(prompts):
        table[number, : len(prompt)] = torch.arange(first, first + len(prompt))
        table[number, len(prompt)] = rows[number]
        first += len(prompt)
    view = _Next(slot_mapping=rows, slot_table=table, seq_lens=lengths.to(torch.int32))
    attention = DecodeAttention(view, pool)
    logits = stage(input_ids=tokens, positions=lengths - 1, attention=attention)
    longer = [
        torch.cat([prompt, token[None]]) for prompt, token in zip(prompts, tokens, strict=True)
    ]
    alone = torch.stack([model(input_ids=prompt[None]).logits[0, -1] for prompt in longer])
    return float((logits - alone).abs().max())


def _run(stages: Sequence[HFStage], batch: _Packed, pools: Sequence[KVPool]) -> _Run:
    entered: list[Tensor] = []
    last = stages[-1]
    layers = getattr(last.model.base_model, last.plan.layers)
    # layers take their hidden states as the first argument
    hook = layers[last.start_layer].register_forward_pre_hook(
        lambda _module, inputs: entered.append(inputs[0][0])
    )
    hidden: Tensor | None = None
    for stage, pool in zip(stages, pools, strict=True):
        handed = hidden
        hidden = stage(
            input_ids=batch.input_ids,
            inputs_embeds=handed,
            positions=batch.positions,
            attention=PrefillAttention(batch, pool),
        )
    hook.remove()
    assert hidden is not None  # there is at least one stage
    factor = 1.0 if handed is None else (entered[-1].norm() / handed.norm()).item()
    return _Run(logits=hidden, entry_factor=factor)


def _refusal(stage: HFStage, batch: _Packed, pool: KVPool) -> str:
    """Why a capture of a prefill is refused; empty where it is not."""

    def body() -> None:
        attention = PrefillAttention(batch, pool)
        stage(input_ids=batch.input_ids, positions=batch.positions, attention=attention)

    try:
        CpuBackend().capture(body).close()
    except CaptureError as refused:
        return str(refused)
    return ""


def _reason(errors: tuple[float, float, float], scale: float, limit: float, factor: float) -> str:
    """What the errors of cutting, packing and decoding say."""
    split_error, packing_error, decode_error = errors
    if all(error <= limit for error in errors):
        return f"two stages differ from one by {split_error:.1e}, logits reach {scale:.1f}"
    if abs(factor - 1) > 1e-3:
        return (
            f"its forward changes inputs_embeds before the first layer (by a factor of "
            f"{factor:.3g}), so every later stage would do it again; two stages differ from one by "
            f"{split_error:.2g}, logits reach {scale:.1f}"
        )
    if not split_error <= limit:
        return f"two stages differ from one by {split_error:.2g}, logits reach {scale:.1f}"
    if not packing_error <= limit:
        return (
            f"packed prompts differ from prompts alone by {packing_error:.2g}, logits reach "
            f"{scale:.1f}: something mixes rows outside of the attention hook"
        )
    return (
        f"a decode step over the cache differs from prompts alone by {decode_error:.2g}, logits "
        f"reach {scale:.1f}: something of a token is kept that is not its keys and values"
    )
