"""Makes the output folder equal to the generated files, all of a package or nothing of it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path, PurePosixPath

from ppcgc.diagnostics.catalogue import rule
from ppcgc.diagnostics.model import Diagnostic, Span
from ppcgc.publish.compare import Comparison, compare, read_bytes
from ppcgc.publish.ownership import MARK, PublishError

NOT_OWNED = rule(
    "PPC019",
    "file-not-owned",
    """
    Only files that ppcgc made are written over.

    **What.** A module is to be generated where a file stands whose first line does not start
    with `# ppcgc:`.

    **Why it hurts.** The file was written by hand, or its header was removed to keep changes.
    Writing over it would lose them.

    **Bad.** Editing `generated/llama/prefill.py` and deleting its first line.

    **Good.** Keeping hand-written code in a module of its own, outside the generated package.
    """,
)

OTHER_SPEC = rule(
    "PPC026",
    "package-of-another-spec",
    """
    A package is written over by the spec that it was made from, and by no other.

    **What.** A package is to be generated where one stands whose modules name another spec in
    their first line, and that spec is still there.

    **Why it hurts.** Both have the same `family`, and so the same package. The one generated last
    would take the place of the other without a word, and whoever imports it gets other runners.

    **Bad.** `ppcgc generate specs/llama.yaml`, then `ppcgc generate other/llama.yaml`, both into
    `generated`.

    **Good.** Another `family` in one of the two, or another folder with `--out`. A spec that was
    moved or renamed is no other: nothing is there at its old path.
    """,
)

_TEMPORARY = ".ppcgc-new"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What was done; paths as in the generated files. With findings nothing was written."""

    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    findings: tuple[Diagnostic, ...] = ()


def publish(files: Mapping[str, str], out: Path) -> Published:
    """Write what changed and remove what went stale, one package after another.

    Raises :class:`PublishError` when the folder cannot be written; packages finished before
    stay new, the one that failed is put back as it was.
    """
    comparison = compare(files, out)
    if comparison.foreign:
        return Published(findings=tuple(_not_owned(out / name) for name in comparison.foreign))
    if comparison.others:
        found = sorted(comparison.others.items())
        return Published(findings=tuple(_of_other(out / name, spec) for name, spec in found))
    for package, names in _by_package(comparison):
        try:
            _publish_package(files, names, out)
        except OSError as error:
            where = out / package
            raise PublishError(f"{where}: {error.strerror or error}; left as it was") from error
    return Published(
        written=comparison.missing + comparison.changed,
        removed=comparison.stale,
        unchanged=comparison.unchanged,
    )


def _by_package(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """Paths to write or remove, by the folder they lie in; packages that only lose files last."""
    names = sorted(comparison.missing + comparison.changed + comparison.stale, key=_folder_first)
    packages = [(folder, list(group)) for folder, group in groupby(names, key=_folder)]
    stale = set(comparison.stale)
    return sorted(packages, key=lambda package: (stale.issuperset(package[1]), package[0]))


def _folder(name: str) -> str:
    return PurePosixPath(name).parts[0] if "/" in name else ""


def _folder_first(name: str) -> tuple[str, bool, str]:
    """Modules of a package before its ``__init__``, which imports them."""
    return (_folder(name), name.endswith("__init__.py"), name)


@dataclass(slots=True)
class _Changes:
    """The files of one package that were replaced or removed, with what they held before."""

    before: list[tuple[Path, bytes | None]] = field(default_factory=list)

    def put(self, temporary: Path, path: Path) -> None:
        self.before.append((path, read_bytes(path) if path.exists() else None))
        temporary.replace(path)

    def remove(self, path: Path) -> None:
        self.before.append((path, read_bytes(path)))
        path.unlink()

    def undo(self) -> None:
        for path, data in reversed(self.before):
            if data is None:
                path.unlink(missing_ok=True)
            else:
                temporary = _temporary(path)
                temporary.write_bytes(data)
                temporary.replace(path)


def _publish_package(files: Mapping[str, str], names: list[str], out: Path) -> None:
    """All new texts are on the disk under other names before the first one takes its place, so
    that a full disk or a refused permission leaves the package untouched."""
    temporaries: dict[Path, Path] = {}
    changes = _Changes()
    try:
        for name in names:
            if name in files:
                path = out / name
                path.parent.mkdir(parents=True, exist_ok=True)
                temporaries[path] = _temporary(path)
                temporaries[path].write_bytes(files[name].encode())
        for path, temporary in temporaries.items():
            changes.put(temporary, path)
        for name in names:
            if name not in files:
                changes.remove(out / name)
    except BaseException:
        changes.undo()
        for temporary in temporaries.values():
            temporary.unlink(missing_ok=True)
        _drop_empty_folders({out / name for name in names}, out)
        raise
    _drop_empty_folders({out / name for name in names}, out)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}{_TEMPORARY}")


def _drop_empty_folders(paths: set[Path], out: Path) -> None:
    """Remove the folders of removed files that hold nothing more, but for Python's caches."""
    for folder in sorted({path.parent for path in paths} - {out}, reverse=True):
        if folder.is_dir() and all(entry.name == "__pycache__" for entry in folder.iterdir()):
            shutil.rmtree(folder)


def _not_owned(path: Path) -> Diagnostic:
    return Diagnostic(
        rule=NOT_OWNED,
        span=Span(path.as_posix(), 1, 1, 1, 1),
        message=f"the file in the way was not made by ppcgc: no `{MARK}` on its first line",
        help="move the file away, or generate into another folder with --out",
    )


def _of_other(package: Path, spec: str) -> Diagnostic:
    return Diagnostic(
        rule=OTHER_SPEC,
        span=Span(package.as_posix(), 1, 1, 1, 1),
        message=f"the package in the way was generated from {spec}, which is still there",
        help="give one of the two specs another `family`, or generate into another folder with "
        "--out; remove the package to replace it",
    )
