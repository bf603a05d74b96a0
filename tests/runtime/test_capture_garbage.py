"""The garbage collector is held back while a graph is recorded, and is then as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from ppcgc.runtime.backends.cuda import _no_garbage_collected


@pytest.fixture(params=[True, False], ids=["on", "off"])
def collector(request: pytest.FixtureRequest) -> Iterator[bool]:
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_the_collector_is_as_it_was_after_a_capture(collector: bool) -> None:
    with _no_garbage_collected():
        assert not gc.isenabled()
    assert gc.isenabled() is collector


def test_the_same_when_the_capture_fails(collector: bool) -> None:
    with pytest.raises(ValueError, match="no capture"), _no_garbage_collected():
        raise ValueError("no capture")
    assert gc.isenabled() is collector
