"""Verification: a runner against its model and its spec, before it serves.

``verify`` runs ten checks, each with a verdict, evidence and the mend. It writes the runners'
slots, outputs and state while it works and puts the state back; run it before serving.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ppcgc.runtime.errors import VerificationError
from ppcgc.runtime.verification.subject import BatchMaker, Subject
from ppcgc.runtime.verification.verdicts import (
    CheckResult,
    Finding,
    Verdict,
    Verification,
    as_json,
)

__all__ = [
    "BatchMaker",
    "CheckResult",
    "Finding",
    "Subject",
    "Verdict",
    "Verification",
    "as_json",
    "assert_verified",
    "verify",
]


def verify(
    subject: Subject,
    *,
    checks: Sequence[str] | None = None,
    quick: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Verification:
    """Run the checks (all of them, or those named) and return what they found.

    Runners that are not captured yet are captured. ``quick`` tries two buckets, two batches
    each. ``progress`` is called with a line of text before each piece of work. Raises BuildError
    for a check that does not exist; a fault of the subject is a finding.
    """
    # the checks are many modules, which serving does not need
    from ppcgc.runtime.verification.run import run

    return run(subject, checks=checks, quick=quick, progress=progress)


def assert_verified(
    runners: Any,
    batches: BatchMaker | Sequence[Any],
    *,
    checks: Sequence[str] | None = None,
    quick: bool = False,
    **options: Any,
) -> Verification:
    """For tests: verify a runner, or a list of all stages, and raise VerificationError.

    ``options`` are those of :class:`Subject`. An ``assert`` would be gone under ``python -O``.
    """
    stages = runners if isinstance(runners, list | tuple) else [runners]
    found = verify(Subject(runners=stages, batches=batches, **options), checks=checks, quick=quick)
    if not found.ok:
        raise VerificationError(str(found))
    return found
