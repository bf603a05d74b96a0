"""The straight-line code of one slot: its shape, its memory, its load, its eager rows.

Each function here answers one question about a slot and returns finished Python. What a slot
needs follows from its placement and its source; there is one branch for each of those.
"""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc.emit.expressions import operand, python
from ppcgc.emit.names import (
    dtype_code,
    fixed_numbers,
    flat_name,
    initial_value,
    names_for,
    padded_dim,
    slot_attribute,
)
from ppcgc.emit.source import Code, call, code, comment, dotted, identifier, literal
from ppcgc.expr.printing import to_text
from ppcgc.expr.tree import Expr, Ref, Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import (
    AbsentEager,
    AbsentFill,
    BatchSource,
    BoundarySource,
    CallerSource,
    ComputeSource,
    ConstSource,
    Extent,
    Family,
    FillPadding,
    GraphSource,
    KeepPadding,
    RepeatLastPadding,
    Residency,
    Role,
    Slot,
    ZeroPadding,
)
from ppcgc.plan import Placement, SlotPlan

BODY = 8  # indent of a statement in a method


@dataclass(frozen=True, slots=True)
class Where:
    """Where code stands, as the names under which it finds dims, live and padded rows."""

    dims: str
    live: str
    padded: str


LOADING = Where(dims="self.dims", live="live", padded="padded")
BINDING = Where(dims="self.dims", live="live", padded="live")


