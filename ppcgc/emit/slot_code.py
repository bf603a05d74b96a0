"""One slot of one kind of stage, as the code that other modules print about it.

``SlotCode`` holds what all of them need: names, shape, when the slot is there at all. How it is
loaded is in ``slot_load``, what an eager step binds in ``slot_bind``, facts for tables in
``slot_facts``.
"""

from __future__ import annotations

from ppcgc.emit.batch_source import source_expression
from ppcgc.emit.names import dtype_code, flat_name, slot_attribute
from ppcgc.emit.scope import Scope
from ppcgc.emit.shapes import annotation, extent_code, line_of, padded_dims, shape_code
from ppcgc.emit.slot_text import source_text, unwritten_text
from ppcgc.emit.source import Code, code, comment, identifier, literal
from ppcgc.expr.tree import Ref, Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import (
    AbsentEager,
    BatchSource,
    CallerSource,
    ConstSource,
    Extent,
    Family,
    FillPadding,
    HookSource,
    KeepPadding,
    PaddingByAxis,
    Place,
    Residency,
    Runner,
    Slot,
)
from ppcgc.plan import Placement, SlotPlan

BODY = 8  # indent of a statement in a method


def by_step(padding: FillPadding) -> bool:
    """Does the value of padded rows depend on the step."""
    symbols = (Symbol.LIVE, Symbol.PADDED, Symbol.SCALAR)
    return not isinstance(padding.value, int | float) and any(
        ref.symbol in symbols for ref in refs(padding.value)
    )


