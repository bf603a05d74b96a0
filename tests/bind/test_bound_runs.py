"""Bound packages in the place of unbound ones: same use, same batches, same bits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from binding_tools import binding_of, bound_package
from family_models import (
    BLOCK_FAMILY,
    CONTEXT,
    KV_ROWS,
    SPARSE_FAMILY,
    block_model,
    scheduled_model,
)
from hf_family import PagedEngine, Pipeline, random_ids
from layered_family import captured, handed_between

from generated import deepseek_v32, kimi_k3

CASES = [
    (kimi_k3, "kimi_k3", block_model, BLOCK_FAMILY, (3,)),
    (deepseek_v32, "deepseek_v32", lambda device: scheduled_model(device, freq=2, offset=1),
     SPARSE_FAMILY, (2,)),
]  # fmt: skip

KEYS = (
    "hidden_size",
    "vocab_size",
    "max_position_embeddings",
    "num_hidden_layers",
    "index_topk",
    "index_topk_freq",
    "index_skip_topk_offset",
    "residual_block",
)


def steps(pipeline: Pipeline) -> list[torch.Tensor]:
    """Everything that stages hand on and give, over prompts and steps of several sizes."""
    engine = PagedEngine(KV_ROWS, CONTEXT)
    found: list[torch.Tensor] = []
    for lengths in ((9, 14, 20), (2, 7), (1,)):
        sequences = [engine.start(ids) for ids in random_ids(lengths)]
        for name, batch in (
            ("prefill", engine.prefill(sequences)),
            ("decode", _with_a_token(engine, sequences)),
        ):
            found.append(pipeline.step(name, batch).clone())
            for boundary in handed_between(pipeline, name, batch):
                found += [boundary[key].clone() for key in boundary]
    return found


def _with_a_token(engine: PagedEngine, sequences: Sequence[Any]) -> Any:
    for sequence in sequences:
        sequence.ids.append(5)
    return engine.decode(sequences)


@pytest.mark.parametrize(("package", "name", "model_of", "layered", "cuts"), CASES)
def test_the_same_bits(
    package: Any, name: str, model_of: Any, layered: Any, cuts: tuple[int, ...], tmp_path: Path
) -> None:
    model = model_of("cpu")
    config = {key: getattr(model.config, key) for key in KEYS if hasattr(model.config, key)}
    binding = binding_of(config, stages=len(cuts) + 1, given={"kv_rows": KV_ROWS})
    bound = bound_package(name, binding, tmp_path)
    assert bound.Dims is not package.Dims
    assert bound.__all__ == package.__all__
    sizes: dict[str, int] = {"kv_rows": KV_ROWS, "context": CONTEXT}
    one = captured(package, model, layered, cuts=cuts, device="cpu", **sizes)
    other = captured(bound, model, layered, cuts=cuts, device="cpu", **sizes)
    free, constant = steps(one), steps(other)
    assert len(free) == len(constant) > 6
    for mine, its in zip(free, constant, strict=True):
        assert torch.equal(mine, its)
    runners = [*one.runners["prefill"], *other.runners["prefill"]]
    assert len({runner.fingerprint for runner in runners}) == 1  # such ranks may be mixed
