"""A transformers decoder as a pipeline stage.

The model's own forward stays in charge: modules that a stage does not own are replaced by
stand-ins that pass their first argument through. Rotary embeddings, per-layer masks, embedding
scales and logit scales therefore stay where the family's author put them.

:func:`split` cuts a model that exists, sharing its weights; :func:`build_stage` makes one stage
from a config and the weights that it needs. Both build on the meta device first, so that what a
stage does not own never takes memory.

# Note [a config of its own]
Configs are mutable and models read them while they run: making a second model from one config
with another attention re-routes the first. Each stage has a deep copy.

# Note [ties are the weights']
A config that says "tied" promises what its weights may not keep: where both tensors are there and
differ, transformers leaves them untied, and so does a stage. A tensor that is there under its own
name is taken; only for one that is not there, another of its tie stands in.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence, Set
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from ppcgc.hf.attention import Attention
from ppcgc.hf.base import LayerStage
from ppcgc.hf.given import check_calls, check_model, check_modules, check_shapes, check_tensors
from ppcgc.hf.hook import ATTENTION_NAME, attending
from ppcgc.hf.kernels import Scoring
from ppcgc.hf.kv import KVPool, KVShape, allocate
from ppcgc.hf.plan import (
    PassThrough,
    PipelinePlan,
    check_range,
    check_ranges,
    drop_unowned,
    read_plan,
)
from ppcgc.hf.rotary import check_positions, hold_frequencies
from ppcgc.runtime.errors import BuildError


class HFStage(LayerStage):
    """Layers ``[start_layer, end_layer)`` of a decoder, with what stands before or after them.

    Make runners' modules from it with :mod:`ppcgc.hf.runners`; they share its weights.
    """

    def __init__(
        self, model: Any, plan: PipelinePlan, start: int, end: int, dtype: torch.dtype
    ) -> None:
        super().__init__(start, end, plan.layer_count)
        self.dtype = dtype  # what is computed in; some weights may be wider
        self.hidden_size: int = model.config.get_text_config().hidden_size
        self.model, self.plan = model, plan

    def forward(
        self,
        *,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        positions: Tensor,
        attention: Attention,
        logit_rows: Tensor | None = None,
    ) -> Tensor:
        """Run the stage over flat rows.

        ``input_ids`` and ``positions`` int64 [tokens], ``inputs_embeds`` [tokens, hidden]: ids on
        the first stage, embeds on later ones. Returns hidden states [tokens, hidden]; on the last
        stage logits [tokens, vocab], or [rows, vocab] for ``logit_rows`` (int64 [rows]).
        """
        inputs: dict[str, Any] = {"position_ids": positions[None], "use_cache": False}
        if self.is_first:
            inputs["input_ids"] = _given(input_ids, "input_ids", self)[None]
        else:
            inputs["inputs_embeds"] = _given(inputs_embeds, "inputs_embeds", self)[None]
        with attending(attention):
            if not self.is_last:
                hidden: Tensor = self.model.base_model(**inputs).last_hidden_state
                return hidden[0]
            keep = 0 if logit_rows is None else logit_rows
            logits: Tensor = self.model(**inputs, logits_to_keep=keep).logits
            return logits[0]

    @property
    def sliding_layers(self) -> frozenset[int]:
        """Global ids of the stage's layers that look back no further than a window."""
        types = getattr(self.model.config.get_text_config(), "layer_types", None) or ()
        owned = range(self.start_layer, self.end_layer)
        return frozenset(i for i in owned if i < len(types) and types[i] == "sliding_attention")

    def new_pool(self, rows: int, *, sliding_rows: int | None = None) -> KVPool:
        """A KV cache of ``rows`` rows for this stage, in its dtype and on its device.

        Sliding layers have ``sliding_rows`` rows where that is given. Raises BuildError where a
        layer of the stage never attends (linear attention, say), DimError for less than one row.
        """
        shapes = self.kv_shapes()
        fewer = rows if sliding_rows is None else sliding_rows
        sliding = self.sliding_layers
        return allocate(
            shapes,
            layers=self.layer_count,
            rows={i: fewer if i in sliding else rows for i in shapes},
            dtype=self.dtype,
            device=next(self.parameters()).device,
        )

    def kv_shapes(self) -> dict[int, KVShape]:
        """What each owned layer keeps of a token: asked of the layers, by running one token.

        Raises BuildError where the family cannot be a stage, as far as one token tells.
        """
        device = next(self.parameters()).device
        position = torch.zeros(1, dtype=torch.int64, device=device)
        embeds = torch.zeros(1, self.hidden_size, dtype=self.dtype, device=device)
        recorder = _ShapeRecorder()
        try:
            with torch.no_grad():
                self(
                    input_ids=position,
                    inputs_embeds=embeds,
                    positions=position,
                    attention=recorder,
                )
        except BuildError:
            raise
        except Exception as problem:  # of the family's own code
            raise BuildError(
                f"{type(self.model).__name__}: its forward does not run on layers "
                f"[{self.start_layer}, {self.end_layer}) alone ({type(problem).__name__}: "
                f"{problem}), so the family cannot be cut there"
            ) from problem
        twice = sorted(layer for layer, calls in recorder.calls.items() if calls > 1)
        if twice:
            raise BuildError(
                f"{type(self.model).__name__}: layers {twice} attend more than once in a forward, "
                "and a cache holds the keys and values of one; the family cannot be a stage"
            )
        owned = range(self.start_layer, self.end_layer)
        foreign = sorted(recorder.shapes.keys() - set(owned))
        if foreign:
            raise BuildError(
                f"{type(self.model).__name__}: layers [{self.start_layer}, {self.end_layer}) "
                f"attend under the ids {foreign}, and a cache has one layer for each of its own; "
                "the family cannot be a stage"
            )
        silent = sorted(set(owned) - recorder.shapes.keys())
        if silent:
            raise BuildError(
                f"{type(self.model).__name__}: layers {silent} never call the attention hook, so "
                "packed sequences would mix and their state has no cache; a family with linear "
                "or recurrent layers cannot be a stage"
            )
        return recorder.shapes


