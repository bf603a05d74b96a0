"""The model's forward against the keywords that a spec binds."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from ppcgc.runtime.errors import ForwardSignatureError


def check_forward(model: object, keywords: tuple[str, ...], runner: str) -> Callable[..., object]:
    """The callable to call: the model itself, or its forward where it cannot be called.

    Raises ForwardSignatureError unless the forward takes exactly what is bound, by keyword. It
    names every keyword that the forward lacks and every required one that the spec leaves out.
    """
    forward = getattr(model, "forward", model)
    if not callable(forward):
        raise ForwardSignatureError(f"{runner}: the model is a {type(model).__name__}, no callable")
    try:
        parameters = inspect.signature(forward).parameters
    except (TypeError, ValueError):
        raise ForwardSignatureError(
            f"{runner}: the signature of {forward!r} cannot be read; wrap it in a function that "
            f"takes {', '.join(keywords)}"
        ) from None
    kinds = inspect.Parameter
    if any(p.kind is kinds.VAR_KEYWORD for p in parameters.values()):
        lacking: list[str] = []
    else:
        by_keyword = (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
        lacking = [
            word
            for word in keywords
            if word not in parameters or parameters[word].kind not in by_keyword
        ]
    unbound = [
        name
        for name, p in parameters.items()
        if p.default is kinds.empty
        and p.kind not in (kinds.VAR_KEYWORD, kinds.VAR_POSITIONAL)
        and name not in keywords
    ]
    if lacking or unbound:
        name = getattr(forward, "__qualname__", type(model).__name__)
        raise ForwardSignatureError(
            f"{runner}: {name} takes ({', '.join(parameters)})"
            + (f"; it lacks {', '.join(lacking)}, which the spec binds" if lacking else "")
            + (f"; it needs {', '.join(unbound)}, which the spec does not bind" if unbound else "")
            + ". Make forward: in the spec and the model agree"
        )
    return model if callable(model) else forward
