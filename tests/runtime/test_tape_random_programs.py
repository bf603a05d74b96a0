"""Random programs of operations: captured on one input, they compute eager's bits on another."""

from __future__ import annotations

from collections.abc import Callable

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tape_checks import assert_replays_as_eager
from torch import Tensor

# every value is (4, 4) float32, so that any instruction can follow any other
INSTRUCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
    "matmul": lambda a, b: a @ b,
    "softmax": lambda a, b: a.softmax(-1) - b,
    "transpose": lambda a, b: a.t(),
    "double reshape": lambda a, b: a.t().reshape(2, 8).reshape(4, 4),
    "view of halves": lambda a, b: torch.cat([a[:2], b[2:]]),
    "sort": lambda a, b: a.sort(-1).values,
    "where": lambda a, b: torch.where(a > b, a, b),
    "cumsum": lambda a, b: a.cumsum(0).tanh(),
    "add in place": lambda a, b: a.add_(b),
    "write a slice": lambda a, b: _write_rows(a, b),
    "write through a view": lambda a, b: _write_column(a, b),
    "index": lambda a, b: a[torch.tensor([3, 1, 1, 0])],
    "by argmax": lambda a, b: b[a.argmax(-1)],
    "expand": lambda a, b: (a.sum(0, keepdim=True).expand(4, 4) + b).tanh(),
    "constant": lambda a, b: a + torch.tensor([1.0, 2.0, 3.0, 4.0]),
    "double": lambda a, b: (a.double() * b).float(),
    "norm": lambda a, b: torch.nn.functional.layer_norm(a, (4,)),
    "empty": lambda a, b: torch.empty(4, 4).copy_(a).sub_(b),
    "nothing": lambda a, b: a.contiguous(),
}


def _write_rows(a: Tensor, b: Tensor) -> Tensor:
    a[1:3] = b[:2]
    return a


def _write_column(a: Tensor, b: Tensor) -> Tensor:
    a.t()[0].copy_(b[0])
    return a


Program = list[tuple[str, int, int]]
_program = st.lists(
    st.tuples(st.sampled_from(sorted(INSTRUCTIONS)), st.integers(0, 30), st.integers(0, 30)),
    min_size=1,
    max_size=14,
)


@settings(max_examples=50, deadline=None)
@given(_program)
def test_a_program_replays_as_eager(program: Program) -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(4, 4), torch.randn(4, 4)]
    state = torch.randn(4, 4)

    def compute() -> tuple[Tensor, ...]:
        values = [inputs[0] * 1, inputs[1] * 1, state]
        for name, left, right in program:
            a, b = values[left % len(values)], values[right % len(values)]
            values.append(INSTRUCTIONS[name](a, b.clone()))
        return (*values[-3:],)

    assert_replays_as_eager(compute, inputs, state=[state])
