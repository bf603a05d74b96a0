"""Memsets of a captured graph become kernels, which a launch need not look at one by one.

Note [what a memset costs at each launch]
    A graph that is a chain of kernels is launched in the same few microseconds whatever its length.
    A memset node ends that: each costs the host 1.3 microseconds at every launch (H200, driver
    580). Nobody need have written one: cuBLAS resets counters with them from some 512 rows on, and
    16 layers of Llama-3.1-8B have 16 at 512 tokens and 32 at 2048. Their launch took 25 and
    45 microseconds instead of 5. So each is replaced by one of torch's kernels, which fills the
    same bytes, before the graph is instantiated.

The graph's nodes are NVIDIA's to name: ``cuda.bindings``, which torch for CUDA 13 brings along.
Without it graphs stay as they are, and so does a memset that no kernel of torch can do.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ppcgc.runtime.collecting import collector_off

DTYPES = {1: torch.uint8, 2: torch.int16, 4: torch.int32}  # by the bytes of a memset's element
MOST_BYTES = 1 << 30  # of a memset: torch splits a larger fill into several kernels


class DriverError(Exception):
    """The driver refused a call."""


class Memset(NamedTuple):
    """A memset node: ``length`` elements of ``width`` bytes from ``address`` on hold ``value``."""

    node: Any
    address: int
    width: int
    length: int
    value: int


class GraphNodes:
    """The nodes of a captured graph that is not instantiated yet."""

    def __init__(self, driver: Any, graph: torch.cuda.CUDAGraph) -> None:
        self.driver = driver
        self.graph = driver.CUgraph(graph.raw_cuda_graph())

    def call(self, name: str, *given: Any) -> Any:
        """A call of the driver. Raises DriverError for what it answers with.

        The bindings have errors of their own, for a driver that is too old to know the call.
        """
        try:
            error, *answer = getattr(self.driver, name)(*given)
        except Exception as problem:
            raise DriverError(f"{name}: {problem}") from problem
        if error != self.driver.CUresult.CUDA_SUCCESS:
            raise DriverError(f"{name}: {error.name}")
        return answer[0] if len(answer) == 1 else answer

    def _listed(self, name: str, of: Any) -> list[Any]:
        """All nodes that a call lists; asked for their number first."""
        count = self.call(name, of)[-1]
        return list(self.call(name, of, count)[0]) if count else []

    def all(self) -> list[Any]:
        return self._listed("cuGraphGetNodes", self.graph)

    def count(self) -> int | None:
        """How many nodes there are; None where the driver does not say."""
        try:
            return len(self.all())
        except DriverError:
            return None

    def before(self, node: Any) -> list[Any]:
        return self._listed("cuGraphNodeGetDependencies", node)

    def behind(self, node: Any) -> list[Any]:
        return self._listed("cuGraphNodeGetDependentNodes", node)

    def chain(self) -> list[Any]:
        """The nodes in the order in which they run; each has one behind it at most."""
        found = []
        following = self._listed("cuGraphGetRootNodes", self.graph)
        while following:
            found += following
            following = self.behind(following[0])
        return found

    def kind(self, node: Any) -> str:
        """``KERNEL``, ``MEMSET`` and so on."""
        name: str = self.call("cuGraphNodeGetType", node).name
        return name.removeprefix("CU_GRAPH_NODE_TYPE_")

    def memset(self, node: Any, device: torch.device) -> Memset | None:
        """A memset node as one fill of a row of elements; None where that cannot do it."""
        given = self.call("cuGraphMemsetNodeGetParams", node)
        address, width, length = int(given.dst), given.elementSize, given.width
        if given.height != 1 or not 0 < width * length < MOST_BYTES or address % width:
            return None
        if not self._lies_on(address, device):
            return None
        return Memset(node, address, width, length, given.value)

    def _lies_on(self, address: int, device: torch.device) -> bool:
        asked = self.driver.CUpointer_attribute
        kind = self.call("cuPointerGetAttribute", asked.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address)
        where = self.call(
            "cuPointerGetAttribute", asked.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address
        )
        on_device = int(kind) == int(self.driver.CUmemorytype.CU_MEMORYTYPE_DEVICE)
        return on_device and int(where) == device.index

    def replace(self, node: Any, kernel: Any) -> None:
        """Put a kernel node of another graph in the place of ``node``.

        Raises DriverError with the graph as it was, or with both nodes in the place of one.
        """
        before, behind = self.before(node), self.behind(node)
        given = self.call("cuGraphKernelNodeGetParams", kernel)
        new = self.call("cuGraphAddKernelNode", self.graph, before, len(before), given)
        try:
            if behind:
                sources = [new] * len(behind)
                self.call("cuGraphAddDependencies", self.graph, sources, behind, None, len(behind))
        except DriverError as problem:
            self._take_back(new, problem)
            raise
        self.call("cuGraphDestroyNode", node)

    def _take_back(self, new: Any, problem: DriverError) -> None:
        """Nothing waits for this node: it could fill what others have written since."""
        try:
            self.call("cuGraphDestroyNode", new)
        except DriverError:
            raise RuntimeError(f"a CUDA graph was left half changed: {problem}") from problem


def nodes_of(graph: torch.cuda.CUDAGraph) -> GraphNodes | None:
    """The nodes of a graph that is kept and not instantiated; None without NVIDIA's bindings."""
    try:
        bindings = import_module("cuda.bindings")
        driver = import_module("cuda.bindings.driver")
    except ImportError:
        return None
    if int(bindings.__version__.split(".")[0]) < 13:  # its calls take and give other things
        return None
    return GraphNodes(driver, graph)


