"""Values: every type, shape, direction and layout against the loop."""

from __future__ import annotations

import itertools

import pytest
import torch
from linrec import linrec
from linrec._operators import shifted
from linrec._tensors import ACCUMULATORS
from loops import LARGE, NOT_FINITE, ROUNDOFF, WIDE, bound, few_digits, in_order, loop, rows_of

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
        assert torch.equal(last.to(dtype), y[..., 0 if reverse else -1])


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
    assert y.dtype == (x + c).dtype and last.dtype == ACCUMULATORS[y.dtype]
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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("log_coeffs", [False, True])
def test_a_state_carried_between_calls_keeps_its_digits(dtype, log_coeffs):
    """Compares 1000 calls of one step each with one call: a state in 16 bits stops growing at 256."""
    ones = torch.ones(3, 1000, dtype=dtype)
    cases = [(ones, ones), case((3, 1000), dtype, near_one=True)[:2]]
    for number, (x, c) in enumerate(cases):
        c = c.float().log().to(dtype) if log_coeffs else c
        whole, last = linrec(x, c, log_coeffs=log_coeffs, return_final=True)
        state, steps = None, []
        for step in range(1000):
            y, state = linrec(x[:, step, None], c[:, step, None], initial=state, log_coeffs=log_coeffs, return_final=True)
            assert state.dtype == last.dtype == torch.float32
            steps.append(y)
        single = torch.cat(steps, dim=-1)
        if number == 0:
            assert torch.equal(single, whole) and torch.equal(state, last) and (state == 1000).all()
        elif not log_coeffs:
            agree(single, x, c)
            exact, limits = loop(x.double(), c.double())[..., -1], bound(x.float(), c.float())[..., -1]
            # Each call has its own rounding: two operations instead of a level of the scan.
            assert ((state.double() - exact).abs() <= limits).all() and ((last.double() - exact).abs() <= limits).all()


def test_gradients_through_a_carried_state_keep_their_digits():
    x = torch.ones(400, dtype=torch.bfloat16, requires_grad=True)
    ones, state = torch.ones(1, dtype=torch.bfloat16), torch.zeros((), requires_grad=True)
    start = state
    total = 0
    for step in range(400):
        y, state = linrec(x[step, None], ones, initial=state, return_final=True)
        total = total + y.float().sum()
    (gradient,) = torch.autograd.grad(total, start)
    assert gradient == 400


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_final_state_is_a_tensor_of_its_own(dtype):
    x, c, h = case((3, 50), dtype)
    for requires_grad in [False, True]:
        x.requires_grad_(requires_grad)
        y, last = linrec(x, c, initial=h, return_final=True)
        before = y.detach().clone()
        assert last.untyped_storage().nbytes() < y.untyped_storage().nbytes()
        last.detach().zero_()
        assert torch.equal(y, before)
        last = linrec(x, c, return_final=True)[1]
        last.mul_(2)
        if requires_grad:
            last.abs().sum().backward()


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_and_tensors_without_axes_widen_nothing(dtype):
    x = case((3, 50), dtype)[0]
    for c in [0.5, 1, True, torch.tensor(0.5, dtype=torch.float64), torch.tensor(0.5)]:
        full = torch.full((3, 50), complex(c).real, dtype=dtype)
        for h in [None, 2.0, torch.tensor(2.0, dtype=torch.float64)]:
            state = None if h is None else torch.full((3,), 2.0, dtype=dtype)
            y = linrec(x, c, initial=h)
            assert y.dtype == dtype and torch.equal(y, linrec(x, full, initial=state))
    assert linrec(torch.ones(3), 0.5j).dtype == torch.complex64
    assert linrec(torch.tensor(1.0, dtype=torch.float64), torch.ones(3)).dtype == torch.float32


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("final", [False, True])
def test_gradients_of_inputs_alone_save_no_outputs(dtype, final):
    """The gradients are the recurrence in the other direction over the shifted coefficients."""
    x, c, h = case((3, 50), dtype)
    x.requires_grad_()
    weights, of_final = (case((3, 50), dtype)[place] for place in (0, 2))
    of_final = of_final.to(ACCUMULATORS[dtype])
    for reverse, log_coeffs, initial in itertools.product([False, True], [False, dtype == torch.float64], [None, h]):
        saved, given = [], c.log() if log_coeffs else c
        options = {"initial": initial, "reverse": reverse, "log_coeffs": log_coeffs, "return_final": final}
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: saved.append(tensor) or tensor, lambda tensor: tensor):
            results = linrec(x, given, **options)
        results = results if final else (results,)
        assert all(tensor.data_ptr() != results[0].data_ptr() for tensor in saved)
        (got,) = torch.autograd.grad(results, x, (weights, of_final)[: len(results)])
        exact = weights.to(WIDE[dtype])
        if final:
            exact[:, 0 if reverse else -1] += of_final
        later = shifted(c, None, not reverse).conj().resolve_conj()
        wide = loop(exact, later.to(WIDE[dtype]), reverse=not reverse)
        # The sum of the two gradients of the last output is rounded once more.
        limits = 1.5 * bound(exact.to(torch.float32 if dtype.itemsize == 2 else dtype).to(dtype), later, reverse=not reverse)
        assert ((got.to(WIDE[dtype]) - wide).abs() <= limits).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [2, 12, 400])
