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
from typing import TYPE_CHECKING, TextIO

import click

from ppcgc import __version__, arguments
from ppcgc.diagnostics.model import Diagnostic
from ppcgc.diagnostics.printers import MACHINE_FORMATS, render

if TYPE_CHECKING:
    from ppcgc.bind import Binding

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


@click.group(
    name="ppcgc", help="Compile slot specs to runners that capture and replay pipeline stages."
)
@click.version_option(__version__, message="ppcgc %(version)s")
def commands() -> None:
    pass


@commands.command()
@arguments.validate
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
@arguments.generate
def generate(
    paths: tuple[str, ...],
    out: str,
    check: bool,
    bind: str | None,
    stages: int | None,
    given: tuple[str, ...],
    form: str,
) -> int:
    """Generate the runners of specs. A call with errors writes nothing.

    With --bind the code is for one model: sizes, layers, stages and boundaries are constants, and
    a build with another config is refused.
    """
    from ppcgc.driver import compile_sources
    from ppcgc.known.sizes import NotKnownError
    from ppcgc.publish import PublishError
    from ppcgc.sources import STDIN, UnreadableError, read_sources

    if STDIN in paths:
        raise CannotRunError("a spec from standard input has no name to put into its files")
    try:
        sources = read_sources(paths, Path(out))
        compiled = compile_sources(sources, _binding(bind, stages, given, len(sources)))
        if _has_errors(compiled.findings):
            _print_findings(form, compiled.findings, compiled.texts)
            _say(_summary(compiled.findings, len(sources)))
            return FINDINGS
        finish = _check_files if check else _write_files
        later, code = finish(compiled.files, Path(out), form)
    except (UnreadableError, PublishError, NotKnownError) as error:
        raise CannotRunError(str(error)) from error
    _print_findings(form, [*compiled.findings, *later], compiled.texts)
    return code


def _binding(
    config: str | None, stages: int | None, given: tuple[str, ...], specs: int
) -> Binding | None:
    """What --bind, --stages and --set ask for. Raises ``NotKnownError``."""
    if config is None:
        if stages is not None or given:
            raise click.UsageError("--stages and --set go with --bind CONFIG")
        return None

    from ppcgc.bind import read_binding
    from ppcgc.known.given import read_values

    if specs != 1:
        raise CannotRunError(f"--bind is for one spec, not for {specs}: a config is one model's")
    return read_binding(Path(config), read_values(given), stages)


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
@arguments.plan
def plan(
    spec: str,
    config: str | None,
    given: tuple[str, ...],
    dtype: str | None,
    stages: int | None,
    form: str,
) -> int:
    """Print what a SPEC comes to: graphs, stages, slots and hand-offs, with bytes.

    Numbers that need the model's config, a size given at build or the model's dtype are `?` until
    --config, --set and --dtype give them. Nothing is generated.
    """
    from ppcgc.driver import check_source
    from ppcgc.known.given import read_config, read_values
    from ppcgc.known.sizes import NotKnownError, gather
    from ppcgc.overview import as_json, as_text, describe
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
@arguments.init
def init(name: str, family: str | None) -> int:
    """Write a commented spec to start from: NAME.yaml. Never writes over a file."""
    from ppcgc.driver import Source, check_source
    from ppcgc.schema_file import NAME
    from ppcgc.starter import as_argument, family_of, schema_seen_from, starter_path, starter_text

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
    _say(f"wrote {path.as_posix()}: next, `ppcgc validate {as_argument(path)}`")
    if schema_seen_from(path) == NAME:
        beside = as_argument(path.with_name(NAME))
        _say(f"for help in an editor, beside it: `ppcgc schema > {beside}`")
    return CLEAN


@commands.command()
@arguments.explain
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
@arguments.verify
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
@arguments.bench
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
