"""The collector is off inside the window and as before after it."""

from __future__ import annotations

import gc
import weakref

import pytest

from ppcgc.runtime.collecting import collector_off, garbage_held


class _Cycle:
    def __init__(self) -> None:
        self.me = self


def test_garbage_goes_first_and_none_is_collected_inside() -> None:
    old = weakref.ref(_Cycle())
    with garbage_held():
        assert old() is None
        assert not gc.isenabled()
        with garbage_held():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with garbage_held():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_setting_comes_back_after_an_error() -> None:
    with pytest.raises(ValueError, match="inside"), garbage_held():
        raise ValueError("inside")
    assert gc.isenabled()


def test_frozen_objects_stay_frozen() -> None:
    frozen = gc.get_freeze_count()
    with garbage_held():
        assert gc.get_freeze_count() == frozen
    assert gc.get_freeze_count() == frozen


def test_the_collector_alone_is_kept_off_without_a_collection() -> None:
    old = weakref.ref(_Cycle())
    with collector_off():
        assert not gc.isenabled()
        with pytest.raises(ValueError, match="inside"), collector_off():
            raise ValueError("inside")
        assert not gc.isenabled()
    assert gc.isenabled()
    assert old() is not None
    gc.collect()
    assert old() is None


def test_windows_of_two_threads_may_overlap() -> None:
    """As when two devices are captured at once: the first to leave ends nothing."""
    first, second = collector_off(), collector_off()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()
