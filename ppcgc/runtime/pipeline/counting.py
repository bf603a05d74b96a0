"""How often a rank took part in the model's collectives, compared with the others of its group.

Note [a collective belongs to its step]
    A rank that leaves a collective out has its next one meet the last one of the others, which no
    library notices: wrong sums, until somebody waits for a call that never comes. Replays always
    make the calls that were captured, so the counts of each capture are compared once, with the
    vote. After an eager step the hosts of a group compare theirs before anything is returned, so
    that no call of one step meets one of the next. Each tells the next one in the group, round.

    The count is the group's own sequence number. Gloo counts messages from rank to rank as well,
    which need not be equally many; a group whose warm-up shows that is not compared. Nor are calls
    that go past the groups that the build was given (``Ranks.of``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist

from ppcgc.runtime.errors import DisagreementError
from ppcgc.runtime.pipeline.faults import Faults, reason_of
from ppcgc.runtime.pipeline.groups import Group

_TAG = 2  # those below are of headers

Calls = Mapping[str, int]  # by the group's ranks in words


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """A group that is compared; ``before`` and ``after`` are this rank's neighbours in it."""

    group: Group
    before: int
    after: int


class Counting:
    """This rank's ``groups``, as far as all of their ranks are ``together`` in every step.

    ``control`` is the gloo group that the counts travel over.
    """

    def __init__(
        self, groups: Sequence[Group], together: Sequence[int], control: Group, faults: Faults
    ) -> None:
        self._control, self._faults = control, faults
        self._counted: dict[str, _Counted] = {}
        for group in groups:
            ranks = dist.get_process_group_ranks(group)
            if len(ranks) > 1 and set(ranks) <= set(together) and _counts(group):
                at = ranks.index(faults.board.rank)
                self._counted[", ".join(map(str, ranks))] = _Counted(
                    group=group, before=ranks[at - 1], after=ranks[(at + 1) % len(ranks)]
                )

    def __bool__(self) -> bool:
        return bool(self._counted)

    def now(self) -> Calls:
        return {
            ranks: one.group._get_sequence_number_for_group()
            for ranks, one in self._counted.items()
        }

    def since(self, before: Calls) -> dict[str, int]:
        """The calls since then."""
        return {ranks: calls - before[ranks] for ranks, calls in self.now().items()}

    def compare_known(self, doing: str, calls: Mapping[int, Calls], *, trial: bool) -> None:
        """Compare what all ranks took part in, which each of them knows.

        A group that differs in a ``trial`` is not compared from here on; else DisagreementError,
        on all ranks.
        """
        seen: dict[str, tuple[int, int]] = {}
        for rank, own in calls.items():
            for ranks, count in own.items():
                first, expected = seen.setdefault(ranks, (rank, count))
                if count == expected:
                    continue
                if not trial:
                    raise _differs(doing, ranks, (first, expected), (rank, count))
                self._counted.pop(ranks, None)

    def compare(self, step: int, before: Calls) -> None:
        """Compare the calls of a step that was queued, with the neighbours in each group.

        Raises DisagreementError, PeerError kinds.
        """
        me = self._faults.board.rank
        for number, (ranks, calls) in enumerate(self.since(before).items()):
            one = self._counted[ranks]
            theirs = self._passed_on(calls, one, step, _TAG + number)
            if theirs != calls:
                raise _differs(f"step {step}", ranks, (one.before, theirs), (me, calls))

    def _passed_on(self, calls: int, one: _Counted, step: int, tag: int) -> int:
        own, theirs = torch.tensor([calls]), torch.empty(1, dtype=torch.int64)
        what = "its count of collectives"
        try:
            sent = dist.isend(own, dst=one.after, group=self._control, tag=tag)
            come = dist.irecv(theirs, src=one.before, group=self._control, tag=tag)
        except RuntimeError as problem:
            raise self._faults.verdict(
                peer=one.before, step=step, what=what, late=False, why=reason_of(problem)
            ) from None
        for work, peer in ((come, one.before), (sent, one.after)):
            if work is not None:
                self._faults.wait_on_host(work, peer=peer, step=step, what=what)
        return int(theirs)


def _counts(group: Group) -> bool:
    try:
        group._get_sequence_number_for_group()
    except RuntimeError:  # a backend that does not count
        return False
    return True


def _differs(
    doing: str, ranks: str, one: tuple[int, int], other: tuple[int, int]
) -> DisagreementError:
    return DisagreementError(
        f"{doing}: rank {one[0]} took part in {one[1]} collectives of the ranks {ranks}, rank "
        f"{other[0]} in {other[1]}; all ranks of a group make the same calls in the same order"
    )
