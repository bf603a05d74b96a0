"""A verification: capture what is not captured, run every check, put the memory back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch

from ppcgc.runtime.addresses import model_tensors
from ppcgc.runtime.backends.model_line import line_of_error
from ppcgc.runtime.capturing import capture
from ppcgc.runtime.errors import BuildError, PpcgcError
from ppcgc.runtime.verification import (
    addresses,
    choices,
    host,
    inputs,
    loading,
    outputs,
    padding,
    parity,
    purity,
    ranks,
    staleness,
)
from ppcgc.runtime.verification.recapturing import attributes_of
from ppcgc.runtime.verification.session import Outcome, Progress, Session
from ppcgc.runtime.verification.subject import Subject
from ppcgc.runtime.verification.verdicts import (
    CheckResult,
    Finding,
    Verdict,
    Verification,
    grouped,
)

Check = Callable[[Session], Outcome]

#: In the order of running: what explains the failures of others comes first.
CHECKS: Mapping[str, Check] = {
    "ranks": ranks.check,
    "choice": choices.check,
    "addresses": addresses.check,
    "inputs": inputs.check,
    "purity": purity.check,
    "host": host.check,
    "loading": loading.check,
    "padding": padding.check,
    "parity": parity.check,
    "staleness": staleness.check,
    "outputs": outputs.check,
}


def run(
    subject: Subject,
    *,
    checks: Sequence[str] | None = None,
    quick: bool = False,
    progress: Progress | None = None,
) -> Verification:
    """See ``ppcgc.runtime.verify``."""
    if not isinstance(subject, Subject):
        raise BuildError(
            f"verify takes a Subject, not a {type(subject).__name__}; "
            "write Subject(runners=[...], batches=...), or call assert_verified"
        )
    wanted = tuple(CHECKS) if checks is None else tuple(checks)
    unknown = [name for name in wanted if name not in CHECKS]
    if unknown:
        raise BuildError(f"no check {', '.join(unknown)}: there are {', '.join(CHECKS)}")
    session = Session(subject, quick=quick, say=progress or _silent)
    refused = _capture(session)
    if refused is not None:
        left = [name for name in wanted if name != refused.name]
        rest = [_skipped(name, "the runners could not be captured") for name in left]
        return Verification(title=subject.title, results=(refused, *rest))
    kept = [(tensor, tensor.clone()) for stage in session.every for _, tensor in stage.memory()]
    with torch.inference_mode(False), torch.no_grad(), _uncalibrated(session):
        try:
            results = _run(session, wanted)
        finally:
            for tensor, before in kept:
                tensor.copy_(before)
    return Verification(title=subject.title, results=results)


@contextmanager
def _uncalibrated(session: Session) -> Iterator[None]:
    """Every bucket replays, also where eager was measured faster."""
    runners = [stage.runner for stage in session.every]
    crossovers = [runner.crossover for runner in runners]
    for runner in runners:
        runner.use_calibration(None)
    try:
        yield
    finally:
        for runner, crossover in zip(runners, crossovers, strict=True):
            runner.use_calibration(crossover)


def _run(session: Session, wanted: Sequence[str]) -> tuple[CheckResult, ...]:
    # before the first step: a step may fail on memory that has moved
    first = [name for name in wanted if name in ("ranks", "choice", "addresses")]
    results = [_result(name, session) for name in first]
    if any(result.verdict is Verdict.FAILED for result in results if result.name == "addresses"):
        return tuple(results)
    try:
        session.prepare()
    except Exception as problem:
        left = [name for name in wanted if name not in first] or ["loading"]
        rest = [_skipped(name, "the first steps failed") for name in left[1:]]
        failed = _failed(left[0], "the first steps", problem, 0.0)
        failed = replace(failed, findings=(*_loads(session), *failed.findings))
        return (*results, failed, *rest)
    if not session.cases:
        left = [name for name in wanted if name not in first]
        rest = [_skipped(name, "no batch replays a graph") for name in left[1:]]
        return (*results, *(_nothing_replayed(session, name) for name in left[:1]), *rest)
    results += [_result(name, session) for name in wanted if name not in first]
    if "addresses" in wanted:  # and again: did the steps move anything?
        at = [result.name for result in results].index("addresses")
        again = _result("addresses", session)
        results[at] = again if again.verdict is Verdict.FAILED else results[at]
    return tuple(results)


def _loads(session: Session) -> tuple[Finding, ...]:
    """Slots that do not hold what they should; none where not even a load succeeds."""
    try:
        return grouped(loading.first_loads(session))
    except Exception:  # a consequence of the failure that is reported beside it
        return ()


def _capture(session: Session) -> CheckResult | None:
    """Capture what is not captured yet; a refusal is a result of the host check."""
    fresh = [stage for stage in session.every if not stage.runner.captured]
    if not fresh:
        return None
    started = time.perf_counter()
    for stage in (stage for stage in fresh if stage is not session.whole):
        session.attributes_before_capture[stage.number] = attributes_of(stage.runner.model)
        names = {name for name, _ in model_tensors(stage.runner.model)}
        session.tensors_before_capture[stage.number] = names
    try:
        capture([stage.runner for stage in fresh], progress=session.say)
    except Exception as problem:
        return _failed("host", "capture", problem, time.perf_counter() - started)
    return None


def _result(name: str, session: Session) -> CheckResult:
    started = time.perf_counter()
    try:
        outcome = CHECKS[name](session)
    except Exception as problem:
        for stage in session.stages:
            stage.restore()
        return _failed(name, "a step of the check", problem, time.perf_counter() - started)
    if outcome.findings:
        verdict = Verdict.FAILED
    else:
        verdict = Verdict.SKIPPED if outcome.skipped else Verdict.PASSED
    findings = grouped(outcome.findings)
    count = len(findings)
    evidence = f"{count} findings" if count > 1 else "1 finding" if count else outcome.evidence
    return CheckResult(
        name=name,
        verdict=verdict,
        evidence=evidence,
        findings=findings,
        seconds=time.perf_counter() - started,
    )


def _failed(name: str, doing: str, problem: Exception, seconds: float) -> CheckResult:
    text = str(problem)
    if not isinstance(problem, PpcgcError):
        text = f"{type(problem).__name__}: {problem}, at {line_of_error(problem)}"
    text = "; ".join([text, *getattr(problem, "__notes__", ())])  # which hook it was, for one
    finding = Finding(
        where=doing,
        subject="error",
        what=text,
        mend="mend what the error names; the other checks need a step that runs",
    )
    return CheckResult(
        name=name, verdict=Verdict.FAILED, evidence=doing, findings=(finding,), seconds=seconds
    )


def _nothing_replayed(session: Session, name: str) -> CheckResult:
    """A verification of nothing is none."""
    buckets = ", ".join(" x ".join(map(str, padded)) for padded in session.runners[0].buckets)
    finding = Finding(
        where=session.subject.title,
        subject="batches",
        what="no batch of the subject replays a graph, so nothing was verified",
        mend=f"give batches that fall into a bucket ({buckets}) and whose steps are not eager",
    )
    return CheckResult(
        name=name, verdict=Verdict.FAILED, evidence="no batch to try", findings=(finding,)
    )


def _skipped(name: str, why: str) -> CheckResult:
    return CheckResult(name=name, verdict=Verdict.SKIPPED, evidence=why)


def _silent(_: str) -> None:
    return None
