"""The generated runners of ``probe.yaml``, and subjects of them with or without a fault."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from probe_model import ToyDecode, ToyPrefill

from ppcgc.driver import Source, compile_sources
from ppcgc.runtime import Subject, capture, open_backend, verify
from ppcgc.runtime.verification import Verdict
from ppcgc.sources import read_sources

HIDDEN, VOCAB, LONGEST, KV_ROWS, CONTEXT = 8, 24, 16, 64, 6
RESERVED = 3
CONFIG = SimpleNamespace(hidden=HIDDEN, vocab=VOCAB, longest=LONGEST, layers=2)


@cache
def family() -> Any:
    """The generated package, written to a folder of this process and imported."""
    [source] = read_sources([str(Path(__file__).with_name("probe.yaml"))])
    return imported(source, "toy_probe")


def imported(source: Source, name: str, edit: Callable[[str], str] = lambda text: text) -> Any:
    """The package of family ``name``, with an edit of what was generated."""
    compiled = compile_sources([source])
    assert [f.message for f in compiled.findings if f.is_error] == []
    folder = Path(tempfile.mkdtemp(prefix=name))
    for path, text in compiled.files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(edit(text), encoding="utf-8")
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


def build(
    runner: str = "prefill",
    *,
    models: tuple[type[Any], ...] = (),
    stages: int = 2,
    device: str = "cpu",
    dims: Any = None,
    backend: Any = None,
    spare: int = 0,
    made: Any = None,
) -> list[Any]:
    """The runners of all stages, not captured. ``models`` replaces the model of each stage.

    ``spare`` tensors of the state lie behind the one that the model has. ``made`` is another
    package than the probe's.
    """
    made = made or family()
    dims = dims or made.Dims.from_config(CONFIG, kv_rows=KV_ROWS, context=CONTEXT)
    plain = ToyPrefill if runner == "prefill" else ToyDecode
    backend = backend or open_backend(device)
    runners = []
    for number in range(stages):
        kind = models[number] if number < len(models) else plain
        kv = torch.zeros(dims.kv_rows, dims.hidden, device=device)
        model = kind(dims, kv, first=number == 0).to(device).eval()
        model.is_last = number == stages - 1
        place = "Only" if stages == 1 else "First" if number == 0 else "Last"
        runners.append(
            getattr(made, f"{runner.capitalize()}{place}")(
                model=model,
                layers=made.stage_layers(dims, stage=number, of=stages),
                dims=dims,
                state=made.State(kv=[kv, *(torch.zeros_like(kv) for _ in range(spare))]),
                dtype=torch.float32,
                backend=backend,
            )
        )
    return runners


def subject(runners: list[Any], **options: Any) -> Subject:
    maker = prefill_batch if runners[0].runner == "prefill" else decode_batch
    device = runners[0].device
    return Subject(runners=runners, batches=lambda live, seed: maker(live, seed, device), **options)


def captured(runners: list[Any]) -> list[Any]:
    capture(runners)
    return runners


def prefill_batch(live: Any, seed: int, device: Any = "cpu") -> Any:
    if live.tokens < live.requests:
        return None
    generator = torch.Generator().manual_seed(seed)
    share, more = divmod(live.tokens, live.requests)
    lengths = [share + (request < more) for request in range(live.requests)]
    rows = torch.randperm(KV_ROWS - 4, generator=generator)[: live.tokens] + 4
    return SimpleNamespace(
        num_tokens=live.tokens,
        num_requests=live.requests,
        input_ids=torch.randint(1, VOCAB, (live.tokens,), generator=generator),
        positions=torch.cat([torch.arange(length) for length in lengths]),
        slot_mapping=rows,
        cu_seqlens=torch.tensor([0, *accumulate(lengths)], dtype=torch.int32),
        seq_lens=torch.tensor(lengths, dtype=torch.int32),
        weights=torch.rand(live.tokens, generator=generator).to(device),
        bias=torch.rand(HIDDEN, generator=generator).to(device),
        kept=torch.rand(live.tokens, generator=generator).to(device),
        noise=torch.rand(live.tokens, generator=generator).to(device),
    )


def decode_batch(live: Any, seed: int, device: Any = "cpu") -> Any:
    generator = torch.Generator().manual_seed(seed)
    requests = live.requests
    lengths = torch.randint(2, CONTEXT, (requests,), generator=generator)
    rows = torch.randperm(KV_ROWS - 4, generator=generator)[: requests * CONTEXT] + 4
    owned = rows.view(requests, CONTEXT)
    return SimpleNamespace(
        num_requests=requests,
        num_tokens=requests,
        input_ids=torch.randint(1, VOCAB, (requests,), generator=generator),
        slot_mapping=owned[torch.arange(requests), lengths - 1],
        slot_table=torch.where(torch.arange(CONTEXT) < lengths[:, None], owned, 0),
        seq_lens=lengths.to(torch.int32),
    )


def slot_line(name: str, runner: str = "prefill") -> str:
    """``slot positions (probe.yaml:32)``: where a runner's slot stands in the spec."""
    lines = Path(__file__).with_name("probe.yaml").read_text(encoding="utf-8").splitlines()
    start = lines.index(f"  {runner}:")
    at = next(n for n in range(start, len(lines)) if f"{{name: {name}," in lines[n])
    return f"slot {name} (probe.yaml:{at + 1})"


def caught(faulty: Subject, check: str, *texts: str) -> None:
    """The check fails, and one of its findings has all of these texts."""
    result = verify(faulty, checks=[check])[check]
    assert result.verdict is Verdict.FAILED, f"{check} passed: {result.evidence}"
    found = [str(finding) for finding in result.findings]
    assert any(all(text in one for text in texts) for one in found), "\n".join(found)
    assert all(finding.mend for finding in result.findings)