class SlotCode:
    """The code of one slot of one kind of stage."""

    def __init__(self, family: Family, planned: SlotPlan) -> None:
        self.family = family
        self.slot = planned.slot
        self.in_block = planned.placement is Placement.HOST_BLOCK
        self.dim = padded_dim(planned.slot.shape)
        self.name = flat_name(planned.slot)
        self.key = literal(planned.slot.qualified)
        self.rows = identifier(f"{self.name}_rows")
        self.dtype = dtype_code(planned.slot.dtype, "self.dtype")

    # ------------------------------------------------------------ what it is

    @property
    def line(self) -> str:
        """``llama.yaml:38``."""
        return f"{self.family.source}:{self.slot.span.line}"

    def annotation(self) -> Code:
        """``# [tokens] int64, llama.yaml:38``."""
        shape = ", ".join(extent_text(extent) for extent in self.slot.shape)
        return Code(f"# [{shape}] {self.slot.dtype}, {self.line}")

    def type(self) -> Code:
        """``Tensor``; may be None where a batch without it makes the step eager."""
        return Code("Tensor | None" if self.wants_eager_when_absent() else "Tensor")

    def heading(self) -> Code:
        """A comment over the slot's block: where rows come from, what the others hold."""
        slot = self.slot
        return comment(f"{slot.qualified} ({self.line}): {source_text(slot)}", BODY)

    def shape(self, rows: str) -> Code:
        """``(rows.tokens, self.dims.hidden)``."""
        extents = [self.extent(extent, rows) for extent in self.slot.shape]
        return Code(f"({', '.join(map(str, extents))}{',' if len(extents) == 1 else ''})")

    def extent(self, extent: Extent, rows: str) -> Code:
        """``rows.tokens``, ``2 * rows.tokens + 1`` or an expression of dims."""
        if extent.axis is None:
            return self._expr(extent.expr, Where(dims="self.dims", live=rows, padded=rows))
        scaled = f"{extent.scale} * " if extent.scale != 1 else ""
        offset = f" + {extent.offset}" if extent.offset else ""
        return Code(f"{scaled}{rows}.{identifier(extent.axis)}{offset}")

    def live(self) -> Code:
        """How many rows of the padded dimension are live; all rows of a slot without one."""
        return self.extent(self.slot.shape[self.dim or 0], "live") if self.slot.shape else Code("1")

    # ------------------------------------------------------------ memory

    def _image(self) -> Code | None:
        """Constant padding other than zero, which the block holds before rows are written."""
        padding = self.slot.padding
        if not isinstance(padding, FillPadding) or self._fill_is_dynamic():
            return None
        return self._value(padding.value, LOADING)

    def _fill_is_dynamic(self) -> bool:
        padding = self.slot.padding
        return (
            isinstance(padding, FillPadding)
            and not isinstance(padding.value, int | float)
            and any(ref.symbol in (Symbol.LIVE, Symbol.PADDED) for ref in refs(padding.value))
        )

    def device_rows(self, field: str, indent: int) -> Code:
        """``field`` as the slot's rows in the arena, one address for all buckets.

        A slot that shows a key of the boundary is the very buffer that the key is received in.
        """
        initial = (
            self._value(self.slot.source.value, LOADING)
            if isinstance(self.slot.source, ConstSource)
            else initial_value(self.slot)
        )
        source = self.slot.source
        name = (
            f"received.{source.key}"
            if isinstance(source, BoundarySource)
            else f"slot.{self.slot.qualified}"
        )
        parts = [
            literal(name),
            code("shapes[{}]", self.key),
            code("full_shapes[{}]", self.key),
            self.dtype,
        ]
        if str(initial) != "0":
            parts.append(code("initial={}", initial))
        return call(Code(f"{field}arena.rows"), tuple(parts), indent, after=1)

    # ------------------------------------------------------------ loading

    def load(self) -> list[Code]:
        """Statements that fill the slot, under its heading; none for what nobody loads."""
        match self.slot.source:
            case BatchSource():
                body = self._load_block() if self.in_block else self._load_device()
            case ComputeSource(expr=expr):
                body = [self._compute(expr)]
            case CallerSource():
                body = self._pad_device()
            case _:
                return []
        if self.wants_eager_when_absent() and not self.in_block:
            given = code("if {} is not None:  # it is, but for eager steps", self._on_view())
            body = [given, *map(_deeper, body)]
        return [self.heading(), *body] if body else []

    def _load_block(self) -> list[Code]:
        rows, source = self.rows, self.source()
        if self.dim is None:
            put = code("{}.put_whole({}{})", rows, source, self._cast())
            fill = code("{}.set_all({})", rows, self._absent_value())
        else:
            put = code("{}.put({}, {}{})", rows, source, self.live(), self._cast())
            fill = code("{}.set_live({}, {})", rows, self.live(), self._absent_value())
        check = self._role_check(rows, self.live())
        return self._unless_absent([put], fill) + self._pad_block() + check

    def _pad_block(self) -> list[Code]:
        """Padding that the block's image does not hold already."""
        if isinstance(self.slot.padding, RepeatLastPadding):
            return [code("{}.pad_repeat_last({})", self.rows, self.live())]
        if isinstance(self.slot.padding, FillPadding) and self._fill_is_dynamic():
            value = self._value(self.slot.padding.value, LOADING)
            return [code("{}.pad_fill({}, {})", self.rows, self.live(), value)]
        return []

    def _load_device(self) -> list[Code]:
        slot, rows, dim = self._on_view(), self._live_rows(), self._dim()
        verb = "upload" if self._on_host() else "copy"
        head = Code(f"rt.{verb}_{'whole' if self.dim is None else 'rows'}")
        copy = call(head, (slot, self.source(), *rows, self.key, *dim, *self._cast_word()), BODY)
        value = self._absent_value()
        if self.dim is None:
            fill = call(Code("rt.fill_whole"), (slot, value), BODY)
        else:
            fill = call(Code("rt.fill_live"), (slot, *rows, value, *dim), BODY)
        check = self._role_check(Code("rt"), self.key, self.rows)
        if check:
            copy = code("{} = {}", self.rows, copy)
        return self._unless_absent([copy, *check], fill) + self._pad_device()

    def _on_host(self) -> bool:
        """Does the batch give the slot's rows on the host."""
        host = self.slot.residency is Residency.HOST
        return host and isinstance(self.slot.source, BatchSource)

    def _live_rows(self) -> tuple[Code, ...]:
        return () if self.dim is None else (self.live(),)

    def _pad_device(self) -> list[Code]:
        slot, dim = self._on_view(), self._dim()
        match self.slot.padding:
            case ZeroPadding():
                return [call(Code("rt.pad_zero"), (slot, self.live(), *dim), BODY)]
            case FillPadding(value=value):
                parts = (slot, self.live(), self._value(value, LOADING), *dim)
                return [call(Code("rt.pad_fill"), parts, BODY)]
            case RepeatLastPadding():
                return [call(Code("rt.pad_repeat_last"), (slot, self.live(), *dim), BODY)]
            case _:
                return []

    def _compute(self, expr: Expr) -> Code:
        if any(ref.symbol is Symbol.ROW for ref in refs(expr)):
            values = self._each_row(expr, LOADING)
            return call(code("{}.set_rows", self.rows), (values,), BODY)
        return code("{}.set_all({})", self.rows, self._expr(expr, LOADING))

    def _each_row(self, expr: Expr, where: Where) -> Code:
        count = self.extent(self.slot.shape[self.dim or 0], where.padded)
        return code("[{} for row in range({})]", self._expr(expr, where), count)

    def _unless_absent(self, copy: list[Code], fill: Code) -> list[Code]:
        if not isinstance(self.slot.absent, AbsentFill):
            return copy
        return [
            code("if {} is None:", in_test(self.source())),
            _deeper(fill),
            Code("else:"),
            *map(_deeper, copy),
        ]

    def _absent_value(self) -> Code:
        absent = self.slot.absent
        return literal(absent.value) if isinstance(absent, AbsentFill) else Code("0")

    # ------------------------------------------------------------ the batch

    def batch_path(self) -> tuple[str, ...] | None:
        """The attribute path of the batch that feeds the slot."""
        return self.slot.source.path if isinstance(self.slot.source, BatchSource) else None

    def source(self) -> Code:
        """``batch.input_ids``; None anywhere on a longer path makes the source None."""
        path = self.batch_path()
        if path is None:
            raise TypeError(f"slot {self.slot.qualified} has no batch source")
        return source_expression(path)

    def wants_eager_when_absent(self) -> bool:
        return isinstance(self.slot.absent, AbsentEager)

    # ------------------------------------------------------------ eager steps

    def bind(self, field: str, indent: int) -> Code:
        """``field`` as the slot of an eager step, at live size."""
        slot = self.slot
        match slot.source:
            case BatchSource():
                head = "rows.upload" if self._on_host() else "rows.own"
                if self.wants_eager_when_absent():
                    head += "_if_given"
                parts = (self.key, self.source(), *self._cast_word(), *self._absent_word())
                return call(Code(field + head), parts, indent, after=1)
            case BoundarySource(key=key):
                return Code(f"{field}boundary.{identifier(key)}")
            case ComputeSource(expr=expr) if any(r.symbol is Symbol.ROW for r in refs(expr)):
                parts = (self.key, self._each_row(expr, BINDING), *self._dim())
                return call(Code(f"{field}rows.computed"), parts, indent, after=1)
            case ComputeSource(expr=expr):
                value = self._expr(expr, BINDING)
            case ConstSource(value=constant):
                value = self._value(constant, BINDING)
            case CallerSource() | GraphSource():
                value = Code("0")
            case _:
                raise TypeError(f"slot {slot.qualified}: {type(slot.source).__name__}")
        return call(Code(f"{field}rows.filled"), (self.key, value), indent, after=1)

    def bind_checks(self) -> list[Code]:
        """Checks of an eager step's host rows, as a load makes them."""
        return self._role_check(Code("rows"), self.key)

    # ------------------------------------------------------------ facts for reports

    def info(self, indent: int) -> Code:
        """The slot's row in the table that captures and reports read."""
        slot = self.slot
        path = self.batch_path()
        axes = Code(
            f"({', '.join(str(literal(a)) for a in slot.axes)}{',' if len(slot.axes) == 1 else ''})"
        )
        dtype = Code("None") if slot.dtype == "model" else self.dtype
        parts = [
            code("name={}", self.key),
            code("line={}", literal(self.line)),
            code("axes={}", axes),
            code("dtype={}", dtype),
            code("padding={}", literal(padding_text(slot))),
        ]
        if slot.role.role is not Role.DATA:
            parts.append(Code(f"role=rt.Role.{slot.role.role.name}"))
        if slot.role.of_kind == "axis":
            parts.append(code("of_axis={}", literal(slot.role.of)))
        if path is not None:
            parts.append(code("batch={}", literal(".".join(path))))
        if isinstance(slot.source, BoundarySource):
            parts.append(code("boundary={}", literal(slot.source.key)))
        if slot.cast:
            parts.append(Code("cast=True"))
        if self._on_host():
            parts.append(Code("host=True"))
        if slot.mutable:
            parts.append(Code("mutable=True"))
        if self.dim:
            parts.append(code("dim={}", literal(self.dim)))
        if self.in_block and (image := self._image()) is not None:
            parts.append(code("image={}", image))
        parts += [code("{}={}", Code(key), literal(value)) for key, value in declared(slot).items()]
        return call(Code("rt.SlotInfo"), tuple(parts), indent, after=1)

    def capture_fill(self) -> Code | None:
        """The value of every row at capture, where it does not follow from the role alone."""
        slot = self.slot
        if slot.capture_fill is not None:
            constant = slot.capture_fill
            return self._value(constant, LOADING)
        if slot.role.role is Role.WRITE_INDEX and slot.role.of_kind == "state":
            return literal(self.family.state(slot.role.of or "").reserved[0])
        return None

    # ------------------------------------------------------------ parts

    def _role_check(self, head: Code, *subject: Code) -> list[Code]:
        """``head.check_index(subject, limit)``: live values of a host source against its role."""
        role, shape = self.slot.role, self.slot.shape
        if role.of is None or not shape or not self._on_host():
            return []
        limit = (*subject, self._of())
        match role.role:
            case Role.INDEX:
                check, words = "check_index", limit
            case Role.WRITE_INDEX:
                skips = literal(role.consumer_skips_negative)
                check, words = "check_write_index", (*limit, code("skips_negative={}", skips))
            case Role.OFFSETS:
                closed = literal(shape[self.dim or 0].offset == 1)
                check, words = "check_offsets", (*limit, code("closed={}", closed))
            case Role.LENGTHS if role.of_kind == "axis":
                check, words = "check_lengths", limit
            case Role.LENGTHS:
                check, words = "check_bounded", limit
            case _:
                return []
        return [call(code("{}.{}", head, Code(check)), words, BODY)]

    def _of(self) -> Code:
        """The size that a role speaks of."""
        name = self.slot.role.of or ""
        match self.slot.role.of_kind:
            case "axis":
                return code("live.{}", identifier(name))
            case "state":
                return self._expr(self.family.state(name).rows, LOADING)
            case _:
                return code("self.dims.{}", identifier(name))

    def _on_view(self) -> Code:
        return code("slots.{}", slot_attribute(self.slot))

    def _dim(self) -> tuple[Code, ...]:
        return (code("dim={}", literal(self.dim)),) if self.dim else ()

    def _cast(self) -> Code:
        return Code(", cast=True") if self.slot.cast else Code("")

    def _cast_word(self) -> tuple[Code, ...]:
        return (Code("cast=True"),) if self.slot.cast else ()

    def _absent_word(self) -> tuple[Code, ...]:
        if not isinstance(self.slot.absent, AbsentFill):
            return ()
        return (code("absent={}", self._absent_value()),)

    def _value(self, value: Expr | float, where: Where) -> Code:
        return literal(value) if isinstance(value, int | float) else self._expr(value, where)

    def _expr(self, expr: Expr, where: Where) -> Code:
        names = names_for(expr, dims=where.dims, live=where.live, padded=where.padded)
        names.update(fixed_numbers(self.family))
        names.update({ref: Code("row") for ref in refs(expr) if ref.symbol is Symbol.ROW})
        names.update(self._state_rows(expr, where))
        return python(expr, names)

    def _state_rows(self, expr: Expr, where: Where) -> dict[Ref, Code]:
        """``state.kv.rows`` inside another expression."""
        return {
            ref: operand(
                self.family.state(ref.name).rows,
                names_for(
                    self.family.state(ref.name).rows,
                    dims=where.dims,
                    live=where.live,
                    padded=where.padded,
                ),
            )
            for ref in refs(expr)
            if ref.symbol is Symbol.STATE_ROWS
        }


