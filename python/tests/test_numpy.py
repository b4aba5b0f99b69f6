"""The recurrence over NumPy's arrays."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from linrec.numpy import backward, linrec
from loops import LARGE, loop, rows_of

RNG = np.random.default_rng(0)


def numbers(shape, dtype):
    real = RNG.normal(size=shape)
    return (real + 1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else real).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128, np.float16])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("reverse", [False, True])
def test_values_and_gradients(dtype, axis, reverse):
    x, c = numbers((4, 5, 6), dtype)[::-1, :, ::2], 0.5 * numbers((5, 1), dtype)
    h = numbers(x.take(0, axis).shape, dtype)
    y, last = linrec(x, c, initial=h, axis=axis, reverse=reverse, return_final=True)
    double = torch.complex128 if np.dtype(dtype).kind == "c" else torch.float64
    tensors = [torch.tensor(np.ascontiguousarray(array), dtype=double, requires_grad=True) for array in (x, np.broadcast_to(c, x.shape), h)]
    exact = loop(tensors[0].movedim(axis, -1), tensors[1].movedim(axis, -1), tensors[2], reverse).movedim(-1, axis)
    tolerance = {2: 1e-2, 4: 1e-5, 8: 1e-12}[np.dtype(dtype).itemsize // (2 if np.dtype(dtype).kind == "c" else 1)]
    wide = np.float32 if dtype == np.float16 else dtype
    assert y.dtype == dtype and last.dtype == wide
    np.testing.assert_allclose(y, exact.detach(), rtol=tolerance, atol=tolerance)
    assert (last.astype(dtype) == y.take(0 if reverse else -1, axis)).all()
    d = numbers(y.shape, dtype)
    got = backward(d, c, y, initial=h, axis=axis, reverse=reverse)
    wanted = torch.autograd.grad(exact, tensors, torch.tensor(d, dtype=double))
    for one, other in zip(got, wanted):
        assert one.dtype == (wide if one is got.initial else dtype)
        np.testing.assert_allclose(one, other, rtol=10 * tolerance, atol=10 * tolerance)


def test_any_array_is_accepted():
    assert linrec([1, 2, 3], [0, 1, 1]).tolist() == [1, 3, 6]
    half = np.broadcast_to(np.float64(0.5), (2, 3))
    assert linrec(np.ones((2, 3)), half).tolist() == [[1, 1.5, 1.75]] * 2
    unaligned = np.zeros(4, dtype=[("a", "i1"), ("b", "f8")])["b"]
    unaligned += 1
    assert linrec(unaligned, 1.0).tolist() == [1, 2, 3, 4]
    swapped = np.ones(4, dtype=">f8")
    assert linrec(swapped, 1.0).tolist() == [1, 2, 3, 4]
    read_only = np.ones(4)
    read_only.flags.writeable = False
    assert linrec(read_only, read_only).tolist() == [1, 2, 3, 4]
    assert linrec(np.ones(4), np.zeros(4), log_coeffs=True).tolist() == [1, 2, 3, 4]
    y, last = linrec(np.zeros((2, 0)), np.zeros((2, 0)), initial=[1, 2], return_final=True)
    assert y.shape == (2, 0) and last.tolist() == [1, 2]
    assert linrec(np.zeros((2, 0)), np.zeros((2, 0)), return_final=True)[1].tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.float16])
@pytest.mark.parametrize("axis", [0, 1])
def test_large_coefficients_in_order(dtype, axis):
    x, c = rows_of(LARGE, 400, dtype)
    arrays = [(tensor if axis == 1 else tensor.mT).numpy()[::-1] for tensor in (x, c)]
    y, last = linrec(*arrays, axis=axis, reverse=axis == 0, in_order=True, return_final=True)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    leaves = [tensor.detach().to(wide, copy=True).requires_grad_() for tensor in (x, c)]
    exact = loop(*leaves)
    y = y[::-1].T if axis == 0 else y[::-1]
    assert np.isfinite(y).all() and np.isfinite(last).all()
    np.testing.assert_allclose(y, exact.detach(), rtol=1e-3 if dtype == torch.float16 else 1e-5)
    d = np.zeros((4, 400), arrays[0].dtype)
    d[:, 1] = 1
    got = backward(d, c.numpy(), y, in_order=True)
    wanted = torch.autograd.grad(exact[:, 1].real.sum(), leaves)
    for one, other in zip(got, wanted):
        np.testing.assert_allclose(one, other.to(dtype).numpy(), rtol=1e-3)


def test_pythons_numbers_widen_no_array():
    for dtype in [np.float32, np.float64, np.complex64, np.float16]:
        x = np.ones((2, 3), dtype)
        for c in [0.5, 1, True]:
            assert linrec(x, c).dtype == dtype and linrec(x, c, initial=2.0).dtype == dtype
    assert linrec(np.ones(3, np.float32), 0.5j).dtype == np.complex64
    assert linrec(np.ones(3, np.float32), np.float64(0.5)).dtype == np.result_type(np.float32, np.float64(0.5))


def test_a_state_carried_between_calls_keeps_its_digits():
    ones, state = np.ones(5000, np.float16), None
    whole, last = linrec(ones, ones, return_final=True)
    for step in range(5000):
        y, state = linrec(ones[step : step + 1], ones[:1], initial=state, return_final=True)
        assert y[0] == whole[step]
    assert state == last == 5000 and whole[-1] == 5000


@pytest.mark.parametrize(
    "kind, message, call",
    [
        (TypeError, r"elements can be float32, .*: inputs object\[1\]", lambda: linrec(np.array([None]), np.array([None]))),
        (ValueError, r"linrec: shapes do not broadcast: inputs \[2, 3\], coeffs \[2, 4\]", lambda: linrec(np.ones((2, 3)), np.ones((2, 4)))),
        (IndexError, r"linrec: there is no axis -1 in inputs \[\]", lambda: linrec(1.0, 1.0)),
        (ValueError, r"initial \[2\] does not broadcast to \[\], which is \[1\] without axis 0", lambda: linrec([1.0], 1.0, initial=[1.0, 2.0])),
        (TypeError, "initial is complex128, and inputs are float64", lambda: linrec([1.0], 1.0, initial=1j)),
        (TypeError, "linrec: inputs is a masked array", lambda: linrec(np.ma.masked_equal([1.0, 2.0], 2.0), 1.0)),
        (TypeError, "linrec: initial is a masked array", lambda: linrec([1.0], 1.0, initial=np.ma.masked_equal(1.0, 1.0))),
        (ValueError, "backward: shapes do not broadcast", lambda: backward([1.0, 2.0], 1.0, [1.0, 2.0, 3.0])),
    ],
)
def test_errors(kind, message, call):
    with pytest.raises(kind, match=message):
        call()
