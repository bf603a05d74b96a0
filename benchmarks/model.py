"""The measured stage: a Llama decoder as serving engines write it, plain torch.

Projections of one input are merged (query, key and value; gate and up), the residual stream is
handed over beside the hidden states, keys and values are written to a cache. Shape letters:
T tokens, E hidden, H query heads, K key/value heads, D head width.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.shape import Shape

try:
    from torch.nn.attention.varlen import varlen_attn
except ImportError:  # a torch from before 2.10: the exact form serves
    varlen_attn = None  # type: ignore[assignment]  # None says that it is not there


def _options() -> dict[str, Any]:
    """Keywords by which this torch says: causal, grouped heads. They change with every release."""
    if varlen_attn is None:
        return {}
    known = inspect.signature(varlen_attn).parameters
    causal: dict[str, Any] = (
        {"window_size": (-1, 0)} if "window_size" in known else {"is_causal": True}
    )
    return causal | ({"enable_gqa": True} if "enable_gqa" in known else {})


OPTIONS = _options()


class View(Protocol):
    """The slots that the stage reads."""

    @property
    def slot_mapping(self) -> Tensor: ...
    @property
    def cu_seqlens(self) -> Tensor: ...


class Owned(NamedTuple):
    """The same, every row some prompt's."""

    slot_mapping: Tensor
    cu_seqlens: Tensor


class HandedOver(Protocol):
    @property
    def hidden_states(self) -> Tensor: ...
    @property
    def residual(self) -> Tensor: ...


def attend(query_THD: Tensor, keys_TKD: Tensor, values_TKD: Tensor, cu_seqlens: Tensor) -> Tensor:
    """Causal attention inside each packed prompt. Rows that no prompt owns come out undefined."""
    groups = query_THD.shape[1] // keys_TKD.shape[1]
    fused = query_THD.is_cuda and query_THD.dtype != torch.float32
    if groups > 1 and not (fused and "enable_gqa" in OPTIONS):
        keys_TKD = keys_TKD.repeat_interleave(groups, dim=1)
        values_TKD = values_TKD.repeat_interleave(groups, dim=1)
    tokens = query_THD.shape[0]
    if fused:
        out: Tensor = varlen_attn(  # type: ignore[assignment]  # a pair only with return_aux
            query_THD, keys_TKD, values_TKD, cu_seqlens, cu_seqlens, tokens, tokens, **OPTIONS
        )
        return out
    index = torch.arange(tokens, device=query_THD.device)
    request = torch.bucketize(index, cu_seqlens[1:], right=True)
    allowed = (request[:, None] == request[None, :]) & (index[:, None] >= index[None, :])
    query, keys, values = (rows.transpose(0, 1) for rows in (query_THD, keys_TKD, values_TKD))
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=allowed).transpose(0, 1)


def with_padding(cu_seqlens: Tensor, tokens: int) -> Tensor:
    """Offsets of one prompt more, which has the padded rows.

    Note [what padded rows hold is measured too]
        Rows that no prompt owns come out of the attention as whatever memory held, other for each
        peer and each round. From 256 tokens on the device is at its limit of power, and products
        of random rows need more of it than those of zeros: at 2048 tokens with a quarter of
        padding, the same kernels took 23.9 ms in one peer's graphs and 25.2 in another's. As a
        prompt of their own the padded rows stay zero, for all peers.
    """
    return torch.cat([cu_seqlens, cu_seqlens.new_full((1,), tokens)])


def rotate(states_THD: Tensor, cos_T1D: Tensor, sin_T1D: Tensor) -> Tensor:
    low, high = states_THD.chunk(2, dim=-1)
    return states_THD * cos_T1D + torch.cat([-high, low], dim=-1) * sin_T1D


