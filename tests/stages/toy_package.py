"""The packages of this folder's specs, compiled once a session."""

from __future__ import annotations

from typing import Any

import pytest
from spec_tools import import_spec


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return import_spec("toy", tmp_path_factory.mktemp("toy"))