def test_large_coefficients_in_order(dtype, reverse, length):
    """Only products of coefficients overflow, so the loop's outputs are finite; so are most of its gradients."""
    x, c = rows_of(LARGE, length, dtype)
    if reverse:
        x, c = x.flip(-1), c.flip(-1)
    options = {"reverse": reverse, "in_order": True}
    y, last = linrec(x, c, return_final=True, **options)
    exact = loop(x.to(WIDE[dtype]), c.to(WIDE[dtype]), reverse=reverse)
    assert y.isfinite().all() and torch.equal(last.to(dtype), y[:, 0 if reverse else -1])
    torch.testing.assert_close(y.to(WIDE[dtype]), exact, rtol=2 * ROUNDOFF[dtype] * length, atol=0)
    strided = [tensor.mT.contiguous().mT.repeat(1, 2)[:, ::2] for tensor in (x, c)]
    strided[0][:], strided[1][:] = x, c
    assert torch.equal(linrec(strided[0].mT, strided[1].mT, dim=0, **options).mT, y)
    if dtype.itemsize > 2 and not dtype.is_complex:
        torch.testing.assert_close(linrec(x, c.log(), log_coeffs=True, **options), y, rtol=1e-3, atol=0)
    leaves = [tensor.clone().requires_grad_() for tensor in (x, c)]
    compute = [tensor.detach().to(ACCUMULATORS[dtype]).requires_grad_() for tensor in (x, c)]
    got, wanted = linrec(*leaves, **options), loop(*compute, reverse=reverse)
    for one, other in zip(torch.autograd.grad(got.real.sum(), leaves), torch.autograd.grad(wanted.real.sum(), compute)):
        tolerance = {"rtol": 8 * ROUNDOFF[dtype] * length, "atol": 0}
        # Of complex numbers that overflow, one part or both are NaN.
        compared = other.isfinite() if dtype.is_complex else torch.ones_like(other, dtype=torch.bool)
        torch.testing.assert_close(one[compared], other[compared].to(dtype), equal_nan=True, **tolerance)


@pytest.mark.parametrize("reverse", [False, True])
def test_numbers_that_are_not_finite_in_order(reverse):
    """Infinities and NaN come at the steps at which the loop has them."""
    x, c = rows_of(NOT_FINITE, 5)
    for fill in [1, 2, 100]:
        x, c = torch.nn.functional.pad(x, (fill, 0), value=1.0), torch.nn.functional.pad(c, (0, fill), value=0.5)
        for initial in [None, torch.tensor(0.0), torch.tensor(float("inf"))]:
            y = linrec(x, c, initial=initial, reverse=reverse, in_order=True)
            exact = loop(x, c, None if initial is None else initial.expand(len(x)), reverse)
            torch.testing.assert_close(y, exact, equal_nan=True)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(1, 50), (7, 33), (17, 100), (64, 40)])
def test_in_order_has_the_bits_of_a_loop(dtype, reverse, shape):
    """One rounding a step, or two on a machine without fused multiply-adds; the same along any axis."""
    x, c = few_digits(shape, dtype)
    y = linrec(x, c, reverse=reverse, in_order=True)
    assert torch.equal(y, in_order(x, c, reverse=reverse)) or torch.equal(y, in_order(x, c, reverse=reverse, fused=False))
    across = linrec(x.mT.contiguous(), c.mT.contiguous(), dim=0, reverse=reverse, in_order=True)
    assert torch.equal(across.mT, y)
