"""Stages of a transformers model behind a family's generated runners, all in one process.

A test makes a :class:`Pipeline` from the family's generated package and drives it with batches
of :mod:`sequences`; every step is compared with the unsplit model, one sequence at a time, and
with each stage's own Python at the same padded shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM

from examples.serving import (
    DecodeBatch,
    Pages,
    PrefillBatch,
    pack_decode,
    pack_prefill,
)
from examples.serving import Sequence as PagedSequence
from ppcgc.hf.kv import KVPool
from ppcgc.hf.probe import randomize
from ppcgc.hf.runners import HFDecode, prefill_module
from ppcgc.hf.stage import HFStage, split
from ppcgc.runtime import LayerRange, capture, open_backend

VOCAB = 96
# absolute, for float32 logits of about 3: another order of summation and no more
TOLERANCE = 3e-5

COMMON: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 96,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
}


def small_model(config: Any, device: str, *, experts: bool = False) -> Any:
    """A float32 model with weights large enough for mistakes to show, and its own attention."""
    model = AutoModelForCausalLM.from_config(
        config, attn_implementation="eager", dtype=torch.float32
    ).eval()
    randomize(model, seed=7)
    if experts and device == "cuda":
        # torch's grouped_mm has no float32 kernel on CUDA and reads its offsets on the host
        model.set_experts_implementation("batched_mm")
    return model.to(device)


@torch.no_grad()
def alone(model: Any, ids: Sequence[int]) -> Tensor:
    """Logits [vocab] of the last token, by the unsplit model's own forward."""
    flat = torch.tensor([ids], device=model.device)
    logits: Tensor = model(input_ids=flat).logits[0, -1]
    return logits


@dataclass(frozen=True, slots=True, kw_only=True)
class StageParts:
    """What a stage's runners are built from: a module for each runner, and the state."""

    modules: Mapping[str, nn.Module]
    state: Any


POISON = 1e3


def poisoned(pool: KVPool) -> KVPool:
    """The pool full of a large number: reading a row that was never written shows."""
    for tensor in pool.tensors():
        tensor.fill_(POISON)
    return pool


class AnyStage(Protocol):
    """A stage that knows its layers."""

    start_layer: int
    end_layer: int
    layer_count: int


MakeParts = Callable[[HFStage], StageParts]


def plain_parts(package: ModuleType, kv_rows: int) -> MakeParts:
    """Parts of a family whose layers share one pool, with runners `prefill` and `decode`."""

    def make(stage: HFStage) -> StageParts:
        pool = poisoned(stage.new_pool(kv_rows))
        return StageParts(
            modules={"prefill": prefill_module(stage, pool), "decode": HFDecode(stage, pool)},
            state=package.State(kv=pool.tensors()),
        )

    return make


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The runners of every stage, by the name that the spec gives them.

    ``before_finish(step, batch)`` writes the slots that are the caller's, on the first stage.
    """

    runners: Mapping[str, list[Any]]
    before_finish: Callable[[Any, Any], None] = lambda _step, _batch: None

    def step(self, name: str, batch: Any) -> Tensor:
        """One replay of every stage, and then the same by its own Python: bit for bit.

        Returns logits [requests, vocab]. Whatever the first run wrote, the second writes again.
        """
        runners = self.runners[name]
        first, *later = runners
        begun = first.begin(batch)
        self.before_finish(begun, batch)
        handed = first.finish(begun)
        for runner in later:
            handed = runner.run(batch, handed)
        replayed: Tensor = handed.logits.clone()
        assert [runner.last_step.choice.padded for runner in runners] == [
            runners[0].last_step.choice.padded
        ] * len(runners)
        assert runners[0].last_step.choice.padded is not None, "the step ran eagerly"
        assert torch.equal(replayed, eager_again(runners)[: len(replayed)])
        return replayed

    def path(self, name: str) -> str:
        """What the last step did: ``replay 47→64``."""
        return str(self.runners[name][0].last_step)


@torch.no_grad()
def eager_again(runners: Sequence[Any]) -> Tensor:
    """Padded logits of the last step once more, by each stage's Python over the loaded slots."""
    for runner in runners:
        bucket = runner.table[runner.last_step.choice.padded]
        runner.body(bucket)()
    logits: Tensor = bucket.outputs.logits
    return logits


def build(
    package: ModuleType,
    model: Any,
    make_parts: MakeParts,
    *,
    cuts: Sequence[int],
    device: str,
    **dims: int,
) -> Pipeline:
    """Split ``model`` before each layer of ``cuts`` and capture every bucket of every stage."""
    sizes = package.Dims.from_config(model.config, **dims)
    stages = split(model, list(pairwise([0, *cuts, sizes.layer_count])))
    made = [(stage, make_parts(stage)) for stage in stages]
    parts = [(stage, part.modules, part.state) for stage, part in made]
    return build_runners(package, sizes, parts, dtype=model.dtype, device=device)


