"""The loop, in the type with twice the precision, its error bound, and loops that round once a step."""

from __future__ import annotations

from fractions import Fraction

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


def in_order(x, c, h=None, reverse=False, fused=True):
    """Computes the outputs in the type of ``x`` (16 bits in float32), with one rounding a step, or two.

    The sums of float32 numbers are exact in float64 for the numbers of :func:`few_digits`.
    """
    dtype, exact = x.dtype, _fraction if x.dtype == torch.float64 else _double
    compute = torch.float32 if x.dtype.itemsize == 2 else dtype
    x, c = x.to(compute), c.to(compute)
    step_of = exact if fused else lambda state, c, x: state * c + x
    y, state = torch.empty_like(x), torch.zeros_like(x[..., 0]) if h is None else h.to(compute)
    steps = range(x.shape[-1])
    for step in reversed(steps) if reverse else steps:
        state = step_of(state, c[..., step], x[..., step])
        y[..., step] = state
    return y.to(dtype)


def _double(state, c, x):
    return (state.double() * c.double() + x.double()).to(state.dtype)


def _fraction(state, c, x):
    numbers = zip(*(tensor.flatten().tolist() for tensor in (state, c, x)))
    found = [float(Fraction(a) * Fraction(b) + Fraction(d)) for a, b, d in numbers]
    return torch.tensor(found, dtype=state.dtype).reshape(state.shape)


def few_digits(shape, dtype):
    """Returns inputs and coefficients for :func:`in_order`: positive, the latter of at most 12 bits."""
    x, c = torch.rand(shape, dtype=torch.float64) + 0.5, torch.randint(4096, shape) / 4096
    return x.to(dtype), c.to(dtype)


NAN, INF = float("nan"), float("inf")
#: Inputs and coefficients. Products of the latter overflow in float32, and states do not.
LARGE = [
    ([0.0, 1.0], [1e20, 1e20]),
    ([0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0, 3.0], [1e30, 1e30, 0.0, 0.0, 1e30, 0.0, 1e30, 1e30]),
    ([1e30, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1e-30, 1e-30, 1e30, 1e30, 1e-30]),
    ([1e-30, 0.0, 0.0, 0.0, 1.0], [1e20, 1e20, 1e20, 1e-30, 1e-30]),
]
#: States that overflow, and numbers that are not finite.
NOT_FINITE = [
    ([1.0, 0.0, 0.0, 1.0, 2.0], [1.0, 1e30, 1e30, -1.0, 0.5]),
    ([1.0, INF, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 2.0, INF]),
    ([1.0, NAN, 1.0, 1.0, 1.0], [INF, 1.0, 2.0, 0.0, 1.0]),
    ([0.0, 1.0, -INF, 1.0, 1.0], [NAN, 0.0, 1.0, 2.0, -1.0]),
]


def rows_of(cases, length, dtype=torch.float32):
    """Returns inputs and coefficients ``[cases, length]``: a case from time to time, and quiet steps."""
    x, c = torch.zeros(len(cases), length, dtype=torch.float64), torch.ones(len(cases), length, dtype=torch.float64)
    for row, case in enumerate(cases):
        inputs, coeffs = (torch.tensor(numbers, dtype=torch.float64) for numbers in case)
        for place in range(0, length - len(inputs) + 1, 37 + row):
            x[row, place : place + len(inputs)], c[row, place : place + len(inputs)] = inputs, coeffs
            c[row, place - 1] = 0.0  # the next case begins anew
    if dtype.itemsize // (2 if dtype.is_complex else 1) == 8:  # products of 1e160 overflow in float64
        x, c = x.sign() * x.abs() ** 8, c.sign() * c.abs() ** 8
    elif dtype == torch.float16:  # as do those of ten coefficients of 60000 in float32
        x, c = torch.zeros_like(x), torch.full_like(x, 6e4)
        x[:, 11::12] = 1.0
        c[:, ::12] = 0.0
    return x.to(dtype), c.to(dtype)
