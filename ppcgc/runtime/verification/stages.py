"""A stage under test: its memory, which can be put back, and steps whose results are copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ppcgc.runtime.addresses import model_tensors, owner_of, state_tensors
from ppcgc.runtime.capturing import label
from ppcgc.runtime.hooks import Hooks
from ppcgc.runtime.slot_info import Role, SlotInfo
from ppcgc.runtime.verification.cases import Case
from ppcgc.runtime.verification.comparing import tensors_of
from ppcgc.runtime.verification.spec_rules import Unread, expected_rows, padding_values
from ppcgc.runtime.verification.subject import Subject
from ppcgc.runtime.verification.tracing import OpWatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Copies of a step's live outputs and of the whole state after it."""

    outputs: Mapping[str, Tensor]
    state: Mapping[str, Tensor]


class StageUnderTest:
    """One runner of the subject. Every probe begins from the same memory, see ``restored``."""

    def __init__(self, subject: Subject, runner: Any, number: int) -> None:
        self.subject = subject
        self.runner = runner
        self.number = number
        self.state: dict[str, Tensor] = dict(state_tensors(runner))
        self._baseline: dict[str, Tensor] = {}
        self._first: Callable[[], None] = _nothing  # see ``before_replay``
        self._unused_hooks = unused(runner.hook_calls.objects)

    def __str__(self) -> str:
        return f"{self.runner.family}.{self.runner.runner} stage {self.number}"

    def where(self, case: Case) -> str:
        """``llama.prefill first, bucket tokens=16 requests=16, live 15, 3``."""
        bucket = self.runner.table[case.padded]
        return f"{label(self.runner, bucket)}, live {', '.join(map(str, case.live))}"

    @property
    def table(self) -> tuple[SlotInfo, ...]:
        table: tuple[SlotInfo, ...] = self.runner.inputs.table()
        return table

    def slots(self, case: Case) -> Iterator[tuple[SlotInfo, Tensor]]:
        """The slots of a case's bucket with their facts; those shown by the boundary left out."""
        found = tensors_of(self.runner.table[case.padded].slots)
        for info in self.table:
            tensor = found.get(info.name)
            if tensor is not None and info.boundary is None:
                yield info, tensor

    def boundary(self, case: Case) -> dict[str, Tensor]:
        """The received keys of a case's bucket, padded rows included."""
        return tensors_of(self.runner.table[case.padded].boundary)

    def received(self, case: Case) -> Iterator[tuple[str, Tensor]]:
        """The live rows of the received keys, where the bucket has them."""
        incoming = tensors_of(case.incoming[self.number])
        for key, tensor in self.boundary(case).items():
            for dim, rows in enumerate(incoming[key].shape):
                tensor = tensor.narrow(dim, 0, rows)
            yield key, tensor

    def output_axes(self, case: Case) -> dict[str, tuple[str, int]]:
        """The axis and the dimension that a trim cuts, by output; none for one without an axis."""
        runner, bucket = self.runner, self.runner.table[case.padded]
        whole = tensors_of(runner.outputs.trim(bucket.outputs, case.padded))
        found: dict[str, tuple[str, int]] = {}
        for at, axis in enumerate(runner.axes):
            fewer = case.padded._replace(**{case.padded._fields[at]: case.padded[at] - 1})
            cut = tensors_of(runner.outputs.trim(bucket.outputs, fewer))
            for name, tensor in whole.items():
                for dim, (size, less) in enumerate(zip(tensor.shape, cut[name].shape, strict=True)):
                    if size != less:
                        found.setdefault(name, (axis, dim))
        return found

    def unused_hooks(self) -> list[object]:
        """The runner's hooks as they were before the first step."""
        return unused(self._unused_hooks)

    # ------------------------------------------------------------ memory

    def memory(self) -> Iterator[tuple[str, Tensor]]:
        """Everything that a step may write: state, arena, host block, the model's buffers."""
        yield from self.state.items()
        for name, tensor in self.runner.arena.named(""):
            yield f"arena {name}", tensor
        if self.runner.host_bytes is not None:
            yield "host block", self.runner.host_bytes
        for name, tensor in model_tensors(self.runner.model):
            if name.startswith("buffer "):
                yield name, tensor

    def remember(self) -> None:
        """From now on ``restore`` goes back to this."""
        self._baseline = {name: tensor.clone() for name, tensor in self.memory()}

    def restore(self) -> None:
        for name, tensor in self.memory():
            if name in self._baseline:
                tensor.copy_(self._baseline[name])

    def restore_state(self) -> None:
        """Only the declared state: what an earlier step left in the slots stays."""
        for name, tensor in self.state.items():
            tensor.copy_(self._baseline[name])

    @contextmanager
    def modules_named(self) -> Iterator[list[str]]:
        """The path of modules that are running now, innermost last."""
        owner, running = owner_of(self.runner.model), [""]
        if not isinstance(owner, torch.nn.Module):
            yield running
            return
        hooks = []
        for name, module in owner.named_modules():
            hooks.append(module.register_forward_pre_hook(_entering(running, name)))
            hooks.append(module.register_forward_hook(_leaving(running), always_call=True))
        try:
            yield running
        finally:
            for hook in hooks:
                hook.remove()

    # ------------------------------------------------------------ steps

    def begin(self, case: Case) -> Any:
        """Load a case. Returns the step; its bucket is ``table[case.padded]``."""
        step = self._loaded(case)
        self.write_as_caller(step, case)
        return step

    def begin_unwritten(self, case: Case) -> None:
        """Load a case; neither hooks nor the caller write their slots."""
        hooks, self.runner.hook_calls = self.runner.hook_calls, Hooks()
        try:
            self._loaded(case)
        finally:
            self.runner.hook_calls = hooks

    def _loaded(self, case: Case) -> Any:
        incoming = case.incoming[self.number]
        begin, batch = self.runner.begin, case.batch
        return begin(batch) if incoming is None else begin(batch, incoming)

    def write_as_caller(self, step: Any, case: Case) -> None:
        """What the caller does between ``begin`` and ``finish``."""
        if self.subject.before_finish is not None:
            self.subject.before_finish(self.runner, step, case.batch)

    def finish(self, step: Any) -> Result:
        return self.result(self.runner.finish(step))

    def replay(self, case: Case) -> Result:
        """A whole step from the memory as it is."""
        return self.finish(self.begin(case))

    def eager_at_padded_shape(self, case: Case) -> Result:
        """The stage's own Python over the loaded slots of the bucket."""
        self.begin(case)
        return self.run_body(case)

    def run_body(self, case: Case) -> Result:
        """The captured region, run as Python over the slots of the step begun last."""
        self.make_ready(case)
        return self.run_ready_body(case)

    def make_ready(self, case: Case) -> None:
        """What a step does between its load and its replay."""
        bucket = self.runner.table[case.padded]
        self.runner.inputs.pad_late(bucket.slots, case.live, case.padded)
        self.runner.hook_calls.plan(bucket.made, bucket.slots, case.batch, case.live)
        self._first()

    def run_ready_body(self, case: Case) -> Result:
        """The captured region alone, for those who watch it."""
        bucket = self.runner.table[case.padded]
        with torch.no_grad():
            self.runner.body(bucket)()
        return self.result(self.runner.outputs.trim(bucket.outputs, case.live))

    @contextmanager
    def before_replay(self, case: Case, act: Callable[[], None]) -> Iterator[None]:
        """The case's captured region, as graph or as Python, runs behind ``act``.

        All is written, padded and planned then.
        """
        bucket = self.runner.table[case.padded]
        graph, bucket.graph, self._first = bucket.graph, _Behind(act, bucket.graph), act
        try:
            yield
        finally:
            bucket.graph, self._first = graph, _nothing

    def watched(self, case: Case) -> OpWatch:
        """Run the captured region as Python over the loaded slots, and see what it touches."""
        self.make_ready(case)
        with self.modules_named() as running:
            watch = OpWatch(running)
            with watch:
                self.run_ready_body(case)
        return watch

    def eager_at_live_shape(self, case: Case) -> Result:
        incoming = case.incoming[self.number]
        begin = self.runner.begin_eager
        step = begin(case.batch) if incoming is None else begin(case.batch, incoming)
        self.write_as_caller(step, case)
        return self.finish(step)

    def result(self, outputs: Any) -> Result:
        return Result(
            outputs={name: tensor.clone() for name, tensor in tensors_of(outputs).items()},
            state={name: tensor.clone() for name, tensor in self.state.items()},
        )

    # ------------------------------------------------------------ rows of the state

    def written_rows(self, case: Case, state: str) -> tuple[set[int], set[int]] | None:
        """Rows of a state that a case writes for its live rows, and those padding writes.

        Read from the spec's facts and the batch, not from the slots. None where no slot says. A
        row that padding or a capture names is nobody's, though a live token be sent there as well
        (one that has left its window, for instance).
        """
        live: set[int] = set()
        padding: set[int] = set()
        nobodys: set[int] = set()
        known = False
        for info in self.table:
            if info.of_state != state or info.role is not Role.WRITE_INDEX:
                continue
            try:
                rows = expected_rows(self.runner, info, case)
            except Unread:
                return None
            known = True
            live |= set(rows.live_part.flatten().tolist())
            padding |= set(rows.tail.flatten().tolist()) if rows.tail is not None else set()
            nobodys |= self._nobodys(info, case)
        return (live - nobodys, padding | nobodys) if known else None

    def names_rows(self, state: str) -> bool:
        """Whether a slot says which rows of a state a step writes."""
        return any(info.of_state == state and info.role is Role.WRITE_INDEX for info in self.table)

    def _nobodys(self, info: SlotInfo, case: Case) -> set[int]:
        """Rows that constant padding of a write index and its captures name."""
        fills = self.runner.inputs.capture_fills(case.padded)
        captured = {int(fills[info.name])} if info.name in fills else set()
        return captured | padding_values(self.runner, info, case)

    def reserved_rows(self, case: Case, state: str) -> set[int]:
        """Rows that padding and captures write, and no request owns."""
        rows = self.written_rows(case, state)
        return set() if rows is None else rows[1] - rows[0]


