"""Nodes from the parser's events, with an explicit stack and bounds on everything.

PyYAML's own composer recurses, keeps the last of two equal keys, and follows aliases without
counting. This one reads the same events (so that a file with a hundred thousand brackets is
given up after the first few) and reports each departure from the safe core as a finding.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
)

from ppcgc.diagnostics.model import Diagnostic, Related, Rule, Span
from ppcgc.load import findings
from ppcgc.load.frames import Frame, PendingKey
from ppcgc.load.places import Places
from ppcgc.load.scalars import OutOfRangeError, read_plain
from ppcgc.load.split import Piece, find_split
from ppcgc.load.syntax import syntax_finding
from ppcgc.load.text import forbidden_escapes
from ppcgc.nodes import Node, Scalar, ScalarValue

MAX_DEPTH = 32
MAX_VALUES = 50_000

# libyaml's parser is ten times as fast; PyYAML has it wherever it comes as a wheel
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _GivenUpError(Exception):
    """The rest of the file is not read: a bound was passed. The finding is already recorded."""


class Composer:
    """Composes one text. Use :meth:`compose` once, then read :attr:`found`."""

    def __init__(self, text: str, file: str) -> None:
        self.found: list[Diagnostic] = []
        self._text = text
        self._file = file
        self._places = Places(text, file)
        self._stack: list[Frame] = []
        self._anchors: dict[str, tuple[Node, int, int]] = {}  # node, values in it, height
        self._anchor_spans: dict[str, Span] = {}
        self._count = 0
        self._root: Node | None = None
        self._documents = 0

    def compose(self) -> Node | None:
        """The root, or None when there is none or when reading was given up."""
        try:
            for event in yaml.parse(self._text, Loader=_LOADER):
                self._take(event)
        except _GivenUpError:
            return None
        except yaml.YAMLError as error:
            self.found.append(syntax_finding(error, self._file))
            return None
        return self._root

    def _take(self, event: Event) -> None:
        match event:
            case DocumentStartEvent():
                self._start_document(event)
            case AliasEvent():
                self._take_alias(event)
            case ScalarEvent():
                self._take_scalar(event)
            case CollectionStartEvent():
                self._open(event)
            case CollectionEndEvent():
                self._close(event)
            case _:
                pass  # stream start and end, document end

    # ---------------------------------------------------------------- events

    def _start_document(self, event: DocumentStartEvent) -> None:
        self._documents += 1
        span = self._places.span_of(event)
        if event.tags:
            self._report(
                findings.TAG_NOT_ALLOWED, span, "the directive %TAG is not allowed", "remove it"
            )
        if self._documents > 1:
            self._give_up(
                findings.SEVERAL_DOCUMENTS,
                span,
                "a second document starts here",
                "put it in a file of its own",
            )

    def _take_scalar(self, event: ScalarEvent) -> None:
        self._count_values(1, event)
        self._check_tag(event)
        quoted = event.style not in (None, "")
        span = self._places.span_of(event)
        if event.style in ("|", ">"):
            span = self._places.without_blank_end(span)
        self.found += forbidden_escapes(event.value, span)
        if self._stack and self._stack[-1].wants_key:
            self._take_key(event.value, span, quoted)
            return
        node = Scalar(
            value=event.value if quoted else self._read(event.value, span),
            text=event.value,
            quoted=quoted,
            span=span,
        )
        self._add(node, height=0, anchor=event.anchor, span=span, values=1)

    def _take_alias(self, event: AliasEvent) -> None:
        span = self._places.span_of(event)
        name = event.anchor or ""
        if any(frame.anchor == name for frame in self._stack):
            self._give_up(
                findings.BAD_ANCHOR,
                span,
                f"`*{name}` stands inside the value that it names",
                "a value cannot contain itself: write it out",
            )
        if name not in self._anchors:
            self._give_up(
                findings.BAD_ANCHOR,
                span,
                f"`*{name}` has no anchor before it",
                f"mark the value that is meant with `&{name}`, above this line",
            )
        node, values, height = self._anchors[name]
        self._count_values(values, event)
        self._check_depth(len(self._stack) + height, span)
        if self._stack and self._stack[-1].wants_key:
            self._refuse_key(span, "an alias")
            return
        self._add(node, height=height, anchor=None, span=span, values=values)

    def _open(self, event: CollectionStartEvent) -> None:
        self._count_values(1, event)
        span = self._places.span_of(event)
        self._check_depth(len(self._stack) + 1, span)
        self._check_tag(event)
        self._stack.append(
            Frame(
                is_mapping=isinstance(event, MappingStartEvent),
                flow=bool(event.flow_style),
                anchor=event.anchor,
                start=span,
                count_before=self._count - 1,
            )
        )

    def _close(self, event: CollectionEndEvent) -> None:
        frame = self._stack.pop()
        node = frame.finish(self._places.span_of(event))
        if frame.flow:
            self.found += find_split(frame.pieces, self._places.text_of)
        if self._stack and self._stack[-1].wants_key:
            self._refuse_key(node.span, "a mapping" if frame.is_mapping else "a list")
            return
        values = self._count - frame.count_before
        self._add(node, height=frame.height, anchor=frame.anchor, span=node.span, values=values)

    # ---------------------------------------------------------------- keys and values

    def _take_key(self, text: str, span: Span, quoted: bool) -> None:
        frame = self._stack[-1]
        if text == "" and not quoted:
            self._refuse_key(span, "nothing")
            return
        frame.last = span
        frame.pieces.append(Piece(text=text, span=span, quoted=quoted, is_key=True))
        frame.pending = PendingKey(text, span)
        if text == "<<" and not quoted:
            frame.pending.text = None
            self._report(
                findings.MERGE_KEY,
                span,
                "the merge key `<<` is not part of the spec language",
                "write the words out, or use an alias for a whole value",
            )
        elif text in frame.key_spans:
            frame.pending.text = None
            first = frame.key_spans[text]
            self._report(
                findings.DUPLICATE_KEY,
                span,
                f"key `{text}` is given twice",
                f"keep one of the two; the first is on line {first.line}",
                (Related(first, "first given here"),),
            )
        else:
            frame.key_spans[text] = span

    def _refuse_key(self, span: Span, what: str) -> None:
        frame = self._stack[-1]
        frame.last = span
        frame.pending = PendingKey(None, span)
        self._report(
            findings.KEY_NOT_A_NAME,
            span,
            f"the key is {what}, not a name",
            "check for a stray `?`, `:` or bracket",
        )

    def _add(self, node: Node, *, height: int, anchor: str | None, span: Span, values: int) -> None:
        """Put a finished value into the collection around it, or make it the root."""
        if anchor is not None:
            self._name_anchor(anchor, node, height, span, values)
        if not self._stack:
            self._root = node
            return
        frame = self._stack[-1]
        if isinstance(node, Scalar):
            self._remember_piece(frame, node, span)
        frame.add_value(node, height)
        if (span.end_line, span.end_column) > (
            (frame.last.end_line, frame.last.end_column) if frame.last else (0, 0)
        ):
            frame.last = span

    def _remember_piece(self, frame: Frame, node: Scalar, span: Span) -> None:
        """Note a scalar between brackets; a key without a colon has an empty value after it."""
        key = frame.pending
        if key is not None and node.text == "" and not node.quoted and frame.pieces:
            between = Span(
                span.file, key.span.end_line, key.span.end_column, span.line, span.column
            )
            if ":" not in self._places.text_of(between):
                frame.pieces[-1] = replace(frame.pieces[-1], without_colon=True)
            return
        frame.pieces.append(Piece(text=node.text, span=span, quoted=node.quoted))

    def _name_anchor(self, name: str, node: Node, height: int, span: Span, values: int) -> None:
        if name in self._anchor_spans:
            self._report(
                findings.BAD_ANCHOR,
                span,
                f"anchor `&{name}` is given twice",
                "give each anchor a name of its own",
                (Related(self._anchor_spans[name], "first given here"),),
            )
        self._anchors[name] = (node, values, height)
        self._anchor_spans.setdefault(name, span)

    def _read(self, text: str, span: Span) -> ScalarValue:
        try:
            return read_plain(text)
        except OutOfRangeError:
            shown = text if len(text) <= 24 else f"{text[:20]}..."
            self._report(
                findings.NUMBER_OUT_OF_RANGE,
                span,
                f"{shown} does not fit 64 bits",
                "quote it if it is text; write `.inf` if infinity is meant",
            )
            return text

    # ---------------------------------------------------------------- bounds

    def _check_tag(self, event: NodeEvent) -> None:
        tag = getattr(event, "tag", None)
        if tag is not None:
            self._report(
                findings.TAG_NOT_ALLOWED,
                self._places.span_of(event),
                f"tag `{tag}` is not allowed",
                "remove the tag; quote the value if it is text",
            )

    def _check_depth(self, depth: int, span: Span) -> None:
        if depth > MAX_DEPTH:
            self._give_up(
                findings.TOO_DEEP,
                span,
                f"values are nested {depth} deep, at most {MAX_DEPTH} are read",
                "the rest of the file was not read",
            )

    def _count_values(self, values: int, event: Event) -> None:
        self._count += values
        if self._count > MAX_VALUES:
            self._give_up(
                findings.TOO_MANY_VALUES,
                self._places.span_of(event),
                f"the file stands for more than {MAX_VALUES} values",
                "aliases count in full; the rest of the file was not read",
            )

    # ---------------------------------------------------------------- findings

    def _report(
        self,
        rule: Rule,
        span: Span,
        message: str,
        help_: str,
        related: tuple[Related, ...] = (),
    ) -> None:
        self.found.append(
            Diagnostic(rule=rule, span=span, message=message, help=help_, related=related)
        )

    def _give_up(self, rule: Rule, span: Span, message: str, help_: str) -> NoReturn:
        self._report(rule, span, message, help_)
        raise _GivenUpError
