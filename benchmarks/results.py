"""Figures on disk: one JSON file a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def save(data: dict[str, Any], path: Path) -> None:
    """Write the file anew; a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(data, indent=1, default=float) + "\n", encoding="utf-8")
    draft.replace(path)


def read(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data
