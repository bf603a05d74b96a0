"""Objects of the test session are no garbage: a capture need not look through them."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def frozen_objects() -> Iterator[None]:
    """Each capture collects garbage first; what is there before the module is left out of it."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
