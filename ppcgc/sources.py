"""Which specs the command line means: files, folders and standard input, read as bytes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ppcgc.driver import Source
from ppcgc.load.text import MAX_BYTES

STDIN = "-"
SUFFIXES = frozenset({".yaml", ".yml"})


class UnreadableError(Exception):
    """A path that cannot be read. The message says which and why."""


def read_sources(paths: Iterable[str], out: Path | None = None) -> list[Source]:
    """Every spec that the paths mean, once, in the order given. Raises :class:`UnreadableError`.

    A folder means the YAML files below it, by name, without those in hidden folders. ``out`` is
    the folder that they are generated into, if they are.
    """
    sources: list[Source] = []
    seen: set[Path] = set()
    for given in paths:
        if given == STDIN:
            sources.append(Source(file="<stdin>", data=sys.stdin.buffer.read(MAX_BYTES + 1)))
            continue
        for path in _files(Path(given)):
            if path.resolve() not in seen:
                seen.add(path.resolve())
                sources.append(
                    Source(
                        file=path.as_posix(),
                        data=_read(path),
                        folder=path.parent,
                        origin=None if out is None else origin_of(path, out),
                    )
                )
    return sources


def origin_of(spec: Path, out: Path) -> str:
    """A spec as the headers of generated files name it: by the way from the folder that holds
    ``out``, always with a ``/``.

    Only the name, without one, for a spec that lies elsewhere: the way there would differ from
    machine to machine.
    """
    base = out.resolve().parent
    path = spec.parent.resolve() / spec.name
    if not path.is_relative_to(base):
        return spec.name
    way = path.relative_to(base).as_posix()
    return way if "/" in way else f"./{way}"


def _files(path: Path) -> Iterator[Path]:
    if not path.exists():
        raise UnreadableError(f"{path}: no such file or folder")
    if not path.is_dir():
        yield path
        return
    found = [file for file in sorted(path.rglob("*")) if _is_spec(file, path)]
    if not found:
        raise UnreadableError(f"{path}: holds no .yaml or .yml file")
    yield from found


def _is_spec(file: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return file.suffix in SUFFIXES and not hidden and file.is_file()


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)  # one more than is legal shows that there is more
    except OSError as error:
        raise UnreadableError(f"{path}: {error.strerror}") from error
