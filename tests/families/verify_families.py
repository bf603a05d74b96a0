"""Subjects for `ppcgc verify`: every family of ``specs/`` over its small model.

    PYTHONPATH=tests/families ppcgc verify verify_families:gemma3 --stages 3

Models, stages and engines are those of the families' own tests. Pipelines come captured and fed,
as they serve.

Note [experts group rows]
    Rows of all requests that go to one expert are multiplied together, padded ones too, so that
    other rows may change the last bits of a result. Families with experts state EXPERTS as their
    padding tolerance; a row that really leaks changes the first digits, as the faults planted in
    ``test_verify_families`` do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import test_bart
import test_deepseek_v3
import test_flashinfer
import test_qwen3_moe
import test_qwen3_next
import test_qwen3_vl
import test_sglang_mirror
import test_sliding_window
import torch
from family_models import (
    BLOCK_FAMILY,
    CONTEXT,
    HYPER_FAMILY,
    KV_ROWS,
    SPARSE_FAMILY,
    SSM_ROWS,
    Layered,
    block_model,
    hybrid_model,
    hyper_model,
    scheduled_model,
    sparse_model,
)
from hf_family import PagedEngine, Pipeline, build, plain_parts, small_model
from layered_family import StatefulEngine, captured
from paged_family import KV_ROWS as PAGED_ROWS
from paged_family import build as build_paged
from paged_family import decode_batch, llama_config, prefill_batch
from planned_library import PlannedLibrary
from sglang_pair import Setting, batch_of
from sglang_pair import build as build_mirror
from vision_serving import ImageSequence, random_image

from examples import verify_llama
from examples.serving import PAGE, Pages
from examples.serving import Sequence as PagedSequence
from generated import deepseek_v3 as deepseek_v3_runners
from generated import deepseek_v4 as deepseek_v4_runners
from generated import deepseek_v32 as deepseek_v32_runners
from generated import glm_dsa as glm_dsa_runners
from generated import kimi_k3 as kimi_k3_runners
from generated import llama_parallel as llama_parallel_runners
from generated import qwen3_moe as qwen3_moe_runners
from generated import sglang_decode as sglang_decode_runners
from generated import sglang_prefill as sglang_prefill_runners
from ppcgc.runtime import Subject
from ppcgc.runtime.errors import BuildError

EXPERTS = 1e-5  # relative, in float32; see Note [experts group rows]

llama, llama_hf = verify_llama.llama, verify_llama.llama_hf


def llama_parallel(*, device: str = "cpu", stages: int = 2) -> list[Subject]:
    """A rank that is alone in its groups: its part is all rows, its list its own count."""

    def listed(make: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
        def batch(live: Any, seed: int) -> Any:
            made = make(live, seed)
            if made is not None:
                made.all_requests = [made.num_requests]
                made.all_tokens = [getattr(made, "num_tokens", made.num_requests)]
            return made

        return batch

    prefill, decode = verify_llama.residual_runners(llama_parallel_runners, device, stages)
    return [
        Subject(runners=prefill, batches=listed(verify_llama.prefill_batch)),
        Subject(runners=decode, batches=listed(verify_llama.decode_batch)),
    ]


# ---------------------------------------------------------------- batches


def ids_of(live: Any, seed: int) -> list[list[int]]:
    """Prompts that share ``live.tokens`` as evenly as they can; none where one would be empty."""
    if live.tokens < live.requests:
        return []
    generator = torch.Generator().manual_seed(seed)
    share, more = divmod(live.tokens, live.requests)
    lengths = [share + (request < more) for request in range(live.requests)]
    return [torch.randint(2, 90, (n,), generator=generator).tolist() for n in lengths]


def histories_of(live: Any, seed: int, longest: int = CONTEXT) -> list[list[int]]:
    """A sequence of 2 to ``longest`` tokens for each request of a decode step."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, longest + 1, (live.requests,), generator=generator).tolist()
    return [torch.randint(2, 90, (n,), generator=generator).tolist() for n in lengths]


def both(
    pipeline: Pipeline,
    sequences: Callable[[Sequence[list[int]]], tuple[Any, Sequence[Any]]],
    *,
    content: str = "input_ids",
    most_requests: int = 16,
    **options: Any,
) -> list[Subject]:
    """Prefill and decode. ``sequences`` starts ids in an engine of their own: that and them."""

    def prefill(live: Any, seed: int) -> Any:
        ids = ids_of(live, seed)
        if not ids or live.requests > most_requests:
            return None
        engine, started = sequences(ids)
        return engine.prefill(started)

    def decode(live: Any, seed: int) -> Any:
        engine, started = sequences(histories_of(live, seed))
        return engine.decode(started)

    runners = pipeline.runners
    return [
        Subject(runners=runners["prefill"], batches=prefill, content=content, **options),
        Subject(runners=runners["decode"], batches=decode, **options),
    ]