class _Behind:
    """A graph whose replay does something else first."""

    def __init__(self, act: Callable[[], None], graph: Any) -> None:
        self._act = act
        self._graph = graph

    def replay(self) -> None:
        self._act()
        self._graph.replay()


def _nothing() -> None:
    return None


def unused(hooks: Sequence[object]) -> list[object]:
    """Hooks that remember what these do now, in attributes and containers of their own.

    Whatever else they hold is the same object: an engine's tables, a buffer that a graph reads.
    """
    copies = [copy(hook) for hook in hooks]
    for one in copies:
        if hasattr(one, "__dict__"):
            one.__dict__.update(containers_copied(one.__dict__))
    return copies


def containers_copied(held: Mapping[str, Any]) -> dict[str, Any]:
    """What an object holds; lists, dicts and sets are copies, so that what is added stays apart."""
    return {
        name: copy(value) if isinstance(value, list | dict | set) else value
        for name, value in held.items()
    }


def state_name(tensor: str) -> str:
    """``kv`` of ``state kv[0]``."""
    return tensor.removeprefix("state ").partition("[")[0].partition(".")[0]


def _entering(running: list[str], name: str) -> Any:
    def hook(*_: Any) -> None:
        running.append(name)

    return hook


def _leaving(running: list[str]) -> Any:
    def hook(*_: Any) -> None:
        running.pop()

    return hook
