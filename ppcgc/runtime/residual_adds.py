"""A pass for Inductor: residual adds stay apart from the matrix product before them.

Note [an add of all rows is no bias]
    Inductor turns ``residual + x @ w`` into one ``addmm``, which cuBLAS does in place: the residual
    is copied into the output first. That is a copy in the graph for each add, two a layer, of a
    microsecond and a half and a gap; the norm that follows reads the sum anyway and could have
    added it up for nothing. Where every reader of the sum is pointwise Inductor leaves it alone,
    but the stage's last residual is read by nobody and handed on, and its ``addmm`` is no pointwise
    reader of the sum before: so it goes from the last layer up to the first. Rounding is eager's
    then, too: the product is rounded before it is added.

Note [a sum is added up once]
    Left to itself Inductor stores a sum only when it would read more than four tensors to add it up
    again, and every norm adds up those of the layers before. So each sum is asked for in memory:
    the kernel of its norm stores it on the way.

Note [a factor that is lost]
    Inductor's pattern for ``addmm`` takes ``add(x, y, alpha=2)`` for ``add(x, y)``, on all devices
    and with torch 2.13 still. So the factor of an add beside a matrix product becomes a product.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

aten, prims = torch.ops.aten, torch.ops.prims


class ResidualAdds(CustomGraphPass):
    """Keeps ``mm + rows`` from becoming ``addmm`` where ``rows`` has the product's own shape."""

    def __call__(self, graph: Graph) -> None:
        for node in graph.find_nodes(op="call_function", target=aten.add.Tensor):
            if not any(_is_product(side) for side in node.args):
                continue
            if node.kwargs.get("alpha", 1) != 1:
                _scale_apart(graph, node)
            if _adds_all_rows(node):
                node.target = prims.add.default  # the same add, by a name no pattern looks for
                node.kwargs = {}
                _keep_sum(graph, node)

    def uuid(self) -> Any:
        """A key of Inductor's cache: graphs that another version of this pass made are others."""
        return get_hash_for_files((__file__,))


# Note [one pass for all compilations]
#   Dynamo takes up what it has compiled for a function when the options are equal to those of then.
#   With a pass made anew each capture would compile anew, until Dynamo's limit refuses it.
RESIDUAL_ADDS = ResidualAdds()


def _is_product(side: object) -> bool:
    return isinstance(side, Node) and side.target is aten.mm.default


def _scale_apart(graph: Graph, node: Node) -> None:
    """Make the add's factor a product of its own."""
    first, second = node.args
    if not isinstance(second, Node):
        return
    with graph.inserting_before(node):
        scaled = graph.call_function(aten.mul.Tensor, (second, node.kwargs["alpha"]))
    scaled.meta.update(second.meta)
    node.args, node.kwargs = (first, scaled), {}


def _keep_sum(graph: Graph, node: Node) -> None:
    """Have a sum of several readers stored where it is made: what asks for an order of strides
    asks for memory."""
    strides = list(node.meta["val"].stride())
    if len(node.users) < 2 or not all(isinstance(stride, int) for stride in strides):
        return  # rows whose distance depends on their number would need a node for it
    with graph.inserting_after(node):
        kept = graph.call_function(prims.inductor_force_stride_order.default, (node, strides))
    kept.meta.update(node.meta)
    node.replace_all_uses_with(kept, delete_user_cb=lambda user: user is not kept)


def _adds_all_rows(node: Node) -> bool:
    """Whether both sides have the shape of the product: neither is a bias that is spread."""
    sides = [side for side in node.args if isinstance(side, Node) and "val" in side.meta]
    if len(sides) != 2:
        return False
    one, other = (side.meta["val"] for side in sides)
    if one.dtype != other.dtype or one.dim() != other.dim():
        return False
    return all(statically_known_true(a == b) for a, b in zip(one.shape, other.shape, strict=True))
