"""Layers with a recurrent state beside layers with attention (Qwen3-Next), on flat batches.

A recurrent layer keeps two things of a sequence, whatever its length: a matrix for each head, and
the last inputs of a short convolution. A batch names the row of the state pool that each of its
sequences owns; row 0 takes what padding writes, so a padded row cannot reach a live state.

A prefill computes all its prompts at once. The matrix changes by a rank-one step a token,
``S = decay S + k (beta (v - decay S k))``, which is linear in the steps' right sides, so one
triangular solve a head gives them all; a mask keeps the prompts apart, and padding from all.

Weights and the unsplit model are transformers' ``Qwen3Next`` without experts.

Shape letters: T tokens, R requests, C convolution channels, W its width, H heads, D widths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.layered import LayeredStage, logit_rows
from ppcgc.hf.attention import Attention, DecodeAttention, PrefillAttention
from ppcgc.hf.hook import attending
from ppcgc.hf.kv import KVPool, KVShape, allocate


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentState:
    """One layer's state, a row for each sequence."""

    matrices: Tensor  # float32 [rows, H, D key, D value]
    inputs: Tensor  # [rows, C, W - 1]: the convolution's last inputs, oldest first

    def tensors(self) -> list[Tensor]:
        return [self.matrices, self.inputs]


class PackedSequences:
    """Which tokens of a packed prefill belong together."""

    def __init__(self, cu_seqlens: Tensor, state_rows: Tensor, tokens: int) -> None:
        ends = cu_seqlens.long()
        self.index = torch.arange(tokens, device=ends.device)
        request = torch.bucketize(self.index, ends[1:], right=True)
        self.starts = ends.index_select(0, request)  # [T]
        same = request[:, None] == request
        live = self.index < ends[-1]
        self.earlier = same & (self.index[:, None] > self.index) & live & live[:, None]  # [T, T]
        self.until = self.earlier | (self.index[:, None] == self.index)
        self.state_rows = state_rows  # [R]
        self.first, self.last = ends[:-1], (ends[1:] - 1).clamp(min=0)  # [R]
        self.members = (
            request == torch.arange(len(state_rows), device=ends.device)[:, None]
        ) & live

    def before(self, rows: Tensor, steps: int) -> Tensor:
        """``rows`` [T, C] of ``steps`` tokens earlier in the same prompt, zero before its start."""
        source = self.index - steps
        inside = source >= self.starts
        return rows.index_select(0, source.clamp(min=0)).masked_fill(~inside[:, None], 0)

    def convolved(self, rows: Tensor, weight: Tensor, state: Tensor) -> Tensor:
        """Causal convolution of [T, C] by ``weight`` [C, W]; keeps each prompt's last inputs."""
        width = weight.shape[1]
        out = sum(self.before(rows, width - 1 - tap) * weight[:, tap] for tap in range(width))
        kept = [self._at_end(rows, steps) for steps in range(width - 2, -1, -1)]
        state.index_copy_(0, self.state_rows, torch.stack(kept, dim=-1))
        assert isinstance(out, Tensor)
        return out

    def _at_end(self, rows: Tensor, steps: int) -> Tensor:
        """[R, C]: the input ``steps`` before each prompt's last token."""
        source = self.last - steps
        inside = source >= self.first
        return rows.index_select(0, source.clamp(min=0)).masked_fill(~inside[:, None], 0)

    def recurred(self, gates: Gates, state: Tensor) -> Tensor:
        """Outputs [T, H, D] of prompts that begin here; keeps each one's final matrices."""
        # double: small differences of sums that run over the whole batch
        decays = torch.cumsum(gates.decay.double(), dim=0).T  # [H, T], in logarithms
        spans = (decays[:, :, None] - decays[:, None, :]).float()  # from later to earlier token
        until = spans.masked_fill(~self.until, float("-inf")).exp()
        earlier = until.masked_fill(~self.earlier, 0)
        query, key, value = (part.transpose(0, 1) for part in (gates.query, gates.key, gates.value))
        beta = gates.beta.T[:, :, None]
        mixed = beta * (key @ key.mT) * earlier
        steps = torch.linalg.solve_triangular(
            mixed + torch.eye(mixed.shape[-1], device=mixed.device), beta * value, upper=False
        )  # [H, T, D]: what each token adds along its key
        out: Tensor = ((query @ key.mT) * until) @ steps
        ends = decays.index_select(1, self.last)  # [H, R]
        left = (ends[:, :, None] - decays[:, None, :]).float()
        left = left.masked_fill(~self.members, float("-inf")).exp()  # [H, R, T]
        final = torch.einsum("hrt,htk,htv->rhkv", left, key, steps)
        state.index_copy_(0, self.state_rows, final)
        return out.transpose(0, 1)


