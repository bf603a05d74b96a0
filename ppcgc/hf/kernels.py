"""Attention itself, over tensors of fixed shape: one exact form, one fused form for CUDA.

Shape letters: T tokens, H query heads, K key/value heads, G = H / K, D head width.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """How a layer turns queries and keys into weights.

    ``window``: a query sees the last ``window`` positions, itself included. ``softcap``: scores
    become ``softcap * tanh(score / softcap)``. ``sinks`` [H]: one extra score a head, which
    takes weight and adds nothing.
    """

    scaling: float
    window: int | None = None
    softcap: float | None = None
    sinks: Tensor | None = None

    @property
    def plain(self) -> bool:
        """No softcap and no sinks: what fused kernels can do."""
        return self.softcap is None and self.sinks is None


def additive_mask(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where ``allowed`` (bool), minus infinity elsewhere. Every row must allow something."""
    return torch.zeros_like(allowed, dtype=dtype).masked_fill(~allowed, float("-inf"))


def masked_attention(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor,
    scoring: Scoring,
    sinks: Tensor | None,
) -> Tensor:
    """Exact attention. query [A, B, Q, D], keys and values [A, B or 1, S, D] -> [A, B, Q, D].

    ``mask`` is additive and broadcasts to the scores [A, B, Q, S]; ``sinks`` are the scoring's,
    shaped to broadcast to [A, B, Q, 1].
    """
    if scoring.plain:
        shape = (*query.shape[:2], *keys.shape[2:])
        keys, values = keys.expand(shape), values.expand(*shape[:3], values.shape[-1])
        return F.scaled_dot_product_attention(
            query, keys, values, attn_mask=mask, scale=scoring.scaling
        )
    scores = torch.matmul(query, keys.transpose(-1, -2)).float() * scoring.scaling
    if scoring.softcap is not None:
        scores = torch.tanh(scores / scoring.softcap) * scoring.softcap
    scores = scores + mask
    if sinks is not None:
        extra = sinks.float().expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores, extra], dim=-1)
    weights = scores.softmax(dim=-1).to(values.dtype)[..., : keys.shape[-2]]
    return torch.matmul(weights, values)


def varlen_serves(query: Tensor, keys: Tensor, values: Tensor, scoring: Scoring) -> bool:
    """Whether ``torch.nn.attention.varlen`` computes this: CUDA, half precision, plain scores."""
    return (
        query.is_cuda
        and query.dtype in (torch.float16, torch.bfloat16)
        and scoring.plain
        and scoring.window is None
        and keys.shape[-1] == values.shape[-1]
        and query.shape[-1] % 8 == 0
        and query.shape[-1] <= 256
    )


def varlen_attention(
    query: Tensor, keys: Tensor, values: Tensor, cu_seqlens: Tensor, scoring: Scoring
) -> Tensor:
    """Causal attention inside each sequence. query [T, H, D], keys and values [T, K, D].

    ``cu_seqlens`` int32 [requests + 1]. Rows past its last entry come out undefined. The two
    maximum lengths are host integers and so frozen into a graph: the padded token count, which
    no sequence exceeds.
    """
    attend, options = _varlen_call(scoring.scaling)
    if "enable_gqa" not in options:  # torch before 2.12 takes equal head counts only
        groups = query.shape[1] // keys.shape[1]
        keys = keys.repeat_interleave(groups, dim=1)
        values = values.repeat_interleave(groups, dim=1)
    tokens = query.shape[0]
    query, keys, values = query.contiguous(), keys.contiguous(), values.contiguous()
    out: Tensor = attend(query, keys, values, cu_seqlens, cu_seqlens, tokens, tokens, **options)
    return out


def _varlen_call(scaling: float) -> tuple[Callable[..., Any], dict[str, Any]]:
    """``varlen_attn`` and the keywords by which this torch says: causal, scaled, grouped heads.

    The signature changed with every release: 2.10 has ``is_causal``; 2.11 has ``window_size``
    and ``scale``; 2.12 adds ``enable_gqa``.
    """
    from torch.nn.attention.varlen import varlen_attn

    known = inspect.signature(varlen_attn).parameters
    options: dict[str, Any] = {}
    if "window_size" in known:
        options["window_size"] = (-1, 0)
    else:
        options["is_causal"] = True
    if "scale" in known:
        options["scale"] = scaling
    if "enable_gqa" in known:
        options["enable_gqa"] = True
    return varlen_attn, options
