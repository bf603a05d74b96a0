"""Is a model that was given the one that its config makes?

Stages are made anew from the class and the config; of the given model they take its tensors.
What was changed in it besides would be lost without a word: an adapter beside a weight, a hook,
another module in the place of the family's. It is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel

from ppcgc.hf.plan import PassThrough
from ppcgc.runtime.errors import BuildError

_MERGE = (
    "merge adapters into the weights (merge_and_unload()), remove parametrizations, and split "
    "the model that then has the modules of its family"
)


def check_model(model: object) -> None:
    """Raise BuildError unless ``model`` is a transformers model itself, and not a wrapper of one.

    Asked of the type: a compiled module has every attribute of what it compiles.
    """
    if issubclass(type(model), PreTrainedModel):
        return
    modules = model.named_modules() if isinstance(model, nn.Module) else ()
    for name, inner in modules:
        if name and issubclass(type(inner), PreTrainedModel):
            raise BuildError(
                f"{type(model).__name__} wraps a {type(inner).__name__}: split that one, which is "
                f"its .{name} (where adapters are in it, merge them first)"
            )
    raise BuildError(
        f"stages are made of a transformers ...ForCausalLM, and not of a {type(model).__name__}"
    )


def check_calls(model: Any) -> None:
    """Raise BuildError where a module of ``model`` does more than its class' forward.

    What transformers and accelerate put there themselves may stay: hooks that collect outputs,
    forwards that move their inputs to the device of the weights.
    """
    for name, module in model.named_modules():
        at = f"{type(model).__name__}: {name or 'the model'} ({type(module).__name__})"
        hooks = [*module._forward_pre_hooks.values(), *module._forward_hooks.values()]
        foreign = [hook for hook in hooks if not _module_of(hook).startswith("transformers.")]
        if foreign:
            raise BuildError(
                f"{at} has forward hooks ({len(foreign)}), and a stage, which is made anew, has "
                "none of them: remove them, or put what they do into the weights or the class"
            )
        if "forward" in vars(module) and not _only_moves_inputs(module):
            raise BuildError(
                f"{at} has a forward of its own in the place of its class': a stage, which is "
                "made anew, runs that of the class. Take it back (`del module.forward`) or put "
                "it into the class"
            )


def _module_of(hook: object) -> str:
    return str(getattr(hook, "__module__", None) or "")


def _only_moves_inputs(module: nn.Module) -> bool:
    """Whether accelerate put the forward there, as it does for a model on several devices."""
    hook = getattr(module, "_hf_hook", None)
    several: Sequence[object] = getattr(hook, "hooks", None) or (hook,)
    return all(type(one).__name__ == "AlignDevicesHook" for one in several)


def check_modules(model: Any, made: Any) -> None:
    """Raise BuildError where a module that a stage has ``made`` is another one in ``model``."""
    given = dict(model.named_modules())
    for name, module in made.named_modules():
        kind = type(given.get(name))
        if not isinstance(module, PassThrough) and kind is not type(module):
            raise BuildError(
                f"{type(model).__name__}: {name} was wrapped or replaced: it is a {_full(kind)}, "
                f"and the config makes a {_full(type(module))}, which is what a stage would run; "
                f"{_MERGE}"
            )


def _full(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def check_tensors(model: Any, made: Sequence[Any]) -> None:
    """Raise BuildError where ``model`` and the stages ``made`` of it have other tensors."""
    given, taken = _names(model), set[str]().union(*map(_names, made))
    if given - taken:
        raise BuildError(
            f"{type(model).__name__}: {len(given - taken)} of its tensors would be in no stage, "
            f"{_some(given - taken)}: the config makes a model without them; {_MERGE}, or say in "
            "the config what makes them"
        )
    if taken - given:
        raise BuildError(
            f"{type(model).__name__} lacks {len(taken - given)} tensors of those that its config "
            f"makes, {_some(taken - given)}; give it them, or say in the config that it has none"
        )


def _names(model: Any) -> set[str]:
    """Of parameters and buffers; a tied one is there by each of its names."""
    parameters = model.named_parameters(remove_duplicate=False)
    buffers = model.named_buffers(remove_duplicate=False)
    return {name for name, _ in (*parameters, *buffers)}


def _some(names: set[str]) -> str:
    return ", ".join(sorted(names)[:3]) + (", ..." if len(names) > 3 else "")


def check_shapes(what: str, made: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> None:
    """Raise BuildError where a tensor that is ``given`` has another shape than the one ``made``."""
    for name, tensor in made.items():
        if given[name].shape != tensor.shape:
            raise BuildError(
                f"{what}: {name} has shape {list(given[name].shape)} and the config makes "
                f"{list(tensor.shape)}; make both the same, in the config (vocab_size and its "
                "kin) or in the weights"
            )
