"""Host numbers of a batch that are part of the graph key, or of a computed slot."""

from __future__ import annotations

from operator import index

from torch import Tensor

from ppcgc.runtime.errors import AbsentSourceError, SourceError

_LARGEST = 2**63 - 1  # of int64: slots hold no more


def host_number(value: object, path: str) -> int:
    """A scalar of the batch as an int; a bool, numpy's too, counts as 0 or 1.

    Nothing is read from a tensor: on a device that would synchronise at every step. Raises
    SourceError for what is no host integer, or does not fit into 64 bits.
    """
    number = _integer(value, path)
    if not -_LARGEST - 1 <= number <= _LARGEST:
        raise SourceError(
            f"batch.{path} is {number}; a scalar is an integer of 64 bits, {-_LARGEST - 1} to "
            f"{_LARGEST}"
        )
    return number


def _integer(value: object, path: str) -> int:
    if isinstance(value, int):
        return int(value)
    if value is None:
        raise AbsentSourceError(f"batch.{path} is None; give the scalar as an integer")
    if isinstance(value, Tensor):
        raise SourceError(f"batch.{path} is a tensor on {value.device}; give a host integer")
    is_truth = getattr(getattr(value, "dtype", None), "kind", None) == "b"
    if is_truth and not getattr(value, "shape", ()):
        return int(bool(value))
    try:
        return index(value)  # type: ignore[arg-type]  # it says itself what is no integer
    except TypeError:
        raise SourceError(f"batch.{path} is {value!r}; give the scalar as an integer") from None


def host_flag(value: object, path: str) -> bool:
    """A condition of the batch. Raises SourceError for anything but a host bool or number."""
    return False if value is None else bool(host_number(value, path))


def constant_scalar(runner: str, name: str, value: int, wanted: int) -> int:
    """A scalar that must have one value. Raises SourceError naming both."""
    if value != wanted:
        raise SourceError(f"{runner}: scalar {name} is {value}, the spec fixes it at {wanted}")
    return wanted
