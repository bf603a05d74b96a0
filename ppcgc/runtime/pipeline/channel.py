"""Headers from rank to rank, each passed on at once, over gloo on the hosts."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from ppcgc.runtime.pipeline.faults import Faults, reason_of
from ppcgc.runtime.pipeline.groups import Group
from ppcgc.runtime.pipeline.header import Header, decode, encode, header_size, note_bytes

_NUMBERS, _NOTE = 0, 1  # tags


class HeaderChannel:
    """Sends to the next rank and to those that this one chooses for; receives from one.

    At most ``ahead`` headers are under way: so far can a rank run ahead of the next one.
    """

    def __init__(
        self,
        group: Group,
        incoming: int | None,
        outgoing: Sequence[int],
        faults: Faults,
        *,
        columns: int,
        ahead: int,
    ) -> None:
        self._group, self._faults = group, faults
        self._incoming, self._outgoing = incoming, outgoing
        self._columns, self._ahead = columns, ahead
        self._under_way: deque[tuple[int, list[tuple[int, dist.Work, Tensor]]]] = deque()

    def send(self, header: Header) -> None:
        """To every rank that waits for it, if there is one. Raises PeerError kinds."""
        if not self._outgoing:
            return
        while len(self._under_way) >= self._ahead:
            self._settle_one()
        numbers, note = encode(header, self._columns)
        works = []
        for peer in self._outgoing:
            works.append((peer, self._post(numbers, peer, _NUMBERS, header.step), numbers))
            if note is not None:
                works.append((peer, self._post(note, peer, _NOTE, header.step), note))
        self._under_way.append((header.step, works))

    def _post(self, data: Tensor, peer: int, tag: int, step: int) -> dist.Work:
        try:
            work = dist.isend(data, dst=peer, group=self._group, tag=tag)
        except RuntimeError as problem:  # the connection is known to be gone already
            raise self._faults.verdict(
                peer=peer,
                step=step,
                what="the header to be taken",
                late=False,
                why=reason_of(problem),
            ) from None
        if work is None:
            raise RuntimeError("isend gave no work although this rank is in the group")
        return work

    def _settle_one(self) -> None:
        step, works = self._under_way.popleft()
        while works:
            peer, work, _ = works.pop()
            self._faults.wait_on_host(work, peer=peer, step=step, what="the header to be taken")

    def settle(self) -> None:
        """Wait until every header was taken."""
        while self._under_way:
            self._settle_one()

    def receive(self, step: int) -> Header:
        """The next header, passed on already. Raises PeerError kinds."""
        numbers = torch.empty(header_size(self._columns), dtype=torch.int64)
        self._take(numbers, _NUMBERS, step)
        note = None
        if note_bytes(numbers):
            note = torch.empty(note_bytes(numbers), dtype=torch.uint8)
            self._take(note, _NOTE, step)
        header = decode(numbers, note)
        self.send(header)
        return header

    def _take(self, into: Tensor, tag: int, step: int) -> None:
        peer = self._incoming
        if peer is None:
            raise RuntimeError("a rank that chooses receives no header")
        try:
            work = dist.irecv(into, src=peer, group=self._group, tag=tag)
        except RuntimeError as problem:
            raise self._faults.verdict(
                peer=peer, step=step, what="the header", late=False, why=reason_of(problem)
            ) from None
        if work is None:
            raise RuntimeError("irecv gave no work although this rank is in the group")
        self._faults.wait_on_host(work, peer=peer, step=step, what="the header")

    def linger(self, seconds: float) -> None:
        """Let the others take what is under way, for so long: a refusal tells them more than that
        this rank is gone. What they do not take is left."""
        deadline = time.monotonic() + seconds
        with suppress(RuntimeError):  # too late, or a rank that is gone itself
            for _, works in self._under_way:
                for _, work, _ in works:
                    left = max(0.001, deadline - time.monotonic())
                    work.wait(timedelta(seconds=left))

    def drop(self) -> None:
        """Forget what is under way: see Note [a failure cascades] in ``faults``."""
        self._under_way.clear()