def replace_memsets(nodes: GraphNodes, stream: torch.cuda.Stream, pool: torch.cuda.MemPool) -> None:
    """Replace the memsets of a graph that was captured on this stream, into this pool.

    Warns where the driver refuses it: the graph does what it did, its launches take longer.
    """
    try:
        memsets = replaceable(nodes, stream.device)
        if not memsets:
            return
        fills = captured_fills(memsets, stream, pool)
        kernels = GraphNodes(nodes.driver, fills).chain()
        for memset, kernel in zip(memsets, kernels, strict=True):
            nodes.replace(memset.node, kernel)
        fills.reset()
    except DriverError as problem:
        warnings.warn(f"memsets stay in a CUDA graph: {problem}", RuntimeWarning, stacklevel=2)


def replaceable(nodes: GraphNodes, device: torch.device) -> list[Memset]:
    """The memsets that a fill can do; none of a graph that lets no node go."""
    kinds = [(node, nodes.kind(node)) for node in nodes.all()]
    if any(kind in ("MEM_ALLOC", "MEM_FREE") for _, kind in kinds):
        return []
    memsets = (nodes.memset(node, device) for node, kind in kinds if kind == "MEMSET")
    return [memset for memset in memsets if memset is not None]


def captured_fills(
    memsets: Sequence[Memset], stream: torch.cuda.Stream, pool: torch.cuda.MemPool
) -> torch.cuda.CUDAGraph:
    """A graph of one fill for each memset, one behind the other. They take no memory."""
    targets = [rows_at(memset, stream.device) for memset in memsets]
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with collector_off(), torch.cuda.stream(stream):
        graph.capture_begin(pool=pool.id, capture_error_mode="thread_local")  # type: ignore[arg-type]  # documented so
        try:
            for rows, memset in zip(targets, memsets, strict=True):
                rows.fill_(as_signed(memset.value, rows.dtype))
        except BaseException:
            with suppress(RuntimeError):  # it tells less than the error before
                graph.capture_end()
            raise
        graph.capture_end()
    return graph


def rows_at(memset: Memset, device: torch.device) -> Tensor:
    """The bytes of a memset as a tensor, whose memory is not its own."""
    dtype = DTYPES[memset.width]
    nbytes = memset.width * memset.length
    storage = torch._C._construct_storage_from_data_pointer(memset.address, device, nbytes)
    return torch.empty(0, dtype=dtype, device=device).set_(storage, 0, (memset.length,), (1,))


def as_signed(value: int, dtype: torch.dtype) -> int:
    """The integer of this dtype with the low bits of ``value``."""
    limits = torch.iinfo(dtype)
    low = value & ((1 << limits.bits) - 1)
    return low if low <= limits.max else low - (1 << limits.bits)
