"""What the pages for people show: specs, findings, code and links are what there is now."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from jsonschema import Draft202012Validator
from torch import nn

import ppcgc
from ppcgc.cli import main
from ppcgc.runtime import verify
from ppcgc.runtime.crossover import BucketTimes, Crossover, least_live
from ppcgc.schema_file import load_schema

ROOT = Path(ppcgc.__file__).parent.parent
# rules.md and cases.md are written by `python -m ppcgc.docs`; the cases of tests/rules prove them
WRITTEN = ("rules.md", "cases.md")
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in WRITTEN),
]
SPEC_LANGUAGE = ROOT / "docs" / "spec-language.md"
RUNNERS = ROOT / "docs" / "runners.md"
PIPELINE = ROOT / "docs" / "pipeline.md"
VERIFY = ROOT / "docs" / "verify.md"
VALIDATED = "$ ppcgc validate "


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """A block of code of a page."""

    language: str
    text: str


def fences(page: str) -> list[Fence]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page, flags=re.S | re.M)
    return [Fence(language=language, text=text) for language, text in found]


def examples(language: str, *pages: Path) -> Iterator[str]:
    for page in pages:
        for fence in fences(page.read_text(encoding="utf-8")):
            if fence.language == language:
                yield fence.text


def is_complete(fence: Fence) -> bool:
    return fence.language == "yaml" and re.search(r"^family:", fence.text, flags=re.M) is not None


def ran(*argv: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return main(list(argv), out, err), out.getvalue(), err.getvalue()


def wrong_specs(page: str, folder: Path) -> list[str]:
    """What whole specs of a page print that the page does not show.

    A spec that shall be refused is followed by `$ ppcgc validate NAME` and all that it prints;
    every other one has no finding at all, no warning either.
    """
    wrong = []
    for block, after in pairwise([*fences(page), Fence(language="", text="")]):
        if not is_complete(block):
            continue
        command, _, shown = after.text.partition("\n")
        named = command.startswith(VALIDATED)
        file = folder / (command.removeprefix(VALIDATED) if named else "example.yaml")
        file.write_text(block.text, encoding="utf-8")
        _, printed, _ = ran("validate", file.name)
        if printed.rstrip() != (shown.rstrip() if named else ""):
            wrong.append(printed or f"{file.name} is no bad example")
    return wrong


# ---------------------------------------------------------------- whole specs


def test_whole_specs_of_the_pages_are_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pages = [page.read_text(encoding="utf-8") for page in PAGES]
    assert [wrong for page in pages for wrong in wrong_specs(page, tmp_path)] == []
    assert sum(is_complete(fence) for page in pages for fence in fences(page)) >= 2


GOOD = "```yaml\n" + (ROOT / "specs" / "llama.yaml").read_text(encoding="utf-8") + "```\n"
BAD = GOOD.replace("of: vocab,", "of: words,", 1)


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (GOOD, []),
        (BAD, ["unknown dim, axis or state 'words'"]),
        (f"{BAD}\n```\n{VALIDATED}bad.yaml\nerror[PPC999] other\n```\n", ["PPC123"]),
        (f"{GOOD}\n```\n{VALIDATED}bad.yaml\nerror[PPC999] other\n```\n", ["is no bad example"]),
    ],
)
def test_the_check_of_whole_specs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = wrong_specs(page, tmp_path)
    assert len(wrong) == len(words)
    assert all(word in text for word, text in zip(words, wrong, strict=True))


# ---------------------------------------------------------------- parts of specs


def form_errors(part: Any) -> list[str]:
    """What the schema says against a part of a spec: top-level words, slots or boundary keys."""
    schema = load_schema()
    whole = {key: schema[key] for key in ("properties", "additionalProperties", "$defs")}
    if isinstance(part, dict):
        return [error.message for error in Draft202012Validator(whole).iter_errors(part)]
    errors = []
    for entry in part:
        form = "slot" if "source" in entry else "boundary_key"
        one = {"$ref": f"#/$defs/{form}", "$defs": schema["$defs"]}
        errors += [error.message for error in Draft202012Validator(one).iter_errors(entry)]
    return errors


def test_parts_of_specs_have_the_form_of_the_schema() -> None:
    parts = [part for part in map(yaml.safe_load, examples("yaml", *PAGES)) if part is not None]
    assert {type(part) for part in parts} == {dict, list}
    assert [error for part in parts for error in form_errors(part)] == []
    assert form_errors([{"name": "x", "axis": "tokens", "source": "batch.x", "paddings": "zero"}])
    assert form_errors({"hooks": {"pages": {"at": "start"}}})


def words_of(schema: Any) -> Iterator[str]:
    """Every key and every word of a list of words that the schema knows, dtypes left out."""
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            yield from properties
        for word in schema.get("enum", ()):
            if isinstance(word, str):
                yield word
        for key, value in schema.items():
            if key != "dtype":
                yield from words_of(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from words_of(value)


def test_the_page_of_the_language_has_every_word() -> None:
    page = SPEC_LANGUAGE.read_text(encoding="utf-8")
    code = " ".join(re.findall(r"^```.*?^```$|`[^`]+`", page, flags=re.S | re.M))
    known = set(words_of(load_schema()))
    assert {"consumer_skips_negative", "symmetric", "is_false"} <= known
    assert known - set(re.findall(r"[$\w]+", code)) == set()


def test_the_table_of_slots_has_a_row_for_every_word() -> None:
    page = SPEC_LANGUAGE.read_text(encoding="utf-8")
    table = page.partition("## Slots")[2].partition("\n\n`compute`")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert {word for row in rows for word in re.findall(r"`(\w+)`", row)} == set(
        load_schema()["$defs"]["slot"]["properties"]
    )


# ---------------------------------------------------------------- the README


def readme() -> list[Fence]:
    return fences((ROOT / "README.md").read_text(encoding="utf-8"))


def test_the_slot_and_the_code_of_the_readme_are_those_of_llama() -> None:
    (slot,) = yaml.safe_load(next(f.text for f in readme() if f.language == "yaml"))
    spec = yaml.safe_load((ROOT / "specs" / "llama.yaml").read_text(encoding="utf-8"))
    assert slot in spec["runners"]["prefill"]["slots"]
    shown = next(fence.text for fence in readme() if fence.language == "python")
    made = (ROOT / "generated" / "llama" / "prefill_first.py").read_text(encoding="utf-8")
    for part in shown.split("    ...\n"):
        assert part in made


def test_the_finding_of_the_readme_is_what_that_mistake_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "specs" / "llama.yaml").read_text(encoding="utf-8")
    (tmp_path / "bad.yaml").write_text(text.replace("repeat_last", "zero"), encoding="utf-8")
    command, shown = next(
        fence.text.split("\n", 1) for fence in readme() if fence.text.startswith(VALIDATED)
    )
    code, printed, _ = ran("validate", command.removeprefix(VALIDATED))
    assert (code, printed.rstrip()) == (1, shown.rstrip())


def output_of(program: str, folder: Path) -> list[str]:
    """The lines that a program prints, run in a folder."""
    return printed_by([sys.executable, "-c", program], folder)


def printed_by(command: list[str], folder: Path) -> list[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        command,
        capture_output=True,
        cwd=folder,
        env=environment,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# what a reader of the README has already: a model of two stages, its caches, a batch
GIVEN = """\
from types import SimpleNamespace
import torch
from examples.models.residual_llama import ResidualLlamaStage
from examples.verify_llama import prefill_batch, tiny_model

