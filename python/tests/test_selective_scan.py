"""The selective scan against a loop over the steps."""

from __future__ import annotations

import pytest
import torch
from linrec import selective_scan
from torch.nn import functional

NAMES = ("u", "delta", "A", "B", "C", "D", "z", "delta_bias")


def step_by_step(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False):
    (batch, channels, length), states = u.shape, A.shape[1]
    steps = delta if delta_bias is None else delta + delta_bias[:, None]
    steps = functional.softplus(steps) if delta_softplus else steps

    def of_each_channel(coupling):
        if coupling.ndim == 2:
            return coupling[None, :, :, None].expand(batch, channels, states, length)
        coupling = coupling[:, None] if coupling.ndim == 3 else coupling
        if A.is_complex():
            coupling = torch.complex(coupling[..., 0::2], coupling[..., 1::2])
        return coupling.repeat_interleave(channels // coupling.shape[1], 1)

    B, C = of_each_channel(B), of_each_channel(C)
    state, out = torch.zeros(batch, channels, states, dtype=A.dtype), []
    for t in range(length):
        decay = torch.exp(steps[..., t, None] * A)
        state = decay * state + (steps[..., t] * u[..., t])[..., None] * B[..., t]
        y = (state * C[..., t]).sum(-1)
        out.append(2 * y.real if y.is_complex() else y)
    out = torch.stack(out, -1)
    out = out if D is None else out + D[:, None] * u
    return (out if z is None else out * functional.silu(z)), state


def arguments(kinds, complex_rates=False, length=9, dtype=torch.float64):
    batch, channels, states = 2, 4, 3
    rows = lambda: torch.randn(batch, channels, length, dtype=dtype)
    A = -torch.rand(channels, states, dtype=dtype)
    A = torch.complex(A, torch.randn_like(A)) if complex_rates else A
    parts = 2 if complex_rates else 1
    coupling = {
        "constant": lambda: torch.randn(channels, states, dtype=A.dtype),
        "varying": lambda: torch.randn(batch, states, parts * length, dtype=dtype),
        "grouped": lambda: torch.randn(batch, 2, states, parts * length, dtype=dtype),
    }
    each = lambda: torch.randn(channels, dtype=dtype)
    tensors = [rows(), rows(), A, *(coupling[kind]() for kind in kinds), each(), rows(), each()]
    return {name: tensor.requires_grad_() for name, tensor in zip(NAMES, tensors)}


@pytest.mark.parametrize("complex_rates", [False, True])
@pytest.mark.parametrize("kinds", [("varying", "varying"), ("constant", "varying"), ("grouped", "constant"), ("grouped", "grouped")])
@pytest.mark.parametrize("softplus", [False, True])
def test_values_and_gradients(kinds, complex_rates, softplus):
    given = arguments(kinds, complex_rates)
    for left_out in [(), ("D",), ("z", "delta_bias"), ("D", "z", "delta_bias")]:
        some = {name: tensor for name, tensor in given.items() if name not in left_out}
        got = selective_scan(**some, delta_softplus=softplus, return_last_state=True)
        exact = step_by_step(**some, delta_softplus=softplus)
        torch.testing.assert_close(got, exact)
        assert torch.equal(selective_scan(**some, delta_softplus=softplus), got[0])
        sums = [out.pow(2).sum() + last.abs().sum() for out, last in (got, exact)]
        gradients = [torch.autograd.grad(total, list(some.values())) for total in sums]
        torch.testing.assert_close(*gradients)


def test_gradients_of_gradients():
    given = arguments(("varying", "constant"), length=3)
    names, tensors = zip(*given.items())
    scan = lambda *tensors: selective_scan(**dict(zip(names, tensors)), delta_softplus=True)
    assert torch.autograd.gradcheck(scan, tensors)
    assert torch.autograd.gradgradcheck(scan, tensors)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.bfloat16, 0.02), (torch.float16, 4e-3)])
def test_types(dtype, tolerance):
    given = {name: tensor.detach() for name, tensor in arguments(("varying", "varying"), length=100).items()}
    stored = {name: tensor.to(dtype if tensor.ndim > 2 else torch.float32) for name, tensor in given.items()}
    out, last = selective_scan(**stored, delta_softplus=True, return_last_state=True)
    exact, exact_last = step_by_step(**{name: tensor.double() for name, tensor in stored.items()}, delta_softplus=True)
    assert (out.dtype, last.dtype) == (dtype, torch.float32)
    assert (out.double() - exact).abs().max() <= tolerance * exact.abs().max()
    assert (last.double() - exact_last).abs().max() <= 1e-5 * exact_last.abs().max()


def test_no_step():
    given = {name: tensor.detach() for name, tensor in arguments(("varying", "constant"), length=0).items()}
    out, last = selective_scan(**given, return_last_state=True)
    assert out.shape == (2, 4, 0) and torch.equal(last, torch.zeros(2, 4, 3, dtype=torch.float64))
