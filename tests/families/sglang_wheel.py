"""SGLang's buffer registries, loaded alone: from a wheel, or from where sglang is installed.

Three of its files are executed as they are. What they import beside torch is stood in for: its
environment variables, its parallel state, and the file of forward batches, of which only the
functions that count a rank's rows are taken. Nothing else of the package is imported.
"""

from __future__ import annotations

import ast
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata, util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

VERSION = "0.5.23"
VARIABLE = "PPCGC_SGLANG_WHEEL"
FOLDER = "sglang/srt/model_executor"
COUNTS = (
    "_attn_tp_local_shard_bounds",
    "compute_local_num_token_non_padded",
    "compute_local_num_token_non_padded_cpu",
)

Read = Callable[[str], str]


def find() -> tuple[Read | None, str]:
    """Reads a file of sglang by its path in the wheel; or None, and why."""
    wheel = os.environ.get(VARIABLE)
    if wheel:
        if f"sglang-{VERSION}-" not in Path(wheel).name:
            return None, f"{VARIABLE} is {wheel}, not a wheel of sglang {VERSION}"
        if not Path(wheel).is_file():
            return None, f"{VARIABLE}: no file {wheel}"
        return lambda path: zipfile.ZipFile(wheel).read(path).decode(), ""
    spec = util.find_spec("sglang")
    if spec is None or not spec.submodule_search_locations:
        return None, f"needs sglang {VERSION}: set {VARIABLE} to its wheel, or install it"
    if (version := metadata.version("sglang")) != VERSION:
        return None, f"needs sglang {VERSION}, {version} is installed"
    root = Path(next(iter(spec.submodule_search_locations))).parent
    return lambda path: (root / path).read_text(encoding="utf-8"), ""


class Field(SimpleNamespace):
    """``registry`` and ``buffers`` are its modules, ``parallel`` is what it reads of ranks."""

    registry: Any
    buffers: Any
    parallel: SimpleNamespace

    def ranks(self, *, tp_size: int = 1, tp_rank: int = 0) -> None:
        self.parallel.attn_tp_size, self.parallel.attn_tp_rank = tp_size, tp_rank


@contextmanager
def loaded(read: Read) -> Iterator[Field]:
    """The modules, as long as the block lasts: some of their imports wait for a call."""
    before = {name: module for name, module in sys.modules.items() if _is_its(name)}
    for name in before:
        del sys.modules[name]
    try:
        parallel = SimpleNamespace(attn_tp_size=1, attn_tp_rank=0, num_dp_ranks=1)
        _stand_in("sglang.srt.environ", envs=_Variables())
        _stand_in("sglang.srt.runtime_context", get_parallel=lambda: parallel)
        _stand_in("sglang.srt.utils", is_npu=lambda: False)
        _stand_in(
            "sglang.srt.model_executor.forward_batch_info",
            NgramEmbeddingInfo=SimpleNamespace,
            enable_num_token_non_padded=lambda: True,
            **_counts(read(f"{FOLDER}/forward_batch_info.py"), parallel),
        )
        _execute(read, "input_buffers")
        yield Field(
            registry=_execute(read, "cuda_graph_buffer_registry"),
            buffers=_execute(read, "runner_utils/buffers"),
            parallel=parallel,
        )
    finally:
        for name in [name for name in sys.modules if _is_its(name)]:
            del sys.modules[name]
        sys.modules.update(before)


class _Variables:
    """Every environment variable is off, but for the one that adds the ids of the canary."""

    def __getattr__(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(get=lambda: name == "SGLANG_KV_CANARY_ENABLE_TOKEN_ORACLE")


def _is_its(name: str) -> bool:
    return name.partition(".")[0] == "sglang"


def _stand_in(name: str, **members: object) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module
    return module


def _execute(read: Read, file: str) -> ModuleType:
    path = f"{FOLDER}/{file}.py"
    module = _stand_in(path.removesuffix(".py").replace("/", "."))
    exec(compile(read(path), path, "exec"), vars(module))
    return module


def _counts(text: str, parallel: SimpleNamespace) -> dict[str, Any]:
    """The functions that count a rank's rows, without what else the file imports."""
    tree = ast.parse(text)
    kept = [node for node in tree.body if getattr(node, "name", "") in COUNTS]
    names: dict[str, Any] = {"get_parallel": lambda: parallel}
    future = "from __future__ import annotations\nimport torch\nfrom typing import Tuple\n"
    exec(future, names)
    module = ast.Module(body=[*ast.parse(future).body[:1], *kept], type_ignores=[])
    exec(compile(module, "forward_batch_info.py", "exec"), names)
    return {name: names[name] for name in COUNTS}
