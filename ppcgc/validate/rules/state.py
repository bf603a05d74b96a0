"""State: the rows that belong to padding."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.ir import Family
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import fixed, fixed_dims, listed


@checked("PPC601", "reserved-rows")
def reserved_rows(family: Family) -> Iterator[Finding]:
    """Reserved rows of a state are negative, repeated, past its end or all it has.

    **What.** Reserved rows are rows of the state, each listed once; at least one row is left.

    **Why it hurts.** Warm-up, capture and padding write them: a negative one wraps around to a
    live row, one past the end faults.

    **Bad**

    ```yaml
    state: {kv: {rows: kv_rows, reserved: [-1]}}
    ```

    **Good**

    ```yaml
    state: {kv: {rows: kv_rows, reserved: [0]}}
    ```
    """
    known = fixed_dims(family)
    for state in family.states:
        rows = fixed(state.rows, known)
        for problem in _problems(state.reserved, rows):
            yield Finding(
                state.span,
                f"reserved rows of state '{state.name}' {problem}",
                _help(state.reserved, rows),
            )


def _problems(reserved: tuple[int, ...], rows: int | None) -> Iterator[str]:
    negative = [row for row in reserved if row < 0]
    twice = sorted({row for row in reserved if reserved.count(row) > 1})
    if negative:
        yield f"are negative: {listed(negative)}"
    if twice:
        yield f"are listed twice: {listed(twice)}"
    if rows is not None:
        past = [row for row in reserved if row >= rows]
        if past:
            yield f"lie past its {rows} rows: {listed(past)}"
        elif len(set(reserved)) >= rows:
            yield f"are all of its {rows} rows"


def _help(reserved: tuple[int, ...], rows: int | None) -> str:
    mended = _mended(reserved, rows)
    if rows is not None and len(mended) >= rows:
        return "give the state more rows"
    return f"write reserved: [{listed(mended)}]"


def _mended(reserved: tuple[int, ...], rows: int | None) -> list[int]:
    most = rows - 1 if rows is not None else max(reserved)
    kept = sorted({row for row in reserved if 0 <= row <= most})
    return kept[: max(1, most)] or [0]
