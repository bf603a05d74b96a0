"""SmolLM2-135M as a pipeline of captured stages, against the unsplit model.

    python -m examples.smollm2 [--device cuda] [--dtype bfloat16] [--stages 3] [--random]

A prompt of 47 tokens goes through the bucket of 64, then tokens are decoded greedily through the
decode graphs. Exits with 1 when the tokens differ from ``model.generate`` (float32), when any
replay differs from the eager stages at the same padded shape, or when prompts packed together
get other tokens than alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging

from examples.pipeline import Pipeline, eager_again, path, run
from examples.serving import PAGE, Pages, Sequence, pack_decode, pack_prefill
from ppcgc.hf.loading import Loaded, load_smollm2
from ppcgc.runtime import open_backend

PROMPTS = (
    "Why is the sky blue? Explain it in three or four short sentences, please.",  # 47 tokens
    "What is the capital of France?",
    "Write a short poem about the sea.",
)
RANDOM_LENGTHS = (47, 37, 38)
NEW_TOKENS = 33  # one from the prefill, 32 from decode steps
PACKED_TOKENS = 8
CONTEXT = 128
KV_ROWS = 64 * PAGE


@dataclass(slots=True, kw_only=True)
class Engine:
    """Greedy decoding over a pipeline.

    ``compare`` runs each replayed step once more without its graph and counts those that differ.
    """

    pipeline: Pipeline
    pages: Pages
    stop: int | None
    verbose: bool = False
    compare: bool = False
    compared: int = 0
    differing: int = 0

    def generate(self, prompts: list[list[int]], tokens: int) -> list[list[int]]:
        """Up to ``tokens`` new tokens of each prompt, all prompts packed into one prefill."""
        sequences = [Sequence(ids=list(prompt)) for prompt in prompts]
        running = list(sequences)
        for step in range(tokens):
            for sequence in running:
                self.pages.fit(sequence)
            if step == 0:
                chosen = self._step("prefill", self.pipeline.prefill, pack_prefill(running))
            else:
                batch = pack_decode(running, context=CONTEXT)
                chosen = self._step("decode", self.pipeline.decode, batch)
            for sequence, token in zip(running, chosen, strict=True):
                sequence.ids.append(token)
            running = [s for s in running if s.ids[-1] != self.stop]
            if not running:
                break
        for sequence in sequences:
            self.pages.release(sequence)
        return [s.ids[len(p) :] for s, p in zip(sequences, prompts, strict=True)]

    def _step(self, kind: str, runners: list[Any], batch: Any) -> list[int]:
        logits = run(runners, batch)
        if self.compare and runners[0].last_step.path == "replay":
            replayed = logits.clone()  # the eager step writes to the same address
            self.differing += not torch.equal(replayed, eager_again(runners)[: len(replayed)])
            self.compared += 1
        chosen: list[int] = logits.argmax(-1).tolist()
        if self.verbose:
            print(f"  {kind:8}{path(runners):20}{chosen}")
        return chosen


def main(argv: list[str] | None = None) -> int:
    """Run the example; the exit code."""
    arguments = parse(argv)
    logging.disable_progress_bar()
    dtype = getattr(torch, arguments.dtype)
    loaded = load_smollm2(arguments.cache, random=arguments.random, dtype=dtype)
    print(f"model: {loaded.origin}")
    model = loaded.model.to(arguments.device)
    backend = open_backend(arguments.device)
    start = time.perf_counter()
    pipeline = Pipeline.build(
        model, stages=arguments.stages, backend=backend, kv_rows=KV_ROWS, context=CONTEXT
    )
    ranges = " ".join(str(runner.layers) for runner in pipeline.prefill)
    print(f"stages: {ranges}; captured in {time.perf_counter() - start:.1f} s")
    engine = Engine(
        pipeline=pipeline, pages=Pages(KV_ROWS), stop=model.generation_config.eos_token_id
    )
    good = run_and_compare(engine, loaded)
    for runner in (*pipeline.prefill, *pipeline.decode):
        print()
        print(runner.report())
        runner.close()
    backend.close()
    return 0 if good else 1


def run_and_compare(engine: Engine, loaded: Loaded) -> bool:
    """Every comparison of the example, printed; False when one that must hold does not."""
    prompts = token_ids(loaded)
    print(f"\nprompt of {len(prompts[0])} tokens, {NEW_TOKENS} new tokens:")
    engine.verbose = True
    tokens = engine.generate(prompts[:1], NEW_TOKENS)[0]
    engine.verbose = False
    print(f"text: {text(loaded, tokens)}")

    same = verdict(
        "against model.generate of the unsplit model", tokens == unsplit(loaded.model, prompts[0])
    )
    alone = [engine.generate([prompt], PACKED_TOKENS)[0] for prompt in prompts]
    packed = engine.generate(prompts, PACKED_TOKENS)
    kept = verdict(f"{len(prompts)} prompts packed against each alone", packed == alone)

    engine.compare = True  # only now: an eager step would write the rows that a replay forgot
    again = engine.generate(prompts[:1], NEW_TOKENS) + engine.generate(prompts, PACKED_TOKENS)
    replayed = engine.differing == 0 and again == [tokens, *packed]
    verdict(f"{engine.compared} replays against eager at the same shape, bit by bit", replayed)
    if loaded.model.dtype == torch.float32:
        return same and kept and replayed
    print("in half precision other shapes round otherwise: only the last comparison decides")
    return replayed


def text(loaded: Loaded, tokens: list[int]) -> str:
    if loaded.tokenizer is None:
        return "none, for there is no tokenizer"
    return repr(loaded.tokenizer.decode(tokens, clean_up_tokenization_spaces=False))


def verdict(what: str, equal: bool) -> bool:
    print(f"{what}: {'EQUAL' if equal else 'DIFFERENT'}")
    return equal


def token_ids(loaded: Loaded) -> list[list[int]]:
    """Chat prompts; random ids of such lengths where there is no tokenizer."""
    if loaded.tokenizer is None:
        generator = torch.Generator().manual_seed(0)
        vocab = loaded.model.config.vocab_size
        return [torch.randint(3, vocab, (n,), generator=generator).tolist() for n in RANDOM_LENGTHS]
    chats = [[{"role": "user", "content": prompt}] for prompt in PROMPTS]
    encoded = loaded.tokenizer.apply_chat_template(
        chats, add_generation_prompt=True, return_dict=True
    )
    ids: list[list[int]] = encoded["input_ids"]
    return ids


def unsplit(model: Any, prompt: list[int]) -> list[int]:
    """Greedy tokens of the model as transformers runs it."""
    ids = torch.tensor([prompt], device=model.device)
    out = model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=NEW_TOKENS
    )
    tokens: list[int] = out[0, len(prompt) :].tolist()
    return tokens


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--stages", type=int, default=2)
    parser.add_argument("--random", action="store_true", help="random weights of the same shape")
    parser.add_argument("--cache", type=Path, default=Path(".cache"), help="folder of the weights")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
