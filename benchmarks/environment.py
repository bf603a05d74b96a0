"""The machine, versions and commit that figures belong to."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import ppcgc


def environment() -> dict[str, Any]:
    """What a results file says of where it comes from. ``commit`` is None outside of git."""
    gpu = torch.cuda.is_available()
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "ppcgc": ppcgc.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "triton": _version("triton"),
        "gpu": torch.cuda.get_device_name(0) if gpu else None,
        "driver": _driver() if gpu else None,
        "cpu": _cpu(),
        "cores": os.cpu_count(),
    }


def commit() -> str | None:
    """The commit of the checkout, with ``+`` where files differ from it.

    A copy without its history has what PPCGC_COMMIT says.
    """
    root = Path(__file__).parents[1]
    try:
        named = _git(root, "rev-parse", "--short=12", "HEAD")
        return named + ("+" if _git(root, "status", "--porcelain", "ppcgc", "benchmarks") else "")
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("PPCGC_COMMIT")


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _driver() -> str | None:
    try:
        asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        done = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.splitlines()[0].strip()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")
