"""A whole spec."""

from __future__ import annotations

from dataclasses import dataclass, field

from ppcgc.diagnostics.model import Span
from ppcgc.ir.bound import Bound
from ppcgc.ir.pipeline import Pipeline
from ppcgc.ir.runners import Runner
from ppcgc.ir.sizes import Axis, Dim, Option, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A whole spec."""

    name: str
    doc: str
    dims: tuple[Dim, ...]
    axes: tuple[Axis, ...]
    states: tuple[State, ...]
    pipeline: Pipeline
    runners: tuple[Runner, ...]
    options: tuple[Option, ...] = ()
    parallel: frozenset[str] = frozenset()  # of "tp", "dp": sizes and ranks given at build
    bound: Bound | None = field(compare=False, default=None)  # numbers of `generate --bind`
    source: str = field(compare=False)  # the spec's file name, without folders
    span: Span = field(compare=False)

    def axis(self, name: str) -> Axis:
        return next(axis for axis in self.axes if axis.name == name)

    def state(self, name: str) -> State:
        return next(state for state in self.states if state.name == name)
