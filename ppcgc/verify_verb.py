"""The verb `ppcgc verify`: the one place of the compiler's half that calls the runtime.

Nothing here is imported before the verb runs, so that the other verbs need no torch.
"""

from __future__ import annotations

import click


class NoRuntimeError(Exception):
    """torch is not installed, or a generated package does not fit."""


def verify(
    factory: str,
    *,
    runner: str | None,
    device: str | None,
    stages: int | None,
    checks: tuple[str, ...],
    quick: bool,
    form: str,
) -> tuple[str, bool]:
    """The report, and whether everything passed. Raises NoRuntimeError for what cannot run."""
    try:
        from ppcgc.runtime.errors import PpcgcError
        from ppcgc.runtime.verification.command import text_of, verify_factory
    except ImportError as problem:
        raise NoRuntimeError(f"{problem}: `pip install 'ppcgc[runtime]'`") from problem
    try:
        done = verify_factory(
            factory,
            runner=runner,
            device=device,
            stages=stages,
            checks=checks or None,
            quick=quick,
            progress=lambda line: click.echo(line, err=True),
        )
    except PpcgcError as problem:
        raise NoRuntimeError(str(problem)) from problem
    return text_of(done, form), all(one.ok for one in done)
