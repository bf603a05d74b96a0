"""A small sound spec, for tests that change a line or two of it."""

from __future__ import annotations

import yaml
from fuzz_drawn import Tree
from fuzz_mutations import LOADER, written

SMALL = """
version: 1
family: small
dims: {hidden: config.hidden_size}
axes:
  tokens: {max: 8, live: batch.num_tokens}
  requests: {max: 4, live: batch.num_requests}
pipeline:
  layers: {count: 6}
  boundary:
    - {name: hidden_states, axis: tokens, shape: [tokens, hidden], dtype: model, padding: zero}
runners:
  step:
    buckets: {tokens: [4, 8], requests: max}
    slots:
      - {name: ids, axis: tokens, dtype: int64, padding: zero, source: batch.ids}
      - {name: lens, axis: requests, dtype: int32, padding: zero, source: batch.lens}
    forward:
      first: {view: view}
      later: {view: view, received: boundary}
    outputs:
      last: [{name: logits, axis: tokens, dtype: model, from: result.logits}]
"""


def small(**runner: object) -> Tree:
    """The tree of the spec with these words of its runner."""
    tree: Tree = yaml.load(SMALL, LOADER)
    tree["runners"]["step"] |= runner
    return tree


def with_slots(*lines: str) -> Tree:
    """The spec with these slots besides its own."""
    tree = small()
    tree["runners"]["step"]["slots"] += [yaml.load(line, LOADER) for line in lines]
    return tree


def text_of(tree: Tree) -> str:
    return written(tree)
