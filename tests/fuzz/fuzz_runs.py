"""Builds, captures and runs what the compiler accepted, and reads each step a second time."""

from __future__ import annotations

import inspect
from dataclasses import fields
from random import Random
from types import SimpleNamespace
from typing import Any

import torch
from fuzz_batches import Batches, Case
from fuzz_hooks import AnyHook, live_cells, padded_late, write_past_live
from fuzz_model import AnyModel, in_view
from fuzz_reading import CALLER_VALUE, Reading, differing
from fuzz_world import MODEL_DTYPE, Counts, World, stage_counts
from torch import Tensor

from ppcgc import runtime as rt
from ppcgc.expr.tree import Ref, Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import (
    BucketScalar,
    CallerSource,
    EqualsBuckets,
    ListedBuckets,
    MaxBucket,
    Place,
    Runner,
)
from ppcgc.runtime.choice import Reason
from ppcgc.runtime.errors import CapacityError, GraphRequiredError, LimitError, PpcgcError

CASES = 6  # batches a pipeline


# ---------------------------------------------------------------- building


class Pipeline:
    """The stages of one runner that a build of ``count`` stages has, captured."""

    def __init__(
        self, world: World, package: Any, runner: Runner, count: int, random: Random
    ) -> None:
        self.world = world
        self.runner = runner
        self.random = random
        self.stages: list[Any] = []
        self.models: list[AnyModel] = []
        self.batches = Batches(world, runner, random)
        self._build(package, count)

    def _build(self, package: Any, count: int) -> None:
        given = {name: group for name, group in self._ranks_and_options(package).items() if group}
        dims = package.Dims.from_config(self.world.config, **self.world.build, **given)
        for number, place in enumerate(places(count)):
            if place in self.runner.places:
                layers = package.stage_layers(dims, stage=number, of=count)
                self._add_stage(package, place, layers, dims)
        for sender, receiver in zip(self.stages, self.stages[1:], strict=False):
            if sender.layers.end == receiver.layers.start and self.random.random() < 0.5:
                sender.feed(receiver)
        for joined in self._joined():
            rt.capture(joined)

    def _joined(self) -> list[list[Any]]:
        """Stages that follow each other: a runner may have none at a place between two others."""
        runs: list[list[Any]] = []
        for stage in self.stages:
            if runs and runs[-1][-1].layers.end == stage.layers.start:
                runs[-1].append(stage)
            else:
                runs.append([stage])
        return runs

    def _ranks_and_options(self, package: Any) -> dict[str, Any]:
        return {
            group: rt.Ranks(size=size, rank=rank)
            for group, (size, rank) in self.world.ranks.items()
        }

    def _add_stage(self, package: Any, place: Place, layers: Any, dims: Any) -> None:
        runner = "".join(part[:1].upper() + part[1:] for part in self.runner.name.split("_"))
        made = getattr(package, runner + place.value.capitalize())
        model = AnyModel(self.world, self.runner, place, layers)
        given: dict[str, Any] = {"model": model, "layers": layers, "dims": dims}
        given |= {"dtype": MODEL_DTYPE, "backend": rt.open_backend("cpu")}
        wanted = inspect.signature(made.__init__).parameters
        if "state" in wanted:
            given["state"] = package.State(**self._states())
        if "hooks" in wanted:
            hooks = {
                hook.name: AnyHook(self.world, self.runner, hook) for hook in self.runner.hooks
            }
            given["hooks"] = SimpleNamespace(**hooks)
        stage = made(**given)
        stage.compile = "none"  # a compiler of minutes stands between the spec and its check
        tell_rows(stage, model)
        self.stages.append(stage)
        self.models.append(model)

    def _states(self) -> dict[str, list[Tensor]]:
        return {
            state.name: [torch.zeros(int(self.world.value(state.rows)), 2)]
            for state in self.world.family.states
        }

    # ------------------------------------------------------------ running

    def run(self) -> int:
        """Steps through random batches, the fullest first; returns how many stages replayed."""
        replays = 0
        for wanted in self._wanted():
            case = self.batches.make(wanted, absent=self.random.random() < 0.4)
            if case is not None:
                replays += self._run_case(case)
        return replays

    def _wanted(self) -> list[Counts]:
        most = {
            rule.axis: self.runner.capacity(self.batches.axes[rule.axis])
            for rule in self.batches.rules.values()
        }
        stated = self.batches.stated()
        found = [{axis: most[axis] for axis in stated}]
        for _ in range(CASES - 1):
            counts = {}
            for axis in stated:
                rule = self.batches.rules[axis]
                sizes = rule.sizes if isinstance(rule, ListedBuckets) else (most[axis],)
                edges = [0, 1, *sizes, most[axis] - 1]
                over = [most[axis] + 1] if self.random.random() < 0.2 else []
                inside = self.random.randint(0, most[axis])
                counts[axis] = self.random.choice([*edges, *over, inside, inside])
            found.append(counts)
        return found

    def _run_case(self, case: Case) -> int:
        replays = 0
        incoming: Any = None
        reached = 0  # the first layer that no stage has run yet
        for stage, model in zip(self.stages, self.models, strict=True):
            after = model.place in (Place.MIDDLE, Place.LAST)
            if after and reached != stage.layers.start:  # the runner has no stage before this one
                incoming = self._invented(stage, model, case)
            given = () if stage.layers.start == 0 else (incoming,)
            try:
                step = stage.begin(case.batch, *given)
            except PpcgcError as problem:
                self._check_refused(case, problem)
                return replays
            assert not case.breaks, f"live counts {case.counts} break a limit"
            self._check_choice(case, step)
            self._check_slots(stage, model, case, step)
            kept = copied(incoming)
            out = stage.finish(step)
            self._check_late(stage, model, case, step)
            self._check_received(stage, model, case, step)
            eagerly = stage.eager(case.batch, *(() if kept is None else (kept,)))
            check_equal(out, eagerly)
            replays += step.choice.padded is not None
            reached = stage.layers.end
            incoming = out if model.place in (Place.FIRST, Place.MIDDLE) else None
        return replays

    # ------------------------------------------------------------ what a step must be

    def _check_refused(self, case: Case, problem: PpcgcError) -> None:
        """An error is right for a batch that breaks a limit, leaves all buckets, wants a graph."""
        if case.breaks:
            assert isinstance(problem, LimitError), problem
            return
        if not case.legal:
            return
        over = self._padded(case) is None
        if isinstance(problem, CapacityError) and over:
            return
        if isinstance(problem, GraphRequiredError) and self.runner.dispatch.require_graph:
            return
        raise problem

    def _check_choice(self, case: Case, step: Any) -> None:
        padded, expected = step.choice.padded, self._padded(case)
        if step.choice.reason is Reason.OVER_CAPACITY:
            assert expected is None
            assert self.runner.dispatch.over_capacity == "eager"
        if padded is None:
            assert step.choice.reason is not Reason.FITS
            return
        assert expected == {axis: getattr(padded, axis) for axis in expected or {}}

    def _padded(self, case: Case) -> Counts | None:
        """The padded rows by axis of the bucket; None where no bucket holds the batch."""
        padded: Counts = {}
        for rule in self.batches.rules.values():
            axis = self.batches.axes[rule.axis]
            if isinstance(rule, ListedBuckets | MaxBucket):
                own = (
                    rule.sizes if isinstance(rule, ListedBuckets) else (self.runner.capacity(axis),)
                )
                sizes = (0, *own) if axis.zero_key else own
                fitting = [size for size in sizes if size >= case.most[rule.axis]]
                if not fitting:
                    return None
                padded[rule.axis] = fitting[0]
        pending = [r for r in self.batches.rules.values() if r.axis not in padded]
        while pending:
            rule = pending.pop(0)
            assert not isinstance(rule, ListedBuckets | MaxBucket)
            symbol = Symbol.LIVE if isinstance(rule, EqualsBuckets) else Symbol.PADDED
            env = {Ref(symbol, axis): rows for axis, rows in padded.items()} | self._key(case)
            needs = {rule.axis for rule in pending}
            if any(Ref(symbol, axis) in refs(rule.expr) for axis in needs):
                pending.append(rule)
                continue
            padded[rule.axis] = int(self.world.value(rule.expr, env))
            chosen_by = case.counts if isinstance(rule, EqualsBuckets) else case.most
            if chosen_by[rule.axis] > padded[rule.axis]:
                return None
        return padded

    def _key(self, case: Case) -> dict[Ref, int]:
        """The scalars' values in the graph key."""
        key = {}
        for scalar in self.runner.scalars:
            ref = Ref(Symbol.SCALAR, scalar.name)
            key[ref] = int(case.env[ref])
            if isinstance(scalar.mode, BucketScalar):
                fitting = [size for size in scalar.mode.sizes if size >= key[ref]]
                key[ref] = min(fitting, default=key[ref])
        return key

    def _reading(self, model: AnyModel, case: Case, step: Any) -> Reading:
        rows = case.counts
        if step.choice.padded is not None:
            rows = {axis: getattr(step.choice.padded, axis) for axis in case.counts}
        return Reading(self.world, self.runner, model.place, model.layers, case, rows)

    def _check_slots(self, stage: Any, model: AnyModel, case: Case, step: Any) -> None:
        reading = self._reading(model, case, step)
        for slot in self.runner.slots:
            tensor = in_view(step.slots, slot.qualified)
            if not reading.exists(slot):
                assert tensor is None, f"{slot.qualified} is there"
                continue
            if tensor is None:  # a source that is absent, on the way to an eager step
                assert step.choice.padded is None, slot.qualified
                continue
            if isinstance(slot.source, CallerSource):
                write_past_live(self.world, slot, tensor, case.counts, CALLER_VALUE)
            expected = reading.expected(slot)
            if expected is not None and (step.choice.padded is None or not padded_late(slot)):
                problem = differing(tensor, expected)
                assert problem is None, f"{stage}: slot {slot.qualified}, {step.choice}: {problem}"
            twin = reading.twin(slot)
            if twin is not None:
                problem = differing(in_view(step.slots, f"{slot.qualified}_host"), twin)  # type: ignore[arg-type]
                assert problem is None, f"{stage}: mirror of {slot.qualified}: {problem}"

    def _check_late(self, stage: Any, model: AnyModel, case: Case, step: Any) -> None:
        """Slots that the caller or a hook wrote after the load, once the step has padded them."""
        reading = self._reading(model, case, step)
        for slot in self.runner.slots:
            tensor = in_view(step.slots, slot.qualified)
            if tensor is None or step.choice.padded is None or not padded_late(slot):
                continue
            expected = reading.expected(slot)
            assert expected is not None
            problem = differing(tensor, expected)
            assert problem is None, f"{stage}: slot {slot.qualified}, {step.choice}: {problem}"

    def _check_received(self, stage: Any, model: AnyModel, case: Case, step: Any) -> None:
        """After a replay the rows of the boundary past live hold their padding."""
        if step.choice.padded is None or step.boundary is None:
            return
        reading = self._reading(model, case, step)
        for key in self.world.boundary(self.runner):
            tensor = getattr(step.boundary, key.name)
            crosses = self.world.crosses(key, stage.layers.start)
            assert crosses == (tensor is not None)
            if tensor is None or not key.axes:
                continue
            as_slot = SimpleNamespace(shape=key.shape, axes=key.axes, padding=key.padding)
            live = live_cells(self.world, key, tensor, case.counts)
            cells, known = reading.padded_key(as_slot, live, list(tensor.shape))
            problem = differing(tensor, (cells, known))
            assert problem is None, f"{stage}: boundary.{key.name}: {problem}"

    def _invented(self, stage: Any, model: AnyModel, case: Case) -> Any:
        """A boundary for a stage whose forerunner the runner does not have."""
        like = next(iter(stage.table.values())).boundary
        keys: dict[str, Tensor | None] = {}
        for key in self.world.boundary(self.runner):
            keys[key.name] = None
            if self.world.crosses(key, stage.layers.start):
                shape = self.world.shape(key.shape, case.counts, stage.layers.start)
                keys[key.name] = torch.ones(shape).to(getattr(like, key.name).dtype)
        return type(like)(**keys)


