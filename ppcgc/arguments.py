"""The arguments and options of each verb of the command line.

``cli`` has one function a verb; what a verb is given stands here, with its help, so that either
side reads alone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import click

from ppcgc.diagnostics.printers import PRINTERS

# kept here so that the help needs no pass of the compiler; a test compares it with the IR's list
MODEL_DTYPES = ("float16", "bfloat16", "float32", "float64")

Verb: TypeAlias = Callable[..., Any]  # click's own decorators are typed no closer
Decorator: TypeAlias = Callable[[Verb], Verb]


def _all(*decorators: Decorator) -> Decorator:
    """Several decorators as one, in the order in which the help lists them."""

    def decorate(verb: Verb) -> Verb:
        for decorator in reversed(decorators):
            verb = decorator(verb)
        return verb

    return decorate


_paths = click.argument("paths", nargs=-1, required=True, metavar="PATH...")
_format = click.option(
    "--format",
    "form",
    type=click.Choice(list(PRINTERS)),
    default="full",
    show_default=True,
    help="How findings are printed.",
)
_text_or_json = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text"
)


def _values(of: str) -> Decorator:
    return click.option(
        "--set",
        "given",
        multiple=True,
        metavar="NAME=VALUE",
        help=f"A dim (kv_rows=4096), an option (options.lora=true) or tp.size; {of}.",
    )


validate = _all(_paths, _format)

generate = _all(
    _paths,
    click.option(
        "--out",
        default="generated",
        show_default=True,
        help="The folder of the generated packages.",
    ),
    click.option(
        "--check", is_flag=True, help="Write nothing; exit 1 with a diff when files differ."
    ),
    click.option(
        "--bind",
        metavar="CONFIG",
        help="A model's config as JSON: its numbers become constants of the code.",
    ),
    click.option(
        "--stages",
        type=click.IntRange(min=1),
        help="With --bind: how many stages an even split makes.",
    ),
    _values("with --bind"),
    _format,
)

plan = _all(
    click.argument("spec"),
    click.option(
        "--config", metavar="FILE", help="The model's config as JSON: sizes, layers, dtype."
    ),
    _values("before the config"),
    click.option(
        "--dtype", type=click.Choice(MODEL_DTYPES), help="What `dtype: model` stands for."
    ),
    click.option(
        "--stages", type=click.IntRange(min=1), help="How many stages an even split makes."
    ),
    _text_or_json,
)

init = _all(
    click.argument("name", default="my_model"),
    click.option("--family", help="The family's name; by default made from NAME."),
)

explain = _all(
    click.argument("code", required=False),
    click.option("--all", "every", is_flag=True, help="Every rule, by code."),
    _text_or_json,
)

verify = _all(
    click.argument("factory", metavar="MODULE:FACTORY"),
    click.option("--runner", help="Only this runner of the family, such as prefill."),
    click.option("--device", help="Passed to the factory: cpu, cuda, cuda:1."),
    click.option("--stages", type=click.IntRange(min=1), help="Passed to the factory."),
    click.option("--check", "checks", multiple=True, help="Only this check; may be repeated."),
    click.option("--quick", is_flag=True, help="Two buckets of each runner, two batches each."),
    click.option(
        "--format",
        "form",
        type=click.Choice(["full", "concise", "json"]),
        default="full",
        show_default=True,
        help="How the report is printed.",
    ),
)

bench = _all(
    click.option("--peer", "peers", multiple=True, help="Only this peer; may be repeated."),
    click.option(
        "--tiny", is_flag=True, help="A tiny stage on the CPU: shows that the harness runs."
    ),
    click.option(
        "--out", type=click.Path(path_type=Path), help="Write the figures there, as JSON."
    ),
)
