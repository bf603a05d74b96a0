"""`ppcgc verify`, and what pytest gets."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from probe_family import build, prefill_batch, subject
from test_verify_inputs import Global

from ppcgc.cli import main
from ppcgc.runtime import Subject, verify
from ppcgc.runtime.errors import BuildError, VerificationError


def both(*, device: str = "cpu", stages: int = 2) -> list[Subject]:
    return [subject(build(runner, stages=stages, device=device)) for runner in RUNNERS]


RUNNERS = ("prefill", "decode")


def faulty() -> Subject:
    return subject(build(models=(Global,)))


def always_here(*, device: str) -> list[Subject]:
    return both()


def not_a_subject() -> int:
    return 3


def fails() -> Subject:
    raise ValueError("no weights")


def command(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(["verify", *words], out, err)
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(autouse=True)
def _beside_the_factories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)


def test_every_runner_of_a_factory() -> None:
    code, out, err = command("test_verify_command:both", "--quick")
    assert code == 0, out
    assert "toy_probe.prefill, 2 stages on cpu: verified" in out
    assert "toy_probe.decode, 2 stages on cpu: verified" in out
    assert "parity: toy_probe.decode last, bucket requests=2 tokens=2" in err


def test_a_factory_that_ignores_the_device_is_refused() -> None:
    code, out, err = command("test_verify_command:always_here", "--device", "cuda")
    assert (code, out) == (2, "")
    assert "was asked for device cuda and built" in err
    assert command("test_verify_command:always_here", "--device", "cpu", "--quick")[0] == 0


def test_one_runner_one_stage_some_checks() -> None:
    words = ("--runner", "decode", "--stages", "1", "--check", "inputs", "--check", "parity")
    code, out, _ = command("test_verify_command:both", *words)
    assert code == 0
    assert out.splitlines()[0] == "toy_probe.decode, 1 stage on cpu"
    assert [line.split()[1] for line in out.splitlines()[1:-1]] == ["inputs", "parity"]


def test_a_failure_exits_1_and_names_slot_and_line() -> None:
    code, out, _ = command("test_verify_command:faulty", "--check", "inputs")
    assert code == 1
    assert "failed  inputs" in out
    assert "return hidden * CONSTANT" in out
    assert "mend: declare it" in out


def test_json() -> None:
    code, out, _ = command("test_verify_command:faulty", "--check", "inputs", "--format", "json")
    assert code == 1
    data = json.loads(out)
    assert data["ok"] is False
    (check,) = data["verifications"][0]["checks"]
    assert (check["name"], check["verdict"]) == ("inputs", "failed")
    assert set(check["findings"][0]) == {"where", "subject", "what", "mend"}


def test_concise_prints_a_line_a_finding() -> None:
    words = ("--check", "inputs", "--format", "concise")
    code, out, _ = command("test_verify_command:faulty", *words)
    assert code == 1
    assert len(out.splitlines()) == 1
    assert out.startswith("toy_probe.prefill, 2 stages on cpu: inputs: toy_probe.prefill first")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere:factory"], "No module named 'nowhere'"),
        (["test_verify_command"], "write MODULE:FACTORY"),
        (["test_verify_command:absent"], "absent"),
        (["test_verify_command:RUNNERS"], "is a tuple, no factory"),
        (["test_verify_command:not_a_subject"], "returned int; return a ppcgc.runtime.Subject"),
        (["test_verify_command:fails"], "ValueError: no weights"),
        (["test_verify_command:faulty", "--stages", "2"], "cannot be called with ['stages']"),
        (["test_verify_command:both", "--runner", "mixed"], "has no runner 'mixed'"),
        (["test_verify_command:both", "--check", "luck"], "no check luck: there are ranks"),
    ],
)
def test_what_cannot_run_exits_2(words: list[str], message: str) -> None:
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_the_fixture_passes_a_clean_runner(assert_verified: Callable[..., Any]) -> None:
    found = assert_verified(build(stages=1)[0], prefill_batch, quick=True)
    assert found.ok


def test_the_fixture_raises_with_the_report(assert_verified: Callable[..., Any]) -> None:
    with pytest.raises(VerificationError, match="return hidden \\* CONSTANT"):
        assert_verified(build(models=(Global,)), prefill_batch, checks=["inputs"])


def test_an_unknown_check_is_an_error() -> None:
    with pytest.raises(BuildError, match="no check speed"):
        verify(faulty(), checks=["speed"])
