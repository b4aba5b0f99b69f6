"""The linear recurrence ``y[l] = y[l-1] * c[l] + x[l]`` at the speed of memory.

For PyTorch there are :func:`linrec` and :func:`selective_scan`, for NumPy :mod:`linrec.numpy`, for JAX :mod:`linrec.jax`.
PyTorch is imported when one of its functions is first asked for, so that the others do without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = ["linrec", "selective_scan"]

if TYPE_CHECKING:
    from ._recurrence import linrec
    from ._selective_scan import selective_scan


def __getattr__(name: str):
    if name == "linrec":
        from ._recurrence import linrec as found
    elif name == "selective_scan":
        from ._selective_scan import selective_scan as found
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