def started(engine_of: Callable[[], Any]) -> Callable[[Sequence[list[int]]], Any]:
    """Each batch from an engine of its own: batches of verification know nothing of each other."""

    def start(ids: Sequence[list[int]]) -> tuple[Any, list[Any]]:
        engine = engine_of()
        return engine, [engine.start(each) for each in ids]

    return start


paged = started(lambda: PagedEngine(KV_ROWS, CONTEXT))


def cuts_of(layers: int, stages: int) -> list[int]:
    """Where a pipeline is cut into even stages."""
    return [layers * stage // stages for stage in range(1, stages)]


# ---------------------------------------------------------------- stages of transformers' models


def qwen3_moe(*, device: str = "cpu", stages: int = 2) -> list[Subject]:
    """See Note [experts group rows]."""
    model = test_qwen3_moe.experts_model(device)
    return both(plain(qwen3_moe_runners, model, stages, device), paged, padding_tolerance=EXPERTS)


def deepseek_v3(*, device: str = "cpu", stages: int = 2) -> list[Subject]:
    """See Note [experts group rows]."""
    model = test_deepseek_v3.latent_model(device)
    return both(plain(deepseek_v3_runners, model, stages, device), paged, padding_tolerance=EXPERTS)


def plain(package: Any, model: Any, stages: int, device: str) -> Pipeline:
    """Stages whose layers share one pool."""
    return build(
        package,
        model,
        plain_parts(package, KV_ROWS),
        cuts=cuts_of(model.config.num_hidden_layers, stages),
        device=device,
        kv_rows=KV_ROWS,
        context=CONTEXT,
    )


def gemma3(*, device: str = "cpu", stages: int = 2) -> list[Subject]:
    return sliding("gemma3", device, stages)


def gpt_oss(*, device: str = "cpu", stages: int = 2) -> list[Subject]:
    """See Note [experts group rows]."""
    return sliding("gpt_oss", device, stages, padding_tolerance=EXPERTS)


def sliding(family: str, device: str, stages: int, **options: Any) -> list[Subject]:
    model = test_sliding_window.sliding_model(family, device)
    cuts = cuts_of(model.config.num_hidden_layers, stages)
    pipeline = test_sliding_window.pipeline_of(family, model, cuts=cuts, device=device)
    return both(pipeline, started(test_sliding_window.engine), **options)


def bart(*, device: str = "cpu", stages: int = 2) -> list[Subject]:
    """The encoder's rows are the state's random ones: a batch says which and how many."""
    model = test_bart.small_bart(device)
    cuts = cuts_of(model.config.decoder_layers, stages)
    pipeline, _ = test_bart.pipeline_of(model, cuts, device)

    def sequences(ids: Sequence[list[int]]) -> tuple[Any, list[Any]]:
        lengths = [1 + (len(each) * 5 + number) % 12 for number, each in enumerate(ids)]
        rows = [torch.empty(length, 0) for length in lengths]
        made = [
            test_bart.Translation(ids=each, states=rows[number], at=1 + number * test_bart.SOURCE)
            for number, each in enumerate(ids)
        ]
        return test_bart.Translator([], device), made

    return both(pipeline, sequences)


def qwen3_vl(*, device: str = "cpu", stages: int = 2) -> list[Subject]:
    """Prompts of eight tokens and more have an image; the caller composes their embeddings."""
    model = test_qwen3_vl.vision_model(device)
    layers = model.config.text_config.num_hidden_layers
    pipeline = test_qwen3_vl.pipeline_of(model, cuts_of(layers, stages), device)

    def sequences(ids: Sequence[list[int]]) -> tuple[Any, list[Any]]:
        image = random_image(1, 2, 2, hidden=test_qwen3_vl.HIDDEN, layers=test_qwen3_vl.DEEPSTACK)
        made = [ImageSequence(ids=each, image=image if len(each) >= 8 else None) for each in ids]
        engine = test_qwen3_vl.engine_of(model)
        return engine, made

    def compose(_: Any, step: Any, batch: Any) -> None:
        embeds = getattr(step.slots, "inputs_embeds", None)
        if embeds is not None:
            embeds[: batch.num_tokens].copy_(batch.embeds)

    return both(pipeline, sequences, content="embeds", before_finish=compose)


# ---------------------------------------------------------------- stages made for the tests


def deepseek_v32(*, device: str = "cpu", stages: int = 2) -> list[Subject]:
    """Every second layer reuses the positions of the one before."""
    model = scheduled_model(device, freq=2, offset=1)
    return both(
        layered(deepseek_v32_runners, model, SPARSE_FAMILY, [1, 3, 2], stages, device), paged
    )


def glm_dsa(*, device: str = "cpu", stages: int = 2) -> list[Subject]:
    model = sparse_model(device, ("full", "shared", "shared", "full"))
    return both(layered(glm_dsa_runners, model, SPARSE_FAMILY, [1, 2, 3], stages, device), paged)


def deepseek_v4(*, device: str = "cpu", stages: int = 2) -> list[Subject]:
    """See Note [experts group rows]."""
    model = hyper_model(device, "hrhr")
    pipeline = layered(deepseek_v4_runners, model, HYPER_FAMILY, [2, 1, 3], stages, device)
    return both(pipeline, paged, padding_tolerance=EXPERTS)


def kimi_k3(*, device: str = "cpu", stages: int = 2) -> list[Subject]:
    model = block_model(device)
    return both(layered(kimi_k3_runners, model, BLOCK_FAMILY, [3, 1, 2, 4], stages, device), paged)


def layered(
    package: Any, model: Any, family: Layered, cuts: Sequence[int], stages: int, device: str
) -> Pipeline:
    """Cut before the layers that come first in ``cuts``, where something crosses."""
    return captured(
        package,
        model,
        family,
        cuts=sorted(cuts[: stages - 1]),
        device=device,
        kv_rows=KV_ROWS,
        context=CONTEXT,
    )


def qwen3_next(*, device: str = "cpu", stages: int = 2) -> list[Subject]:
    model = hybrid_model(device, "rara")
    pipeline = test_qwen3_next.pipeline_of(model, cuts_of(4, stages), device)
    return both(
        pipeline, started(lambda: StatefulEngine(KV_ROWS, CONTEXT)), most_requests=SSM_ROWS - 1
    )


# ---------------------------------------------------------------- planned attention


def llama_flashinfer(*, device: str = "cpu", stages: int = 2) -> list[Subject]:
    """With the stand-in library on the CPU and with FlashInfer on CUDA."""
    sizes = test_flashinfer.SIZES | {"max_position_embeddings": PAGED_ROWS}
    model = small_model(llama_config(**sizes), device)
    library = PlannedLibrary() if device == "cpu" else None
    made = build_paged(
        model,
        library,
        stages=stages,
        device=device,
        plan_bytes=test_flashinfer.PLAN_BYTES,
        dtype=torch.bfloat16,
    )

    def prefill(live: Any, seed: int) -> Any:
        return batch(ids_of(live, seed), prefill_batch)

    def decode(live: Any, seed: int) -> Any:
        return batch(histories_of(live, seed, longest=4 * PAGE), decode_batch)

    def batch(ids: Sequence[list[int]], make: Callable[..., Any]) -> Any:
        """With the pages that the sequences need, however many were asked for."""
        sequences, pages = [PagedSequence(ids=each) for each in ids], Pages(PAGED_ROWS)
        for sequence in sequences:
            pages.fit(sequence)
        return make(sequences) if sequences else None

    return [
        Subject(runners=made.prefill, batches=prefill, owned=rows_of_pages),
        Subject(runners=made.decode, batches=decode, owned=rows_of_pages),
    ]


def rows_of_pages(batch: Any, state: str) -> Iterable[int]:
    """Rows that hold the tokens of live requests."""
    ends = batch.page_indptr
    for (first, last), filled in zip(pairwise(ends), batch.last_page_len, strict=True):
        for page in batch.page_indices[first : last - 1]:
            yield from range(page * PAGE, (page + 1) * PAGE)
        page = batch.page_indices[last - 1]
        yield from range(page * PAGE, page * PAGE + filled)


# ---------------------------------------------------------------- the mirror of SGLang's buffers


def sglang_prefill(*, device: str = "cpu") -> list[Subject]:
    """A subject for each setting of the server; two stages always."""
    return [
        mirror(sglang_prefill_runners, setting, device) for setting in test_sglang_mirror.PREFILL
    ]


def sglang_decode(*, device: str = "cpu") -> list[Subject]:
    """A subject for each setting of the server; two stages always."""
    return [mirror(sglang_decode_runners, setting, device) for setting in test_sglang_mirror.DECODE]


def mirror(package: Any, setting: Setting, device: str) -> Subject:
    if device != "cpu":
        raise BuildError("the model of the mirror runs on the CPU")

    def make(live: Any, seed: int) -> Any:
        if setting.kind == "decode" and live.tokens != live.requests:
            return None
        return batch_of(setting, live.requests, live.tokens, seed)

    runners = [build_mirror(package, setting, first=first) for first in (True, False)]
    # the mirror's model reads positions alone
    return Subject(runners=runners, batches=make, content="positions")
