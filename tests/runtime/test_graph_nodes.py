"""How memsets are found and replaced, on a driver of the tests' own: nodes are numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ppcgc.runtime.backends import memset_nodes
from ppcgc.runtime.backends.memset_nodes import (
    GraphNodes,
    Memset,
    as_signed,
    replace_memsets,
    replaceable,
    rows_at,
)

DEVICE = torch.device("cuda", 0)
STREAM: Any = SimpleNamespace(device=DEVICE)
POOL: Any = None
MiB = 1 << 20


class Result(Enum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_NOT_SUPPORTED = 801


class Kind(Enum):
    CU_GRAPH_NODE_TYPE_KERNEL = 0
    CU_GRAPH_NODE_TYPE_MEMSET = 2
    CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10


KERNEL, MEMSET, ALLOC = Kind


class Attribute(Enum):
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9


def memset(address: int = 4096, width: int = 4, length: int = 8, height: int = 1) -> Any:
    return SimpleNamespace(dst=address, elementSize=width, width=length, height=height, value=0)


@dataclass
class Graph:
    """Kinds and parameters of nodes by number, and who comes before whom."""

    kinds: dict[int, Kind]
    params: dict[int, Any] = field(default_factory=dict)
    edges: set[tuple[int, int]] = field(default_factory=set)

    def raw_cuda_graph(self) -> Graph:
        return self

    def reset(self) -> None:
        self.kinds.clear()


class Driver:
    """The calls as ``cuda.bindings`` 13 spells them."""

    CUresult, CUpointer_attribute = Result, Attribute
    CUmemorytype = SimpleNamespace(CU_MEMORYTYPE_DEVICE=2)

    def __init__(self, *graphs: Graph, refuses: str = "") -> None:
        self.graphs, self.refuses = graphs, refuses
        self.memory: dict[int, tuple[int, int]] = {}  # kind and device of an address

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("cu") and name == object.__getattribute__(self, "refuses"):
            return lambda *given: (Result.CUDA_ERROR_NOT_SUPPORTED, None)
        return object.__getattribute__(self, name)

    def CUgraph(self, raw: Graph) -> Graph:
        return raw

    def _home(self, node: int) -> Graph:
        return next(graph for graph in self.graphs if node in graph.kinds)

    @staticmethod
    def _some(nodes: list[int], count: int) -> list[int]:
        assert count in (0, len(nodes))
        return nodes[:count]

    def cuGraphGetNodes(self, graph: Graph, count: int = 0) -> Any:
        nodes = list(graph.kinds)
        return Result.CUDA_SUCCESS, self._some(nodes, count), len(nodes)

    def cuGraphGetRootNodes(self, graph: Graph, count: int = 0) -> Any:
        nodes = [node for node in graph.kinds if not any(to == node for _, to in graph.edges)]
        return Result.CUDA_SUCCESS, self._some(nodes, count), len(nodes)

    def cuGraphNodeGetDependencies(self, node: int, count: int = 0) -> Any:
        nodes = sorted(one for one, to in self._home(node).edges if to == node)
        return Result.CUDA_SUCCESS, self._some(nodes, count), [None] * count, len(nodes)

    def cuGraphNodeGetDependentNodes(self, node: int, count: int = 0) -> Any:
        nodes = sorted(to for one, to in self._home(node).edges if one == node)
        return Result.CUDA_SUCCESS, self._some(nodes, count), [None] * count, len(nodes)

    def cuGraphNodeGetType(self, node: int) -> Any:
        return Result.CUDA_SUCCESS, self._home(node).kinds[node]

    def cuGraphMemsetNodeGetParams(self, node: int) -> Any:
        return Result.CUDA_SUCCESS, self._home(node).params[node]

    def cuGraphKernelNodeGetParams(self, node: int) -> Any:
        return Result.CUDA_SUCCESS, self._home(node).params[node]

    def cuPointerGetAttribute(self, attribute: Attribute, address: int) -> Any:
        kind, device = self.memory.get(address, (2, 0))
        asked = Attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        return Result.CUDA_SUCCESS, kind if attribute is asked else device

    def cuGraphAddKernelNode(self, graph: Graph, before: list[int], count: int, given: Any) -> Any:
        assert count == len(before)
        new = max(node for other in self.graphs for node in other.kinds) + 1
        graph.kinds[new], graph.params[new] = KERNEL, given
        graph.edges |= {(one, new) for one in before}
        return Result.CUDA_SUCCESS, new

    def cuGraphAddDependencies(
        self, graph: Graph, one: list[int], to: list[int], data: None, count: int
    ) -> Any:
        assert count == len(one) == len(to) > 0
        graph.edges |= set(zip(one, to, strict=True))
        return (Result.CUDA_SUCCESS,)

    def cuGraphDestroyNode(self, node: int) -> Any:
        graph = self._home(node)
        del graph.kinds[node]
        graph.params.pop(node, None)
        graph.edges = {edge for edge in graph.edges if node not in edge}
        return (Result.CUDA_SUCCESS,)


def branching() -> Graph:
    """0 → 1 (memset) → 2 and 3 → 4 (memset), and 5 (memset) by itself."""
    return Graph(
        kinds={0: KERNEL, 1: MEMSET, 2: KERNEL, 3: KERNEL, 4: MEMSET, 5: MEMSET},
        params={1: memset(4096), 4: memset(8192), 5: memset(12288)},
        edges={(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)},
    )


def fills(count: int) -> Graph:
    """A chain of kernels, whose numbers tell nothing of their order."""
    order = [100 + (7 * at) % 11 for at in range(count)]
    return Graph(
        kinds=dict.fromkeys(sorted(order), KERNEL),
        params={node: f"fill {at}" for at, node in enumerate(order)},
        edges=set(pairwise(order)),
    )


def listed(driver: Any, graph: Any) -> GraphNodes:
    """The graph's nodes, as this driver tells of them."""
    return GraphNodes(driver, graph)