def _given(value: Tensor | None, name: str, stage: HFStage) -> Tensor:
    if value is None:
        raise BuildError(
            f"stage [{stage.start_layer}, {stage.end_layer}) of {stage.layer_count} layers needs "
            f"{name} and got None: bind it under `forward` in the spec"
        )
    return value


class _ShapeRecorder:
    """Attention that answers zero and remembers what it was asked."""

    def __init__(self) -> None:
        self.shapes: dict[int, KVShape] = {}
        self.calls: Counter[int] = Counter()

    def attend(
        self, layer_id: int, query: Tensor, keys: Tensor, values: Tensor, scoring: Scoring
    ) -> Tensor:
        self.calls[layer_id] += 1
        self.shapes[layer_id] = KVShape(
            heads=keys.shape[1], key_dim=keys.shape[2], value_dim=values.shape[2]
        )
        return query.new_zeros(query.shape[0], query.shape[1], values.shape[2])


# ---------------------------------------------------------------- making stages


def split(
    model: Any, ranges: Sequence[tuple[int, int]], *, longest: int | None = None
) -> list[HFStage]:
    """Stages of ``model``, one for each half open range, sharing its weights.

    ``longest`` is how many positions the longest request will have, for families that ask: see
    :func:`ppcgc.hf.rotary.check_positions`. The model itself is not changed and stays usable.
    Raises LayerError where the ranges do not cover its layers in order, BuildError where its family
    has no pipeline plan and where the model is not as its config makes it: see
    :mod:`ppcgc.hf.given`.
    """
    check_model(model)
    check_calls(model)
    check_ranges(ranges, read_plan(model).layer_count)
    check_positions(model.config, longest)
    stages = [_on_meta(type(model), model.config, a, b, model.dtype) for a, b in ranges]
    for stage in stages:
        check_modules(model, stage.model)
    check_tensors(model, [stage.model for stage in stages])
    tensors = model.state_dict()
    buffers = dict(model.named_buffers(remove_duplicate=False))
    for stage in stages:
        _fill(stage, tensors, model.device)
        for name, buffer in stage.model.named_buffers():
            buffer.data = buffers[name].clone()  # as the model has them, were it cast since
        hold_frequencies(stage.model)
    return stages


def build_stage(
    config: Any,
    start: int,
    end: int,
    tensors: Mapping[str, Tensor],
    *,
    dtype: torch.dtype,
    device: torch.device | str,
    longest: int | None = None,
) -> HFStage:
    """One stage from a config and (at least) the tensors of :func:`stage_tensor_names`.

    ``tensors`` has the names of the full model's state dict; what the family keeps in float32 stays
    so. ``longest``: see :func:`ppcgc.hf.rotary.check_positions`. Raises BuildError for missing
    tensors and for those of another shape than the config's.
    """
    check_positions(config, longest)
    stage = _on_meta(AutoModelForCausalLM, config, start, end, dtype)
    names = set(_sources(stage, tensors).values())
    _check_complete(stage, names, tensors)
    wide = _kept_in_float32(stage.model, dtype)
    own = {
        name: tensor.to(device=device, dtype=_dtype_of(name, tensor, dtype, wide))
        for name, tensor in tensors.items()
        if name in names
    }
    for name, origin in _ties(stage).items():
        if {name, origin} <= own.keys() and _same_memory(tensors[name], tensors[origin]):
            own[name] = own[origin]  # and not a copy of its own
    _fill(stage, own, torch.device(device))
    hold_frequencies(stage.model)
    return stage