def places(count: int) -> list[Place]:
    if count == 1:
        return [Place.ONLY]
    return [Place.FIRST, *[Place.MIDDLE] * (count - 2), Place.LAST]


def tell_rows(stage: Any, model: AnyModel) -> None:
    """The model learns the rows of each call from the runner's own call of it."""
    forward = stage.forward

    def told(slots: Any, boundary: Any, rows: Any, made: Any) -> object:
        model.rows = {axis: getattr(rows, axis) for axis in stage.axes}
        return forward(slots, boundary, rows, made)

    stage.forward = told


def copied(view: Any) -> Any:
    if view is None:
        return None
    tensors = {field.name: getattr(view, field.name) for field in fields(view)}
    return type(view)(**{n: None if t is None else t.clone() for n, t in tensors.items()})


def check_equal(replayed: Any, eagerly: Any) -> None:
    assert type(replayed) is type(eagerly)
    for field in fields(replayed):
        one, two = getattr(replayed, field.name), getattr(eagerly, field.name)
        assert (one is None) == (two is None), field.name
        if one is not None:
            assert (one.dtype, one.shape) == (two.dtype, two.shape), field.name
            same = torch.equal(one.to(torch.float64), two.to(torch.float64))
            assert same, f"{field.name}: replayed {one}, eagerly {two}"


def run_all(world: World, package: Any, seed: int) -> int:
    """Every runner of a package, in pipelines of every length; returns how many stages replayed."""
    replays = 0
    for runner in world.family.runners:
        for count in stage_counts(world):
            if runner.places & set(places(count)):
                replays += Pipeline(world, package, runner, count, Random(seed)).run()
    return replays