def replace_by(chain: Graph, driver: Driver, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the graph's memsets by the kernels of ``chain``."""
    monkeypatch.setattr(memset_nodes, "captured_fills", lambda memsets, stream, pool: chain)
    replace_memsets(listed(driver, graph), STREAM, POOL)


def test_each_memset_gives_way_to_its_own_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, chain = branching(), fills(3)
    found: list[int] = []

    def captured(memsets: Any, stream: Any, pool: Any) -> Graph:
        found.extend(one.address for one in memsets)
        return chain

    monkeypatch.setattr(memset_nodes, "captured_fills", captured)
    replace_memsets(listed(Driver(graph, chain), graph), STREAM, POOL)
    assert found == [4096, 8192, 12288]
    assert set(graph.kinds.values()) == {KERNEL}
    by_fill = {graph.params[node]: node for node in graph.kinds if node > 5}
    first, second, third = (by_fill[f"fill {at}"] for at in range(3))
    assert graph.edges == {(0, first), (first, 2), (first, 3), (2, second), (3, second)}
    assert third in graph.kinds


@pytest.mark.parametrize(
    ("left", "where"),
    [
        (memset(height=2), (2, 0)),
        (memset(length=0), (2, 0)),
        (memset(width=1, length=1024 * MiB), (2, 0)),
        (memset(address=4098), (2, 0)),  # no address of a four-byte element
        (memset(), (1, 0)),  # memory of the host
        (memset(), (2, 1)),  # another device
    ],
)
def test_what_no_fill_can_do_stays(left: Any, where: tuple[int, int]) -> None:
    graph = Graph(kinds={0: MEMSET, 1: MEMSET}, params={0: left, 1: memset(1 << 30)})
    driver = Driver(graph)
    driver.memory[left.dst] = where
    found = replaceable(listed(driver, graph), DEVICE)
    assert [one.node for one in found] == [1]


def test_a_graph_that_allocates_keeps_its_nodes() -> None:
    graph = Graph(kinds={0: ALLOC, 1: MEMSET}, params={1: memset()})
    assert replaceable(listed(Driver(graph), graph), DEVICE) == []


@pytest.mark.parametrize(
    "call",
    [
        "cuGraphGetNodes",
        "cuGraphMemsetNodeGetParams",
        "cuGraphAddKernelNode",
        "cuGraphAddDependencies",
    ],
)
def test_a_driver_that_refuses_is_told_of_and_the_graph_stays(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, chain = branching(), fills(3)
    driver = Driver(graph, chain, refuses=call)
    with pytest.warns(RuntimeWarning, match=f"{call}: CUDA_ERROR_NOT_SUPPORTED"):
        replace_by(chain, driver, graph, monkeypatch)
    assert graph == branching()


def test_bindings_that_do_not_find_a_call_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a driver from before the call."""

    def missing(node: int, count: int = 0) -> Any:
        raise RuntimeError('Function "cuGraphNodeGetDependencies_v2" not found')

    graph, chain = branching(), fills(3)
    driver = Driver(graph, chain)
    monkeypatch.setattr(driver, "cuGraphNodeGetDependencies", missing)
    with pytest.warns(RuntimeWarning, match="cuGraphNodeGetDependencies_v2. not found"):
        replace_by(chain, driver, graph, monkeypatch)
    assert graph == branching()


def test_nodes_are_counted_where_the_driver_lists_them() -> None:
    graph = branching()
    assert listed(Driver(graph), graph).count() == 6
    refusing = Driver(graph, refuses="cuGraphGetNodes")
    assert listed(refusing, graph).count() is None


def test_a_node_that_stays_beside_its_fill_runs_where_it_ran(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, chain = branching(), fills(3)
    driver = Driver(graph, chain, refuses="cuGraphDestroyNode")
    with pytest.warns(RuntimeWarning, match="cuGraphDestroyNode"):
        replace_by(chain, driver, graph, monkeypatch)
    (new,) = set(graph.kinds) - set(branching().kinds)
    assert graph.edges == branching().edges | {(0, new), (new, 2), (new, 3)}


def test_a_fill_that_nothing_waits_for_is_never_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, chain = branching(), fills(3)
    driver = Driver(graph, chain, refuses="cuGraphAddDependencies")
    monkeypatch.setattr(
        driver, "cuGraphDestroyNode", lambda node: (Result.CUDA_ERROR_NOT_SUPPORTED,)
    )
    with pytest.raises(RuntimeError, match="half changed: cuGraphAddDependencies"):
        replace_by(chain, driver, graph, monkeypatch)


@pytest.mark.parametrize(
    ("value", "dtype", "signed"),
    [
        (0, torch.int32, 0),
        (0xFFFFFFFF, torch.int32, -1),
        (0x80000000, torch.int32, -(2**31)),
        (0x7FFFFFFF, torch.int32, 2**31 - 1),
        (0x8000, torch.int16, -(2**15)),
        (0xFF, torch.uint8, 255),
        (0x1FF, torch.uint8, 255),  # a memset of bytes takes the low byte
    ],
)
def test_a_value_keeps_its_bits(value: int, dtype: torch.dtype, signed: int) -> None:
    assert as_signed(value, dtype) == signed


def test_the_bytes_of_a_memset_are_filled_and_no_others() -> None:
    rows = torch.arange(8, dtype=torch.int32)
    memset = Memset(None, rows.data_ptr() + 8, width=2, length=6, value=0x8001)
    target = rows_at(memset, torch.device("cpu"))
    target.fill_(as_signed(memset.value, target.dtype))
    filled = 0x80018001 - 2**32
    assert rows.tolist() == [0, 1, filled, filled, filled, 5, 6, 7]
