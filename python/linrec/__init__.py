"""The linear recurrence ``y[l] = y[l-1] * c[l] + x[l]`` at the speed of memory.

:func:`linrec`, :func:`selective_scan` and :func:`selective_state_update` are for PyTorch,
:mod:`linrec.distributed` is for several processes of PyTorch, :mod:`linrec.numpy` is for NumPy, and
:mod:`linrec.jax` is for JAX. PyTorch is imported at the first use of one of its functions, so that
the other modules do not need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = ["linrec", "selective_scan", "selective_state_update"]

if TYPE_CHECKING:
    from ._recurrence import linrec
    from ._selective_scan import selective_scan, selective_state_update


def __getattr__(name: str):
    if name == "linrec":
        from ._recurrence import linrec as found
    elif name in __all__:
        from . import _selective_scan

        found = getattr(_selective_scan, name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