class OneStep:
    """One token a sequence, from the state that it left behind."""

    def __init__(self, state_rows: Tensor) -> None:
        self.state_rows = state_rows  # [R]

    def convolved(self, rows: Tensor, weight: Tensor, state: Tensor) -> Tensor:
        window = torch.cat([state.index_select(0, self.state_rows), rows[:, :, None]], dim=-1)
        state.index_copy_(0, self.state_rows, window[:, :, 1:])
        return (window * weight).sum(-1)

    def recurred(self, gates: Gates, state: Tensor) -> Tensor:
        before = state.index_select(0, self.state_rows) * gates.decay.exp()[:, :, None, None]
        recalled = torch.einsum("rhkv,rhk->rhv", before, gates.key)
        step = gates.beta[:, :, None] * (gates.value - recalled)
        after = before + gates.key[..., None] * step[:, :, None]
        state.index_copy_(0, self.state_rows, after)
        return torch.einsum("rhkv,rhk->rhv", after, gates.query)


Sequences = PackedSequences | OneStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """What a token does to a state, float32: query, key, value [T, H, D]; decay, beta [T, H]."""

    query: Tensor
    key: Tensor
    value: Tensor
    decay: Tensor  # logarithm of what is left of the state, at most 0
    beta: Tensor


def unit(states: Tensor) -> Tensor:
    return states * torch.rsqrt((states * states).sum(-1, keepdim=True) + 1e-6)


def recurrent(net: Any, hidden_TE: Tensor, state: RecurrentState, sequences: Sequences) -> Tensor:
    """A recurrent layer's mixing, by the weights of a ``Qwen3NextGatedDeltaNet``: [T, E]."""
    query, key, value, gate, b, a = (
        part[0]
        for part in net.fix_query_key_value_ordering(
            net.in_proj_qkvz(hidden_TE[None]), net.in_proj_ba(hidden_TE[None])
        )
    )
    mixed = torch.cat([query.flatten(1), key.flatten(1), value.flatten(1)], dim=-1)
    mixed = F.silu(sequences.convolved(mixed, net.conv1d.weight[:, 0], state.inputs))
    query, key, value = torch.split(mixed, [net.key_dim, net.key_dim, net.value_dim], dim=-1)
    gates = Gates(
        query=_spread(net, unit(_heads(query.float(), net.head_k_dim))) * net.head_k_dim**-0.5,
        key=_spread(net, unit(_heads(key.float(), net.head_k_dim))),
        value=_heads(value.float(), net.head_v_dim),
        decay=-net.A_log.float().exp() * F.softplus(a.float() + net.dt_bias),
        beta=b.float().sigmoid(),
    )
    out = sequences.recurred(gates, state.matrices).to(hidden_TE.dtype)
    normed = net.norm(out.flatten(0, 1), gate.flatten(0, 1)).view(out.shape)
    projected: Tensor = net.out_proj(normed.flatten(1))
    return projected


def _heads(states_TX: Tensor, width: int) -> Tensor:
    """[T, H * D] as [T, H, D]."""
    return states_TX.reshape(states_TX.shape[0], -1, width)