# ---------------------------------------------------------------- text for comments and tables


def _deeper(statement: Code) -> Code:
    """A statement one level further in."""
    return Code("    " + str(statement).replace("\n", "\n    "))


def source_expression(path: tuple[str, ...]) -> Code:
    """``batch.a.b``, or None where a step of the path is None."""
    full = code("batch.{}", dotted(path))
    steps = [code("batch.{}", dotted(path[: end + 1])) for end in range(len(path) - 1)]
    if not steps:
        return full
    nothing = " or ".join(f"{step} is None" for step in steps)
    return Code(f"None if {nothing} else {full}")


def in_test(source: Code) -> Code:
    """A source as an operand: in brackets where it is a conditional itself."""
    return Code(f"({source})") if " " in str(source) else source


def extent_text(extent: Extent) -> str:
    """One dimension for people: ``tokens``, ``requests + 1``, ``hidden``."""
    if extent.axis is None:
        return to_text(extent.expr).replace("dims.", "")
    scaled = f"{extent.scale} * " if extent.scale != 1 else ""
    return f"{scaled}{extent.axis}{f' + {extent.offset}' if extent.offset else ''}"


def padding_text(slot: Slot) -> str:
    """A padding for people."""
    match slot.padding:
        case ZeroPadding():
            return "zero"
        case FillPadding():
            return "fill"
        case RepeatLastPadding():
            return "repeat_last"
        case KeepPadding():
            return "keep"
        case _:
            return "none"