model = tiny_model("cpu").to(torch.bfloat16)
config = model.config
parts = [
    ResidualLlamaStage.from_hf(config, model.state_dict(), start, start + 2) for start in (0, 2)
]
pools = [part.new_pool(4096) for part in parts]
stage0, stage1 = (part.prefill(pool) for part, pool in zip(parts, pools))
kv_tensors_0, kv_tensors_1 = (pool.tensors() for pool in pools)
batch = prefill_batch(SimpleNamespace(tokens=47, requests=3), seed=0)
"""


def test_the_program_of_the_readme_runs() -> None:
    program = next(f.text for f in readme() if "open_backend" in f.text).replace('"cuda"', '"cpu"')
    last_step, title, *_ = output_of(GIVEN + program, ROOT)
    assert last_step == "replay 47→64"
    assert title.startswith("llama.prefill, last stage, layers [2, 4) of 4 on cpu")


# ---------------------------------------------------------------- docs/runners.md


def test_the_program_of_runners_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (spec,) = examples("yaml", RUNNERS)
    Path("tiny.yaml").write_text(spec, encoding="utf-8")
    assert ran("generate", "tiny.yaml")[0] == 0
    program = "\n".join(examples("python", RUNNERS))
    printed = output_of(program, tmp_path)
    said = re.findall(r"^ *print\(.*\)  # (.+)$", program, flags=re.M)
    assert len(said) == len(re.findall(r"\bprint\(", program)) - 1  # the report, the last one
    assert printed[: len(said)] == said
    title, head, *rows = printed[len(said) :]
    assert title.startswith("tiny.prefill, last stage, layers [2, 4) of 4 on cpu")
    assert head.split()[:4] == ["bucket", "graph", "operations", "replays"]
    assert rows[2] == "eager steps: 1 (asked to run eagerly), 1 (over capacity)"


def test_the_names_of_runners_are_those_that_are_generated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (spec,) = examples("yaml", RUNNERS)
    Path("tiny.yaml").write_text(spec, encoding="utf-8")
    assert ran("generate", "tiny.yaml")[0] == 0
    made = Path("generated/tiny")
    page = RUNNERS.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:prefill|decode)_\w+\.py)`", page))
    assert {"decode_first.py", "decode_later.py", "prefill_last.py"} <= named
    assert named <= {path.name for path in made.iterdir()}
    exported = set(re.findall(r'^    "(\w+)",$', (made / "__init__.py").read_text(), flags=re.M))
    classes = set(re.findall(r"`(?:tiny\.)?((?:Prefill|Decode)\w+)`", page))
    assert classes - exported == {"PrefillLaterBatch"}  # the page says that it is not there


def test_a_calibration_says_why_a_faster_replay_stays_out() -> None:
    def line(replay: float) -> str:
        least = least_live(replay, [(4, 0.010)])
        one = BucketTimes(padded=(4,), replay=replay, eager=((4, 0.010),), least=least)
        return str(Crossover(runner="a.b", axis="tokens", column=0, buckets=(one,)))

    assert line(0.00995).endswith(
        "4: replay 9.950 ms, eager 10.000 at 4: always eager, a replay has to win by 1 %"
    )
    assert line(0.0101).endswith(": always eager")
    assert line(0.0098).endswith(": always replays")
    assert "1 %" in RUNNERS.read_text(encoding="utf-8")


# ---------------------------------------------------------------- docs/pipeline.md


def greedy(steps: int) -> list[int]:
    """The tokens of the page's model without stages, from its words and not from its code."""
    torch.manual_seed(0)
    embed, layers = nn.Embedding(32, 8), [nn.Linear(8, 8) for _ in range(4)]
    ids = [1, 2, 3]
    for _ in range(steps):
        hidden = embed(torch.tensor(ids))
        for layer in layers:
            hidden = torch.tanh(layer(hidden))
        ids.append(int((hidden[-1] @ embed.weight.T).argmax()))
    return ids


