"""Real modules through the tape: attention with a KV pool, routing, custom ops, a tiny Llama."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from tape_checks import assert_replays_as_eager
from torch import Tensor, nn

from ppcgc.runtime.backends.cpu import CpuBackend

ROWS, HIDDEN, HEADS, POOL_ROWS = 6, 16, 2, 12


class PooledAttention(nn.Module):
    """Writes keys and values behind a slot mapping, then attends over the whole pool."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.out = nn.Linear(HIDDEN, HIDDEN)
        self.register_buffer("pool_k", torch.zeros(POOL_ROWS, HIDDEN))
        self.register_buffer("pool_v", torch.zeros(POOL_ROWS, HIDDEN))

    def forward(self, hidden_TH: Tensor, slot_mapping_T: Tensor, last: int = 0) -> Tensor:
        query, key, value = self.qkv(hidden_TH).chunk(3, -1)
        pool_k, pool_v = self.get_buffer("pool_k"), self.get_buffer("pool_v")
        pool_k.index_copy_(0, slot_mapping_T, key)
        pool_v[slot_mapping_T] = value
        heads = [
            rows.view(-1, HEADS, HIDDEN // HEADS).transpose(0, 1)
            for rows in (query, pool_k, pool_v)
        ]
        mask = torch.arange(POOL_ROWS) <= slot_mapping_T[:, None]
        mixed = F.scaled_dot_product_attention(heads[0], heads[1], heads[2], attn_mask=mask)
        out: Tensor = self.out(mixed.transpose(0, 1).reshape(-1, HIDDEN))
        return out + hidden_TH


class RoutedExperts(nn.Module):
    """Top-2 of four experts by a batched product over gathered weights: no host reads."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(HIDDEN, 4)
        self.up = nn.Parameter(torch.randn(4, HIDDEN, 2 * HIDDEN))
        self.down = nn.Parameter(torch.randn(4, 2 * HIDDEN, HIDDEN))

    def forward(self, hidden_TH: Tensor) -> Tensor:
        weight, chosen = self.gate(hidden_TH).softmax(-1).topk(2, -1)
        rows = hidden_TH[:, None, None].expand(-1, 2, -1, -1)
        inner = F.silu(rows @ self.up[chosen])
        mixed = (inner @ self.down[chosen]).squeeze(2)
        load = F.one_hot(chosen, 4).sum((0, 1))
        out: Tensor = (mixed * weight[..., None]).sum(1) + load.float().mean()
        return out


def test_attention_with_a_pool_written_in_place() -> None:
    torch.manual_seed(0)
    stage = PooledAttention()
    hidden, slots = torch.randn(ROWS, HIDDEN), torch.tensor([1, 2, 3, 5, 8, 11])
    state = [stage.get_buffer("pool_k"), stage.get_buffer("pool_v")]
    assert_replays_as_eager(lambda: (stage(hidden, slots),), [hidden, slots], state)


def test_attention_under_inference_mode() -> None:
    torch.manual_seed(0)
    stage = PooledAttention()
    hidden, slots = torch.randn(ROWS, HIDDEN), torch.tensor([1, 2, 3, 5, 8, 11])
    state = [stage.get_buffer("pool_k"), stage.get_buffer("pool_v")]

    @torch.inference_mode()
    def compute() -> tuple[Tensor]:
        return (stage(hidden, slots),)

    graph = assert_replays_as_eager(compute, [hidden, slots], state)
    plain = assert_replays_as_eager(lambda: (stage(hidden, slots),), [hidden, slots], state)
    # compositions are taken apart in both modes: the same steps, so the same bits
    assert graph.steps == plain.steps


def test_routed_experts() -> None:
    torch.manual_seed(0)
    experts = RoutedExperts()
    hidden = torch.randn(ROWS, HIDDEN)
    assert_replays_as_eager(lambda: (experts(hidden),), [hidden])


def test_grouped_product_of_experts() -> None:
    torch.manual_seed(0)
    rows = torch.randn(16, 16, dtype=torch.bfloat16)
    weights = torch.randn(4, 16, 16, dtype=torch.bfloat16)
    ends = torch.tensor([4, 8, 8, 16], dtype=torch.int32)
    grouped = F.grouped_mm
    assert_replays_as_eager(lambda: (grouped(rows, weights, offs=ends),), [rows])


def test_a_stack_in_bfloat16() -> None:
    torch.manual_seed(0)
    stack = nn.Sequential(
        nn.Linear(HIDDEN, 32), nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.5), nn.Linear(32, 8)
    ).to(torch.bfloat16)
    stack.eval()
    hidden = torch.randn(ROWS, HIDDEN, dtype=torch.bfloat16)
    graph = assert_replays_as_eager(lambda: (stack(hidden),), [hidden])
    assert graph.escaped == ()


def test_a_recurrent_layer() -> None:
    torch.manual_seed(0)
    layer = nn.GRU(8, 8)
    x = torch.randn(3, 1, 8)
    assert_replays_as_eager(lambda: (layer(x)[0],), [x])


def test_custom_operators_that_mutate_and_that_make() -> None:
    with torch.library._scoped_library("ppcgc_test", "FRAGMENT"):

        @torch.library.custom_op("ppcgc_test::append", mutates_args=("pool",))
        def append(pool: Tensor, row: Tensor, at: Tensor) -> None:
            pool.index_copy_(0, at, row)

        @torch.library.custom_op("ppcgc_test::swap_and_sum", mutates_args=("left",))
        def swap_and_sum(left: Tensor, right: Tensor) -> Tensor:
            left.copy_(right)
            return left + right

        pool, row, at = torch.zeros(4, 3), torch.randn(2, 3), torch.tensor([1, 3])

        def compute() -> tuple[Tensor, Tensor]:
            append(pool, row, at)
            left = row * 1
            return swap_and_sum(left, row * 2) + pool[1], left

        assert_replays_as_eager(compute, [row, at], state=[pool])


def test_a_compiled_function_is_recorded_as_its_operations() -> None:
    x = torch.randn(4, 8)
    compiled = torch.compile(lambda t: (t.sin() + 1).softmax(-1), backend="eager")
    assert_replays_as_eager(lambda: (compiled(x),), [x])


class Tagged(torch.Tensor):
    """A subclass without a dispatch of its own."""


def test_a_plain_subclass_is_recorded() -> None:
    x = torch.randn(4)
    tagged = x.as_subclass(Tagged)
    assert_replays_as_eager(lambda: ((tagged * 2).as_subclass(torch.Tensor),), [x])


def test_a_wrapper_subclass_is_recorded_by_its_parts() -> None:
    two_tensor = pytest.importorskip("torch.testing._internal.two_tensor")
    a, b = torch.randn(4), torch.randn(4)

    def compute() -> tuple[Tensor, ...]:
        both = two_tensor.TwoTensor(a, b) * 2 + 1
        return both.a, both.b

    assert_replays_as_eager(compute, [a, b])


def test_library_code_is_told_that_a_capture_is_on() -> None:
    answers: list[bool] = []

    def ask() -> None:
        answers.append(torch.cuda.is_current_stream_capturing())

    backend = CpuBackend()
    asked = torch.cuda.is_current_stream_capturing
    backend.warm_up(ask)
    backend.capture(ask)
    assert answers == [False, True]
    assert torch.cuda.is_current_stream_capturing is asked
    with pytest.raises(ZeroDivisionError):
        backend.warm_up(lambda: 1 // 0)
    assert torch.cuda.is_current_stream_capturing is asked


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_tiny_llama(attention: str) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=64,
        attn_implementation=attention,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    ids = torch.randint(0, 64, (1, 10))
    graph = assert_replays_as_eager(lambda: (model(input_ids=ids, use_cache=False).logits,), [ids])
    assert graph.escaped == ()
    assert graph.pool_bytes < 64 << 10
