"""Who may import whom. The compiler imports no torch; the runtime imports no compiler."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ppcgc

PACKAGE = Path(ppcgc.__file__).parent

# a module may import modules of its own layer and of those above it; the halves are apart
COMPILER_LAYERS = (
    ("ppcgc", "ppcgc.version"),
    ("ppcgc.diagnostics",),
    ("ppcgc.nodes", "ppcgc.schema_file"),
    ("ppcgc.expr", "ppcgc.load", "ppcgc.extend"),
    ("ppcgc.ir",),
    ("ppcgc.resolve", "ppcgc.validate", "ppcgc.plan"),
    ("ppcgc.emit", "ppcgc.publish"),
    ("ppcgc.known",),
    ("ppcgc.bind",),
    ("ppcgc.overview",),
    ("ppcgc.driver",),
    (
        "ppcgc.sources",
        "ppcgc.explain",
        "ppcgc.docs",
        "ppcgc.docs_cases",
        "ppcgc.starter",
        "ppcgc.arguments",
    ),
    ("ppcgc.verify_verb", "ppcgc.bench_verb"),
    ("ppcgc.cli",),
    ("ppcgc.__main__",),
)
RUNTIME_LAYERS = (("ppcgc",), ("ppcgc.runtime",), ("ppcgc.hf",))
# the one module of the compiler's half that calls the runtime, inside the verb's function
BRIDGES = {"ppcgc.verify_verb": "ppcgc.runtime"}
HEAVY = {"torch", "transformers", "numpy", "gguf"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def top(name: str) -> str:
    """``ppcgc.load`` for ``ppcgc.load.text``."""
    return ".".join(name.split(".")[:2])


def imports_of(source: str, module: str) -> Iterator[str]:
    """Names that a module imports when it is imported or run; not those for types alone."""
    tree = ast.parse(source)
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            base = node.module or ""
            yield base
            if base == "ppcgc":
                yield from (f"ppcgc.{alias.name}" for alias in node.names)


def is_runtime(name: str) -> bool:
    return top(name) in ("ppcgc.runtime", "ppcgc.hf")


def rank(name: str) -> int | None:
    layers = RUNTIME_LAYERS if is_runtime(name) else COMPILER_LAYERS
    return next((index for index, layer in enumerate(layers) if top(name) in layer), None)


def faults(name: str, source: str) -> list[str]:
    """What is wrong with a module's imports."""
    wrong: list[str] = []
    if name == "ppcgc":  # hands out the driver when asked
        return wrong
    own = rank(name)
    if own is None:
        return [f"{name} is in no layer"]
    for target in imports_of(source, name):
        head = target.split(".")[0]
        if head in HEAVY and not is_runtime(name):
            wrong.append(f"{name} imports {target}")
        if head != "ppcgc" or target in ("ppcgc", "ppcgc.__version__"):
            continue
        if BRIDGES.get(name) == top(target):
            continue
        other = rank(target)
        if is_runtime(name) != is_runtime(target):
            wrong.append(f"{name} imports {target} of the other half")
        elif other is not None and other > own:
            wrong.append(f"{name} imports {target} of a later layer")
    return wrong


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_import_direction(path: Path) -> None:
    assert faults(name_of(path), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("ppcgc.load.text", "import torch"),
        ("ppcgc.load.text", "def f():\n    from torch import nn"),
        ("ppcgc.load.text", "from ppcgc.driver import Source"),
        ("ppcgc.load.text", "from ppcgc import cli"),
        ("ppcgc.runtime.arena", "from ppcgc.ir import Slot"),
        ("ppcgc.cli", "def f():\n    from ppcgc.runtime.verification import verify"),
        ("ppcgc.verify_verb", "from ppcgc.hf.stage import split"),
        ("ppcgc.plan.model", "from ppcgc.runtime.abi import ABI"),
        ("ppcgc.runtime.arena", "from ppcgc.hf.stage import Stage"),
        ("ppcgc.unheard_of", ""),
    ],
)
def test_the_check_rejects(name: str, source: str) -> None:
    assert len(faults(name, source)) == 1


def test_the_check_accepts_imports_for_types() -> None:
    source = "if TYPE_CHECKING:\n    from ppcgc.cli import main\n"
    assert faults("ppcgc.load.text", source) == []


# the catalogue imports the passes by name, so that a rule is found wherever it is defined
def test_the_passes_of_the_catalogue_exist() -> None:
    from ppcgc.diagnostics import catalogue

    for name in catalogue._PASSES:
        path = PACKAGE.parent.joinpath(*name.split("."))
        assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file(), name


def loaded_after(code: str) -> set[str]:
    command = [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


VALIDATE = (
    "import io, ppcgc.cli; ppcgc.cli.main(['validate', {path!r}], io.StringIO(), io.StringIO())"
)


def test_validating_a_spec_loads_no_torch_and_no_templates() -> None:
    specs = PACKAGE.parent / "specs" / "llama.yaml"
    loaded = loaded_after(VALIDATE.format(path=str(specs)))
    assert "ppcgc.validate.schema" in loaded
    assert not loaded & {*HEAVY, "jinja2", "ppcgc.emit", "ppcgc.runtime"}


def test_the_help_of_verify_loads_no_torch() -> None:
    code = (
        "import io, ppcgc.cli; ppcgc.cli.main(['verify', '--help'], io.StringIO(), io.StringIO())"
    )
    assert not loaded_after(f"{code}; import ppcgc.verify_verb") & {*HEAVY, "ppcgc.runtime"}


def test_the_help_of_bench_loads_no_torch() -> None:
    code = "import io, ppcgc.cli; ppcgc.cli.main(['bench', '--help'], io.StringIO(), io.StringIO())"
    loaded = loaded_after(f"{code}; import ppcgc.bench_verb")
    assert not {name for name in loaded if name.split(".")[0] in {*HEAVY, "benchmarks"}}


def test_only_the_verb_bench_names_the_measurements() -> None:
    naming = {
        name_of(path)
        for path in modules()
        for target in imports_of(path.read_text(encoding="utf-8"), name_of(path))
        if target.split(".")[0] == "benchmarks"
    }
    assert naming == {"ppcgc.bench_verb"}


def test_a_file_that_is_not_yaml_waits_for_no_schema(tmp_path: Path) -> None:
    spec = tmp_path / "bad.yaml"
    spec.write_text("a: [")
    assert not loaded_after(VALIDATE.format(path=str(spec))) & {"jsonschema", "jinja2"}


def test_the_whole_compiler_loads_no_torch() -> None:
    code = "from ppcgc.diagnostics.catalogue import all_rules; all_rules(); import ppcgc.emit"
    assert not loaded_after(code) & HEAVY


def test_the_runtime_loads_no_compiler() -> None:
    loaded = loaded_after("import ppcgc.runtime")
    ours = {name for name in loaded if name.startswith("ppcgc.")}
    assert {name for name in ours if not is_runtime(name)} == {"ppcgc.version"}
    assert not loaded & {"yaml", "jsonschema", "click"}
