"""A Llama forward in the style of serving engines: the residual stream is handed over separately.

Each norm adds the residual first (fused add and norm), so what leaves a layer is a pair: the
output of its MLP, not yet added, and the residual that it will be added to. A pipeline that cuts
between two layers hands over both. Plain torch; weights come from a Hugging Face state dict.

Shape letters: T tokens, R requests, E hidden, H query heads, K key/value heads, D head width.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ppcgc.hf.attention import (
    Attention,
    DecodeAttention,
    DecodeView,
    PrefillAttention,
    PrefillView,
)
from ppcgc.hf.kernels import Scoring
from ppcgc.hf.kv import KVPool, KVShape, allocate


class HandedOver(Protocol):
    """``hidden_states`` and ``residual`` by key: a dict, or a generated boundary."""

    def __getitem__(self, key: str, /) -> Tensor: ...


class AddNorm(nn.Module):
    """RMS norm that first adds the residual; the sum is the new residual."""

    def __init__(self, hidden: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(hidden))
        self.eps = eps

    def forward(self, hidden_TE: Tensor, residual_TE: Tensor | None) -> tuple[Tensor, Tensor]:
        if residual_TE is not None:
            hidden_TE = hidden_TE + residual_TE
        wide = hidden_TE.float()
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return normed.to(hidden_TE.dtype) * self.weight, hidden_TE


class Rope(nn.Module):
    """Cosines and sines of rotary positions, computed once a forward."""

    inverse: Tensor

    def __init__(self, width: int, theta: float) -> None:
        super().__init__()
        exponents = torch.arange(0, width, 2, dtype=torch.float32) / width
        self.register_buffer("inverse", 1.0 / theta**exponents, persistent=False)

    def forward(self, positions_T: Tensor) -> tuple[Tensor, Tensor]:
        angles = positions_T[:, None].float() * self.inverse
        angles = torch.cat([angles, angles], dim=-1)[:, None]
        return angles.cos(), angles.sin()


def rotate(states_THD: Tensor, rope: tuple[Tensor, Tensor]) -> Tensor:
    cos, sin = (part.to(states_THD.dtype) for part in rope)
    low, high = states_THD.chunk(2, dim=-1)
    return states_THD * cos + torch.cat([-high, low], dim=-1) * sin


class SelfAttention(nn.Module):
    def __init__(self, config: Any, layer_id: int) -> None:
        super().__init__()
        width = config.head_dim
        self.layer_id, self.width = layer_id, width
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.q_proj = nn.Linear(config.hidden_size, self.heads * width, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, self.kv_heads * width, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, self.kv_heads * width, bias=False)
        self.o_proj = nn.Linear(self.heads * width, config.hidden_size, bias=False)
        self.scoring = Scoring(scaling=width**-0.5)

    def forward(
        self, hidden_TE: Tensor, rope: tuple[Tensor, Tensor], attention: Attention
    ) -> Tensor:
        query = rotate(self.q_proj(hidden_TE).unflatten(-1, (self.heads, self.width)), rope)
        keys = rotate(self.k_proj(hidden_TE).unflatten(-1, (self.kv_heads, self.width)), rope)
        values = self.v_proj(hidden_TE).unflatten(-1, (self.kv_heads, self.width))
        out_THD = attention.attend(self.layer_id, query, keys, values, self.scoring)
        projected: Tensor = self.o_proj(out_THD.flatten(1))
        return projected


class Mlp(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        hidden, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, hidden_TE: Tensor) -> Tensor:
        out: Tensor = self.down_proj(F.silu(self.gate_proj(hidden_TE)) * self.up_proj(hidden_TE))
        return out


class Layer(nn.Module):
    def __init__(self, config: Any, layer_id: int) -> None:
        super().__init__()
        self.input_layernorm = AddNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = SelfAttention(config, layer_id)
        self.post_attention_layernorm = AddNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = Mlp(config)

    def forward(
        self,
        hidden_TE: Tensor,
        residual_TE: Tensor | None,
        rope: tuple[Tensor, Tensor],
        attention: Attention,
    ) -> tuple[Tensor, Tensor]:
        hidden_TE, residual_TE = self.input_layernorm(hidden_TE, residual_TE)
        hidden_TE = self.self_attn(hidden_TE, rope, attention)
        hidden_TE, residual_TE = self.post_attention_layernorm(hidden_TE, residual_TE)
        return self.mlp(hidden_TE), residual_TE


class ResidualLlamaStage(nn.Module):
    """Layers ``[start_layer, end_layer)``; the embedding on the first, norm and head on the last.

    ``prefill(pool)`` and ``decode(pool)`` make the modules that runners call.
    """

    start_layer: int
    end_layer: int

    def __init__(self, config: Any, start: int, end: int) -> None:
        super().__init__()
        self.start_layer, self.end_layer = start, end
        self.layer_count: int = config.num_hidden_layers
        self.is_first, self.is_last = start == 0, end == self.layer_count
        self.kv_shape = KVShape(
            heads=config.num_key_value_heads, key_dim=config.head_dim, value_dim=config.head_dim
        )
        if self.is_first:
            self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleDict({str(i): Layer(config, i) for i in range(start, end)})
        if self.is_last:
            self.norm = AddNorm(config.hidden_size, config.rms_norm_eps)
            self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.rope = Rope(config.head_dim, config.rope_parameters["rope_theta"])

    @classmethod
    def from_hf(
        cls, config: Any, tensors: Mapping[str, Tensor], start: int, end: int
    ) -> ResidualLlamaStage:
        """A stage that shares the tensors of a ``LlamaForCausalLM`` state dict."""
        with torch.device("meta"):
            stage = cls(config, start, end)
        own = {name: tensors[_hf_name(name, config)] for name in stage.state_dict()}
        stage.load_state_dict(own, assign=True)
        device = next(iter(own.values())).device
        stage.rope = Rope(config.head_dim, config.rope_parameters["rope_theta"]).to(device)
        return stage.requires_grad_(False).eval()

    def new_pool(self, rows: int) -> KVPool:
        """A zeroed KV cache of ``rows`` rows for this stage's layers."""
        weight = next(self.parameters())
        return allocate(
            dict.fromkeys(range(self.start_layer, self.end_layer), self.kv_shape),
            layers=self.layer_count,
            rows=rows,
            dtype=weight.dtype,
            device=weight.device,
        )

    def prefill(self, pool: KVPool) -> ResidualPrefill:
        return ResidualPrefill(self, pool)

    def decode(self, pool: KVPool) -> ResidualDecode:
        return ResidualDecode(self, pool)

    def forward(
        self,
        input_ids: Tensor | None,
        positions: Tensor,
        attention: Attention,
        pp_proxy_tensors: HandedOver | None,
    ) -> HandedOver | Tensor:
        """``hidden_states`` and ``residual`` [T, E] for the next stage; the last: normed [T, E]."""
        residual_TE: Tensor | None = None
        if pp_proxy_tensors is not None:
            hidden_TE = pp_proxy_tensors["hidden_states"]
            residual_TE = pp_proxy_tensors["residual"]
        else:
            hidden_TE = self.embed_tokens(input_ids)
        rope = self.rope(positions)
        for layer in self.layers.values():
            hidden_TE, residual_TE = layer(hidden_TE, residual_TE, rope, attention)
        if self.is_last:
            normed: Tensor = self.norm(hidden_TE, residual_TE)[0]
            return normed
        assert residual_TE is not None  # a stage has at least one layer
        return {"hidden_states": hidden_TE, "residual": residual_TE}

    def logits(self, hidden_TE: Tensor) -> Tensor:
        """[rows, vocab] of the last stage's hidden states [rows, E]."""
        out: Tensor = self.lm_head(hidden_TE)
        return out


