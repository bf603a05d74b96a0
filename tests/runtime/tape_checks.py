"""Compares a replay with eager code, bit by bit, on inputs that the capture did not see."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from ppcgc.runtime.backends.cpu import CpuBackend, CpuGraph

Results = Sequence[torch.Tensor]


def bits(tensor: torch.Tensor) -> bytes:
    """The bytes of ``tensor``: NaN equals itself, and -0.0 is not 0.0."""
    return bytes(tensor.contiguous().resolve_conj().reshape(-1).view(torch.uint8).tolist())


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    same_kind = left.shape == right.shape and left.dtype == right.dtype
    return same_kind and bits(left) == bits(right)


def fresh_values(tensor: torch.Tensor) -> torch.Tensor:
    """Other values for ``tensor``: normal numbers, or a permutation of its integers."""
    if tensor.is_floating_point() or tensor.is_complex():
        return torch.randn_like(tensor)
    return tensor.flatten()[torch.randperm(tensor.numel())].reshape(tensor.shape)


def capture_results(
    backend: CpuBackend, compute: Callable[[], Results]
) -> tuple[CpuGraph, list[torch.Tensor]]:
    """Warm up and capture ``compute``, its results copied into buffers made beforehand."""
    with torch.no_grad():
        buffers = [torch.zeros_like(result) for result in compute()]

    def body() -> None:
        for buffer, result in zip(buffers, compute(), strict=True):
            buffer.copy_(result)

    backend.warm_up(body)
    return backend.capture(body), buffers


def assert_replays_as_eager(
    compute: Callable[[], Results], inputs: Sequence[torch.Tensor], state: Results = ()
) -> CpuGraph:
    """Capture on the present inputs; replay on two others, the pool poisoned before each.

    ``state`` are tensors that ``compute`` writes in place: they too must come out as in eager code.
    """
    backend = CpuBackend()
    before = [tensor.clone() for tensor in state]
    graph, buffers = capture_results(backend, compute)

    def reset() -> None:
        for tensor, image in zip(state, before, strict=True):
            tensor.copy_(image)

    for seed in (1, 2):
        torch.manual_seed(seed)
        for tensor in inputs:
            tensor.copy_(fresh_values(tensor))
        reset()
        torch.manual_seed(seed)
        with torch.no_grad():
            expected = [result.clone() for result in compute()]
        expected_state = [tensor.clone() for tensor in state]
        reset()
        for buffer in buffers:
            buffer.zero_()
        backend.poison_pool()
        torch.manual_seed(seed)
        graph.replay()
        for wanted, got in zip(expected, buffers, strict=True):
            assert same_bits(wanted, got)
        for wanted, got in zip(expected_state, state, strict=True):
            assert same_bits(wanted, got)
    return graph
