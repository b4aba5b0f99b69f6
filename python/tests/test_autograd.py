"""Tests of derivatives of any order, in both modes, and in batches."""

from __future__ import annotations

import pytest
import torch
from linrec import linrec
from loops import LARGE, loop, rows_of
from torch.autograd import gradcheck, gradgradcheck

VARIANTS = [
    pytest.param(dtype, {"reverse": reverse, "log_coeffs": log_coeffs, "in_order": in_order}, id=f"{dtype}-{reverse}-{log_coeffs}-{in_order}")
    for dtype in [torch.float64, torch.complex128]
    for reverse in [False, True]
    for log_coeffs, in_order in [(False, False), (True, False), (reverse, True)]
]


def leaves(*shapes, dtype=torch.float64):
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("dtype, options", VARIANTS)
@pytest.mark.parametrize("length", [1, 2, 5])
def test_derivatives(dtype, options, length):
    x, c, h = leaves((2, length), (2, length), (2,), dtype=dtype)

    def with_states(x, c, h):
        return linrec(x, c, initial=h, return_final=True, **options)

    def without(x, c):
        return linrec(x, c, **options)

    assert gradcheck(with_states, (x, c, h), check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
    assert gradgradcheck(with_states, (x, c, h), check_fwd_over_rev=True, check_batched_grad=True)
    assert gradcheck(without, (x, c), check_forward_ad=True)
    assert gradgradcheck(without, (x, c), check_fwd_over_rev=True)


def test_derivatives_with_broadcasting_and_along_other_axes():
    x, c, h = leaves((3, 1, 2), (4, 1), ())
    assert gradcheck(lambda x, c, h: linrec(x, c, initial=h, dim=1), (x, c, h), check_forward_ad=True)
    assert gradgradcheck(lambda x, c, h: linrec(x, c, initial=h, dim=1), (x, c, h))


def test_third_order():
    x, c, h = leaves((1, 4), (1, 4), (1,))
    names = ("x", "c", "h")

    def third(of):
        total = of(x, c, h).pow(3).sum()
        first = torch.autograd.grad(total, (x, c, h), create_graph=True)
        second = torch.autograd.grad(sum(g.pow(2).sum() for g in first), (x, c, h), create_graph=True)
        return torch.autograd.grad(sum(g.pow(2).sum() for g in second), (x, c, h))

    for name, got, exact in zip(names, third(lambda x, c, h: linrec(x, c, initial=h)), third(loop)):
        torch.testing.assert_close(got, exact, msg=name)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.complex64])
def test_gradients_have_the_types_of_their_arguments(dtype):
    x, c = leaves((3, 40), (3, 40), dtype=dtype)
    h = torch.randn(3, dtype=torch.complex64 if dtype.is_complex else torch.float32, requires_grad=True)
    scaled = (0.3 * c).tanh()
    y = linrec(x, scaled, initial=h)
    got = torch.autograd.grad(y.abs().sum(), (x, scaled, h))
    wide = torch.complex128 if dtype.is_complex else torch.float64
    leaves64 = [tensor.detach().to(wide).requires_grad_() for tensor in (x, scaled, h)]
    exact = torch.autograd.grad(loop(*leaves64).abs().sum(), leaves64)
    # The forward pass rounds to 16 bits, so d_coeffs has rounded states.
    tolerance = {torch.bfloat16: 0.05, torch.float16: 0.01}.get(dtype, 1e-4)
    for gradient, wanted, leaf in zip(got, exact, (x, scaled, h)):
        assert gradient.dtype == leaf.dtype and gradient.shape == leaf.shape
        assert (gradient.to(wide) - wanted).abs().max() <= tolerance * wanted.abs().max()


def test_only_requested_gradients_are_computed():
    x, c, h = leaves((2, 5), (2, 5), (2,))
    for wanted in [(x,), (c,), (h,), (x, h), (c, h)]:
        for tensor in (x, c, h):
            tensor.requires_grad_(any(tensor is one for one in wanted))
        got = torch.autograd.grad(linrec(x, c, initial=h).pow(2).sum(), wanted)
        exact = torch.autograd.grad(loop(x, c, h).pow(2).sum(), wanted)
        torch.testing.assert_close(got, exact)


@pytest.mark.parametrize("in_dims", [(0, 0, 0), (1, 0, None), (None, 2, None), (0, None, 1), (2, None, None)])
def test_batches(in_dims):
    shapes = [(3, 4), (3, 4), (3,)]
    batched = [
        torch.randn(shape if dim is None else (*shape[:dim], 6, *shape[dim:]), dtype=torch.float64)
        for shape, dim in zip(shapes, in_dims)
    ]
    step = lambda x, c, h: linrec(x, c, initial=h)
    got = torch.vmap(step, in_dims=in_dims)(*batched)
    single = lambda tensor, dim, i: tensor if dim is None else tensor.select(dim, i)
    for i in range(6):
        parts = [single(tensor, dim, i) for tensor, dim in zip(batched, in_dims)]
        torch.testing.assert_close(got[i], step(*parts))


def test_transforms_of_functions():
    x, c, h = (tensor.detach() for tensor in leaves((3, 4), (3, 4), (3,)))
    total = lambda x, c, h: linrec(x, c, initial=h).pow(2).sum()
    exact = lambda x, c, h: loop(x, c, h).pow(2).sum()
    for transform in [torch.func.grad, torch.func.jacrev, torch.func.jacfwd, torch.func.hessian]:
        got, wanted = (transform(of, argnums=(0, 1, 2))(x, c, h) for of in (total, exact))
        torch.testing.assert_close(got, wanted)
    per_row = torch.vmap(torch.func.grad(total, argnums=1))(x, c, h)
    torch.testing.assert_close(per_row, torch.vmap(torch.func.grad(exact, argnums=1))(x, c, h))
    tangents = [torch.randn_like(tensor) for tensor in (x, c, h)]
    got = torch.func.jvp(total, (x, c, h), tuple(tangents))
    torch.testing.assert_close(got, torch.func.jvp(exact, (x, c, h), tuple(tangents)))


@pytest.mark.parametrize("final", [False, True])
def test_derivatives_in_order_of_large_coefficients(final):
    """Everything that computes a recurrence on the way takes the steps in order: backward, twice, tangents, batches."""
    x, c = rows_of(LARGE[:1], 2)
    ours = lambda x, c: linrec(x, c, in_order=True, return_final=final)[-1].sum()
    exact = lambda x, c: loop(x, c)[..., -1].sum() if final else loop(x, c)[-1].sum()
    tangents = (torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]]))
    for of in [
        lambda total: torch.func.grad(total, argnums=(0, 1))(x, c),
        lambda total: torch.func.jvp(total, (x, c), tangents),
        lambda total: torch.func.hessian(total, argnums=(0, 1))(x, c),
        lambda total: torch.vmap(torch.func.grad(total, argnums=(0, 1)))(x[None], c[None]),
        lambda total: torch.autograd.functional.hessian(total, (x, c)),
    ]:
        torch.testing.assert_close(of(ours), of(exact))
