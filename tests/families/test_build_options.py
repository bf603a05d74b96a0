"""Options of a build: another object, type or word is refused where sizes are read."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ppcgc.driver import Source, compile_sources
from ppcgc.runtime.errors import DimError

SPEC = b"""version: 1
family: choosing
options:
  deep: false
  drafts: 2
  mode: {type: enum, default: fast, choices: [fast, exact]}
dims: {hidden: config.hidden_size, ahead: options.drafts + 1}
axes: {tokens: {max: 4, live: batch.num_tokens}}
pipeline: {layers: {count: 1}, stages: [[0, 1]]}
runners:
  step:
    buckets: {tokens: [2, 4]}
    slots:
      - {name: ids, axis: tokens, dtype: int64, padding: zero, source: batch.ids}
      - {name: ahead, axis: none, shape: [ahead], dtype: int64, source: {const: 0}}
      - {name: more, axis: tokens, dtype: int64, source: {const: 1}, when: options.deep}
      - {name: most, axis: tokens, dtype: int64, source: {const: 1}, when: options.mode == 'exact'}
    forward: {first: {ids: slot.ids, view: view}}
    outputs: {last: [{name: out, axis: tokens, dtype: int64, from: result}]}
"""


@pytest.fixture(scope="module")
def choosing(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = Path(tmp_path_factory.mktemp("choosing"))
    compiled = compile_sources([Source(file="choosing.yaml", data=SPEC, folder=folder)])
    assert [found.message for found in compiled.findings if found.is_error] == []
    for path, text in compiled.files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder))
    try:
        import choosing  # type: ignore[import-not-found]  # written just now
    finally:
        sys.path.remove(str(folder))
    return choosing


CONFIG = SimpleNamespace(hidden_size=8)


def test_the_family_s_own_options_are_taken(choosing: Any) -> None:
    options = choosing.Options(drafts=3, mode="exact")
    assert choosing.Dims.from_config(CONFIG, options=options).ahead == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"deep": True}, r"options is a dict; give the family's own, options=Options\(\.\.\.\)"),
        (None, "options is a NoneType"),
    ],
)
def test_another_object_is_refused(choosing: Any, options: object, message: str) -> None:
    with pytest.raises(DimError, match=message):
        choosing.Dims.from_config(CONFIG, options=options)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"deep": "false"}, "options.deep is 'false'; it is of type bool"),
        ({"deep": 1}, "options.deep is 1; it is of type bool"),
        ({"drafts": True}, "options.drafts is True; it is of type int"),
        ({"mode": "Exact"}, "options.mode is 'Exact'; one of 'fast', 'exact'"),
    ],
)
def test_another_value_is_refused(choosing: Any, values: dict[str, Any], message: str) -> None:
    with pytest.raises(DimError, match=message):
        choosing.Dims.from_config(CONFIG, options=choosing.Options(**values))