class SlotCode:
    """Names, shape and presence of one slot."""

    def __init__(
        self, family: Family, runner: Runner, planned: SlotPlan, places: tuple[Place, ...]
    ) -> None:
        self.family = family
        self.slot: Slot = planned.slot
        self.in_block = planned.placement is Placement.HOST_BLOCK
        self.dims = padded_dims(planned.slot.shape, planned.slot.axes)
        self.name = flat_name(planned.slot)
        self.key = literal(planned.slot.qualified)
        self.rows = identifier(f"{self.name}_rows")
        self.dtype = dtype_code(planned.slot.dtype, "self.dtype")
        self.capacities = {
            Ref(Symbol.AXIS_MAX, axis.name): runner.capacity(axis) for axis in family.axes
        }
        cells = len(self.dims) == 2
        self.loading = Scope(family=family, lowered=runner.axis_max, cells=cells)
        self.binding = self.loading.at("live")
        self._everywhere = all(place in planned.slot.stages for place in places)

    @property
    def dim(self) -> int | None:
        """The padded dimension of a slot with one axis; None where there is none."""
        return self.dims[0] if self.dims else None

    @property
    def two_axes(self) -> bool:
        return len(self.dims) == 2

    # ------------------------------------------------------------ what it is

    @property
    def line(self) -> str:
        """``llama.yaml:38``."""
        return line_of(self.slot.span)

    def annotation(self) -> Code:
        return annotation(self.slot.shape, self.slot.dtype, self.slot.span)

    def heading(self) -> Code:
        """A comment over the slot's block: where rows come from, what the others hold."""
        return comment(f"{self.slot.qualified} ({self.line}): {source_text(self.slot)}", BODY)

    def unwritten_heading(self) -> Code:
        """The same over the load of a slot that is written after it."""
        return comment(f"{self.slot.qualified} ({self.line}): {unwritten_text(self.slot)}", BODY)

    @property
    def written_late(self) -> bool:
        """Do the caller or a hook write the slot after the load."""
        return isinstance(self.slot.source, CallerSource | HookSource)

    def shape(self, rows: str) -> Code:
        """``(rows.tokens, self.dims.hidden)``."""
        return shape_code(self.loading, self.slot.shape, rows)

    def extent(self, extent: Extent, rows: str) -> Code:
        return extent_code(self.loading, extent, rows)

    def live(self) -> Code:
        """How many rows of the padded dimension are live; all rows of a slot without one."""
        return self.extent(self.slot.shape[self.dim or 0], "live") if self.slot.shape else Code("1")

    def live_pair(self) -> Code:
        """``(live.requests, live.pages)``: the live rows of both axes."""
        first, second = (self.extent(self.slot.shape[dim], "live") for dim in self.dims)
        return code("({}, {})", first, second)

    def dims_pair(self) -> Code:
        return Code(f"({self.dims[0]}, {self.dims[1]})")

    # ------------------------------------------------------------ whether it is there

    def condition(self, rows: str) -> Code | None:
        """When the stage has the slot, over ``rows``; None where it always has."""
        parts = [
            *([] if self._everywhere else [self._owned()]),
            *([self.loading.at(rows).python(self.slot.when)] if self.slot.when else []),
            *(
                code("{}.{} > 0", Code(rows), identifier(axis))
                for axis in self.slot.axes
                if self.family.axis(axis).zero_key
            ),
        ]
        if len(parts) < 2:
            return parts[0] if parts else None
        return Code(" and ".join(f"({part})" if " " in str(part) else str(part) for part in parts))

    def _owned(self) -> Code:
        kinds = [f"rt.owns(self.layers, self.dims.kinds.{identifier(k)})" for k in self.slot.owns]
        return Code(" or ".join(kinds))

    @property
    def optional(self) -> bool:
        """May the slot be None on the view."""
        return self.condition("rows") is not None or self.wants_eager_when_absent()

    def type(self) -> Code:
        return Code("Tensor | None" if self.optional else "Tensor")

    def wants_eager_when_absent(self) -> bool:
        return isinstance(self.slot.absent, AbsentEager)

    # ------------------------------------------------------------ memory

    def initial(self) -> Code | None:
        """What the slot holds before a step writes it, where that is not zero.

        In the block it is the constant padding, from which every load starts.
        """
        padding = self.slot.padding
        if isinstance(padding, PaddingByAxis):  # one buffer: where both keep, the first has it
            by_axis = (padding.first, padding.second)
            padding = next((each for each in by_axis if isinstance(each, KeepPadding)), None)
        value = Code("0")
        if isinstance(self.slot.source, ConstSource):
            value = self.loading.value(self.slot.source.value)
        elif isinstance(padding, KeepPadding):
            value = literal(padding.initial)
        elif self.in_block and isinstance(padding, FillPadding) and not by_step(padding):
            value = self.loading.value(padding.value)
        return None if value.text in ("0", "False") else value

    # ------------------------------------------------------------ the batch

    def batch_path(self) -> tuple[str, ...] | None:
        """The attribute path of the batch that feeds the slot."""
        return self.slot.source.path if isinstance(self.slot.source, BatchSource) else None

    def path(self) -> tuple[str, ...]:
        """The attribute path of a slot that the batch feeds."""
        path = self.batch_path()
        if path is None:
            raise TypeError(f"slot {self.slot.qualified} has no batch source")
        return path

    def source(self) -> Code:
        """``batch.input_ids``; None anywhere on a longer path makes the source None.

        A load that looked for None before reads the path as it is.
        """
        return source_expression(self.path())

    @property
    def on_host(self) -> bool:
        """Does the batch give the slot's rows on the host."""
        host = self.slot.residency is Residency.HOST
        return host and isinstance(self.slot.source, BatchSource)

    # ------------------------------------------------------------ words of calls

    def on_view(self) -> Code:
        return code("slots.{}", slot_attribute(self.slot))

    def mirror_name(self) -> Code:
        """``slots.seq_lens_host``: the host twin beside its slot."""
        return code("{}_host", self.on_view())

    def dim_word(self) -> tuple[Code, ...]:
        return (code("dim={}", literal(self.dim)),) if self.dim else ()

    def cast_word(self) -> tuple[Code, ...]:
        return (Code("cast=True"),) if self.slot.cast else ()

    def broadcast_word(self) -> tuple[Code, ...]:
        return (Code("broadcast=True"),) if self.slot.broadcast else ()
