"""Reading the host integers of a batch: live counts."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ppcgc.runtime.errors import AbsentSourceError, CapacityError, LimitError, SourceError


def live_count(value: object, path: str) -> int:
    """A live count as an int. Raises SourceError for a tensor or a negative number.

    A count on a device would cost a synchronisation at every step, so none is ever read.
    """
    if type(value) is int:
        if value < 0:
            raise SourceError(f"batch.{path} is {value}; a live count is not negative")
        return value
    if isinstance(value, Tensor):
        raise SourceError(f"batch.{path} is a tensor on {value.device}; give a host integer")
    if value is None:
        raise AbsentSourceError(f"batch.{path} is None; give the live count as an integer")
    index = getattr(value, "__index__", None)
    if index is None or isinstance(value, bool):
        raise SourceError(f"batch.{path} is {value!r}; give the live count as an integer")
    try:
        return live_count(int(index()), path)
    except TypeError:  # an array of several elements
        raise SourceError(f"batch.{path} is {value!r}; give the live count as an integer") from None


def source_rows(source: object, dim: int, path: str) -> int:
    """``live: rows``: the extent of a source on its padded dimension."""
    if source is None:
        raise AbsentSourceError(f"batch.{path} is None, and its rows are the axis' live count")
    shape = getattr(source, "shape", None)
    if shape is not None:
        if len(shape) <= dim:
            raise SourceError(f"batch.{path} has shape {list(shape)}, no dimension {dim}")
        return int(shape[dim])
    if isinstance(source, Sequence):
        if dim:
            raise SourceError(
                f"batch.{path} is a {type(source).__name__}, which has one dimension; its rows "
                f"are counted on dimension {dim}: give a tensor or an array"
            )
        return len(source)
    raise SourceError(f"batch.{path} is a {type(source).__name__}, which has no rows to count")


def broken_limit(runner: str, limit: str, line: str, live: object) -> LimitError:
    """The error of a batch that breaks a condition of ``limits``."""
    return LimitError(f"{runner}: live counts {live} break the limit `{limit}` ({line})")


def over_capacity(runner: str, axis: str, live: int, largest: int, line: str) -> CapacityError:
    """The error of a batch beyond the largest bucket where the spec wants an error."""
    return CapacityError(
        f"{runner}: {live} live {axis}, the largest bucket has {largest}; split the batch, add a "
        f"bucket, or say `over_capacity: eager` without `require_graph` ({line})"
    )


def uneven(runner: str, axis: str, live: int, wanted: int) -> LimitError:
    """The error of a batch whose own count is not what the axis must equal."""
    return LimitError(
        f"{runner}: {live} live {axis}, the other axes' counts ask for {wanted}; split the batch, "
        "or say `uneven: eager`"
    )


def no_key(
    runner: str, scalar: str, value: int, values: tuple[int, ...], line: str
) -> CapacityError:
    """The error of a scalar for which no graph was captured."""
    return CapacityError(
        f"{runner}: scalar {scalar} is {value}, graphs were captured for {list(values)}; add the "
        f"value, or say `over_capacity: eager` without `require_graph` ({line})"
    )
