"""Tests of errors, whose messages name the shapes, types and devices."""

from __future__ import annotations

import re

import pytest
import torch
from linrec import linrec, selective_scan

scan, scan_backward = torch.ops.linrec.scan.default, torch.ops.linrec.scan_backward.default

X = torch.zeros(3, 100)
INT = torch.zeros(3, 100, dtype=torch.int64)
#: The options of the operators: reverse, log_coeffs, in_order.
PLAIN = (False, False, False)
META = torch.zeros(3, 100, device="meta")


def refuses(kind, message, call, *arguments, **options):
    with pytest.raises(kind, match=re.escape(message)):
        call(*arguments, **options)


def test_the_recurrence():
    refuses(ValueError, "float32[3, 100] on cpu, and coeffs are float32[3, 99] on cpu", linrec, X, X[:, :99])
    refuses(TypeError, "linrec: inputs is int64[3, 100] on cpu; elements can be float32", linrec, INT, X)
    refuses(TypeError, "linrec: coeffs is of type str, not a tensor", linrec, X, "0.5")
    refuses(TypeError, "linrec: inputs is of type float, not a tensor", linrec, 0.5, X)
    refuses(TypeError, "linrec: inputs is of type list, not a tensor", linrec, [1.0], X)
    refuses(ValueError, "inputs is float32[3, 100] on cpu, and coeffs is float32[3, 100] on meta", linrec, X, META)
    refuses(TypeError, "of layout torch.sparse_coo", linrec, X.to_sparse(), X)
    jagged = torch.nested.nested_tensor([X[0, :3], X[0, :5]], layout=torch.jagged)
    refuses(TypeError, "Pass its values() as one sequence, with coefficients of zero at offsets()[:-1]", linrec, jagged, X)
    refuses(IndexError, "there is no dim 2 in inputs, float32[3, 100] on cpu", linrec, X, X, dim=2)
    refuses(IndexError, "there is no dim -1 in inputs, float32[] on cpu", linrec, X[0, 0], X[0, 0])
    refuses(ValueError, "initial is float32[4] on cpu, which does not broadcast to [3]", linrec, X, X, initial=torch.zeros(4))
    complex_state = torch.zeros(3, dtype=torch.complex64)
    refuses(TypeError, "initial is complex64[3] on cpu, and inputs are float32[3, 100]", linrec, X, X, initial=complex_state)


def test_the_operators():
    refuses(ValueError, "linrec::scan: inputs is float32[3, 100] on cpu, and coeffs is float64", scan, X, X.double(), None, *PLAIN)
    refuses(ValueError, "and coeffs is float32[3, 99] on cpu", scan, X, X[:, :99], None, *PLAIN)
    refuses(ValueError, "sequences need an axis", scan, X[0, 0], X[0, 0], None, *PLAIN)
    refuses(ValueError, "it has to be float32[3]", scan, X, X, torch.zeros(3).double(), *PLAIN)
    refuses(ValueError, "it has to be float32[3]", scan, X.bfloat16(), X.bfloat16(), torch.zeros(3).bfloat16(), *PLAIN)
    refuses(ValueError, "linrec::scan_backward: d_outputs is float32[3, 100]", scan_backward, X, X, X[:2], None, *PLAIN)


U, A, B = torch.zeros(2, 4, 9), torch.zeros(4, 3), torch.zeros(2, 3, 9)


@pytest.mark.parametrize(
    "kind, message, change",
    [
        (ValueError, "u is float32[4, 9] on cpu, and A is float32[4, 3]", {"u": U[0]}),
        (ValueError, "A is float32[3, 3] on cpu", {"A": torch.zeros(3, 3)}),
        (ValueError, "delta is float32[2, 4, 8] on cpu", {"delta": U[..., :8]}),
        (ValueError, "z is float32[2, 4, 8] on cpu", {"z": U[..., :8]}),
        (ValueError, "D is float32[3] on cpu", {"D": torch.zeros(3)}),
        (ValueError, "delta_bias is float32[4, 1] on cpu", {"delta_bias": torch.zeros(4, 1)}),
        (ValueError, "B is float32[2, 2, 9] on cpu", {"B": B[:, :2]}),
        (ValueError, "their groups are one number, which divides the 4 channels", {"B": torch.zeros(2, 3, 3, 9)}),
        (ValueError, "their groups are one number", {"B": torch.zeros(2, 2, 3, 9), "C": torch.zeros(2, 4, 3, 9)}),
        (TypeError, "B is complex64[2, 3, 9]", {"B": B.to(torch.complex64)}),
        (TypeError, "C is float32[4, 3] on cpu: with a complex A", {"A": A.to(torch.complex64), "B": A.to(torch.complex64), "C": A}),
        (TypeError, "u is complex64[2, 4, 9] on cpu; it has to be real", {"u": U.to(torch.complex64)}),
        (TypeError, "D is int64[4] on cpu", {"D": torch.zeros(4, dtype=torch.int64)}),
        (ValueError, "z is float32[2, 4, 9] on meta", {"z": U.to("meta")}),
        (TypeError, "selective_scan: B is None, and only D, z and delta_bias may be", {"B": None}),
    ],
)
def test_the_selective_scan(kind, message, change):
    refuses(kind, message, selective_scan, **{"u": U, "delta": U, "A": A, "B": B, "C": B} | change)


def given_back(*shape):
    tensor = torch.rand(shape)
    tensor.untyped_storage().resize_(0)
    return tensor


@pytest.mark.parametrize("shape", [(64,), (3, 100)])
def test_memory_that_was_given_back(shape):
    """FSDP gives a parameter's memory back, and the tensor keeps its shape."""
    message = "of its storage, which has 0 bytes: its memory was given back"
    good = torch.rand(shape)
    refuses(ValueError, message, linrec, given_back(*shape), good)
    refuses(ValueError, message, linrec, good, given_back(*shape))
    refuses(ValueError, message, linrec, good, good, initial=given_back(*shape[:-1]))
    view = good.mT.clone().mT if good.ndim > 1 else good.repeat(2)[::2]
    view.untyped_storage().resize_(8)
    refuses(ValueError, "of its storage, which has 8 bytes", linrec, view, good)
    shorter = torch.rand(shape)
    shorter.untyped_storage().resize_(shorter.untyped_storage().nbytes() - 4)
    refuses(ValueError, "its memory was given back", linrec, shorter, good)
    x, c = torch.rand(shape, requires_grad=True), torch.rand(shape, requires_grad=True)
    y = linrec(x, c)
    c.untyped_storage().resize_(0)
    refuses(ValueError, message, y.sum().backward)
