"""What a built wheel holds, and that it finds its schema where it is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import ppcgc
from ppcgc.schema_file import NAME, load_schema, schema_path, schema_text

ROOT = Path(ppcgc.__file__).parent.parent
NOT_BUILT_FROM = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")


def test_the_schema_of_a_checkout_lies_at_the_top() -> None:
    assert schema_path() == ROOT / "schemas" / NAME
    assert load_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_wheel(tmp_path: Path) -> None:
    """Built from a copy: a build leaves folders in its source tree."""
    source = tmp_path / "source"
    shutil.copytree(ROOT, source, ignore=NOT_BUILT_FROM)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    options = ["--no-deps", "--no-index"]
    build = ["wheel", *options, "--no-build-isolation", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run([*pip, *build], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("ppcgc-*.whl")
    assert wheel.name.startswith(f"ppcgc-{ppcgc.__version__}-")

    names = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    package = source / "ppcgc"
    shipped = {
        path.relative_to(source).as_posix()
        for pattern in ("*.py", "*.j2", "py.typed", "starter.yaml")
        for path in package.rglob(pattern)
    }
    assert names == shipped | {f"ppcgc/schemas/{NAME}"}

    target = tmp_path / "target"
    install = ["install", *options, "--target", str(target), str(wheel)]
    subprocess.run([*pip, *install], check=True, capture_output=True)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import ppcgc.cli; assert ppcgc.__file__.startswith(sys.argv[1]), ppcgc.__file__\n"
        "sys.exit(ppcgc.cli.main(['schema'], sys.stdout, sys.stderr))"
    )
    command = [sys.executable, "-c", code, str(target)]
    done = subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    assert done.stdout.decode() == schema_text()
