"""The form of a spec: JSON Schema says what is wrong, this module says it in ppcgc's words.

Every violation becomes a finding with a code of its own and the span of the key or value at
fault. The schema chooses between branches with ``if``/``then``, never ``oneOf``, so that no
mistake hides another and no wrong branch is blamed. What only a spec without a parent must say
stands apart, in ``complete``, for editors that see a child; here ``extends`` is merged by now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any

from ppcgc.diagnostics.model import Diagnostic, Related, Rule, Span, in_order
from ppcgc.nodes import Document, Dropped, NodePath, Scalar, plain
from ppcgc.schema_file import load_schema
from ppcgc.validate import form_rules as form

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

_LONGEST_SHOWN = 40
_TYPE_NAMES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One violation as jsonschema found it, in the words that are translated from.

    ``limit`` is the keyword's value in the schema, ``value`` what the spec has at ``path``;
    ``of_key``: the value is a key of the mapping at ``path``.
    """

    keyword: str
    limit: Any
    value: Any
    schema: dict[str, Any]
    path: NodePath
    of_key: bool


def check(document: Document) -> list[Diagnostic]:
    """Every way in which the document breaks the schema of specs, in order of place."""
    violations = [_violation(error) for error in _validator().iter_errors(plain(document.root))]
    return in_order([each for broken in violations for each in _translate(broken, document)])


def _violation(error: ValidationError) -> Violation:
    return Violation(
        keyword=str(error.validator),
        limit=error.validator_value,
        value=error.instance,
        schema=dict(error.schema) if isinstance(error.schema, Mapping) else {},
        path=tuple(error.absolute_path),
        of_key="propertyNames" in error.absolute_schema_path,
    )


@cache
def _validator() -> Draft202012Validator:
    """A validator for which ``true`` and ``4.0`` are no integers and ``$`` is the real end."""
    # imported here: it costs more than the rest of the compiler's imports together, and
    # commands such as `explain` do without
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    types = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    strict: type[Draft202012Validator] = extend(  # type: ignore[no-untyped-call] # untyped stub
        Draft202012Validator, {"pattern": _pattern}, type_checker=types
    )
    return strict(load_schema())


def _pattern(
    validator: Any, pattern: str, instance: object, schema: object
) -> Iterator[ValidationError]:
    """``pattern`` without Python's leniency: ``$`` does not match before a last newline."""
    import re

    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and (
        instance.endswith("\n") or re.search(pattern, instance) is None
    ):
        yield ValidationError("pattern")


# ---------------------------------------------------------------- one violation, one finding


def _translate(broken: Violation, document: Document) -> Iterator[Diagnostic]:
    yield from _TRANSLATIONS.get(broken.keyword, _other)(broken, document)


def _unknown_keys(broken: Violation, document: Document) -> Iterator[Diagnostic]:
    known = list(broken.schema["properties"])
    for key in broken.value:
        if key in known:
            continue
        missing = [name for name in known if name not in broken.value]
        help = _nearest(key, missing) or f"known keys: {', '.join(known)}"
        span = document.key_span_at((*broken.path, key))
        yield Diagnostic(
            form.UNKNOWN_KEY, span, f"unknown key '{_short(key)}'{_at(broken.path)}", help
        )


def _missing_key(broken: Violation, document: Document) -> Iterator[Diagnostic]:
    described = _at_pointer(broken.schema["x-of"]) if "x-of" in broken.schema else broken.schema
    properties = described.get("properties", {})
    for key in broken.limit:
        if key not in broken.value:
            span = _start(document.span_at(broken.path))
            description = properties.get(key, {}).get("description", f"add '{key}'")
            message = f"missing key '{key}'{_at(broken.path)}"
            taken = [one for one in _dropped(broken, document) if one.name == key]
            missing = Diagnostic(form.MISSING_KEY, span, message, description)
            yield _of_drop(missing, taken) if taken else missing


def _at_pointer(pointer: str) -> dict[str, Any]:
    """The part of the schema at ``#/a/b``."""
    part = load_schema()
    for step in pointer.split("/")[1:]:
        part = part[step]
    return part


def _wrong_type(broken: Violation, document: Document) -> Iterator[Diagnostic]:
    wanted = broken.limit
    names = [_TYPE_NAMES[name] for name in ([wanted] if isinstance(wanted, str) else wanted)]
    message = f"{_subject(broken)} is {_kind(broken.value)}, not {' or '.join(names)}"
    described = broken.schema.get("description", f"write {' or '.join(names)}")
    help = _number_help(broken.value, names) or described
    yield _on_value(form.WRONG_TYPE, broken, document, message, help)


def _unknown_word(broken: Violation, document: Document) -> Iterator[Diagnostic]:
    known = [str(word) for word in broken.limit]
    if not isinstance(broken.value, str | int | float | bool):
        message = f"{_subject(broken)} is {_kind(broken.value)}, not one of: {', '.join(known)}"
        yield _on_value(form.WRONG_TYPE, broken, document, message, "write one of these words")
        return
    if broken.path == ("version",):
        message = f"version {_shown(broken.value)} is not known"
        help = f"this ppcgc reads version {known[-1]}"
        yield _on_value(form.UNKNOWN_WORD, broken, document, message, help)
        return
    message = f"{_shown(broken.value)} is not a value of {_subject(broken)}"
    choices = f"one of: {', '.join(known)}" if len(known) > 1 else f"only '{known[0]}'"
    close = _nearest(str(broken.value), known)
    yield _on_value(
        form.UNKNOWN_WORD, broken, document, message, f"{close} {choices}" if close else choices
    )


