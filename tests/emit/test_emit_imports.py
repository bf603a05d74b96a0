"""Imports of generated modules, against the sorter itself."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from ppcgc.emit.imports import import_line, in_import_order

words = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True)
NAMES = [
    "AXES", "BUCKETS", "A", "Aa", "aA", "a", "B2", "BB", "Dims", "DecodeOnly", "Decode_only",
    "choose", "extents", "URLPath", "UPPER_CASE", "Z9", "zebra", "_x",
]  # fmt: skip


def test_the_order_is_the_sorter_s() -> None:
    names = [name for name in NAMES if not name.startswith("_")]
    line = str(import_line("module", in_import_order(names)))
    source = f"from __future__ import annotations\n\n{line}\n\n__all__ = {in_import_order(names)}\n"
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--no-cache",
        "--select",
        "I,RUF022",
        "-",
    ]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@given(st.lists(words, unique=True))
def test_the_order_is_total_and_keeps_all(names: list[str]) -> None:
    ordered = in_import_order(names)
    assert sorted(ordered) == sorted(names)
    assert in_import_order(list(reversed(names))) == ordered
    assert in_import_order(ordered) == ordered
