"""Puts :class:`~ppcgc.hf.attention.Attention` in the place of a transformers model's own.

# Note [no mask function]
The name is registered in ``AttentionInterface`` and not in ``AttentionMaskInterface``: then
transformers builds no mask at all (and skips a detection of packed batches that reads the
device). Masks are this package's, made once a forward.

# Note [the current forward]
A layer learns its forward's attention from a context variable and not from keyword arguments,
because some families (Nemotron, StableLM) do not hand those on to their attention.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface

from ppcgc.hf.attention import Attention
from ppcgc.hf.kernels import Scoring
from ppcgc.runtime.errors import BuildError

ATTENTION_NAME = "ppcgc"

_current: ContextVar[Attention | None] = ContextVar("ppcgc_attention", default=None)


@contextmanager
def attending(attention: Attention) -> Iterator[None]:
    """Inside, layers of models with the attention name attend through ``attention``. Nests."""
    token = _current.set(attention)
    try:
        yield
    finally:
        _current.reset(token)


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    is_causal: bool | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """As transformers calls it: query [1, heads, tokens, dim], result [1, tokens, heads, dim].

    Raises BuildError for what would change the result and is not known here.
    """
    attention = _current.get()
    if attention is None or attention_mask is not None or query.shape[0] != 1:
        raise BuildError(
            f"attention {ATTENTION_NAME!r} serves one flat row of tokens without a mask, inside "
            f"a stage's forward; got {query.shape[0]} rows, "
            f"{'no mask' if attention_mask is None else 'a mask'}, "
            f"{'outside of a stage' if attention is None else 'inside a stage'}"
        )
    unknown = sorted(name for name, given in others.items() if _changes_scores(name, given))
    if unknown:
        raise BuildError(
            f"attention {ATTENTION_NAME!r}: {type(module).__name__} gives {', '.join(unknown)}, "
            "which change what it attends to and which a stage does not know; the family cannot "
            "be a stage"
        )
    if not _looks_back_only(module, is_causal):
        raise BuildError(
            f"attention {ATTENTION_NAME!r}: {type(module).__name__} is not causal, and a stage's "
            "attention is: its tokens would see none that follow them; the model cannot be a stage "
            "(use_bidirectional_attention or is_causal in its config decide it)"
        )
    scoring = Scoring(
        scaling=query.shape[-1] ** -0.5 if scaling is None else scaling,
        window=sliding_window,
        softcap=softcap,
        sinks=s_aux,
    )
    layer_id: int = module.layer_idx  # type: ignore[assignment]  # set by every decoder's attention
    out = attention.attend(
        layer_id,
        query[0].transpose(0, 1),
        key[0].transpose(0, 1),
        value[0].transpose(0, 1),
        scoring,
    )
    return out[None], None


def _looks_back_only(module: nn.Module, is_causal: bool | None) -> bool:
    """As transformers decides it: by the call, else by the module; masks by the config."""
    given = getattr(module, "is_causal", True) if is_causal is None else is_causal
    return bool(given) and bool(getattr(getattr(module, "config", None), "is_causal", True))


def _changes_scores(name: str, given: object) -> bool:
    """Whether an argument besides is a tensor (a bias, a selection); flags of the call are not."""
    several = given if isinstance(given, list | tuple) else (given,)
    return name != "position_ids" and any(isinstance(one, Tensor) for one in several)


AttentionInterface.register(ATTENTION_NAME, _attend)
