"""The property: a text is answered with findings or with code, and the code runs."""

from __future__ import annotations

from pathlib import Path

from fuzz_packages import imported
from fuzz_runs import run_all
from fuzz_world import World, stage_counts, world_of

from ppcgc.bind import Binding
from ppcgc.driver import Compiled, Source, check_source, compile_sources
from ppcgc.expr.evaluate import EvaluationError
from ppcgc.plan import plan
from ppcgc.runtime.errors import BuildError, DimError

MOST_GRAPHS = 24  # of a runner that is run; others are compiled only
MOST_CELLS = 200_000  # of a slot


def answered(text: str, folder: Path | None = None, binding: Binding | None = None) -> Compiled:
    """Compile a text as the command line does. Never an exception, and errors or else files."""
    compiled = compile_sources([source_of(text, folder)], binding)
    errors = [finding for finding in compiled.findings if finding.is_error]
    assert bool(errors) != bool(compiled.files)
    assert [finding.message for finding in compiled.findings if not finding.help] == []
    return compiled


def ran(
    text: str,
    seed: int,
    folder: Path | None = None,
    *,
    any_sizes: bool = False,
    bound: bool = False,
) -> int | None:
    """Compile, import and run a spec; None where the compiler refused it.

    Returns how many stages replayed. A size without a legal value is an answer of the build; with
    ``any_sizes`` layers and ranks need not fit either. ``bound`` runs the code that has the build's
    config and sizes as constants; the second reading knows nothing of that.
    """
    compiled = answered(text, folder)
    if not compiled.files:
        return None
    family = check_source(source_of(text, folder)).family
    assert family is not None
    files = compiled.files
    if bound:
        try:
            world = world_of(family)
        except (DimError, EvaluationError):
            return 0
        binding = Binding(file="config.json", text="", config=world.config, given=world.build)
        files = answered(text, folder, binding).files
        if not files:  # sizes that the build would refuse are findings
            return 0
    with imported(files) as package:
        try:
            world = world_of(family)
            return run_all(world, package, seed) if _can_be_run(world) else 0
        except (DimError, EvaluationError):
            return 0
        except BuildError:
            if any_sizes:
                return 0
            raise


def source_of(text: str, folder: Path | None) -> Source:
    data = text.encode("utf-8", "surrogatepass")
    return Source(file="fuzzed.yaml", data=data, folder=folder)


def _can_be_run(world: World) -> bool:
    planned = plan(world.family)
    rows = {axis.name: axis.max for axis in world.family.axes}
    tensors = [*world.family.pipeline.boundary]
    cells = [_cells(world.shape(key.shape, rows, world.layer_count)) for key in tensors]
    for runner in world.family.runners:
        cells += [_cells(world.shape(slot.shape, rows)) for slot in runner.slots]
        cells += [_cells(world.shape(output.shape, rows)) for output in runner.outputs]
    cells += [int(world.value(state.rows)) for state in world.family.states]
    small = max(cells) <= MOST_CELLS and max(stage_counts(world)) <= 8
    return small and all(len(runner.buckets) <= MOST_GRAPHS for runner in planned.runners)


def _cells(shape: list[int]) -> int:
    cells = 1
    for extent in shape:
        cells *= max(extent, 0)
    return cells