def _spread(net: Any, states_THD: Tensor) -> Tensor:
    """Each key head once for every value head that it serves."""
    return states_THD.repeat_interleave(net.num_v_heads // net.num_k_heads, dim=1)


class HybridStage(LayeredStage):
    """Layers of a model with both kinds."""

    def __init__(self, model: Any, start: int, end: int) -> None:
        super().__init__(model, start, end)
        kinds = self.config.layer_types
        self.recurrent_ids = [i for i in range(start, end) if kinds[i] == "linear_attention"]

    def new_pool(self, rows: int) -> KVPool:
        """The KV cache of the layers with attention."""
        config = self.config
        shape = KVShape(
            heads=config.num_key_value_heads, key_dim=config.head_dim, value_dim=config.head_dim
        )
        attending_ids = set(range(self.start_layer, self.end_layer)) - set(self.recurrent_ids)
        return allocate(
            dict.fromkeys(attending_ids, shape),
            layers=self.layer_count,
            rows=rows,
            dtype=self.weight.dtype,
            device=self.weight.device,
        )

    def new_states(self, rows: int) -> dict[int, RecurrentState]:
        """A zeroed state for each recurrent layer; row 0 belongs to padding."""
        return {
            layer_id: self._state(layer.linear_attn, rows)
            for layer_id, layer in self.owned()
            if layer_id in self.recurrent_ids
        }

    def _state(self, net: Any, rows: int) -> RecurrentState:
        matrix = (net.num_v_heads, net.head_k_dim, net.head_v_dim)
        return RecurrentState(
            matrices=self.weight.new_zeros(rows, *matrix, dtype=torch.float32),
            inputs=self.weight.new_zeros(rows, net.conv_dim, net.conv_kernel_size - 1),
        )

    def run(
        self,
        hidden_TE: Tensor,
        positions: Tensor,
        attention: Attention,
        sequences: Sequences | None,
        states: dict[int, RecurrentState],
    ) -> Tensor:
        """Hidden states [T, E] after the stage's layers."""
        rope = self.rotary_emb(hidden_TE[None], positions[None])
        with attending(attention):
            for layer_id, layer in self.owned():
                if layer_id not in states:
                    hidden_TE = layer(hidden_TE[None], position_embeddings=rope)[0]
                    continue
                assert sequences is not None  # a stage that owns the kind has the slot
                normed = layer.input_layernorm(hidden_TE)
                hidden_TE = hidden_TE + recurrent(
                    layer.linear_attn, normed, states[layer_id], sequences
                )
                hidden_TE = hidden_TE + layer.mlp(layer.post_attention_layernorm(hidden_TE))
        return hidden_TE


class _Runnable(nn.Module):
    start_layer: int
    end_layer: int

    def __init__(self, stage: HybridStage, pool: KVPool, states: dict[int, RecurrentState]) -> None:
        super().__init__()
        self.start_layer, self.end_layer = stage.start_layer, stage.end_layer
        self.stage, self.pool, self.states = stage, pool, states

    def step(
        self,
        entry: tuple[Tensor | None, Tensor | None],
        positions: Tensor,
        attention: Attention,
        sequences: Sequences | None,
        rows: Tensor | None,
    ) -> Tensor:
        stage, (input_ids, inputs_embeds) = self.stage, entry
        hidden: Any = stage.embed_tokens(input_ids) if stage.is_first else inputs_embeds
        hidden = stage.run(hidden, positions, attention, sequences, self.states)
        result: Tensor = stage.logits(hidden, rows) if stage.is_last else hidden
        return result


class HybridPrefill(_Runnable):
    """The stage on packed prompts. ``state_rows`` int64 [R] on stages with recurrent layers."""

    def forward(
        self,
        *,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        positions: Tensor,
        batch: Any,
        state_rows: Tensor | None = None,
    ) -> Tensor:
        sequences = (
            None
            if state_rows is None
            else PackedSequences(batch.cu_seqlens, state_rows, positions.shape[0])
        )
        attention = PrefillAttention(batch, self.pool)
        rows = logit_rows(batch, self.stage.is_last)
        return self.step((input_ids, inputs_embeds), positions, attention, sequences, rows)


class HybridDecode(_Runnable):
    """The stage on one token a request."""

    def forward(
        self,
        *,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        positions: Tensor,
        batch: Any,
        state_rows: Tensor | None = None,
    ) -> Tensor:
        sequences = None if state_rows is None else OneStep(state_rows)
        attention = DecodeAttention(batch, self.pool)
        return self.step((input_ids, inputs_embeds), positions, attention, sequences, None)
