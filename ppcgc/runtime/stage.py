"""A stage of a pipeline behind one runner: choose, load, replay, trim.

A step always goes in this order: read the live counts; check limits; choose once; load the
chosen bucket; the caller's window; replay; trim. Generated classes bind names, sizes and
straight-line calls; the algorithm is here.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, NamedTuple, TypeVar

import torch

from ppcgc.runtime.bucket import Bucket, Seen
from ppcgc.runtime.choice import Choice, Reason, StepRecord
from ppcgc.runtime.errors import (
    GraphRequiredError,
    NotCapturedError,
    PpcgcError,
    SourceError,
    StaleStepError,
)
from ppcgc.runtime.inputs import BatchT, DimsT, ExtentsT, Inputs, SlotsT
from ppcgc.runtime.stage_captured import CapturedStage
from ppcgc.runtime.views import write_cut

InT = TypeVar("InT")
OutT = TypeVar("OutT")

ABSENT = object()  # is no boundary
MOST_KNOWN = 8192  # live sizes that a runner remembers; a stream of new ones must not grow it


class Step(NamedTuple, Generic[ExtentsT, SlotsT, InT]):
    """A step between ``begin`` and ``finish``: the slots are loaded, nothing has run."""

    live: ExtentsT
    choice: Choice[ExtentsT]
    slots: SlotsT
    boundary: InT
    batch: object


class Known(NamedTuple, Generic[ExtentsT, SlotsT, InT, OutT]):
    """What a step with some live counts will do: there is one choice for each."""

    choice: Choice[ExtentsT]
    bucket: Bucket[ExtentsT, SlotsT, InT, OutT] | None  # None runs eagerly
    seen: Seen[ExtentsT, OutT] | None


class StageRunner(CapturedStage[ExtentsT, BatchT, DimsT, SlotsT, InT, OutT]):
    """Captures and replays one stage. Generated subclasses are the public classes.

    ``model`` takes the keywords that the spec binds; ``layers`` are the stage's own; ``dtype``
    is what ``dtype: model`` stands for. Raises BuildError kinds for what does not fit together.
    """

    def prepare(self) -> None:
        super().prepare()
        kind, inputs = type(self), type(self.inputs)
        self._asks_the_batch = (
            kind.ineligible is not StageRunner.ineligible or inputs.absent is not Inputs.absent
        )
        self._known: dict[ExtentsT, Known[ExtentsT, SlotsT, InT, OutT]] = {}
        self._begun: Step[ExtentsT, SlotsT, InT] | None = None

    # ------------------------------------------------------------ generated

    @abstractmethod
    def extents(self, batch: BatchT) -> ExtentsT:
        """The live counts of a batch, host integers all of them."""

    @abstractmethod
    def choose(self, live: ExtentsT) -> Choice[ExtentsT]:
        """The bucket for these live counts, or the reason for an eager step."""

    def check_limits(self, live: ExtentsT) -> None:
        """Raises LimitError for live counts that no step may have, with a graph or without."""

    def ineligible(self, batch: BatchT, live: ExtentsT) -> str | None:
        """The condition of ``eager_when`` that makes the step eager."""
        return None

    # ------------------------------------------------------------ by kind of stage

    @abstractmethod
    def receive(
        self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT], source: InT, live: ExtentsT
    ) -> None:
        """Take the live rows of the boundary into the bucket's slots."""

    @abstractmethod
    def in_place(self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT], source: InT) -> object:
        """``source`` itself where it need not be looked at again; see the kinds."""

    @abstractmethod
    def take_over(self, bucket: Bucket[ExtentsT, SlotsT, InT, OutT], source: InT) -> None:
        """The slots are this runner's from here on. Raises StaleStepError for a boundary in them
        that was written over."""

    @abstractmethod
    def check_written(self, source: InT) -> None:
        """Raises StaleStepError for a boundary whose rows lay in slots that were written over."""

    @abstractmethod
    def boundary_with(self, key: str) -> str | None:
        """How a boundary is made, ``llama.Boundary(residual=...)``, if the stage's has ``key``."""

    @abstractmethod
    def check_boundary(self, source: InT, live: ExtentsT) -> InT:
        """The boundary of an eager step, checked to have exactly the live rows."""

    # ------------------------------------------------------------ a whole step

    def _run(self, batch: BatchT, boundary: InT) -> OutT:
        """``begin`` and ``finish`` in one: nobody looks at the slots in between.

        See Note [moves inside the graph] in ``row_moves``.
        """
        try:
            live = self.extents(batch)
        except AttributeError as problem:
            self._blame(problem)
            raise
        known = self._known.get(live) or self._learn(live)
        bucket, seen = known.bucket, known.seen
        if bucket is None or seen is None or self._asks_the_batch or self.hook_calls.states:
            return self.finish(self._begin(batch, boundary))
        self._begun = self.turn.begun = None  # what was begun is stale: its slots are written now
        self.backend.join_stream()
        try:
            bucket.host.open(in_graph=True)
            if boundary is not seen.in_place:
                self.receive(bucket, boundary, live)
                if seen.takes_another():
                    seen.in_place = self.in_place(bucket, boundary)
            elif self.is_fed or self.shares_boundary:
                self.take_over(bucket, boundary)
            self.inputs.load(bucket.slots, bucket.host, batch, live, bucket.padded)
        except AttributeError as problem:
            self._blame(problem, boundary)
            raise
        except SourceError as problem:
            self._place(problem, live)
            raise
        return self._replayed(bucket, seen)

    def _replayed(
        self,
        bucket: Bucket[ExtentsT, SlotsT, InT, OutT],
        seen: Seen[ExtentsT, OutT],
    ) -> OutT:
        """Replay a loaded bucket, and cut its outputs."""
        if bucket.graph is None:
            raise NotCapturedError(f"{type(self).__name__}: bucket {bucket.padded} was closed")
        self.last_step = seen.record
        if self._feeds is not None:
            self._feeds.fed()
        bucket.host.replay(bucket.graph)
        seen.replays += 1
        outputs = seen.outputs
        if outputs is not None and self._epoch is None:
            return outputs
        outputs = self.outputs.trim(bucket.outputs, seen.record.live)
        if self._epoch is not None:
            outputs = self._guarded(outputs, self._epoch)
        elif self.outputs.views_only:  # see Note [a cut is made once] in ``bucket``
            seen.outputs = outputs
        write_cut(outputs, self.family, self.layers.end)
        return outputs

    # ------------------------------------------------------------ choose

    def decide(self, batch: BatchT) -> tuple[ExtentsT, Choice[ExtentsT]]:
        """The live counts of a batch and the one choice of its step; writes nothing."""
        try:
            live = self.extents(batch)
            known = self._known.get(live) or self._learn(live)
            absent = self.inputs.absent(batch)
            ineligible = self.ineligible(batch, live)
        except AttributeError as problem:
            self._blame(problem)
            raise
        if absent is not None:
            return live, Choice(None, Reason.ABSENT, absent)
        if ineligible is not None:
            return live, Choice(None, Reason.INELIGIBLE, ineligible)
        return live, known.choice

    def _learn(self, live: ExtentsT) -> Known[ExtentsT, SlotsT, InT, OutT]:
        """Choose for live counts that were not met before. Raises SourceError kinds."""
        if not self._captured:
            raise NotCapturedError(
                f"{type(self).__name__} has no graphs: call ppcgc.runtime.capture([...]) first, "
                "or `eager` to run without graphs"
            )
        choice = self.choose(live)
        if choice.padded in self.dropped:
            choice = Choice(None, Reason.DROPPED, self.dropped[choice.padded])
        elif self.crossover is not None and choice.padded is not None:
            slower = self.crossover.slower(choice.padded, live)
            if slower is not None:
                choice = Choice(None, Reason.SLOWER, slower)
        bucket = None if choice.padded is None else self._table[choice.padded]
        seen = None if bucket is None else self._seen(bucket, live, choice)
        known = self._known[live] = Known(choice, bucket, seen)
        return known

    def _seen(
        self,
        bucket: Bucket[ExtentsT, SlotsT, InT, OutT],
        live: ExtentsT,
        choice: Choice[ExtentsT],
    ) -> Seen[ExtentsT, OutT]:
        if len(self._known) + len(bucket.seen) > MOST_KNOWN:
            self.forget_choices()
        return bucket.seen_with(live, choice)

    def forget_choices(self) -> None:
        """Choose anew for every size; counters keep their totals."""
        self._known.clear()
        for bucket in self._table.values():
            bucket.count_from(bucket.replays, bucket.padding_rows)

    def _blame(self, problem: AttributeError, boundary: object = ABSENT) -> None:
        """Raises SourceError where the batch or the boundary lacks what a step reads.

        Any other error is of a hook or of the batch's own code, and the caller lets it pass. See
        Note [who reads what is missing] in ``missing_reads``.
        """
        from ppcgc.runtime.missing_reads import read_by_step

        generated = self.inputs_type.__module__
        if isinstance(problem, PpcgcError) or not read_by_step(problem, generated):
            return
        right = self.boundary_with(str(problem.name)) if problem.obj is boundary else None
        if right is not None:
            raise SourceError(
                f"{type(self).__name__}: the boundary is a {type(boundary).__name__} without "
                f"{problem.name!r}; give what the stage before returned, or {right}"
            ) from problem
        raise SourceError(
            f"{type(self).__name__}: {problem}; a batch and a boundary have every attribute that "
            "the spec reads, with None for what is absent"
        ) from problem

    def _place(self, problem: SourceError, live: ExtentsT) -> None:
        """Note whose step refused its batch: a slot of this name may be in many runners."""
        sizes = [f"{rows} live {axis}" for axis, rows in zip(self.axes, live, strict=False)]
        behind = len(self.axes)
        for column, value in zip(self.columns[behind:], live[behind:], strict=True):
            path = self.counts.get(column)
            sizes.append(f"{column} {value}" + (f" (batch.{path})" if path else ""))
        problem.add_note(f"in a step of {self} with {', '.join(sizes)}")

    # ------------------------------------------------------------ begin

    def _begin(self, batch: BatchT, boundary: InT) -> Step[ExtentsT, SlotsT, InT]:
        live, choice = self.decide(batch)
        return self.begin_as(batch, boundary, live, choice)

    def begin_as(
        self,
        batch: BatchT,
        boundary: InT,
        live: ExtentsT,
        choice: Choice[ExtentsT],
        *,
        in_graph: bool = False,
    ) -> Step[ExtentsT, SlotsT, InT]:
        """Load for a choice that is made already: later ranks take the first rank's.

        The rows of ``boundary`` may still be on their way until ``finish``. ``in_graph`` says that
        nobody looks at the slots before it: see Note [two ways to the device] in ``host_block``.
        """
        self._begun = self.turn.begun = None
        self.backend.join_stream()
        try:
            step = self._loaded(batch, boundary, live, choice, in_graph)
        except AttributeError as problem:
            self._blame(problem, boundary)
            raise
        except SourceError as problem:
            self._place(problem, live)
            raise
        self._begun = self.turn.begun = step
        return step

    def _loaded(
        self,
        batch: BatchT,
        boundary: InT,
        live: ExtentsT,
        choice: Choice[ExtentsT],
        in_graph: bool,
    ) -> Step[ExtentsT, SlotsT, InT]:
        if choice.padded is None:
            return self._bound(batch, boundary, live, choice)
        bucket = self._table[choice.padded]
        bucket.host.open(in_graph=in_graph and not self.hook_calls.states)
        self.receive(bucket, boundary, live)
        self.inputs.load(bucket.slots, bucket.host, batch, live, bucket.padded)
        self.hook_calls.load(bucket.slots, batch, live)
        return Step(live, choice, bucket.slots, bucket.boundary, batch)

    def _bound(
        self, batch: BatchT, boundary: InT, live: ExtentsT, choice: Choice[ExtentsT]
    ) -> Step[ExtentsT, SlotsT, InT]:
        """An eager step: the batch's own rows."""
        if self.require_graph and choice.reason is not Reason.REQUESTED:
            raise GraphRequiredError(
                f"{type(self).__name__}: live {live} has no graph ({choice.reason.value}"
                f"{': ' + choice.detail if choice.detail else ''}) and the spec says "
                "`require_graph: true`"
            )
        self.check_written(boundary)
        received = self.check_boundary(boundary, live)
        slots = self.inputs.bind(batch, received, live)
        self.hook_calls.load(slots, batch, live)
        return Step(live, choice, slots, received, batch)

    def _begin_eager(self, batch: BatchT, boundary: InT) -> Step[ExtentsT, SlotsT, InT]:
        self.backend.join_stream()
        live: ExtentsT | None = None
        try:
            live = self.extents(batch)
            self.check_limits(live)
            step = self._bound(batch, boundary, live, Choice(None, Reason.REQUESTED))
        except AttributeError as problem:
            self._blame(problem, boundary)
            raise
        except SourceError as problem:
            if live is not None:
                self._place(problem, live)
            raise
        self._begun = self.turn.begun = step
        return step

    # ------------------------------------------------------------ finish

    def finish(self, step: Step[ExtentsT, SlotsT, InT]) -> OutT:
        """Run a begun step: replay its bucket, or the model itself in an eager step.

        Raises StaleStepError unless it is the step that this runner began last, once.
        """
        if step is None or step is not self._begun or step is not self.turn.begun:
            raise self._not_begun(step)
        self._begun = self.turn.begun = None
        if step.choice.padded is None:
            return self._finish_eager(step)
        bucket = self._table[step.choice.padded]
        seen = self._seen(bucket, step.live, step.choice)
        self.backend.join_stream()
        self.inputs.pad_late(step.slots, step.live, bucket.padded)
        if self.hook_calls.states:
            self.hook_calls.plan(bucket.made, step.slots, step.batch, step.live)
        return self._replayed(bucket, seen)

    def _not_begun(self, step: object) -> StaleStepError:
        if not isinstance(step, Step):
            given = type(step).__name__
            return StaleStepError(f"{self}: finish takes what `begin` returned, not a {given}")
        return StaleStepError(
            f"{type(self).__name__}: this step ({step.live} live) is not the one that the "
            "runner began last: it was finished, it is another runner's, or another was begun "
            "since, here or by a runner that shares the memory, and has overwritten its slots"
        )

    def _finish_eager(self, step: Step[ExtentsT, SlotsT, InT]) -> OutT:
        self.last_step = StepRecord(step.live, step.choice)
        reason = step.choice.reason
        self.eager_steps[reason] = self.eager_steps.get(reason, 0) + 1
        made = self.hook_calls.made_for(step.live, step.slots)
        self.hook_calls.plan(made, step.slots, step.batch, step.live)
        with torch.no_grad():
            result = self.forward(step.slots, step.boundary, step.live, made)
        outputs = self.outputs.eager(result, step.boundary, step.live)
        write_cut(outputs, self.family, self.layers.end)
        return outputs
