"""The contract between generated code and this runtime, as one number.

The number goes up when generated code of an older compiler would no longer run correctly.
"""

from __future__ import annotations

from ppcgc.runtime.errors import AbiMismatchError

ABI = 4


def require_abi(generated: int, module: str) -> None:
    """Refuse generated code of another contract. Raises AbiMismatchError."""
    if generated == ABI:
        return
    fix = (
        "run `ppcgc generate` with the installed ppcgc"
        if generated < ABI
        else "install the ppcgc that generated it"
    )
    raise AbiMismatchError(
        f"{module} was generated for ppcgc ABI {generated}, the installed runtime has ABI {ABI}; "
        f"{fix}"
    )
