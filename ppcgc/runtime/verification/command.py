"""What `ppcgc verify` does: find the factory, verify its subjects, print."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ppcgc.runtime.backends.model_line import line_of_error
from ppcgc.runtime.errors import BuildError, PpcgcError
from ppcgc.runtime.verification import Subject, Verification, as_json, verify
from ppcgc.runtime.verification.verdicts import Verdict


def verify_factory(
    name: str,
    *,
    runner: str | None = None,
    device: str | None = None,
    stages: int | None = None,
    checks: Sequence[str] | None = None,
    quick: bool = False,
    progress: Callable[[str], None],
) -> tuple[Verification, ...]:
    """Verify what a factory returns: a Subject or several, see ``subjects_of``.

    ``runner`` picks the subjects of that name. Raises BuildError kinds for a factory that is not
    there, does not take what was asked for, or returns something else.
    """
    wanted = [
        subject
        for subject in subjects_of(name, device=device, stages=stages)
        if runner is None or subject.runners[0].runner == runner
    ]
    if not wanted:
        raise BuildError(f"{name} has no runner {runner!r}")
    for subject in wanted:
        built = subject.runners[0].device
        if device is not None and built.type != device.partition(":")[0]:
            raise BuildError(
                f"{name} was asked for device {device} and built {subject.runners[0]} on {built}; "
                "let the factory build its runners on `device`"
            )
    return tuple(verify(one, checks=checks, quick=quick, progress=progress) for one in wanted)


def subjects_of(name: str, *, device: str | None, stages: int | None) -> list[Subject]:
    """Call ``MODULE:FACTORY``; ``device`` and ``stages`` go to it as keywords where given.

    The current folder is importable, as with ``python -m``.
    """
    module_name, colon, attribute = name.partition(":")
    if not (colon and module_name and attribute):
        raise BuildError(f"{name!r}: write MODULE:FACTORY, such as examples.verify_llama:llama")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        factory = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as problem:
        raise BuildError(f"{name}: {problem}") from problem
    asked: dict[str, object] = {"device": device, "stages": stages}
    options = {key: value for key, value in asked.items() if value is not None}
    return _subjects(name, _called(name, factory, options))


def _called(name: str, factory: Any, options: dict[str, object]) -> object:
    if not callable(factory):
        raise BuildError(f"{name} is a {type(factory).__name__}, no factory")
    try:
        inspect.signature(factory).bind(**options)
    except TypeError as problem:
        raise BuildError(f"{name} cannot be called with {sorted(options)}: {problem}") from None
    try:
        made: object = factory(**options)
    except PpcgcError:
        raise
    except Exception as problem:
        at = line_of_error(problem)
        raise BuildError(
            f"{name} failed: {type(problem).__name__}: {problem}, at {at}"
        ) from problem
    return made


def _subjects(name: str, made: object) -> list[Subject]:
    subjects = list(made) if isinstance(made, list | tuple) else [made]
    checked = [subject for subject in subjects if isinstance(subject, Subject)]
    if not checked or len(checked) != len(subjects):
        kinds = ", ".join(sorted({type(subject).__name__ for subject in subjects})) or "nothing"
        raise BuildError(
            f"{name} returned {kinds}; return a ppcgc.runtime.Subject or a list of them"
        )
    return checked


def text_of(verifications: tuple[Verification, ...], form: str) -> str:
    """The report as ``form`` says (full, concise, json), without a final newline."""
    if form == "json":
        return as_json(verifications)
    if form == "concise":
        return "\n".join(
            f"{one.title}: {result.name}: {finding.where}: {finding.subject}: {finding.what}"
            for one in verifications
            for result in one.results
            if result.verdict is Verdict.FAILED
            for finding in result.findings
        )
    return "\n\n".join(map(str, verifications))
