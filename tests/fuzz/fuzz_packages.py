"""Imports generated packages from memory, each under a name of its own."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_NUMBERS = itertools.count()


class _Memory(MetaPathFinder, Loader):
    """The modules of one package: text by their full name."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.texts:
            return None
        return ModuleSpec(fullname, self, is_package="." not in fullname)

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        exec(compile(self.texts[name], f"<{name}>", "exec"), module.__dict__)


@contextmanager
def imported(files: Mapping[str, str]) -> Iterator[Any]:
    """The package of generated files, which import each other by relative names only."""
    package = f"fuzzed_{next(_NUMBERS)}"
    texts = {}
    for path, text in files.items():
        module = path.removesuffix(".py").split("/")[1]
        texts[package if module == "__init__" else f"{package}.{module}"] = text
    memory = _Memory(texts)
    sys.meta_path.insert(0, memory)
    try:
        yield importlib.import_module(package)
    finally:
        sys.meta_path.remove(memory)
        for name in texts:
            sys.modules.pop(name, None)
