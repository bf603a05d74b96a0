"""Whose mistake an AttributeError of a step is.

Note [who reads what is missing]
    A load reads attributes of the batch and of the boundary, and calls code of the user: hooks,
    and properties of the batch. All of them may raise AttributeError. It says that the batch
    lacks something only where the runtime or generated code made the read itself, so that every
    frame of the traceback is theirs; a ``__getattr__`` of the batch may have answered it. With
    any other frame it is a mistake of that code, whose error passes through.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType

_ANSWERS = ("__getattr__", "__getattribute__")  # an object's own way to say that it lacks a name


def read_by_step(problem: AttributeError, generated: str) -> bool:
    """Whether the runtime, or the package that ``generated`` is a module of, made the read."""
    ours = ("ppcgc.runtime.", f"{generated.rpartition('.')[0]}.")
    frames = list(_frames(problem))
    while frames and frames[-1].f_code.co_name in _ANSWERS:
        frames.pop()
    return all(frame.f_globals.get("__name__", "").startswith(ours) for frame in frames)


def _frames(problem: AttributeError) -> Iterator[FrameType]:
    """From where the error was caught to where it was raised."""
    traceback = problem.__traceback__
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next
