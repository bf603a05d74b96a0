"""Generated files against the disk: what is missing, changed, stale or not ppcgc's to touch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ppcgc.publish.ownership import (
    PublishError,
    first_line,
    is_owned,
    known_origin,
    read_first_line,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Paths are relative to the output folder, with ``/``, sorted. ``missing``, ``changed`` and
    ``unchanged`` are generated files; ``stale`` are owned ones that are no longer generated;
    ``foreign`` are changed ones without the owner's line, which must not be written over; nor must
    ``others``, by package the spec that it was made from, where that is another and still there."""

    missing: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    stale: tuple[str, ...]
    foreign: tuple[str, ...]
    others: Mapping[str, str]


def compare(files: Mapping[str, str], out: Path) -> Comparison:
    """Compare without writing. Raises :class:`PublishError` for a folder that cannot be used."""
    _check_folder(out)
    missing: list[str] = []
    changed: list[str] = []
    unchanged: list[str] = []
    foreign: list[str] = []
    others: dict[str, str] = {}
    for name in sorted(files):
        path = _target(out, name)
        if not path.exists():
            missing.append(name)
        elif read_bytes(path) == files[name].encode():
            unchanged.append(name)
        else:
            changed.append(name)
            first = read_first_line(path)
            if not is_owned(first):
                foreign.append(name)
            elif (other := _other_spec(first, first_line(files[name]))) is not None:
                others[PurePosixPath(name).parts[0]] = other
    return Comparison(
        missing=tuple(missing),
        changed=tuple(changed),
        unchanged=tuple(unchanged),
        stale=tuple(sorted(_stale(files, out))),
        foreign=tuple(foreign),
        others=others,
    )


def _other_spec(theirs: str, ours: str) -> str | None:
    """The spec that a header names, where it is not the other header's and is still on disk.

    A spec that was moved is not there any more, and its package is written over.
    """
    other, own = known_origin(theirs), known_origin(ours)
    if other is None or own is None or not Path(other).is_file():
        return None
    return None if Path(own).exists() and Path(other).samefile(own) else other


def read_bytes(path: Path) -> bytes:
    """A file's bytes. Raises :class:`PublishError` when it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise PublishError(f"{path}: {error.strerror}") from error


def _check_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise PublishError(f"{out}: the output folder is a file")
    if out.is_symlink() and not out.exists():
        raise PublishError(f"{out}: the output folder is a link that leads nowhere")


def _target(out: Path, name: str) -> Path:
    """Where a generated file goes. A link on the way would put it somewhere else."""
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts:
        raise ValueError(f"generated path {name!r} leaves the output folder")
    path = out
    for part in parts:
        path = path / part
        if path.is_symlink():
            raise PublishError(f"{path}: is a link; remove it, ppcgc writes plain files only")
    folder = path.parent
    if folder.exists() and not folder.is_dir():
        raise PublishError(f"{folder}: is a file where a package folder must be")
    if path.is_dir():
        raise PublishError(f"{path}: is a folder where a module must be")
    return path


def _stale(files: Mapping[str, str], out: Path) -> Iterator[str]:
    """Owned files that are not generated: those in a package that is, and those made from the
    very spec that now makes another package (its family was renamed)."""
    packages = {PurePosixPath(name).parts[0] for name in files if "/" in name}
    specs = {known_origin(first_line(text)) for text in files.values()} - {None}
    for path in _modules_below(out):
        name = path.relative_to(out).as_posix()
        if name in files:
            continue
        first = read_first_line(path)
        in_package = "/" in name and PurePosixPath(name).parts[0] in packages
        if is_owned(first) and (in_package or known_origin(first) in specs):
            yield name


def _modules_below(out: Path) -> Iterator[Path]:
    """Python files below a folder; links are not followed."""
    if out.is_dir():
        for path in sorted(out.rglob("*.py")):
            if path.is_file() and not path.is_symlink():
                yield path
