"""Values: every type, shape, direction and layout against the loop."""

from __future__ import annotations

import itertools

import pytest
import torch
from linrec import linrec
from loops import WIDE, bound, loop

REAL = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
DTYPES = [*REAL, torch.complex64, torch.complex128]


def case(shape, dtype, near_one=False):
    """Inputs, coefficients and states; complex ones turn."""
    x, h = torch.randn(shape, dtype=WIDE[dtype]), torch.randn(shape[:-1], dtype=WIDE[dtype])
    c = torch.rand(shape, dtype=torch.float64)
    c = 0.98 + 0.02 * c if near_one else c
    if dtype.is_complex:
        c = torch.polar(c, 6 * torch.rand(shape, dtype=torch.float64))
    return x.to(dtype), c.to(dtype), h.to(dtype)


def agree(y, x, c, h=None, reverse=False):
    wide = WIDE[x.dtype]
    exact = loop(x.to(wide), c.to(wide), None if h is None else h.to(wide), reverse)
    errors, limits = (y.to(wide) - exact).abs(), bound(x, c, h, reverse)
    assert y.dtype == x.dtype and (errors <= limits).all(), (errors / limits).max()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1, 2, 3, 31, 32, 33, 1000, 4093])
@pytest.mark.parametrize("reverse", [False, True])
def test_every_type_and_length(dtype, length, reverse):
    all_cases = itertools.product([False, True], [(), (1,), (3,), (2, 5)])
    for near_one, rows in all_cases if length < 1000 else [(True, (2, 5))]:
        x, c, h = case((*rows, length), dtype, near_one)
        agree(linrec(x, c, reverse=reverse), x, c, None, reverse)
        y, last = linrec(x, c, initial=h, reverse=reverse, return_final=True)
        agree(y, x, c, h, reverse)
        assert torch.equal(last, y[..., 0 if reverse else -1])


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_every_axis(dim):
    x, c, h = case((4, 5, 6), torch.float64)
    h = torch.randn(x.select(dim, 0).shape, dtype=x.dtype)
    y, last = linrec(x, c, dim=dim, initial=h, return_final=True)
    expected = loop(x.movedim(dim, -1), c.movedim(dim, -1), h)
    torch.testing.assert_close(y, expected.movedim(-1, dim))
    torch.testing.assert_close(last, expected[..., -1])
    assert y.is_contiguous(), "results lie as the inputs do"


def test_any_strides_and_broadcasting():
    wide = torch.randn(4, 10, 14, dtype=torch.float64)
    x, c = wide[::2, 1::3, ::2], torch.rand(7, 3, 2, dtype=torch.float64).permute(2, 1, 0)
    y = linrec(x, c)
    torch.testing.assert_close(y, loop(x, c))
    for x_shape, c_shape in [((3, 5), ()), ((3, 5), (5,)), ((3, 1), (3, 5)), ((2, 1, 5), (3, 1)), ((5,), (4, 5))]:
        x, c = torch.randn(x_shape, dtype=torch.float64), torch.rand(c_shape, dtype=torch.float64)
        shape = torch.broadcast_shapes(x_shape, c_shape)
        for h in [None, torch.tensor(2.0, dtype=torch.float64)]:
            y = linrec(x, c, initial=h)
            full = None if h is None else h.expand(shape[:-1])
            torch.testing.assert_close(y, loop(x.expand(shape), c.expand(shape), full))


def test_conjugate_and_negative_views():
    z = torch.randn(3, 5, dtype=torch.complex128)
    x, c = z.conj(), torch.rand(3, 5, dtype=torch.complex128).conj()
    assert x.is_conj() and z.conj().imag.is_neg()
    torch.testing.assert_close(linrec(x, c), loop(x.resolve_conj(), c.resolve_conj()))
    x, c = z.conj().imag, z.real
    torch.testing.assert_close(linrec(x, c), loop(x.resolve_neg(), c))


def test_logarithms():
    for dtype in [torch.float64, torch.complex128]:
        x, c, h = case((3, 50), dtype)
        torch.testing.assert_close(linrec(x, c.log(), initial=h, log_coeffs=True), loop(x, c, h))
    # A logarithm near zero keeps its digits, of 16 bits as well.
    x, a = torch.ones(1, 100, dtype=torch.bfloat16), torch.full((1, 100), -1e-4, dtype=torch.bfloat16)
    exact = loop(x.double(), a.double().exp())
    torch.testing.assert_close(linrec(x, a, log_coeffs=True).double(), exact, rtol=2**-8, atol=0)


def test_nothing_to_compute():
    for shape in [(3, 0), (0, 3), (0, 0), (2, 0, 3)]:
        x = torch.zeros(shape, requires_grad=True)
        y, last = linrec(x, x, return_final=True)
        assert y.shape == shape and last.shape == shape[:-1]
        (y.sum() + last.sum()).backward()
    h = torch.randn(3, requires_grad=True)
    y, last = linrec(torch.zeros(3, 0), torch.zeros(3, 0), initial=h, return_final=True)
    assert torch.equal(last, h) and last.data_ptr() != h.data_ptr()
    (gradient,) = torch.autograd.grad(last.sum(), h)
    assert torch.equal(gradient, torch.ones(3))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("other", DTYPES)
def test_types_are_promoted_as_in_a_sum(dtype, other):
    x, c, h = torch.ones(2, 3, dtype=dtype), torch.ones(2, 3, dtype=other), torch.ones(2, dtype=torch.float16)
    y, last = linrec(x, c, initial=h, return_final=True)
    assert y.dtype == last.dtype == (x + c).dtype
    assert torch.equal(y, torch.tensor([2.0, 3.0, 4.0], dtype=y.dtype).expand(2, 3))


def test_autocast_narrows_nothing():
    x, c = torch.randn(3, 50, requires_grad=True), torch.rand(3, 50, requires_grad=True)
    expected = torch.autograd.grad(linrec(x, c).sum(), (x, c))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        narrow = torch.nn.functional.linear(x, torch.randn(50, 50))
        assert narrow.dtype == torch.bfloat16
        assert linrec(narrow, c).dtype == torch.float32
        assert linrec(narrow, narrow.sigmoid()).dtype == torch.bfloat16
        y = linrec(x, c)
    assert y.dtype == torch.float32
    for got, exact in zip(torch.autograd.grad(y.sum(), (x, c)), expected):
        assert torch.equal(got, exact)


def test_many_threads_give_the_bits_of_one():
    x, c = torch.randn(64, 20_000), 0.98 + 0.02 * torch.rand(64, 20_000)
    together = linrec(x, c)
    for row in [0, 17, 63]:
        assert torch.equal(together[row], linrec(x[row : row + 1].clone(), c[row : row + 1].clone())[0])
