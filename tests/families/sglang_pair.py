"""One stage with SGLang's buffers, twice: its registry over its own buffers, and our runner.

Both are filled from the same batches, which have the attributes of its forward batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from sglang_wheel import Field
from torch import Tensor

from ppcgc.runtime import LayerRange, Ranks, capture, open_backend

HIDDEN, VOCAB, POSITIONS, TOPK = 6, 90, 70, 5
KV_ROWS, MAMBA_ROWS, REQUEST_ROWS = 200, 12, 30
SEQ_LEN_FILL, ENCODER_LEN_FILL = 1, 3
MAX_REQUESTS = {"decode": 8, "prefill": 16}
MAX_TOKENS = {"decode": 8, "prefill": 64}
CONFIG = SimpleNamespace(
    hidden_size=HIDDEN, vocab_size=VOCAB, max_position_embeddings=POSITIONS, num_hidden_layers=2
)
ALONE = Ranks()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Switches of a server, and where one of its processes stands."""

    kind: str  # decode or prefill
    options: frozenset[str] = frozenset()
    tp: Ranks = ALONE
    dp: Ranks = ALONE

    def on(self, option: str) -> bool:
        return option in self.options


# ---------------------------------------------------------------- our side


class Stage:
    """A model that gives what is asked for and reads every key of the boundary."""

    def __init__(self, setting: Setting, *, first: bool) -> None:
        self.setting, self.first = setting, first

    def forward(self, *, batch: Any) -> Any:
        width = torch.ones(HIDDEN)
        hidden = batch.positions[:, None] * width
        if self.first:
            given = {"hidden_states": hidden, "residual": hidden + 1}
            if self.setting.on("topk_handed_on"):
                given["topk_indices"] = batch.positions[:, None].expand(-1, TOPK).int()
            return given
        return hidden + batch.pp_proxy_tensors.hidden_states


def build(package: ModuleType, setting: Setting, *, first: bool) -> Any:
    """The first or the last of two stages, captured on the CPU backend."""
    sizes = {"kv_rows": KV_ROWS, "mamba_rows": MAMBA_ROWS, "topk": TOPK}
    if setting.kind == "decode":
        sizes |= {
            "request_rows": REQUEST_ROWS,
            "seq_len_fill": SEQ_LEN_FILL,
            "encoder_len_fill": ENCODER_LEN_FILL,
        }
    options = package.Options(**dict.fromkeys(setting.options, True))
    dims = package.Dims.from_config(CONFIG, options=options, tp=setting.tp, dp=setting.dp, **sizes)
    name = f"{setting.kind.capitalize()}{'First' if first else 'Last'}"
    runner = getattr(package, name)(
        model=Stage(setting, first=first),
        layers=LayerRange(0, 1, 2) if first else LayerRange(1, 2, 2),
        dims=dims,
        state=package.State(kv=[], mamba=[]),
        dtype=torch.float32,
        backend=open_backend("cpu"),
    )
    capture([runner])
    return runner


def boundary_of(package: ModuleType, batch: Any) -> Any:
    """What the stage before hands over, as our last stage takes it."""
    return package.Boundary(**({"topk_indices": None} | batch.proxy))


def slot_of(slots: Any, name: str) -> Tensor | None:
    """The slot ``group.member`` or ``name``; None where the stage has none."""
    for part in name.split("."):
        slots = getattr(slots, part)
    rows: Tensor | None = slots
    return rows


# ---------------------------------------------------------------- its side


def registry_of(field: Field, setting: Setting, *, first: bool) -> Any:
    """Its registry over buffers that it allocated itself."""
    tokens, requests = MAX_TOKENS[setting.kind], MAX_REQUESTS[setting.kind]
    field.ranks(tp_size=setting.tp.size, tp_rank=setting.tp.rank)
    make = _decode_buffers if setting.kind == "decode" else _prefill_buffers
    buffers = make(field, setting, tokens, requests)
    if first:
        buffers.pp_proxy_tensors = None
    common: dict[str, Any] = {
        "device": torch.device("cpu"),
        "max_bs": requests,
        "max_num_token": tokens,
        "cache_loc_dtype": torch.int64,
        "enable_mamba_track": setting.on("mamba_track"),
        "enable_num_token_non_padded": setting.on("expert_parallel"),
        "require_gathered_buffer": setting.on("gathered_buffer"),
        "attn_tp_sharded_fn": lambda _: setting.on("sequence_sharded"),
        "share_pool": False,
        "source": buffers,
    }
    if setting.kind == "prefill":
        return field.registry.build_prefill_registry(
            **common,
            is_multimodal=setting.on("multimodal"),
            register_input_embeds=setting.on("multimodal") and first,
            hidden_size=HIDDEN,
            embed_dtype=torch.float32,
        )
    return field.registry.build_decode_registry(
        **common,
        seq_len_fill_value=SEQ_LEN_FILL,
        is_encoder_decoder=setting.on("encoder_decoder"),
        encoder_len_fill_value=ENCODER_LEN_FILL,
        require_mlp_tp_gather=setting.on("mlp_tp_gather"),
        num_dp_ranks=setting.dp.size,
    )


