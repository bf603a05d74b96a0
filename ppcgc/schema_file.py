"""The one place that reaches the JSON Schema of specs.

The file lies in ``schemas/`` at the top of the repository, beside the package, where editors
find it by a short relative path. A wheel carries it inside the package (``setup.py`` maps it).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

NAME = "ppcgc-spec.schema.json"


def schema_path() -> Path:
    """Where the schema lies in this installation. Raises ``FileNotFoundError``."""
    package = Path(__file__).parent
    in_wheel = package / "schemas" / NAME
    in_checkout = package.parent / "schemas" / NAME
    for path in (in_wheel, in_checkout):
        if path.is_file():
            return path
    raise FileNotFoundError(f"{NAME} is neither in {in_wheel.parent} nor in {in_checkout.parent}")


def schema_text() -> str:
    return schema_path().read_text(encoding="utf-8")


def load_schema() -> dict[str, Any]:
    """The schema as plain data. Any: a JSON Schema has no narrower type that serves readers."""
    schema: dict[str, Any] = json.loads(schema_text())
    return schema
