"""The command line: one function a verb, each a few lines over ``driver`` and ``publish``.

Exit codes: 0 clean (warnings alone are clean), 1 findings or drift, 2 could not run. Findings
and what was asked for go to standard output, progress and complaints to standard error.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

import click

from ppcgc import __version__
from ppcgc.diagnostics.model import Diagnostic
from ppcgc.diagnostics.printers import MACHINE_FORMATS, PRINTERS, render

# kept here so that the help needs no pass of the compiler; a test compares it with the IR's list
MODEL_DTYPES = ("float16", "bfloat16", "float32", "float64")

CLEAN = 0
FINDINGS = 1
CANNOT_RUN = 2


class CannotRunError(click.ClickException):
    """Something outside the specs is in the way; the message is all that the user sees."""

    exit_code = CANNOT_RUN

    def show(self, file: object = None) -> None:
        _say(f"ppcgc: {self.message}")


def main(argv: Sequence[str], stdout: TextIO, stderr: TextIO) -> int:
    """Run the command line and return its exit code.

    Raises ``BrokenPipeError`` alone, when a reader of the output went away.
    """
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        try:
            code = commands.main(list(argv), prog_name="ppcgc", standalone_mode=False)
        except click.ClickException as error:
            error.show()
            return CANNOT_RUN
        except (click.Abort, KeyboardInterrupt):
            _say("ppcgc: interrupted")
            return CANNOT_RUN
        except BrokenPipeError:
            raise
        except Exception as error:
            return _internal_error(error)
    return code if isinstance(code, int) else CLEAN


def entry() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")  # a terminal without UTF-8 still gets the text
    try:
        code = main(sys.argv[1:], sys.stdout, sys.stderr)
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader (`head`, a pager) has enough; keep Python from flushing into it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = CANNOT_RUN
    sys.exit(code)


def _internal_error(error: Exception) -> int:
    if os.environ.get("PPCGC_DEBUG") == "1":
        traceback.print_exception(error, file=sys.stderr)
    _say(
        f"ppcgc: internal error: {type(error).__name__}: {error}\n"
        "This is a bug of ppcgc. Please report it, with the spec and what PPCGC_DEBUG=1 prints."
    )
    return CANNOT_RUN


_format = click.option(
    "--format",
    "form",
    type=click.Choice(list(PRINTERS)),
    default="full",
    show_default=True,
    help="How findings are printed.",
)
_paths = click.argument("paths", nargs=-1, required=True, metavar="PATH...")


@click.group(
    name="ppcgc", help="Compile slot specs to runners that capture and replay pipeline stages."
)
@click.version_option(__version__, message="ppcgc %(version)s")
def commands() -> None:
    pass


@commands.command()
@_paths
@_format
def validate(paths: tuple[str, ...], form: str) -> int:
    """Check specs: files, folders, or - for standard input."""
    from ppcgc.driver import check_source, findings_of, texts_of
    from ppcgc.sources import UnreadableError, read_sources

    try:
        sources = read_sources(paths)
    except UnreadableError as error:
        raise CannotRunError(str(error)) from error
    checked = [check_source(source) for source in sources]
    found = findings_of(checked)
    _print_findings(form, found, texts_of(checked))
    _say(_summary(found, len(checked)))
    return FINDINGS if _has_errors(found) else CLEAN


@commands.command()
@_paths
@click.option(
    "--out", default="generated", show_default=True, help="The folder of the generated packages."
)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 with a diff when files differ.")
@_format
def generate(paths: tuple[str, ...], out: str, check: bool, form: str) -> int:
    """Generate the runners of specs. A call with errors writes nothing."""
    from ppcgc.driver import compile_sources
    from ppcgc.publish import PublishError
    from ppcgc.sources import STDIN, UnreadableError, read_sources

    if STDIN in paths:
        raise CannotRunError("a spec from standard input has no name to put into its files")
    try:
        sources = read_sources(paths, Path(out))
        compiled = compile_sources(sources)
        if _has_errors(compiled.findings):
            _print_findings(form, compiled.findings, compiled.texts)
            _say(_summary(compiled.findings, len(sources)))
            return FINDINGS
        finish = _check_files if check else _write_files
        later, code = finish(compiled.files, Path(out), form)
    except (UnreadableError, PublishError) as error:
        raise CannotRunError(str(error)) from error
    _print_findings(form, [*compiled.findings, *later], compiled.texts)
    return code


def _write_files(files: dict[str, str], out: Path, form: str) -> tuple[list[Diagnostic], int]:
    from ppcgc.publish import publish

    done = publish(files, out)
    for name in done.written:
        _say(f"wrote {(out / name).as_posix()}")
    for name in done.removed:
        _say(f"removed {(out / name).as_posix()}")
    if done.findings:
        _say("nothing was written")
        return list(done.findings), FINDINGS
    counts = f"{len(done.written)} written, {len(done.removed)} removed"
    _say(f"{counts}, {len(done.unchanged)} as they were")
    return [], CLEAN


def _check_files(files: dict[str, str], out: Path, form: str) -> tuple[list[Diagnostic], int]:
    """Drift as a diff for people, as findings for programs."""
    from ppcgc.publish import difference, drift_findings

    drift = drift_findings(files, out)
    if not drift:
        _say(f"{len(files)} generated files are up to date")
        return [], CLEAN
    _say(f"{len(drift)} generated files differ: run `ppcgc generate`")
    if form in MACHINE_FORMATS:
        return drift, FINDINGS
    click.echo(difference(files, out), nl=False)
    return [], FINDINGS


@commands.command()
@click.argument("spec")
@click.option("--config", metavar="FILE", help="The model's config as JSON: sizes, layers, dtype.")
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="NAME=VALUE",
    help="A dim (kv_rows=4096), an option (options.lora=true) or tp.size; before the config.",
)
@click.option("--dtype", type=click.Choice(MODEL_DTYPES), help="What `dtype: model` stands for.")
@click.option("--stages", type=click.IntRange(min=1), help="How many stages an even split makes.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def plan(
    spec: str,
    config: str | None,
    given: tuple[str, ...],
    dtype: str | None,
    stages: int | None,
    form: str,
) -> int:
    """Print what a SPEC comes to: graphs, stages, slots and hand-offs, with bytes.

    Numbers that need the model's config or a size given at build are `?` until --config and
    --set give them. Nothing is generated.
    """
    from ppcgc.driver import check_source
    from ppcgc.overview import NotKnownError, as_json, as_text, describe, gather
    from ppcgc.overview.given import read_config, read_values
    from ppcgc.plan import plan as make_plan
    from ppcgc.sources import UnreadableError, read_sources

    try:
        sources = read_sources([spec])
        if len(sources) != 1:
            raise CannotRunError(f"{spec}: holds {len(sources)} specs; give one of them")
        checked = check_source(sources[0])
        if checked.family is None:
            _print_findings("full", checked.findings, checked.texts)
            _say(_summary(checked.findings, 1))
            return FINDINGS
        sizes = None if config is None else read_config(Path(config))
        known = gather(checked.family, sizes, read_values(given), dtype)
        data = describe(make_plan(checked.family), known, stages)
    except (UnreadableError, NotKnownError) as error:
        raise CannotRunError(str(error)) from error
    click.echo(as_json(data) if form == "json" else as_text(data))
    return CLEAN


@commands.command()
@click.argument("name", default="my_model")
@click.option("--family", help="The family's name; by default made from NAME.")
def init(name: str, family: str | None) -> int:
    """Write a commented spec to start from: NAME.yaml. Never writes over a file."""
    from ppcgc.driver import Source, check_source
    from ppcgc.schema_file import NAME
    from ppcgc.starter import family_of, schema_seen_from, starter_path, starter_text

    path = starter_path(name)
    text = starter_text(family or family_of(path), path)
    checked = check_source(Source(file=path.as_posix(), data=text.encode()))
    if _has_errors(checked.findings):
        first = next(finding for finding in checked.findings if finding.is_error)
        raise CannotRunError(f"{first.message}; give another name with --family")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError as error:
        raise CannotRunError(f"{path}: is there already") from error
    except OSError as error:
        raise CannotRunError(f"{path}: {error.strerror}") from error
    _say(f"wrote {path.as_posix()}: next, `ppcgc validate {path.as_posix()}`")
    if schema_seen_from(path) == NAME:
        _say(f"for help in an editor, beside it: `ppcgc schema > {NAME}`")
    return CLEAN


@commands.command()
@click.argument("code", required=False)
@click.option("--all", "every", is_flag=True, help="Every rule, by code.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def explain(code: str | None, every: bool, form: str) -> int:
    """Print what a rule means: its CODE (PPC301) or its name."""
    from ppcgc.diagnostics.catalogue import all_rules
    from ppcgc.explain import UnknownRuleError, as_json, as_text, find_rule

    if every == (code is not None):
        raise click.UsageError("give a code or a name, or --all")
    try:
        rules = list(all_rules()) if code is None else [find_rule(code)]
    except UnknownRuleError as error:
        raise CannotRunError(str(error)) from error
    click.echo(as_json(rules) if form == "json" else as_text(rules))
    return CLEAN


@commands.command()
@click.argument("factory", metavar="MODULE:FACTORY")
@click.option("--runner", help="Only this runner of the family, such as prefill.")
@click.option("--device", help="Passed to the factory: cpu, cuda, cuda:1.")
@click.option("--stages", type=click.IntRange(min=1), help="Passed to the factory.")
@click.option("--check", "checks", multiple=True, help="Only this check; may be repeated.")
@click.option("--quick", is_flag=True, help="Two buckets of each runner, two batches each.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["full", "concise", "json"]),
    default="full",
    show_default=True,
    help="How the report is printed.",
)
def verify(
    factory: str,
    runner: str | None,
    device: str | None,
    stages: int | None,
    checks: tuple[str, ...],
    quick: bool,
    form: str,
) -> int:
    """Prove generated runners against their model: needs torch.

    MODULE:FACTORY returns a ppcgc.runtime.Subject or a list of them: runners in pipeline order,
    and batches to try them on.
    """
    from ppcgc.verify_verb import NoRuntimeError
    from ppcgc.verify_verb import verify as run

    try:
        report, ok = run(
            factory,
            runner=runner,
            device=device,
            stages=stages,
            checks=checks,
            quick=quick,
            form=form,
        )
    except NoRuntimeError as error:
        raise CannotRunError(str(error)) from error
    if report:
        click.echo(report)
    return CLEAN if ok else FINDINGS


@commands.command()
@click.option("--peer", "peers", multiple=True, help="Only this peer; may be repeated.")
@click.option("--tiny", is_flag=True, help="A tiny stage on the CPU: shows that the harness runs.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the figures there, as JSON.")
def bench(peers: tuple[str, ...], tiny: bool, out: Path | None) -> int:
    """Measure generated runners beside what else runs a stage: needs torch and a checkout.

    Each peer's outputs are checked against eager before its figures count.
    """
    from ppcgc.bench_verb import NoBenchError
    from ppcgc.bench_verb import bench as run

    try:
        text = run(peers=peers, tiny=tiny, out=out)
    except NoBenchError as error:
        raise CannotRunError(str(error)) from error
    click.echo(text)
    return CLEAN


@commands.command()
def schema() -> int:
    """Print the JSON Schema of specs."""
    from ppcgc.schema_file import schema_text

    click.echo(schema_text(), nl=False)
    return CLEAN


def _print_findings(form: str, found: Iterable[Diagnostic], texts: Mapping[str, str]) -> None:
    click.echo(render(form, found, texts, colour=_wants_colour()), nl=False)


def _wants_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _has_errors(found: Iterable[Diagnostic]) -> bool:
    return any(finding.is_error for finding in found)


def _summary(found: Sequence[Diagnostic], specs: int) -> str:
    errors = sum(finding.is_error for finding in found)
    warnings = len(found) - errors
    return ": ".join(
        [_count(specs, "spec"), f"{_count(errors, 'error')}, {_count(warnings, 'warning')}"]
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _say(text: str) -> None:
    click.echo(text, err=True)
