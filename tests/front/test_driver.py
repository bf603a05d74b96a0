"""The driver: passes in order, stopped by errors, over several specs."""

from __future__ import annotations

import pytest

import ppcgc
from ppcgc.driver import Source, check_source, compile_sources

CHECKS = ["schema", "resolve", "rules"]


def source(text: str, file: str = "specs/llama.yaml") -> Source:
    return Source(file=file, data=text.encode())


def without_prefix(ran: list[str]) -> list[str]:
    return [name.removeprefix("validate.") for name in ran]


@pytest.mark.parametrize(
    ("text", "codes", "ran"),
    [
        ("family: llama\n", [], CHECKS),
        ("family: bad\n", ["PPC998"], CHECKS),
        ("family: llama\nodd: 1\n", ["PPC997"], ["schema"]),
        ("family: [\n", ["PPC005"], []),
    ],
)
def test_stops_after_the_pass_that_found_errors(
    passes: list[str], text: str, codes: list[str], ran: list[str]
) -> None:
    checked = check_source(source(text))
    assert [finding.rule.code for finding in checked.findings] == codes
    assert without_prefix(passes) == ran
    assert (checked.family is None) == bool(codes)


def test_bytes_that_are_not_text_stop_before_load(passes: list[str]) -> None:
    checked = check_source(Source(file="f.yaml", data=b"family: \xff\n"))
    assert [finding.rule.code for finding in checked.findings] == ["PPC001"]
    assert checked.text == "family: �\n"
    assert passes == []


def test_warnings_do_not_stop(passes: list[str]) -> None:
    compiled = compile_sources([source("family: llama\r\n")])
    assert [finding.rule.code for finding in compiled.findings] == ["PPC003"]
    assert sorted(compiled.files) == ["llama/__init__.py", "llama/decode.py"]


def test_compile_gives_the_files_of_all_specs(passes: list[str]) -> None:
    compiled = compile_sources(
        [source("family: llama\nbody: x\n"), source("family: qwen\n", "specs/qwen.yaml")]
    )
    assert sorted(compiled.files) == [
        "llama/__init__.py",
        "llama/decode.py",
        "qwen/__init__.py",
        "qwen/decode.py",
    ]
    assert compiled.files["llama/decode.py"] == (
        "# ppcgc: generated from llama.yaml by ppcgc 0; do not edit\nBODY = 'x'\n"
    )
    assert compiled.texts["specs/qwen.yaml"] == "family: qwen\n"


def test_one_bad_spec_means_no_files_and_all_findings(passes: list[str]) -> None:
    compiled = compile_sources(
        [source("family: llama\n"), source("family: bad\n", "b.yaml"), source("a: [\n", "c.yaml")]
    )
    assert [finding.span.file for finding in compiled.findings] == ["b.yaml", "c.yaml"]
    assert compiled.files == {}
    assert "plan" not in passes


@pytest.mark.parametrize("again", ["llama", "Llama"])
def test_a_family_is_defined_once(again: str, passes: list[str]) -> None:
    compiled = compile_sources(
        [source("family: llama\n", "a.yaml"), source(f"\nfamily: {again}\n", "b.yaml")]
    )
    (finding,) = compiled.findings
    assert finding.rule.code == "PPC018"
    assert str(finding.span) == "b.yaml:2:9"
    assert [str(place.span) for place in finding.related] == ["a.yaml:1:9"]
    assert compiled.files == {}


def test_the_package_offers_the_driver_without_importing_it_first(passes: list[str]) -> None:
    assert ppcgc.check_source is check_source
    assert set(ppcgc.__all__) >= {"check_source", "compile_sources", "Source", "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ppcgc.nothing  # type: ignore[attr-defined]  # the point of the test
