"""A pytest fixture: ``assert_verified(runners, batches)``.

Named in a ``conftest.py``: ``pytest_plugins = ["ppcgc.runtime.verification.pytest_plugin"]``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ppcgc.runtime.verification import Verification
from ppcgc.runtime.verification import assert_verified as check


@pytest.fixture
def assert_verified() -> Callable[..., Verification]:
    """See :func:`ppcgc.runtime.assert_verified`; fails the test with the report."""

    def run(*args: object, **options: object) -> Verification:
        __tracebackhide__ = True
        return check(*args, **options)  # type: ignore[arg-type]  # checked where it is defined

    return run
