"""Tests of plain calls, which bypass the dispatcher with the same bits.

Modes, compilers and transforms that take part in calls see the operators.
"""

from __future__ import annotations

import os
import warnings

import pytest
import torch
from linrec import linrec
from torch._subclasses import FakeTensorMode
from torch.autograd.profiler import profile
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.complex128]
REQUIRED = os.environ.get("LINREC_REQUIRE_CUDA") == "1"
NEEDS_CUDA = pytest.mark.skipif(not torch.cuda.is_available() and not REQUIRED, reason="needs an NVIDIA GPU")
PLAIN, OPERATOR = "linrec_scanBackward", "GeneratedBackwardFor_linrec_scan_defaultBackward"


class Watched(TorchFunctionMode):
    """Changes no function; under it no call is plain."""

    def __torch_function__(self, function, types, arguments=(), named=None):
        return function(*arguments, **(named or {}))


class Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        self.names.append(str(function))
        return function(*arguments, **(named or {}))


def leaves(dtype=torch.float32, length=50, device="cpu"):
    x, c = torch.randn(3, length, dtype=dtype), torch.randn(3, length, dtype=dtype).tanh()
    h = torch.randn(3, dtype=torch.promote_types(dtype, torch.float32))
    return [tensor.to(device).requires_grad_() for tensor in (x, c, h)]


def derivatives(x, c, h, **options):
    """Returns outputs, gradients and gradients of gradients, and the way of the call."""
    y = linrec(x, c, initial=h, **options)
    first = torch.autograd.grad(y.abs().sum(), (x, c, h), create_graph=True)
    second = torch.autograd.grad(sum(gradient.abs().sum() for gradient in first), (x, c, h))
    with torch.no_grad():
        again = linrec(x, c, initial=h, **options)
    once = torch.autograd.grad(linrec(x, c, initial=h, **options).abs().sum(), (x, c, h))
    return (y, again, *first, *once, *second), type(y.grad_fn).__name__


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("log_coeffs", [False, True])
@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_CUDA)])
def test_both_ways_have_the_same_bits(dtype, reverse, log_coeffs, in_order, device):
    options = {"reverse": reverse, "log_coeffs": log_coeffs, "in_order": in_order}
    tensors = leaves(dtype, device=device)
    got, way = derivatives(*tensors, **options)
    with Watched():
        wanted, other_way = derivatives(*tensors, **options)
    assert (way, other_way) == (PLAIN, OPERATOR)
    for number, (a, b) in enumerate(zip(got, wanted, strict=True)):
        assert a.dtype == b.dtype and a.requires_grad == b.requires_grad, number
        a, b = a.detach(), b.detach()
        assert torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num()), number


def test_modes_see_the_operators():
    x, c, _ = leaves()
    with Seen() as seen:
        linrec(x, c).sum().backward()
    assert {"linrec.scan.default", "linrec.scan_backward.default"} <= set(seen.names)
    with profile() as profiled:
        linrec(x, c).sum().backward()
    assert {"linrec::scan", "linrec::scan_backward"} <= {event.name for event in profiled.function_events}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = torch.jit.trace(lambda x, c: linrec(x, c), (x.detach(), c.detach()))
    other = torch.randn(3, 50)
    assert torch.equal(graph(other, c.detach()), linrec(other, c.detach()))


def test_a_mode_sees_the_backward_pass_of_an_earlier_call():
    x, c, _ = leaves()
    y = linrec(x, c)
    with Seen() as seen:
        y.sum().backward()
    assert type(y.grad_fn).__name__ == PLAIN and "linrec.scan_backward.default" in seen.names


def test_tensors_that_are_not_plain():
    x, c, _ = (tensor.detach() for tensor in leaves(torch.complex64))
    assert torch.equal(linrec(x.conj(), c.conj()), linrec(x, c).conj().resolve_conj())
    negative = x.conj().imag
    assert negative.is_neg()
    assert torch.equal(linrec(negative, c.real), linrec(-x.imag, c.real))

    class Kind(torch.Tensor):
        pass

    assert type(linrec(x.as_subclass(Kind), c)) is Kind
    parameter = torch.nn.Parameter(torch.randn(3, 50))
    assert type(linrec(parameter, parameter).grad_fn).__name__ == PLAIN
    with FakeTensorMode() as mode:
        assert linrec(torch.empty(3, 50), torch.empty(3, 50)).fake_mode is mode
    fake = mode.from_tensor(torch.empty(3, 50))
    assert linrec(fake, fake).fake_mode is mode
    meta = torch.empty(3, 50, device="meta")
    assert linrec(meta, meta).is_meta


def test_inference_mode():
    x, c, _ = leaves()
    wanted = linrec(x, c)
    with torch.inference_mode():
        got = linrec(x, c)
        again = linrec(got, c)
    assert got.is_inference() and torch.equal(got, wanted) and torch.equal(again, linrec(wanted, c))
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        linrec(x, got)


def test_other_features_of_autograd():
    x, c, h = leaves()
    wanted = torch.autograd.grad(linrec(x, c, initial=h).sum(), (x, c, h))
    saved = lambda: torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.numpy(force=True), torch.from_numpy)
    with saved():
        total = linrec(x, c, initial=h).sum()
    assert all(map(torch.equal, torch.autograd.grad(total, (x, c, h)), wanted))
    total = checkpoint(lambda x, c, h: linrec(x, c, initial=h), x, c, h, use_reentrant=False).sum()
    assert all(map(torch.equal, torch.autograd.grad(total, (x, c, h)), wanted))
    y = linrec(x, c)
    directions = torch.stack([torch.ones_like(y), torch.randn_like(y)])
    together = torch.autograd.grad(y, (x, c), directions, is_grads_batched=True, retain_graph=True)
    for number, direction in enumerate(directions):
        for gradients, gradient in zip(together, torch.autograd.grad(y, (x, c), direction, retain_graph=True)):
            torch.testing.assert_close(gradients[number], gradient)
    with torch.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
