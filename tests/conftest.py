"""Options of the whole test suite."""

from __future__ import annotations

import pytest

pytest_plugins = ["ppcgc.runtime.verification.pytest_plugin"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        default=False,
        help="write what the tests see as the committed output instead of comparing with it",
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether committed outputs are to be written rather than compared."""
    return bool(request.config.getoption("--update-golden"))