class Layer(nn.Module):
    keys: Tensor
    values: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        hidden, width = shape.hidden_size, shape.head_dim
        self.widths = (shape.heads * width, shape.kv_heads * width, shape.kv_heads * width)
        self.qkv = nn.Linear(hidden, sum(self.widths), bias=False)
        self.out = nn.Linear(hidden, hidden, bias=False)
        self.gate_up = nn.Linear(hidden, 2 * shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, hidden, bias=False)
        self.attention_norm = nn.Parameter(torch.ones(hidden))
        self.mlp_norm = nn.Parameter(torch.ones(hidden))
        # buffers, not plain attributes: torch.compile takes their addresses as fixed
        rows = torch.zeros(shape.kv_rows, shape.kv_heads, width)
        self.register_buffer("keys", rows, persistent=False)
        self.register_buffer("values", rows.clone(), persistent=False)

    def forward(
        self, hidden_TE: Tensor, residual_TE: Tensor, cos: Tensor, sin: Tensor, batch: View
    ) -> tuple[Tensor, Tensor]:
        residual_TE = hidden_TE + residual_TE
        normed = F.rms_norm(residual_TE, (self.shape.hidden_size,), self.attention_norm, 1e-5)
        query, key, value = self.qkv(normed).split(self.widths, dim=-1)
        width = self.shape.head_dim
        query = rotate(query.unflatten(-1, (-1, width)), cos, sin)
        key = rotate(key.unflatten(-1, (-1, width)), cos, sin)
        value = value.unflatten(-1, (-1, width))
        self.keys.index_copy_(0, batch.slot_mapping, key)
        self.values.index_copy_(0, batch.slot_mapping, value)
        attended = self.attention(query, key, value.contiguous(), batch)
        residual_TE = residual_TE + self.out(attended.flatten(1))
        normed = F.rms_norm(residual_TE, (self.shape.hidden_size,), self.mlp_norm, 1e-5)
        gate, up = self.gate_up(normed).chunk(2, dim=-1)
        return self.down(F.silu(gate) * up), residual_TE

    def attention(self, query_THD: Tensor, key: Tensor, value: Tensor, batch: View) -> Tensor:
        return attend(query_THD, key, value, batch.cu_seqlens)


class Stage(nn.Module):
    """Some layers in the middle of a pipeline."""

    start_layer: int
    end_layer: int
    inverse: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.start_layer, self.end_layer = shape.start, shape.start + shape.layers
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        exponents = torch.arange(0, shape.head_dim, 2, dtype=torch.float32) / shape.head_dim
        self.register_buffer("inverse", 1.0 / 500_000.0**exponents, persistent=False)

    def forward(
        self, *, positions: Tensor, batch: View, pp_proxy_tensors: HandedOver
    ) -> dict[str, Tensor]:
        """``hidden_states`` and ``residual`` [T, E]; ``positions`` [T]."""
        angles = positions[:, None].float() * self.inverse
        angles = torch.cat([angles, angles], dim=-1)[:, None]
        cos, sin = angles.cos().to(self.shape.dtype), angles.sin().to(self.shape.dtype)
        hidden, residual = pp_proxy_tensors.hidden_states, pp_proxy_tensors.residual
        owned = Owned(batch.slot_mapping, with_padding(batch.cu_seqlens, positions.shape[0]))
        for layer in self.layers:
            hidden, residual = layer(hidden, residual, cos, sin, owned)
        return {"hidden_states": hidden, "residual": residual}

    def kv(self) -> list[Tensor]:
        """The cache's tensors, all layers."""
        return [rows for layer in self.layers for rows in (layer.keys, layer.values)]  # type: ignore[misc]  # ModuleList forgets the class

    def weight_bytes(self) -> int:
        return sum(parameter.nbytes for parameter in self.parameters())


StageT = TypeVar("StageT", bound=Stage)


def new_stage(shape: Shape, device: torch.device) -> Stage:
    """Random weights that keep activations near one, the same on every call."""
    return with_weights(lambda: Stage(shape), shape, device)


def with_weights(make: Callable[[], StageT], shape: Shape, device: torch.device) -> StageT:
    """What ``make`` builds, on the device, with such weights."""
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(shape.dtype)
    try:
        with torch.device(device):
            stage = make()
    finally:
        torch.set_default_dtype(before)
    draw_weights(stage)
    return stage.requires_grad_(False).eval()


def draw_weights(module: nn.Module) -> None:
    for parameter in module.parameters():
        if parameter.dim() == 2:
            parameter.data.normal_(0, parameter.shape[1] ** -0.5)