def _decode_buffers(field: Field, setting: Setting, tokens: int, requests: int) -> Any:
    buffers = field.buffers.DecodeInputBuffers.create(
        device=torch.device("cpu"),
        max_bs=requests,
        max_num_token=tokens,
        hidden_size=HIDDEN,
        next_token_logits_buffer=torch.zeros(requests, VOCAB),
        dtype=torch.float32,
        num_dp_ranks=setting.dp.size,
        pp_size=2,
        is_encoder_decoder=setting.on("encoder_decoder"),
        require_mlp_tp_gather=setting.on("mlp_tp_gather"),
        seq_len_fill_value=SEQ_LEN_FILL,
        encoder_len_fill_value=ENCODER_LEN_FILL,
        num_tokens_per_req=1,
        cache_loc_dtype=torch.int64,
        enable_mamba_track=setting.on("mamba_track"),
        ne_token_table=torch.zeros(1) if setting.on("ngram_embedding") else None,
        pp_proxy_topk_size=TOPK if setting.on("topk_handed_on") else None,
    )
    if not setting.on("canary"):
        buffers.rids_int = buffers.bootstrap_room_ids_int = None
    return buffers


def _prefill_buffers(field: Field, setting: Setting, tokens: int, requests: int) -> Any:
    return field.buffers.PrefillInputBuffers.create(
        device=torch.device("cpu"),
        max_bs=requests,
        max_num_tokens=tokens,
        cache_loc_dtype=torch.int64,
        is_multimodal=setting.on("multimodal"),
        hidden_size=HIDDEN,
        dtype=torch.float32,
        enable_mamba_track=setting.on("mamba_track"),
        pp_size=2,
        is_first_pp_rank=False,
        pp_proxy_topk_size=TOPK if setting.on("topk_handed_on") else None,
    )


def fill(registry: Any, batch: Any, padded: Any, *, requests: int | None = None) -> None:
    """Fill its registry for a bucket of ours; ``requests`` where it pads none."""
    registry.fill_from(
        batch,
        raw_bs=batch.batch_size,
        padded_bs=padded.requests if requests is None else requests,
        raw_num_tokens=batch.extend_num_tokens,
        padded_num_tokens=padded.tokens,
        pp_proxy_tensors=SimpleNamespace(tensors=batch.proxy),
    )


# ---------------------------------------------------------------- batches


def batch_of(
    setting: Setting, requests: int, tokens: int, seed: int, *, others: int = 0
) -> SimpleNamespace:
    """A batch with every attribute that either side reads, none of its values zero.

    ``others`` is the live count of each other data-parallel rank.
    """
    random = torch.Generator().manual_seed(seed)

    def some(limit: int, *shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
        return torch.randint(1, limit, shape, generator=random).to(dtype)

    def states() -> Tensor:
        return torch.rand(tokens, HIDDEN, generator=random) + 1

    seq_lens = some(POSITIONS, requests)
    counts = [others] * setting.dp.size
    counts[setting.dp.rank] = tokens
    proxy = {"hidden_states": states(), "residual": states()}
    if setting.on("topk_handed_on"):
        proxy["topk_indices"] = some(POSITIONS, tokens, TOPK, dtype=torch.int32)
    return SimpleNamespace(
        batch_size=requests,
        extend_num_tokens=tokens,
        global_num_tokens_cpu=counts,
        input_ids=some(VOCAB, tokens),
        positions=some(POSITIONS, tokens),
        out_cache_loc=some(KV_ROWS, tokens),
        req_pool_indices=some(REQUEST_ROWS, requests),
        seq_lens=seq_lens,
        seq_lens_cpu=seq_lens.clone(),
        mrope_positions=some(POSITIONS, 3, tokens),
        mamba_track_indices=some(MAMBA_ROWS, requests),
        mamba_track_mask=torch.ones(requests, dtype=torch.bool),
        mamba_track_seqlens=some(POSITIONS, requests),
        encoder_lens=some(50, requests, dtype=torch.int32),
        # the count over all tensor-parallel ranks, once for each place where it is read
        global_num_token_non_padded=torch.tensor(tokens, dtype=torch.int32),
        global_num_token_non_padded_cpu=tokens,
        num_token_non_padded=None,
        ngram_embedding_info=SimpleNamespace(
            column_starts=some(40, requests, dtype=torch.int32),
            req_lens=some(40, requests, dtype=torch.int32),
        ),
        rids_int=some(1000, requests),
        bootstrap_room_ids_int=some(1000, requests),
        proxy=proxy,
    )
