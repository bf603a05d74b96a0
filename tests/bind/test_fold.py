"""Folding: values that are known, worked out by hand; what is not known stays."""

from __future__ import annotations

import pytest

from ppcgc.bind.fold import Folding
from ppcgc.diagnostics.model import Span
from ppcgc.expr.names import Scope, name_refs
from ppcgc.expr.parse import parse
from ppcgc.expr.printing import to_text
from ppcgc.expr.tokens import ExprError
from ppcgc.expr.tree import Expr, Ref, Symbol

SCOPE = Scope(
    place="in a test",
    dims=frozenset({"hidden", "block", "free"}),
    axes=frozenset({"tokens"}),
    symbols=frozenset(Symbol),
    options=frozenset({"lora", "mode"}),
    kinds=frozenset({"full", "none", "open"}),
)
ENV = {
    Ref(Symbol.DIM, "hidden"): 16,
    Ref(Symbol.DIM, "block"): 2,
    Ref(Symbol.OPTION, "lora"): False,
}
KINDS = {"full": frozenset({0, 2, 4}), "none": frozenset[int]()}


def named(text: str) -> Expr:
    tree = parse(text, Span("test.yaml", 1, 1, 1, 1 + len(text)))
    assert not isinstance(tree, ExprError), tree
    expr, unknown = name_refs(tree, SCOPE)
    assert unknown == ()
    return expr


def folded(text: str, cuts: tuple[int, ...] = ()) -> str:
    return to_text(Folding(env=ENV, kinds=KINDS, cuts=cuts).expr(named(text)))


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("hidden * 2 + 1", "33"),
        ("padded.tokens * hidden", "padded.tokens * 16"),
        ("free + hidden // 3", "dims.free + 5"),
        ("hidden if options.lora else live.tokens", "live.tokens"),
        ("not options.lora", "true"),
        ("options.lora and free > 1", "false"),
        ("free > 1 and not options.lora", "dims.free > 1"),
        ("free > 1 or options.lora", "dims.free > 1"),
        ("free > 1 or not options.lora", "dims.free > 1 or true"),
        ("free // (block - 2)", "dims.free // 0"),
        ("7 // (block - 2)", "7 // 0"),
        ("min(hidden, block, 9)", "2"),
        ("options.mode == 'a'", "options.mode == 'a'"),
        ("kinds.full.below(3)", "2"),
        ("kinds.full.below(cut.layer)", "kinds.full.below(cut.layer)"),
        ("cut.layer in kinds.full", "cut.layer in (0, 2, 4)"),
        ("cut.layer in kinds.none", "false"),
        ("cut.layer in kinds.open", "cut.layer in kinds.open"),
    ],
)
def test_known_values_are_put_in(text: str, short: str) -> None:
    assert folded(text) == short


@pytest.mark.parametrize(
    ("text", "cuts", "short"),
    [
        ("ceil(cut.layer / block)", (3,), "2"),
        ("ceil(cut.layer / block)", (3, 4), "2"),
        (
            "ceil(cut.layer / block)",
            (2, 3, 5),
            "1 if cut.layer == 2 else 2 if cut.layer == 3 else 3",
        ),
        ("cut.layer in kinds.full", (2, 4), "true"),
        ("cut.layer in kinds.full", (1, 3), "false"),
        ("cut.layer in kinds.full", (1, 2), "cut.layer in (2)"),
        ("kinds.full.below(cut.layer)", (1, 2), "1"),
        ("free - cut.layer", (3,), "dims.free - 3"),
        ("free - cut.layer", (3, 4), "dims.free - cut.layer"),
        ("6 // (cut.layer - 3)", (3, 4), "6 // (cut.layer - 3)"),
    ],
)
def test_cuts_that_are_known_are_put_in(text: str, cuts: tuple[int, ...], short: str) -> None:
    assert folded(text, cuts) == short