def declared(slot: Slot) -> dict[str, str | float]:
    """What the slot declares, in the spec's words, for `verify`'s second reading of a load."""
    facts: dict[str, str | float] = {}
    match slot.source:
        case ComputeSource(expr=value):
            facts = {"source": "compute", "rule": to_text(value)}
        case ConstSource(value=value):
            facts = {"source": "const", "rule": value_text(value)}
        case BatchSource():
            pass
        case other:
            facts = {"source": type(other).__name__.removesuffix("Source").lower()}
    match slot.padding:
        case FillPadding(value=value):
            facts["fill"] = value_text(value)
        case KeepPadding(initial=initial):
            facts["fill"] = value_text(initial)
    if isinstance(slot.absent, AbsentFill):
        facts["absent"] = slot.absent.value
    if slot.role.of_kind == "state" and slot.role.of is not None:
        facts["of_state"] = slot.role.of
    return facts


def value_text(value: Expr | float) -> str:
    """A number or an expression as a spec writes it."""
    return str(value).lower() if isinstance(value, int | float) else to_text(value)


def source_text(slot: Slot) -> str:
    """Where rows come from and what the others hold, for people."""
    match slot.source:
        case BatchSource(path=path):
            origin = f"batch.{'.'.join(path)}"
        case ComputeSource():
            return "computed for every padded row"
        case BoundarySource(key=key):
            return f"boundary.{key}"
        case CallerSource():
            origin = "written by the caller before finish()"
        case _:
            origin = type(slot.source).__name__
    then = {
        "zero": "then zero",
        "fill": "then its fill",
        "repeat_last": "then the last live row again",
        "keep": "rows past live keep what they hold",
        "none": "no padded rows",
    }
    return f"{origin}, {then[padding_text(slot)]}"
