"""What a verification found: a verdict for each check, with evidence and the mend."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum


class Verdict(Enum):
    """``SKIPPED`` says that a check had nothing to look at, and why."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault. ``where`` is the stage and bucket; ``subject`` the slot, tensor or attribute.

    ``what`` names the op and the model's line, or the numbers; ``mend`` is what to do about it.
    """

    where: str
    subject: str
    what: str
    mend: str

    def __str__(self) -> str:
        return f"{self.where}: {self.subject}: {self.what}\n    mend: {self.mend}"


def grouped(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """One finding for each fault: what repeats for other layers, buckets and stages is counted."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        subject = finding.subject.partition("[")[0]
        groups.setdefault((subject, finding.mend), []).append(finding)
    return tuple(
        first if not more else replace(first, what=f"{first.what} (and {len(more)} times more)")
        for first, *more in groups.values()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One check of all stages. ``evidence`` says what was compared."""

    name: str
    verdict: Verdict
    evidence: str
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0

    def __str__(self) -> str:
        head = f"{self.verdict.value:8}{self.name:11}{self.evidence} ({self.seconds:.1f} s)"
        return "\n".join([head, *(f"  {finding}" for finding in self.findings)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Every check of one runner over all of its stages."""

    title: str
    results: tuple[CheckResult, ...]

    @property
    def ok(self) -> bool:
        return all(result.verdict is not Verdict.FAILED for result in self.results)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for result in self.results for finding in result.findings)

    def __getitem__(self, check: str) -> CheckResult:
        """The result of a check by name. Raises KeyError for one that did not run."""
        return {result.name: result for result in self.results}[check]

    def __str__(self) -> str:
        failed = [result.name for result in self.results if result.verdict is Verdict.FAILED]
        last = f"failed: {', '.join(failed)}" if failed else "verified"
        return "\n".join([self.title, *map(str, self.results), f"{self.title}: {last}"])

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        checks = [{**asdict(result), "verdict": result.verdict.value} for result in self.results]
        return {"title": self.title, "ok": self.ok, "checks": checks}


def as_json(verifications: tuple[Verification, ...]) -> str:
    """A JSON object: ``ok`` and the verifications, keys in a fixed order."""
    body = {
        "ok": all(one.ok for one in verifications),
        "verifications": [one.as_dict() for one in verifications],
    }
    return json.dumps(body, indent=2)
