"""Specs that extend one another, written into a folder, and what is found in them."""

from __future__ import annotations

from pathlib import Path

from ppcgc.diagnostics.model import Diagnostic
from ppcgc.driver import Checked, Source, check_source
from ppcgc.extend import Extended, extend
from ppcgc.load import load
from ppcgc.nodes import Document, Plain, plain

HEAD = "version: 1\nfamily: base\n"


def document(text: str, file: str) -> Document:
    read, found = load(text, file)
    assert read is not None, found
    return read


def extended(folder: Path, child: str, **parents: str) -> Extended:
    """``child.yaml`` of a folder called ``s`` in findings, over the parents beside it."""
    for name, text in parents.items():
        (folder / f"{name}.yaml").write_text(text)
    return extend(document(child, "s/child.yaml"), folder)


def merged(folder: Path, child: str, **parents: str) -> Plain:
    done = extended(folder, child, **parents)
    assert done.document is not None, done.findings
    return plain(done.document.root)


def only(done: Extended) -> Diagnostic:
    (finding,) = done.findings
    assert done.document is None
    return finding


def places(finding: Diagnostic) -> list[str]:
    return [str(place.span) for place in finding.related]


def checked(folder: Path, name: str) -> Checked:
    path = folder / f"{name}.yaml"
    return check_source(Source(file=f"s/{name}.yaml", data=path.read_bytes(), folder=folder))


BASE = """\
version: 1
family: small
axes: {tokens: {max: 8, live: batch.num_tokens}}
pipeline:
  layers: {count: 4}
  boundary: [{name: x, axis: tokens, shape: [tokens, 4], dtype: model, padding: zero}]
runners:
  prefill: &runner
    buckets: {tokens: max}
    slots:
      - {name: ids, axis: tokens, dtype: int64, padding: zero, source: batch.ids}
      - {name: positions, axis: tokens, dtype: int64, padding: zero, source: batch.positions,
         role: data}
    forward:
      first: {ids: slot.ids, positions: slot.positions}
      later: {ids: slot.ids, positions: slot.positions, x: boundary}
    outputs: {last: [{name: out, axis: tokens, shape: [tokens, 4], dtype: model}]}
  decode: *runner
"""
