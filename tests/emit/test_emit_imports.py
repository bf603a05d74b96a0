"""Imports of generated modules, against the sorter itself."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from ppcgc.emit.imports import (
    export_list,
    import_line,
    in_export_order,
    in_import_order,
)
from ppcgc.emit.layout import laid_out

words = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True)
NAMES = [
    "AXES", "BUCKETS", "A", "Aa", "aA", "a", "B2", "BB", "Dims", "DecodeOnly", "Decode_only",
    "choose", "extents", "URLPath", "UPPER_CASE", "Z9", "zebra", "step2", "step10", "Step10",
    "Step2First", "step_2", "decodeFirst", "X1Y", "a_b", "aB",
]  # fmt: skip


def complaints(source: str) -> str:
    command = ("check", "--isolated", "--no-cache", "--select", "I,RUF022", "-")
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *command],
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout


def module(line: str, exports: str) -> str:
    return laid_out(f"from __future__ import annotations\n\n{line}\n\n{exports}\n")


def test_the_order_is_the_sorter_s() -> None:
    source = module(str(import_line("module", NAMES)), str(export_list(NAMES)))
    assert complaints(source) == ""
    assert complaints(module("from .module import b, a", str(export_list(NAMES)))) != ""
    assert complaints(module("from .module import a, b", '__all__ = ["b", "a"]')) != ""


@given(st.lists(words, unique=True, min_size=1))
def test_the_order_is_total_and_keeps_all(names: list[str]) -> None:
    for order in (in_import_order, in_export_order):
        assert sorted(order(names)) == sorted(names)
        assert order(list(reversed(names))) == order(names)
