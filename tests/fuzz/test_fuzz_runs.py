"""What the compiler accepts imports, is captured, and runs on the CPU backend.

Each step's slots, padded rows and choice are compared with a second reading of the spec, what the
graphs give with an eager step.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from fuzz_compiler import ran
from fuzz_mutations import good_specs, mutated_trees, stock_of, written
from fuzz_profile import examples
from fuzz_specs import drawn_specs
from hypothesis import given, note
from hypothesis import strategies as st

GOOD = good_specs()
STOCK = stock_of(GOOD)


def test_accepted_specs_run() -> None:
    answers: Counter[str] = Counter()

    @examples(150)
    @given(drawn_specs(), st.integers(0, 999), st.booleans())
    def each(tree: dict[str, Any], seed: int, bound: bool) -> None:
        text = written(tree)
        note(text)
        replays = ran(text, seed, bound=bound)
        answers["refused" if replays is None else "replayed" if replays else "eager"] += 1

    each()
    assert answers["replayed"] > answers["refused"] / 2, answers  # drawn specs are sound, mostly


@examples(150)
@given(mutated_trees(GOOD, STOCK), st.integers(0, 999), st.booleans())
def test_accepted_mutations_run(spec: tuple[str, Path], seed: int, bound: bool) -> None:
    text, folder = spec
    note(text)
    ran(text, seed, folder, any_sizes=True, bound=bound)
