"""Whole specs drawn from the words of the language: sound by construction, most of them.

Nothing here knows the rules beyond what makes an average spec sound; what a draw gets wrong is
for the compiler to say. Sizes are small, so that what is accepted can be run.
"""

from __future__ import annotations

from fuzz_drawn import Drawn, Tree
from fuzz_head import head, pipeline
from fuzz_runners import runner
from hypothesis import strategies as st


@st.composite
def drawn_specs(draw: st.DrawFn) -> Tree:
    """The tree of a whole spec."""
    drawn = Drawn(draw)
    tree = head(drawn)
    tree["pipeline"] = pipeline(drawn)
    names = ["prefill", "decode"] if drawn.chance(4) else ["prefill"]
    tree["runners"] = {name: runner(drawn, name, tree["axes"]) for name in names}
    if len(names) > 1 and drawn.chance(4):
        tree["runners"]["prefill"]["overlaps"] = ["decode"]
        tree["runners"]["decode"]["overlaps"] = ["prefill"]
    return tree
