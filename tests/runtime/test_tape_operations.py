"""Operation by operation: a replay gives the bits of eager code on inputs it never saw."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from tape_checks import assert_replays_as_eager, capture_results, same_bits
from torch import Tensor

from ppcgc.runtime.backends.cpu import CpuBackend

# x is (4, 8) float32, k is (4,) int64 with values in [0, 4)
Operation = Callable[[Tensor, Tensor], Tensor | tuple[Tensor, ...]]


def _through_slices(x: Tensor, k: Tensor) -> Tensor:
    y = x.clone()
    y[1:3] = x[:2] * 2
    y[:, ::2] += 1
    y[0, 1] = 7.0
    y[k[:2]] = -1.0
    return y


def _into_empty(x: Tensor, k: Tensor) -> Tensor:
    y = torch.empty(4, 8)
    y.copy_(x).mul_(2)
    return y.t_()


def _metadata_in_place(x: Tensor, k: Tensor) -> Tensor:
    y = x + 1
    z = y.relu()
    y.unsqueeze_(0).squeeze_(0).transpose_(0, 1)
    return y.t() @ y + z.sum()


def _written_constant(x: Tensor, k: Tensor) -> Tensor:
    count = torch.tensor([1.0, 2.0])
    count.add_(1)
    return x.sum() * count


def _out_argument_resized(x: Tensor, k: Tensor) -> Tensor:
    y = torch.empty(0)
    torch.add(x, x, out=y)
    return y * 2


def _inference(x: Tensor, k: Tensor) -> Tensor:
    with torch.inference_mode():
        y = F.linear(x.reshape(8, 4), torch.ones(3, 4), torch.ones(3)).contiguous()
        return F.layer_norm(y.to(torch.float64), (3,)).reshape(4, 6)


def _mask_filled_with_a_number(x: Tensor, k: Tensor) -> Tensor:
    y = x.clone()
    y[x > 0] = 0.5
    return y


OPERATIONS: dict[str, Operation] = {
    "linear algebra": lambda x, k: x @ x.t(),
    "einsum": lambda x, k: torch.einsum("ij,kj->ik", x, x * 2),
    "batched matmul": lambda x, k: torch.bmm(x.view(2, 2, 8), x.view(2, 8, 2)),
    "softmax": lambda x, k: x.softmax(-1),
    "log_softmax in double": lambda x, k: F.log_softmax(x, 0, dtype=torch.float64),
    "bfloat16": lambda x, k: (x.bfloat16() @ x.bfloat16().t()).float(),
    "sort": lambda x, k: x.sort(-1),
    "topk": lambda x, k: x.topk(3),
    "max with index": lambda x, k: x.max(1),
    "argmax": lambda x, k: x.argmax(-1),
    "cumsum": lambda x, k: x.cumsum(1),
    "where a number": lambda x, k: torch.where(x > 0, x, 0.0),
    "masked_fill": lambda x, k: x.masked_fill(x > 0, float("-inf")),
    "mask filled with a number": _mask_filled_with_a_number,
    "gather": lambda x, k: x.gather(1, k[:, None]),
    "index by integers": lambda x, k: x[k],
    "index by a list": lambda x, k: x[[0, 2, 1]],
    "index_put": lambda x, k: x.index_put((k,), torch.ones(8), accumulate=True),
    "scatter_add": lambda x, k: torch.zeros(4, 8).index_add_(0, k, x),
    "embedding": lambda x, k: F.embedding(k, x),
    "one_hot": lambda x, k: F.one_hot(k, 5),
    "cat": lambda x, k: torch.cat([x, x[:2] * 2], 0),
    "stack and unbind": lambda x, k: torch.stack(x.unbind(0)[::-1]),
    "split": lambda x, k: tuple(part + 1 for part in x.tensor_split(3, 1)),
    "only views": lambda x, k: x.view(8, 4).t()[1:].expand(2, 3, 8),
    "reshape that copies": lambda x, k: x.t().reshape(4, 8) * 2,
    "contiguous that does nothing": lambda x, k: x.contiguous() * x.to(torch.float32),
    "conv1d": lambda x, k: F.conv1d(x[None], torch.ones(2, 4, 3), padding=1),
    "layer_norm": lambda x, k: F.layer_norm(x, (8,)),
    "group_norm": lambda x, k: F.group_norm(x[None], 2),
    "gelu and silu": lambda x, k: F.gelu(x) * F.silu(x),
    "attention": lambda x, k: F.scaled_dot_product_attention(
        x[None, None], x[None, None], x[None, None], is_causal=True
    ),
    "complex numbers": lambda x, k: torch.view_as_real(
        torch.view_as_complex(x.view(4, 4, 2)).conj() * 1j
    ),
    "conjugate product": lambda x, k: (lambda c: (c.conj().t() @ c).abs())(
        torch.complex(x, x.flip(1))
    ),
    "fft": lambda x, k: torch.fft.rfft(x).imag,
    "arange and full": lambda x, k: x + torch.arange(8) + torch.full((8,), 2.5),
    "zeros_like": lambda x, k: torch.zeros_like(x).add_(x),
    "host constant": lambda x, k: x * torch.tensor([1.0, -2.0] * 4),
    "host constant written": _written_constant,
    "repeat_interleave with size": lambda x, k: x.repeat_interleave(k, 0, output_size=6),
    "searchsorted": lambda x, k: torch.searchsorted(torch.arange(8.0), x),
    "variance and mean": lambda x, k: torch.var_mean(x, 1),
    "logsumexp of a mean": lambda x, k: x.mean(0).logsumexp(0),
    "foreach": lambda x, k: tuple(torch._foreach_add([x, x * 2], 1.0)),
    "foreach in place": lambda x, k: (lambda y: (torch._foreach_mul_([y], 3.0), y)[1])(x.clone()),
    "zero rows": lambda x, k: torch.cat([x[:0] @ x.t(), x[:, :4]], 0),
    "nothing but zero rows": lambda x, k: (x[:0] + 1).softmax(-1),
    "slices in place": _through_slices,
    "into empty memory": _into_empty,
    "metadata in place": _metadata_in_place,
    "out= that resizes": _out_argument_resized,
    "inference mode": _inference,
    "dropout": lambda x, k: F.dropout(x, 0.5, training=True),
    "random numbers": lambda x, k: torch.rand(4, 8) + torch.randn_like(x),
    "random in place": lambda x, k: torch.empty(4).normal_(),
    "autocast": lambda x, k: _under_autocast(x),
    "pad and roll": lambda x, k: F.pad(x.roll(1, 0), (1, 2)),
    "nonzero_static": lambda x, k: torch.nonzero_static(k, size=4),
}


def _under_autocast(x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return x @ x.t()


@pytest.mark.parametrize("name", OPERATIONS)
def test_replays_the_bits_of_eager_code(name: str) -> None:
    x = torch.randn(4, 8)
    k = torch.tensor([0, 1, 3, 2])

    def compute() -> tuple[Tensor, ...]:
        result = OPERATIONS[name](x, k)
        return result if isinstance(result, tuple) else (result,)

    assert_replays_as_eager(compute, [x, k])


def test_random_numbers_are_new_at_each_replay() -> None:
    backend = CpuBackend()
    graph, (drawn,) = capture_results(backend, lambda: (torch.rand(16),))
    graph.replay()
    first = drawn.clone()
    graph.replay()
    assert not same_bits(first, drawn)


def test_autocast_around_a_replay_changes_nothing() -> None:
    with torch.library._scoped_library("ppcgc_autocast", "FRAGMENT"):

        @torch.library.custom_op("ppcgc_autocast::square", mutates_args=())
        def square(x: Tensor) -> Tensor:
            return x @ x

        x = torch.randn(8, 8)
        graph, (product,) = capture_results(CpuBackend(), lambda: (square(x),))
        with torch.no_grad():
            expected = x @ x
        product.zero_()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            graph.replay()
        assert same_bits(expected, product)


def test_an_inference_tensor_is_written_by_a_replay() -> None:
    with torch.inference_mode():
        cache = torch.zeros(4)
    x = torch.ones(4)

    def body() -> None:
        with torch.inference_mode():
            cache.add_(x)

    graph = CpuBackend().capture(body)
    graph.replay()
    assert cache.tolist() == [2.0, 2.0, 2.0, 2.0]


def test_gradients_are_off() -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    kept: list[Tensor] = []
    graph = CpuBackend().capture(lambda: kept.append(weight * 2))
    assert not kept[0].requires_grad
    with torch.no_grad():
        weight.fill_(5)
    graph.replay()
    assert kept[0].tolist() == [10.0, 10.0, 10.0]


def test_batch_norm_in_training_counts_up_its_buffers() -> None:
    norm = torch.nn.BatchNorm1d(8)
    x = torch.randn(4, 8)
    buffers = [buffer for buffer in norm.buffers() if buffer.is_floating_point()]
    assert_replays_as_eager(lambda: (norm(x),), [x], state=buffers)
