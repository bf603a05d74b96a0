"""Hooks of a runner: their Protocols, what they are built from, conditions for an eager step."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc.emit.batch_source import is_present, source_expression
from ppcgc.emit.names import class_name
from ppcgc.emit.scope import Scope
from ppcgc.emit.source import Code, Identifier, call, code, identifier, literal, signature, tuple_of
from ppcgc.ir import EagerWhen, Family, Hook
from ppcgc.plan import RunnerPlan

WHEN = ("capture", "key", "load", "plan")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookView:
    """A hook's Protocol: one method for each time that it is called."""

    name: Identifier
    protocol: Identifier
    methods: tuple[Code, ...]


def hook_views(
    planned: RunnerPlan, extents: Identifier, batch: Identifier, slots: Identifier, *name: str
) -> tuple[HookView, ...]:
    """The Protocols of a runner's hooks, typed for one kind of stage."""
    return tuple(
        HookView(
            name=identifier(hook.name),
            protocol=class_name(*name, hook.name, "hook"),
            methods=tuple(_methods(planned, hook, extents, batch, slots)),
        )
        for hook in planned.runner.hooks
    )


def _methods(
    planned: RunnerPlan, hook: Hook, extents: Identifier, batch: Identifier, slots: Identifier
) -> list[Code]:
    view, given = code("slots: {}", slots), code("batch: {}", batch)
    live, rows = code("live: {}", extents), code("rows: {}", extents)
    made, nothing = Code("made: object"), Code("None")
    workspace = Code("workspace: Tensor | None")
    methods = {
        "capture": signature("capture", (Code("slot: str"), live), Code("object")),
        "key": signature("key", (rows, view, workspace), Code("object")),
        "load": signature("load", (view, given, live), nothing),
        "plan": signature("plan", (made, view, given, live), nothing),
    }
    asked = [methods[when] for when in WHEN if when in hook.at]
    if any(when.hook == hook.name for when in planned.runner.eager_when):
        asked.append(signature("eager", (given, live), Code("bool")))
    return [code("{} ...", method) for method in asked]


def hook_table(planned: RunnerPlan) -> Code:
    """``hook_table = (rt.HookInfo(...), ...)``: empty where there are none."""
    rows = []
    for hook in planned.runner.hooks:
        at = tuple_of(tuple(literal(when) for when in WHEN if when in hook.at))
        parts = [code("name={}", literal(hook.name)), code("at={}", at)]
        if hook.staging != 1:
            parts.append(code("staging={}", literal(hook.staging)))
        rows.append(call(Code("rt.HookInfo"), tuple(parts)))
    return code("hook_table = {}", tuple_of(tuple(rows)))


def workspaces(family: Family, planned: RunnerPlan) -> tuple[Code, ...]:
    """``"attention": bytes`` for each hook with a workspace."""
    scope = Scope(family=family, lowered=planned.runner.axis_max)
    return tuple(
        code("{}: {}", literal(hook.name), scope.python(hook.workspace))
        for hook in planned.runner.hooks
        if hook.workspace is not None
    )


def ineligible_lines(family: Family, planned: RunnerPlan) -> list[Code]:
    """Conditions of the batch that make a step eager, each with its reason."""
    statements: list[Code] = []
    scope = Scope(family=family, lowered=planned.runner.axis_max)
    for when in planned.runner.eager_when:
        statements += [
            code("if {}:", _condition(scope, when)),
            code("    return {}", literal(when.reason)),
        ]
    return statements


def _condition(scope: Scope, when: EagerWhen) -> Code:
    if when.hook is not None:
        return code("self.hooks.{}.eager(batch, live)", identifier(when.hook))
    source, path = source_expression(when.path), literal(".".join(when.path))
    match when.kind:
        case "present":
            return is_present(when.path)
        case "is_true":
            return code("rt.host_flag({}, {})", source, path)
        case "is_false":
            return code("not rt.host_flag({}, {})", source, path)
        case _:
            if when.above is None:
                raise TypeError(f"eager_when {when.reason} has no bound")
            limit = scope.operand(when.above)
            return code("rt.host_number({}, {}) > {}", source, path, limit)