class _Runnable(nn.Module):
    start_layer: int
    end_layer: int

    def __init__(self, stage: ResidualLlamaStage, pool: KVPool) -> None:
        super().__init__()
        self.start_layer, self.end_layer = stage.start_layer, stage.end_layer
        self.stage, self.pool = stage, pool


class ResidualPrefill(_Runnable):
    """The stage on packed prompts."""

    def forward(
        self,
        *,
        input_ids: Tensor | None = None,
        positions: Tensor,
        batch: PrefillView,
        pp_proxy_tensors: HandedOver | None = None,
    ) -> HandedOver | Tensor:
        attention = PrefillAttention(batch, self.pool)
        return self.stage.forward(input_ids, positions, attention, pp_proxy_tensors)


class ResidualDecode(_Runnable):
    """The stage on one token a request."""

    def forward(
        self,
        *,
        input_ids: Tensor | None = None,
        positions: Tensor,
        batch: DecodeView,
        pp_proxy_tensors: HandedOver | None = None,
    ) -> HandedOver | Tensor:
        attention = DecodeAttention(batch, self.pool)
        return self.stage.forward(input_ids, positions, attention, pp_proxy_tensors)


def _hf_name(name: str, config: Any) -> str:
    """The state dict's name of a stage's parameter."""
    if name == "lm_head.weight":
        return "model.embed_tokens.weight" if config.tie_word_embeddings else name
    return f"model.{name}"