def _malformed(broken: Violation, document: Document) -> Iterator[Diagnostic]:
    expected = f"expected {broken.schema['x-expected']}"
    shown = _shown(broken.value)
    if broken.of_key:
        span = document.key_span_at((*broken.path, broken.value))
        yield Diagnostic(
            form.MALFORMED, span, f"key {shown}{_at(broken.path)} is malformed", expected
        )
        return
    yield _on_value(
        form.MALFORMED, broken, document, f"{_subject(broken)} {shown} is malformed", expected
    )


def _out_of_range(broken: Violation, document: Document) -> Iterator[Diagnostic]:
    limit = broken.limit
    word = "at least" if broken.keyword == "minimum" else "at most"
    message = f"{_subject(broken)} is {_shown(broken.value)}; it is {word} {limit}"
    help = f"write {limit} or {'more' if broken.keyword == 'minimum' else 'less'}"
    yield _on_value(form.OUT_OF_RANGE, broken, document, message, help)


def _wrong_length(broken: Violation, document: Document) -> Iterator[Diagnostic]:
    limit, length = broken.limit, len(broken.value)
    word = "at most" if broken.keyword.startswith("max") else "at least"
    unit = {"string": "characters", "array": "items", "object": "entries"}[_json_type(broken)]
    message = f"{_subject(broken)} has {length} {unit}; it has {word} {limit}"
    change = "add some" if word == "at least" else "remove some"
    help = broken.schema.get("description", change)
    wrong = _on_value(form.WRONG_LENGTH, broken, document, message, help)
    taken = _dropped(broken, document) if word == "at least" else ()
    yield _of_drop(wrong, taken) if taken else wrong


def _dropped(broken: Violation, document: Document) -> Sequence[Dropped]:
    """What the value has not because the spec does not inherit it."""
    node = document.at(broken.path)
    return () if node is None or isinstance(node, Scalar) else node.dropped


def _of_drop(finding: Diagnostic, taken: Sequence[Dropped]) -> Diagnostic:
    """A finding that is the fault of `drop`, at the place where it says so."""
    names = ", ".join(f"'{_short(one.name)}'" for one in taken)
    return replace(
        finding,
        span=taken[-1].span,
        message=f"{finding.message}: `drop` leaves out {names}",
        related=(Related(finding.span, "what is inherited"), *finding.related),
    )


def _other(broken: Violation, document: Document) -> Iterator[Diagnostic]:
    help = broken.schema.get("description", "see its entry in `ppcgc schema`")
    yield _on_value(form.MALFORMED, broken, document, f"{_subject(broken)} is malformed", help)


_TRANSLATIONS: dict[str, Callable[[Violation, Document], Iterator[Diagnostic]]] = {
    "additionalProperties": _unknown_keys,
    "required": _missing_key,
    "type": _wrong_type,
    "enum": _unknown_word,
    "pattern": _malformed,
    "minimum": _out_of_range,
    "maximum": _out_of_range,
    "minItems": _wrong_length,
    "maxItems": _wrong_length,
    "minLength": _wrong_length,
    "minProperties": _wrong_length,
}


# ---------------------------------------------------------------- words of a finding


def _on_value(
    rule: Rule, broken: Violation, document: Document, message: str, help: str
) -> Diagnostic:
    return Diagnostic(rule, document.span_at(broken.path), message, help)


def _subject(broken: Violation) -> str:
    return f"'{_dotted(broken.path)}'" if broken.path else "the spec"


def _at(path: NodePath) -> str:
    return f" in '{_dotted(path)}'" if path else ""


def _dotted(path: Sequence[str | int]) -> str:
    """``runners.prefill.slots[3].dtype``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{_short(part)}"
    return text.lstrip(".")


def _short(text: str) -> str:
    line = text.encode("unicode_escape").decode("ascii") if not text.isprintable() else text
    return line if len(line) <= _LONGEST_SHOWN else f"{line[: _LONGEST_SHOWN - 1]}…"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{_short(value)}'" if isinstance(value, str) else _short(repr(value))


def _kind(value: object) -> str:
    match value:
        case None:
            return "empty"
        case bool():
            return f"{_shown(value)} (a boolean)"
        case int():
            return f"{_shown(value)} (an integer)"
        case float():
            return f"{_shown(value)} (a number)"
        case str():
            return f"{_shown(value)} (text)"
        case list():
            return "a list"
        case _:
            return "a mapping"


def _number_help(value: object, wanted: list[str]) -> str | None:
    if "an integer" not in wanted:
        return None
    if isinstance(value, float) and value.is_integer():
        return f"write {int(value)}"
    if isinstance(value, str) and value.isdigit() and "text" not in wanted:
        return f"write {int(value[:18])} without quotes"
    return None


def _nearest(word: str, known: list[str]) -> str | None:
    close = get_close_matches(word, known, 1, 0.6)
    return f"did you mean '{close[0]}'?" if close else None


def _json_type(broken: Violation) -> str:
    if isinstance(broken.value, str):
        return "string"
    return "array" if isinstance(broken.value, list) else "object"


def _start(span: Span) -> Span:
    """The first character of a span: what is missing has no place of its own."""
    return Span(span.file, span.line, span.column, span.line, span.column + 1)
