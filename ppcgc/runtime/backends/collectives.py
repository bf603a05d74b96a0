"""Collectives under the CPU backend: what waits for them, and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

import torch.distributed as dist

from ppcgc.runtime.backends.model_line import line_of_call
from ppcgc.runtime.errors import CaptureError


class Pausing(Protocol):
    """Something that looks away while ``paused``."""

    paused: bool


# Note [a collective ends in its wait]
# Gloo's reduce-scatter copies its result out of a buffer of its own when it is waited for. As a
# step of the tape that copy would read the buffer of the capture at every replay. The replay of a
# collective waits by itself, so nothing that a wait does is recorded.


@contextmanager
def waits_paused(recorder: Pausing) -> Iterator[None]:
    """On this thread, ``recorder`` is paused while anybody waits for a collective."""
    if not dist.is_available() or not dist.is_initialized():
        yield
        return
    here, own = threading.get_ident(), dist.Work.wait

    def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != here:
            return own(work, *args, **kwargs)
        before, recorder.paused = recorder.paused, True
        try:
            return own(work, *args, **kwargs)
        finally:
            recorder.paused = before

    with replaced(dist.Work, "wait", wait):
        yield


@contextmanager
def replaced(kind: type, name: str, by: Callable[..., Any]) -> Iterator[None]:
    """A method of a class of torch, exchanged inside the block."""
    own = vars(kind)[name]  # as it lies there: what getattr gives would not bind any more
    setattr(kind, name, by)
    try:
        yield
    finally:
        setattr(kind, name, own)


@contextmanager
def messages_refused() -> Iterator[None]:
    """On this thread, a message from rank to rank raises CaptureError with the model's line.

    Note [messages are the pipeline's]
        A graph can hold a message, but the other end must be in a graph that replays at the same
        step, in the same order; that is what the boundary is for, and what all ranks agreed on.
    """
    if not dist.is_available() or not dist.is_initialized():
        yield
        return
    here = threading.get_ident()

    def refusing(name: str, own: Callable[..., Any]) -> Callable[..., Any]:
        def call(group: Any, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != here:
                return own(group, *args, **kwargs)
            raise CaptureError(message_refusal(name))

        return call

    with ExitStack() as stack:
        for name in ("send", "recv", "recv_anysource"):
            own = getattr(dist.ProcessGroup, name)
            stack.enter_context(replaced(dist.ProcessGroup, name, refusing(name, own)))
        yield


def message_refusal(name: str) -> str:
    """Why a message inside a stage is refused, and where it is."""
    return (
        f"{name} is a message from rank to rank inside a stage\n  at {line_of_call()}\n"
        "  fix: hand the tensor over as a key of `pipeline.boundary`, or use a collective"
    )
