"""Keeps torch's own objects out of the garbage collections that every capture makes."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _imports_are_not_garbage() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
