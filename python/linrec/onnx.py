"""Export of :func:`linrec.linrec` to ONNX, whose operator ``Scan`` takes the steps in order.

It needs ``onnxscript``, as ``torch.onnx.export`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from onnxscript import BFLOAT16, DOUBLE, FLOAT, FLOAT16, graph, script
from onnxscript import opset18 as op
from onnxscript.values import Opset

from . import _operators  # noqa: F401  (registers the operators)

__all__ = ["translations"]

_T = TypeVar("_T", FLOAT, DOUBLE)


def _steps(domain: str, direction: int):
    """Returns a function of ONNX, whose name is unique in its domain."""
    one, two = [direction], [direction, direction]

    @script(Opset(domain, 1), default_opset=op)
    def steps(inputs: _T, coeffs: _T, initial: _T) -> tuple[_T, _T]:
        @graph()
        def step(state, x, c):
            y = op.Add(op.Mul(state, c), x)
            output = op.Identity(y)
            return y, output

        final, outputs = op.Scan(
            initial, inputs, coeffs, body=step, num_scan_inputs=2, scan_input_axes=[-1, -1], scan_output_axes=[-1],
            scan_input_directions=two, scan_output_directions=one,
        )  # fmt: skip
        return outputs, final

    return steps


_forward, _reverse = _steps("linrec", 0), _steps("linrec.reverse", 1)


def _scan_with_final(inputs, coeffs, initial, reverse, log_coeffs, *_options):
    """Computes numbers of 16 bits in float32, as the library does."""
    is_narrow = inputs.dtype in (FLOAT16.dtype, BFLOAT16.dtype)
    x, c = (op.Cast(array, to=FLOAT.dtype) if is_narrow else array for array in (inputs, coeffs))
    if log_coeffs:
        c = op.Exp(c)
    if initial is None:
        initial = op.CastLike(op.ConstantOfShape(op.Shape(x, end=-1)), x)
    outputs, final = (_reverse if reverse else _forward)(x, c, initial)
    return (op.CastLike(outputs, inputs) if is_narrow else outputs), final


def _scan(*arguments):
    return _scan_with_final(*arguments)[0]


def translations() -> dict[Callable, Callable]:
    """Returns what ``linrec`` becomes in ONNX, for ``custom_translation_table`` of ``torch.onnx.export``.

    Elements are float32, float64, float16 or bfloat16.

    >>> from linrec import onnx
    >>> torch.onnx.export(model, inputs, dynamo=True, custom_translation_table=onnx.translations())  # doctest: +SKIP
    """
    operators = torch.ops.linrec
    return {operators.scan.default: _scan, operators.scan_with_final.default: _scan_with_final}