def _check_complete(stage: HFStage, names: Set[str], tensors: Mapping[str, Tensor]) -> None:
    """Raise BuildError where a tensor of ``names`` is missing, with what is there instead."""
    missing = sorted(name for name in names if name not in tensors)
    if not missing:
        return
    module, _, _ = missing[0].rpartition(".")
    instead = sorted(one for one in tensors if one.startswith(f"{module}.") and one not in names)
    hint = ""
    if instead:
        hint = f" ({instead[0]} is there: a module was wrapped or replaced, merge adapters first)"
    raise BuildError(
        f"stage [{stage.start_layer}, {stage.end_layer}): {len(missing)} tensors are missing, "
        f"{missing[0]} for one{hint}; stage_tensor_names() lists what it needs"
    )


def _kept_in_float32(model: Any, dtype: torch.dtype) -> tuple[str, ...]:
    """Ends of the names of weights that the family keeps wider than ``dtype``, as routers are.

    As transformers itself decides it where it loads a whole model.
    """
    wide: list[str] = []
    if dtype in (torch.float16, torch.bfloat16):
        wide += getattr(model, "_keep_in_fp32_modules_strict", None) or ()
    if dtype is torch.float16:
        wide += getattr(model, "_keep_in_fp32_modules", None) or ()
    return tuple(wide)


def _dtype_of(
    name: str, tensor: Tensor, dtype: torch.dtype, wide: tuple[str, ...]
) -> torch.dtype | None:
    """The dtype of a stage's own copy of a tensor; None leaves it as it is."""
    if not tensor.is_floating_point():
        return None
    kept = any(re.search(rf"(^|\.){re.escape(part)}($|\.)", name) for part in wide)
    return torch.float32 if kept else dtype


def stage_tensor_names(
    config: Any, start: int, end: int, available: Container[str] | None = None
) -> list[str]:
    """Which tensors of the full model's state dict a stage needs.

    ``available``: the names that the weights have. Without them the config is believed about ties,
    and a head that has a tensor of its own all the same would not get it.
    """
    stage = _on_meta(AutoModelForCausalLM, config, start, end, torch.float32)
    return sorted(set(_sources(stage, available).values()))


def _on_meta(factory: Any, config: Any, start: int, end: int, dtype: torch.dtype) -> HFStage:
    """The stage without memory: every parameter that it owns, on the meta device."""
    own_config = copy.deepcopy(config)  # Note [a config of its own]
    for part in (own_config, own_config.get_text_config()):
        part.return_dict = True  # a stage takes results by their names
    make = factory.from_config if factory is AutoModelForCausalLM else factory._from_config
    with torch.device("meta"):
        model = make(own_config, attn_implementation=ATTENTION_NAME, dtype=dtype)
    plan = read_plan(model)
    check_range(start, end, plan.layer_count)
    drop_unowned(model, plan, start, end)
    return HFStage(model.eval(), plan, start, end, dtype)


def _sources(stage: HFStage, available: Container[str] | None) -> dict[str, str]:
    """Name in the stage -> name among the ``available``: see Note [ties are the weights'].

    Where neither is there, or nobody says what is, it is the name that the config ties to.
    """
    ties = _ties(stage)

    def source(name: str) -> str:
        origin: str = ties.get(name, name)
        tied = [name, origin, *(one for one, to in ties.items() if to == origin)]
        return next((one for one in tied if available is not None and one in available), origin)

    return {name: source(name) for name in stage.model.state_dict()}


def _ties(stage: HFStage) -> Mapping[str, str]:
    """Name of a tensor -> name of the one that the config ties it to, in the full model."""
    return getattr(stage.model, "all_tied_weights_keys", None) or {}


def _same_memory(one: Tensor, other: Tensor) -> bool:
    mine, its = ((t.data_ptr(), t.dtype, t.shape, t.stride()) for t in (one, other))
    return mine == its


def _initialise(model: Any, module: torch.nn.Module) -> None:
    """The model's own initialisation of a module. Raises BuildError where it wants another."""
    try:
        model._init_weights(module)
    except Exception as problem:  # of the family's own code
        raise BuildError(
            f"{type(model).__name__} does not initialise its {type(module).__name__} "
            f"({type(problem).__name__}: {problem}); the family cannot be a stage"
        ) from problem


def _fill(stage: HFStage, tensors: Mapping[str, Tensor], device: torch.device) -> None:
    """Give the stage memory: buffers as the model's own initialisation makes them, then weights.

    The initialisation writes weights too, so it runs while those are still on the meta device.
    """
    model = stage.model
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False):
            module._buffers[name] = torch.empty_like(buffer, device=device)
        if not isinstance(module, PassThrough):
            _initialise(model, module)
    sources = _sources(stage, tensors)
    state = {name: tensors[source].detach() for name, source in sources.items()}
    check_shapes(f"stage [{stage.start_layer}, {stage.end_layer})", model.state_dict(), state)
    model.load_state_dict(state, strict=True, assign=True)
    model.requires_grad_(False)
