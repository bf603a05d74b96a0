"""Collectives among the ranks of a team: the model's own, and those of the pipeline.

Note [the model's collectives]
    A forward may reduce, scatter and gather within its groups. All ranks of a team warm up,
    capture and replay the same bucket at the same step, so the calls inside meet. NCCL connects a
    communicator at its first call, which the warm-up makes before any capture. Where the build was
    given the group (``Ranks.of``), the pipeline bounds its waits a little below its own: the rank
    that waits inside of a collective is the first to speak, and knows who did not come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import distributed_c10d as c10d

from ppcgc.runtime.errors import PeerError
from ppcgc.runtime.parallel import Ranks
from ppcgc.runtime.pipeline.faults import Faults, reason_of
from ppcgc.runtime.pipeline.groups import Group
from ppcgc.runtime.pipeline.transport.base import Queued, passed
from ppcgc.runtime.pipeline.watch import MARGIN

_gather = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)  # its newer name


def groups_of(dims: Any) -> list[Group]:
    """The process groups of the model that the build was given."""
    given = (getattr(dims, name, None) for name in ("tp", "dp"))
    return [ranks.group for ranks in given if isinstance(ranks, Ranks) and ranks.group is not None]


# What errors of gloo have in their text; a wait with a limit of its own says the second, alone.
OF_GLOO = ("/gloo/", "Operation timed out")


class Collectives:
    """What this rank does with others of its stage; ``peers`` are those, ``joining`` the ranks of
    tp that put parts together.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        joining: Group,
        peers: Sequence[int],
        faults: Faults,
        device: torch.device,
    ) -> None:
        self._joining, self._peers = joining, tuple(peers)
        self._faults, self._device = faults, device
        limit = max(faults.timeout / 2, faults.timeout - MARGIN)
        for group in groups:
            if dist.get_backend(group) != "nccl":  # there the watch ends what waits
                c10d._set_pg_timeout(timedelta(seconds=limit), group)

    def warm_up(self) -> None:
        """One byte from everybody: NCCL connects at the first call."""
        if self._joining is not None:
            ranks = dist.get_world_size(self._joining)
            block = torch.zeros(ranks, dtype=torch.uint8, device=self._device)
            self.join(block, -1)
            if self._device.type == "cuda":
                torch.cuda.current_stream(self._device).synchronize()

    def join(self, block: Tensor, step: int) -> None:
        """Gather the parts of a block of which this rank has its own. Raises PeerError kinds.

        Eagerly, before the replay, on its stream: only the parts of live rows travel, and how many
        these are is known on the host. See Note [parts join where they lie] in ``layout``.
        """
        at, ranks = dist.get_rank(self._joining), dist.get_world_size(self._joining)
        part = block.numel() // ranks
        own = block[at * part : (at + 1) * part]
        with self.watched(step, "the parts of the boundary"):
            work = _gather(block, own, group=self._joining, async_op=True)
            if self._device.type == "cuda":
                work.wait()  # the stream waits, not the host
            else:
                work.wait(timedelta(seconds=self._faults.timeout))

    def queued(self, step: int) -> None:
        """Look after what was queued last: on a GPU a collective waits inside the replay."""
        if self._peers and self._device.type == "cuda":
            Queued(self._faults, self._peers[0], step, passed(self._device))

    @contextmanager
    def watched(self, step: int, what: str = "a collective of the stage") -> Iterator[None]:
        """Errors of a collective as PeerError kinds that name the rank at fault and the step."""
        try:
            yield
        except PeerError:
            raise
        except Exception as problem:
            found = failed_collective(problem)
            if found is None or not self._peers:
                raise
            late = "timed out" in str(found).lower()
            raise self._faults.absent(
                self._peers, step=step, what=what, late=late, why=reason_of(found)
            ) from problem


def failed_collective(problem: BaseException | None) -> Exception | None:
    """The error of a process group that lies behind this one."""
    while problem is not None:
        if isinstance(problem, Exception) and (
            isinstance(problem, dist.DistError)
            or (isinstance(problem, RuntimeError) and any(w in str(problem) for w in OF_GLOO))
        ):
            return problem
        problem = problem.__cause__
    return None
