"""The line of the model that an operation or an error came from."""

from __future__ import annotations

import linecache
import os
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

import torch

_RUNTIME = Path(__file__).resolve().parent.parent
_TORCH = Path(torch.__file__).resolve().parent
_NOT_THE_MODEL = (str(_RUNTIME) + os.sep, str(_TORCH) + os.sep, "<")


class ModelLine(NamedTuple):
    """A place in the model's code."""

    file: str
    line: int
    function: str

    @property
    def source(self) -> str:
        """The text of the line, stripped; empty where the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        """``file:line in function: text``."""
        if self == UNKNOWN_LINE:
            return "an unknown line"
        place = f"{self.file}:{self.line} in {self.function}"
        return f"{place}: {self.source}" if self.source else place


UNKNOWN_LINE = ModelLine(file="<unknown>", line=0, function="<unknown>")


def line_of_call() -> ModelLine:
    """The innermost line now running that is neither torch's nor this runtime's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _is_model(frame.f_code):
            return _line(frame.f_code, frame.f_lineno)
        frame = frame.f_back
    return UNKNOWN_LINE


def line_of_error(problem: BaseException) -> ModelLine:
    """As ``line_of_call``, for where an exception was raised."""
    found = UNKNOWN_LINE
    traceback = problem.__traceback__
    while traceback is not None:
        if _is_model(traceback.tb_frame.f_code):
            found = _line(traceback.tb_frame.f_code, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found


def _is_model(code: CodeType) -> bool:
    return not code.co_filename.startswith(_NOT_THE_MODEL)


def _line(code: CodeType, line: int) -> ModelLine:
    return ModelLine(file=code.co_filename, line=line, function=code.co_name)