def test_the_program_of_pipeline_serves_two_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (spec,), (program,) = examples("yaml", PIPELINE), examples("python", PIPELINE)
    Path("chain.yaml").write_text(spec, encoding="utf-8")
    Path("serve.py").write_text(program, encoding="utf-8")
    assert ran("generate", "chain.yaml")[0] == 0
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "serve.py")
    (line,) = printed_by([sys.executable, *launch], tmp_path)
    assert line == f"{greedy(5)} (('step', 'replay 7→16', True),)"


# ---------------------------------------------------------------- docs/verify.md


def test_the_factory_of_verify_is_whole() -> None:
    (program,) = examples("python", VERIFY)
    names: dict[str, Any] = {}
    exec(program, names)
    prefill, decode = names["subjects"](stages=3)
    assert [runner.layers.end for runner in prefill.runners] == [2, 3, 4]
    assert decode.unsplit.runner == "decode"
    result = verify(decode, checks=["parity"], quick=True)
    assert result.ok, result
    with pytest.raises(FrozenInstanceError):
        prefill.unsplit = None


# ---------------------------------------------------------------- links


def anchors(page: str) -> set[str]:
    """The names that headings have as targets of links, and those that are written out."""
    titles = re.findall(r"^#+ (.+)$", page, flags=re.M)
    names = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    return names | set(re.findall(r'<a id="([^"]+)">', page))


def dead_links(page: Path) -> list[str]:
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith("http"):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if not file.exists() or (anchor and anchor not in anchors(file.read_text("utf-8"))):
            dead.append(f"{page.name}: {target}")
    return dead


def test_links_lead_somewhere(tmp_path: Path) -> None:
    pages = [*PAGES, *(ROOT / "docs" / name for name in WRITTEN)]
    assert [dead for page in pages for dead in dead_links(page)] == []
    (tmp_path / "a.md").write_text("# One\n[b](b.md) [c](#two) [d](#one) [e](https://x.y)\n")
    assert dead_links(tmp_path / "a.md") == ["a.md: b.md", "a.md: #two"]


def test_every_page_is_in_the_readme() -> None:
    listed = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES[1:] if f"- `docs/{page.name}`:" not in listed] == []
