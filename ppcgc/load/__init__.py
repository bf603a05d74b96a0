"""The first pass: text to a node tree with spans.

``text`` decodes bytes and refuses characters that nobody can see, ``compose`` builds nodes from
the parser's events, ``scalars`` decides what a plain scalar means, ``split`` finds text that
YAML cut at a comma, ``findings`` holds the rules.
"""

from ppcgc.load.document import load
from ppcgc.load.text import decode

__all__ = ["decode", "load"]
