"""The pass that keeps residual adds out of ``addmm``: what Inductor makes with it and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import pytest
import torch
from torch import Tensor
from torch._inductor import config
from torch._inductor.virtualized import V
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from ppcgc.runtime import compiling
from ppcgc.runtime.residual_adds import ResidualAdds

Forward: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]
Mode: TypeAlias = Literal["fake", "symbolic"]
# torch's own import of its post-grad passes
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")


def residual_first(rows: Tensor, factor: Tensor, bias: Tensor) -> Tensor:
    return rows + rows @ factor


def product_first(rows: Tensor, factor: Tensor, bias: Tensor) -> Tensor:
    return rows @ factor + rows


def twice(rows: Tensor, factor: Tensor, bias: Tensor) -> Tensor:
    rows = rows + torch.relu(rows) @ factor
    return rows + torch.sigmoid(rows) @ factor


def biased(rows: Tensor, factor: Tensor, bias: Tensor) -> Tensor:
    return torch.addmm(bias, rows, factor)


def bias_by_hand(rows: Tensor, factor: Tensor, bias: Tensor) -> Tensor:
    return rows @ factor + bias


def scaled_product(rows: Tensor, factor: Tensor, bias: Tensor) -> Tensor:
    return torch.add(rows, rows @ factor, alpha=2)


def scaled_rows(rows: Tensor, factor: Tensor, bias: Tensor) -> Tensor:
    return torch.add(rows @ factor, rows, alpha=0.5)


def scaled_product_and_bias(rows: Tensor, factor: Tensor, bias: Tensor) -> Tensor:
    return torch.add(bias, rows @ factor, alpha=2)


def given() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    shapes = ((6, 8), (8, 8), (8,))
    rows, factor, bias = (torch.randn(shape, generator=generator) for shape in shapes)
    return rows, factor, bias


def optimised(forward: Forward, pre_pass: ResidualAdds | None, mode: Mode) -> GraphModule:
    """The graph after Inductor's own passes; ``symbolic`` sizes are those of dynamic rows."""
    from torch._inductor.fx_passes.post_grad import post_grad_passes

    graph = make_fx(forward, tracing_mode=mode)(*given())
    fake_mode = next(iter(graph.graph.nodes)).meta["val"].fake_mode
    with (
        config.patch(post_grad_custom_pre_pass=pre_pass),
        V.set_fake_mode(fake_mode),
        torch.no_grad(),
    ):
        post_grad_passes(graph, is_inference=True)
    return graph


def products_with_addend(graph: GraphModule) -> int:
    return sum(node.target is torch.ops.aten.addmm.default for node in graph.graph.nodes)


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
@pytest.mark.parametrize("forward", [residual_first, product_first, twice])
def test_residual_adds_stay_apart(forward: Forward, mode: Mode) -> None:
    assert products_with_addend(optimised(forward, None, mode)) > 0  # else there is nothing to do
    graph = optimised(forward, ResidualAdds(), mode)
    assert products_with_addend(graph) == 0
    torch.testing.assert_close(graph(*given()), forward(*given()))


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
@pytest.mark.parametrize("forward", [biased, bias_by_hand])
def test_a_bias_is_added_by_the_product(forward: Forward, mode: Mode) -> None:
    graph = optimised(forward, ResidualAdds(), mode)
    assert products_with_addend(graph) == 1
    torch.testing.assert_close(graph(*given()), forward(*given()))


def test_every_sum_is_stored_and_read_from_there() -> None:
    graph = optimised(twice, ResidualAdds(), "fake").graph
    sums = [node for node in graph.nodes if node.target is torch.ops.prims.add.default]
    stored = torch.ops.prims.inductor_force_stride_order.default
    readers = [[user.target for user in one.users] for one in sums]
    assert readers == [[stored], ["output"]]  # the last sum has one reader


def test_a_sum_with_one_reader_is_left_to_its_reader() -> None:
    graph = optimised(residual_first, ResidualAdds(), "fake").graph
    stored = torch.ops.prims.inductor_force_stride_order.default
    assert not [node for node in graph.nodes if node.target is stored]


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
@pytest.mark.parametrize("forward", [scaled_product, scaled_rows, scaled_product_and_bias])
def test_a_factor_is_not_lost(forward: Forward, mode: Mode) -> None:
    """See Note [a factor that is lost]."""
    graph = optimised(forward, ResidualAdds(), mode)
    torch.testing.assert_close(graph(*given()), forward(*given()))


@pytest.mark.parametrize("forward", [twice, scaled_product])
def test_the_pass_leaves_a_graph_that_it_has_seen(forward: Forward) -> None:
    graph = make_fx(forward, tracing_mode="fake")(*given())
    ResidualAdds()(graph.graph)
    graph.recompile()
    before = graph.code
    ResidualAdds()(graph.graph)
    graph.recompile()
    assert graph.code == before


def test_what_was_compiled_is_taken_up_by_the_next_capture() -> None:
    """Equal options, of two captures: see Note [one pass for all compilations]."""
    first, second = compiling._options(), compiling._options()
    assert first == second
    assert first["post_grad_custom_pre_pass"] is second["post_grad_custom_pre_pass"]


def test_a_compiled_graph_is_found_again_by_the_text_of_the_pass() -> None:
    assert ResidualAdds().uuid() == ResidualAdds().uuid() is not None
