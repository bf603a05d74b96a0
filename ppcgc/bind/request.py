"""What `ppcgc generate --bind` is asked for."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ppcgc.diagnostics.model import Related, Span
from ppcgc.expr.evaluate import Value
from ppcgc.known.given import read_config


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A config, values given by name, and the number of stages of an even split.

    ``file`` is the config's name as findings print it, ``text`` what stands in it.
    """

    file: str
    text: str
    config: Mapping[str, object]
    given: Mapping[str, Value]
    stages: int | None = None

    @property
    def fingerprint(self) -> str:
        """``sha256:`` and 64 hex digits over the config's values, whatever their order."""
        plain = json.dumps(self.config, separators=(",", ":"), sort_keys=True)
        return f"sha256:{hashlib.sha256(plain.encode()).hexdigest()}"

    def place_of(self, path: tuple[str, ...]) -> tuple[Related, ...]:
        """Where the config says a key, if only one line of it can be meant."""
        key = re.compile(rf"{re.escape(json.dumps(path[-1]))}\s*:")
        found = [
            Span(self.file, number, match.start() + 1, number, match.end() + 1)
            for number, line in enumerate(self.text.splitlines(), 1)
            for match in key.finditer(line)
        ]
        return (Related(found[0], "the config says"),) if len(found) == 1 else ()


def read_binding(path: Path, given: Mapping[str, Value], stages: int | None) -> Binding:
    """Raises ``NotKnownError`` for a file that is no JSON object."""
    config = read_config(path)
    text = path.read_text(encoding="utf-8")
    return Binding(file=path.as_posix(), text=text, config=config, given=given, stages=stages)
