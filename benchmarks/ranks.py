"""What the measurements of two ranks share: one run, its clock, and words between the ranks."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from benchmarks.gpu import Run


class RankFailedError(Exception):
    """A rank could not do its part; all ranks raise it together."""


class TwoRanks(Run):
    """As ``Run``; rank 0 speaks, saves and decides for both."""

    def __init__(self, out: Path, seconds: float, *, tiny: bool) -> None:
        super().__init__(out, seconds)
        on_gpus = not tiny and torch.cuda.is_available()
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if on_gpus else "gloo", timeout=timedelta(seconds=60)
        )
        self.rank = dist.get_rank()
        if dist.get_world_size() != 2:
            raise RankFailedError(f"2 ranks are measured, not {dist.get_world_size()}")
        self.device = torch.device("cpu")
        if on_gpus:
            self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
            torch.cuda.set_device(self.device)
        self.words = dist.new_group([0, 1], backend="gloo")

    def say(self, text: str) -> None:
        if self.rank == 0:
            super().say(text)

    def save(self) -> None:
        if self.rank == 0:
            super().save()

    def enough_for(self, needs: float) -> bool:
        """Rank 0's clock decides, or one rank would wait for a part that the other leaves out."""
        return bool(self.both(super().enough_for(needs))[0])

    def both(self, value: Any) -> list[Any]:
        """Both ranks' values."""
        values: list[Any] = [None, None]
        dist.all_gather_object(values, value, group=self.words)
        return values

    def together(self, act: Callable[[], Any]) -> Any:
        """Do something on both ranks; where one raises, both do, and go on together."""
        made, problem = None, ""
        try:
            made = act()
            self.sync()
        except Exception as error:
            problem = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        problems = self.both(problem)
        if any(problems):
            found = "; ".join(f"rank {n}: {what}" for n, what in enumerate(problems) if what)
            raise RankFailedError(found)
        return made

    def sync(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def meet(self) -> None:
        """Start together, both devices idle."""
        self.sync()
        dist.barrier(group=self.words)
