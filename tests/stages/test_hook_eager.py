"""`eager_when: {reason: hook.x}`: the hook of the build says which steps run eagerly."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from spec_tools import SPECS, import_text

from ppcgc import runtime as rt

HIDDEN = 3


class Fill:
    """Fills its slot, and wants steps of three tokens eager."""

    def load(self, slots: Any, batch: Any, live: Any) -> None:
        slots.hooked[: live.tokens] = 3.0

    def eager(self, batch: Any, live: Any) -> bool:
        return bool(live.tokens == 3)


def first_of(*, ids: Any, view: Any, boundary: None) -> Any:
    return (ids + view.hooked)[:, None].expand(-1, HIDDEN)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Any:
    text = (SPECS / "keeping.yaml").read_text(encoding="utf-8")
    text = text.replace("family: keeping", "family: hook_eager").replace(
        "    hooks:\n", "    eager_when: {of_three: hook.fill}\n    hooks:\n"
    )
    made = import_text(text, tmp_path_factory.mktemp("hook_eager"), "hook_eager.yaml")
    dims = made.Dims.from_config({"hidden": HIDDEN})
    built = made.OneFirst(
        model=first_of,
        layers=made.stage_layers(dims, stage=0, of=2),
        dims=dims,
        dtype=torch.float32,
        backend=rt.open_backend("cpu"),
        hooks=SimpleNamespace(fill=Fill()),
    )
    rt.capture([built])
    return built


@pytest.mark.parametrize(("tokens", "path"), [(2, "replay 2→4"), (3, "eager 3 (not eligible)")])
def test_the_hook_decides(runner: Any, tokens: int, path: str) -> None:
    rows = torch.ones(tokens)
    batch = SimpleNamespace(
        num_tokens=tokens, ids=torch.arange(tokens), plain=rows, kept=rows, noise=rows
    )
    step = runner.begin(batch)
    step.slots.given[:tokens] = 1.0
    out = runner.finish(step)
    assert str(runner.last_step) == path
    assert runner.last_step.choice.detail == ("of_three" if tokens == 3 else "")
    assert out.hidden_states[:, 0].tolist() == [row + 3.0 for row in range(tokens)]
