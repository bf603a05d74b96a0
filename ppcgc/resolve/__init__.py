"""The pass that gives a spec its meaning: node tree to frozen IR.

Defaults are filled in, names become references, shapes become extents. ``sizes`` holds dims,
axes and states; ``tensors`` what slots, boundary keys and outputs share; ``context`` the names
declared and the findings. A part that cannot be resolved is reported and left out, so that the
findings of its neighbours come at the same time.
"""

from __future__ import annotations

from dataclasses import replace

from ppcgc.diagnostics.model import Diagnostic, in_order
from ppcgc.expr.tree import Ref, Symbol
from ppcgc.expr.walk import with_constants
from ppcgc.ir import Axis, ComputedCount, Family
from ppcgc.nodes import Document
from ppcgc.resolve.choices import resolve_options
from ppcgc.resolve.constants import constants
from ppcgc.resolve.context import Context, need, optional_text, text
from ppcgc.resolve.names import check_name
from ppcgc.resolve.pipeline import resolve_pipeline
from ppcgc.resolve.runners import resolve_runners
from ppcgc.resolve.sizes import resolve_axes, resolve_dims, resolve_states

__all__ = ["resolve"]


def resolve(document: Document) -> tuple[Family | None, list[Diagnostic]]:
    """The family that a document describes, or None and why not.

    The document has passed ``validate.schema``.
    """
    context = Context(document)
    name = need(document.root, "family")
    check_name(context, "family", text(name), name.span)
    options = resolve_options(context)
    dims = resolve_dims(context)
    axes = resolve_axes(context)
    states = resolve_states(context)
    pipeline = resolve_pipeline(context)
    known = constants(dims, axes)
    axes = tuple(_counting(axis, known) for axis in axes)
    runners = resolve_runners(context, known)
    findings = in_order(context.findings)
    if pipeline is None or any(finding.is_error for finding in findings):
        return None, findings
    family = Family(
        name=text(name),
        doc=optional_text(document.root, "doc") or "",
        dims=dims,
        axes=axes,
        states=states,
        pipeline=pipeline,
        runners=runners,
        options=options,
        parallel=context.parallel,
        source=document.name,
        span=document.root.span,
    )
    return family, findings


def _counting(axis: Axis, known: dict[Ref, int]) -> Axis:
    """The axis with the dims that are integers put into its live count.

    Capacities stay names: a runner may have lowered them.
    """
    if not isinstance(axis.live, ComputedCount):
        return axis
    dims = {ref: size for ref, size in known.items() if ref.symbol is Symbol.DIM}
    return replace(axis, live=ComputedCount(expr=with_constants(axis.live.expr, dims)))
