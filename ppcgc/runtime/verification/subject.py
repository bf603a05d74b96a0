"""What is verified: the runners of a pipeline, and the batches that they are tried on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from torch import Tensor

from ppcgc.runtime.errors import BuildError
from ppcgc.runtime.stage_captured import CapturedStage

#: ``make(live, seed)``: a legal batch with these live counts, the runner's own extents; other
#: values for another seed. None where such a batch cannot be.
BatchMaker: TypeAlias = Callable[[Any, int], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A runner of a family, all of its stages in pipeline order, in one process.

    ``batches`` is a maker, or a list of batches where only those can be made; with a list, what
    is tried is what the list holds. Runners may be captured already; those that are not are
    captured by the verification, which then also sees what a first capture does.

    ``content`` is the batch path whose rows are each request's own data, its words (what the
    neighbours probe changes); None takes ``input_ids`` or what else goes by a known name, or the
    index that only the first stage takes. ``before_finish(runner, step, batch)`` writes the slots
    of `source: caller`. ``owned(batch, state)`` gives the rows of a state that a batch reads, where
    the slots do not say (tables of pages). ``peers`` are the same stages as other ranks built them.
    ``unsplit`` is the runner of the whole model in one stage, with weights of its own or shared,
    and with state tensors like those of the stages one after another.

    ``boundary_in_place`` says that a forward may write what it received, as fused kernels do; each
    boundary is good for one step then. ``ordered`` says that the order of a batch's requests means
    something (decodes first), so that they cannot change places.

    ``tolerance`` is the largest difference allowed between the padded and the live shape,
    relative to the largest value (see Note [what stands for no number is no scale] in
    ``comparing``); None: 1e-4 in float32, 5e-2 below. ``padding_tolerance`` is for kernels that
    group rows (experts), where other rows' values change the last bits.
    """

    runners: Sequence[Any]
    batches: BatchMaker | Sequence[Any]
    content: str | None = None
    before_finish: Callable[[Any, Any, Any], None] | None = None
    owned: Callable[[Any, str], Iterable[int] | Tensor] | None = None
    peers: Sequence[Sequence[Any]] = ()
    unsplit: Any = None
    tolerance: float | None = None
    padding_tolerance: float = 0.0
    boundary_in_place: bool = False
    ordered: bool = False

    def __post_init__(self) -> None:
        self._check_kinds()
        if not self.runners:
            raise BuildError("a subject without runners: give the stages in pipeline order")
        self._check_stages()
        for peer in self.peers:
            self._check_peer(peer)
        if self.unsplit is not None:
            self._check_unsplit()

    def _check_kinds(self) -> None:
        """Raises BuildError for what is no list of runners, no runner, no batches or no path."""
        if not isinstance(self.runners, Sequence):
            raise BuildError(
                f"runners is a {type(self.runners).__name__}: give a list, all stages of a runner "
                "in pipeline order"
            )
        for name, runner in self._every():
            if not isinstance(runner, CapturedStage):
                raise BuildError(
                    f"{name}: a {type(runner).__name__} is no runner; give an instance of a "
                    "generated class"
                )
        listed = isinstance(self.batches, Sequence) and not isinstance(self.batches, str | bytes)
        if not callable(self.batches) and not listed:
            raise BuildError(
                f"batches is a {type(self.batches).__name__}: give a list of batches, or a "
                "function (live, seed) that makes one"
            )
        for name in ("owned", "before_finish"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                raise BuildError(f"{name} is a {type(value).__name__}: give a function, or None")
        for name in ("tolerance", "padding_tolerance"):
            value = getattr(self, name)
            if value is None and name == "tolerance":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
                raise BuildError(
                    f"{name} is {value!r}: give a number from 0 (to the bit) to less than 1, a "
                    "part of the largest value"
                )
        if not isinstance(self.content, str | None):
            raise BuildError(
                f"content is a {type(self.content).__name__}: give one path of the batch as text, "
                "as in content='input_ids'"
            )

    def _every(self) -> Iterator[tuple[str, Any]]:
        """Whatever ought to be a runner, with the field that it stands in. Raises BuildError."""
        yield from (("runners", one) for one in self.runners)
        for peer in self.peers:
            if not isinstance(peer, Sequence):
                raise BuildError(
                    f"peers: a {type(peer).__name__} is no list of runners; give a list for each "
                    "rank, all stages in pipeline order"
                )
            yield from (("peers", one) for one in peer)
        if self.unsplit is not None:
            yield "unsplit", self.unsplit

    def _check_stages(self) -> None:
        """Raises BuildError unless the stages are those of one runner, and all of them."""
        first, last = self.runners[0], self.runners[-1]
        for before, after in zip(self.runners, self.runners[1:], strict=False):
            if (before.family, before.runner) != (after.family, after.runner):
                raise BuildError(
                    f"{before} is followed by {after}: a subject is one runner; give another "
                    "subject for each"
                )
            if before.layers.end != after.layers.start:
                raise BuildError(
                    f"{before} is followed by {after}: give the stages in pipeline order"
                )
        if first.layers.start != 0 or last.layers.end != last.layers.count:
            raise BuildError(
                f"the stages are layers [{first.layers.start}, {last.layers.end}) of "
                f"{last.layers.count}: give all stages of the pipeline"
            )

    def _check_peer(self, peer: Sequence[Any]) -> None:
        """Raises BuildError for other stages than the runners'."""
        mine = [(one.family, one.runner, str(one.layers)) for one in self.runners]
        theirs = [(one.family, one.runner, str(one.layers)) for one in peer]
        if mine != theirs:
            raise BuildError(
                f"peers: stages {', '.join(map(str, peer))} are not "
                f"{', '.join(map(str, self.runners))}: give each rank's build of the same stages"
            )

    def _check_unsplit(self) -> None:
        """Raises BuildError where the unsplit runner has not the layers of all stages."""
        wanted = (self.runners[0].layers.start, self.runners[-1].layers.end)
        found = (self.unsplit.layers.start, self.unsplit.layers.end)
        if found != wanted or self.unsplit.runner != self.runners[0].runner:
            raise BuildError(
                f"unsplit is {self.unsplit}, layers {list(found)}; the stages are runner "
                f"{self.runners[0].runner} of layers {list(wanted)}: give that runner in one stage"
            )

    @property
    def title(self) -> str:
        """``llama.prefill, 2 stages on cpu``."""
        first, count = self.runners[0], len(self.runners)
        stages = "1 stage" if count == 1 else f"{count} stages"
        return f"{first.family}.{first.runner}, {stages} on {first.device.type}"
