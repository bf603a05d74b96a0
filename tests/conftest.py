"""Options and fixtures of the whole test suite. It is the only conftest: one module, one name."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import settings

# an example that takes long on a busy machine says nothing of the code
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# fixtures of single folders: `passes` of front, `device` of families, `toy` of stages
pytest_plugins = [
    "ppcgc.runtime.verification.pytest_plugin",
    "faked_passes",
    "devices",
    "toy_package",
]

MANY_CAPTURES = ("fuzz", "verify")


@pytest.fixture(scope="module", autouse=True)
def frozen_objects(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each capture collects garbage first; where tests capture often, what is there is left out."""
    if request.path.parent.name not in MANY_CAPTURES:
        yield
        return
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


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
