"""The loop, in the type with twice the precision, and its error bound."""

from __future__ import annotations

import torch

WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.float64: torch.float64,
    torch.complex64: torch.complex128,
    torch.complex128: torch.complex128,
}
ROUNDOFF = {
    torch.float16: 2**-11,
    torch.bfloat16: 2**-8,
    torch.float32: 2**-24,
    torch.float64: 2**-53,
    torch.complex64: 2**-24,
    torch.complex128: 2**-53,
}


def loop(x, c, h=None, reverse=False):
    """Computes the outputs along the last axis, step by step, differentiably."""
    y, state = [], torch.zeros_like(x[..., 0]) if h is None else h
    steps = range(x.shape[-1])
    for step in reversed(steps) if reverse else steps:
        state = state * c[..., step] + x[..., step]
        y.append(state)
    return torch.stack(y[::-1] if reverse else y, dim=-1)


def bound(x, c, h=None, reverse=False):
    """Returns the largest distance of outputs from the loop's: the library's bound for this type.

    It is ``|y - y64| <= (u + 2**-53) z``, with ``z = |c| (z' + m y') + (2 + D) |x|`` over absolute
    values, ``m`` 2 for real and 4 for complex numbers, and ``D`` combining levels. Storage in 16
    bits rounds once more.
    """
    depth = (max(x.shape[-1], 1) - 1).bit_length() + 4
    factor = 4 if x.is_complex() else 2
    unit = ROUNDOFF[x.dtype]
    size = lambda tensor: tensor.to(WIDE[x.dtype]).abs()
    ax, ac = size(x), size(c)
    y = torch.zeros_like(ax[..., 0]) if h is None else size(h)
    z = (2 + depth) * y
    limits = torch.empty_like(ax)
    steps = range(x.shape[-1])
    stored = unit if x.dtype in (torch.float16, torch.bfloat16) else 0.0
    computed = 2**-24 if stored else unit
    for step in reversed(steps) if reverse else steps:
        z = ac[..., step] * (z + factor * y) + (2 + depth) * ax[..., step]
        y = ac[..., step] * y + ax[..., step]
        limits[..., step] = (computed + 2**-53) * z + stored * 1.01 * y
    return limits + 1e-37 * (depth + x.shape[-1])