def build_runners(
    package: ModuleType,
    sizes: Any,
    parts: Sequence[tuple[AnyStage, Mapping[str, nn.Module], Any]],
    *,
    dtype: torch.dtype,
    device: str,
) -> Pipeline:
    """Runners for stages, the modules of their runners by name, and their state; captured."""
    backend = open_backend(device)
    runners: dict[str, list[Any]] = {}
    for stage, modules, state in parts:
        layers = LayerRange(start=stage.start_layer, end=stage.end_layer, count=stage.layer_count)
        for name, module in modules.items():
            make = runner_class(package, name, layers)
            made = make(
                model=module, layers=layers, dims=sizes, state=state, dtype=dtype, backend=backend
            )
            runners.setdefault(name, []).append(made)
    for line in runners.values():
        for sender, receiver in pairwise(line):
            sender.feed(receiver)
    capture([runner for line in runners.values() for runner in line])
    return Pipeline(runners=runners)


def runner_class(package: ModuleType, name: str, layers: LayerRange) -> Any:
    """`PrefillFirst` for the prefill runner of a first stage."""
    places = {(True, True): "Only", (True, False): "First", (False, True): "Last"}
    place = places.get((layers.start == 0, layers.end == layers.count), "Middle")
    return getattr(package, name.title().replace("_", "") + place)


# ---------------------------------------------------------------- a little serving

FULL = (9, 1, 14, 20, 3)  # 47 tokens: the fullest batch, and the first
SMALL = (2, 7)  # behind it, in buffers full of stale rows


def random_ids(lengths: Sequence[int], seed: int = 3) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(1, VOCAB, (n,), generator=generator).tolist() for n in lengths]


class Steps(Protocol):
    """Something that runs batches through all stages."""

    def step(self, name: str, batch: Any) -> Tensor: ...

    def path(self, name: str) -> str: ...


def check_serving(pipeline: Steps, expected_of: Callable[[Any], Tensor], engine: Any) -> list[str]:
    """Prompts and steps of rising and falling size, each equal to the unsplit model's.

    ``expected_of`` gives the logits [vocab] of a sequence's last token. ``engine`` has
    ``start(ids)``, ``prefill(sequences)`` and ``decode(sequences)``, which pack a batch; a
    sequence has ``ids``. Returns what each step did, ``prefill 47→64`` for one.
    """
    full = [engine.start(ids) for ids in random_ids(FULL)]
    small = [engine.start(ids) for ids in random_ids(SMALL, seed=4)]
    plan = [
        ("prefill", full),
        ("decode", full),
        ("prefill", small),
        ("decode", [*full, *small]),
        ("decode", [full[3], small[0], full[0]]),
        ("decode", [full[2]]),
        ("decode", [*full, *small]),
    ]
    paths = []
    for name, sequences in plan:
        logits = pipeline.step(name, getattr(engine, name)(sequences))
        expected = torch.stack([expected_of(sequence) for sequence in sequences])
        assert expected.abs().max() > 1, "weights are too small to show a mistake"
        torch.testing.assert_close(logits, expected, atol=TOLERANCE, rtol=0)
        for sequence, token in zip(sequences, logits.argmax(-1).tolist(), strict=True):
            sequence.ids.append(token)
        paths.append(f"{name} {pipeline.path(name).removeprefix('replay ')}")
    return paths


PATHS = [
    "prefill 47→64",
    "decode 5→8",
    "prefill 9→16",
    "decode 7→8",
    "decode 3→4",
    "decode 1→1",
    "decode 7→8",
]


class PagedEngine:
    """Sequences over pages of one pool."""

    def __init__(self, rows: int, context: int) -> None:
        self._pages = Pages(rows)
        self._context = context

    def start(self, ids: list[int]) -> PagedSequence:
        return PagedSequence(ids=ids)

    def prefill(self, sequences: Sequence[PagedSequence]) -> PrefillBatch:
        self._fit(sequences)
        return pack_prefill(sequences)

    def decode(self, sequences: Sequence[PagedSequence]) -> DecodeBatch:
        self._fit(sequences)
        return pack_decode(sequences, context=self._context)

    def _fit(self, sequences: Sequence[PagedSequence]) -> None:
        for sequence in sequences:
            self._pages.fit(sequence)


def check_every_step(
    package: ModuleType,
    model: Any,
    cuts: Sequence[int],
    device: str,
    *,
    kv_rows: int,
    context: int,
) -> None:
    """A model with one pool and plain stages, cut there: each step gives the unsplit model's."""
    parts = plain_parts(package, kv_rows)
    pipeline = build(
        package, model, parts, cuts=cuts, device=device, kv_rows=kv_rows, context=context
    )
    engine = PagedEngine(kv_rows, context)
    assert check_serving(pipeline, lambda sequence: alone(model, sequence.ids), engine) == PATHS
