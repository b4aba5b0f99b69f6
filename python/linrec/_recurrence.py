"""The recurrence for PyTorch."""

from __future__ import annotations

from typing import Literal, overload

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ._eager import is_plain_call, place_of
from ._operators import DifferentiableScan, scan, scan_with_final
from ._tensors import ACCUMULATORS, check, describe


@overload
def linrec(
    inputs: Tensor,
    coeffs: Tensor | complex,
    *,
    initial: Tensor | complex | None = None,
    dim: int = -1,
    reverse: bool = False,
    log_coeffs: bool = False,
    in_order: bool = False,
    return_final: Literal[False] = False,
) -> Tensor: ...
@overload
def linrec(
    inputs: Tensor,
    coeffs: Tensor | complex,
    *,
    initial: Tensor | complex | None = None,
    dim: int = -1,
    reverse: bool = False,
    log_coeffs: bool = False,
    in_order: bool = False,
    return_final: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@overload
def linrec(
    inputs: Tensor,
    coeffs: Tensor | complex,
    *,
    initial: Tensor | complex | None = None,
    dim: int = -1,
    reverse: bool = False,
    log_coeffs: bool = False,
    in_order: bool = False,
    return_final: bool,
) -> Tensor | tuple[Tensor, Tensor]: ...
def linrec(
    inputs: Tensor,
    coeffs: Tensor | complex,
    *,
    initial: Tensor | complex | None = None,
    dim: int = -1,
    reverse: bool = False,
    log_coeffs: bool = False,
    in_order: bool = False,
    return_final: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The linear recurrence ``y[l] = y[l-1] * c[l] + x[l]`` along one axis.

    Args:
        inputs: ``x``, of any shape with at least one axis.
        coeffs: ``c``, of a shape that broadcasts with the shape of ``inputs``, or a number.
        initial: the state before the first step, ``y[-1]`` (with ``reverse`` the state after the
            last, ``y[length]``). Its shape broadcasts to the outputs' shape without ``dim``.
            ``None`` means zero.
        dim: the axis of the sequences.
        reverse: walk from the last element to the first: ``y[l] = y[l+1] * c[l] + x[l]``.
        log_coeffs: ``coeffs`` are ``ln c``.
        in_order: take the steps one after the other, for large coefficients (see below).
        return_final: also return the state after the last step.

    Returns:
        The outputs ``y``, of the shape to which ``inputs`` and ``coeffs`` broadcast. With
        ``return_final``, the outputs and the final state, of that shape without ``dim``. The final
        state shares no memory with the outputs. It is in the type of the computation (float32 if
        elements have 16 bits), so that it loses nothing as the next call's ``initial``. If the
        sequences are empty, it is ``initial``, or zero.

    Elements are float32, float64, complex64, complex128, bfloat16 or float16; the last two are
    computed in float32 and rounded once. Two types are promoted as in ``inputs + coeffs``, also
    under autocast: the recurrence uses the wider type of its arguments and casts nothing to a
    narrower one. As in a sum, a number or a tensor without axes widens no tensor with axes: a
    coefficient 0.9 is rounded to the type of ``inputs``.

    By default the steps are not taken in order: products of several coefficients are computed on the
    way. Where such a product overflows (``1e20 * 1e20`` in float32), outputs and gradients can be
    infinite or NaN although the states are finite. ``in_order=True`` takes one step after the other, in
    the gradients as well, as a loop does, with one rounding a step. Many sequences are then computed at
    once, but a single one by one thread: on a GPU it takes several times as long.

    On a GPU it runs on the current stream, by kernels that are part of this package. It has
    gradients of any order, forward-mode derivatives (not under ``torch.compile``) and a rule for
    ``torch.vmap``, and it works under ``torch.compile(fullgraph=True)``.

    >>> import torch
    >>> from linrec import linrec
    >>> linrec(torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0.0, 1.0, 0.5, 0.5]))
    tensor([1.0000, 3.0000, 4.5000, 6.2500])
    """
    options = (bool(reverse), bool(log_coeffs), bool(in_order))
    if initial is None and dim == -1 and not return_final and is_plain_call():
        # The common call: nothing has to be promoted, broadcast or moved, so one look is enough.
        place = place_of(inputs)
        if place is not None and place == place_of(coeffs) and _are_alike(inputs, coeffs):
            return scan.short(place, inputs.requires_grad or coeffs.requires_grad, inputs, coeffs, None, *options)
    inputs, coeffs, initial = prepared(inputs, coeffs, initial, dim)
    arguments = (inputs, coeffs, initial, *options)
    last = dim in (-1, inputs.ndim - 1)
    if not return_final:
        outputs = (DifferentiableScan.apply if is_transformed() else scan)(*arguments)
        return outputs if last else outputs.movedim(-1, dim)
    outputs, final = (_transformed_with_final if is_transformed() else scan_with_final)(*arguments)
    return (outputs if last else outputs.movedim(-1, dim)), final


def prepared(inputs, coeffs, initial, dim) -> tuple[Tensor, Tensor, Tensor | None]:
    """Checks arguments, and returns them as operators take them: sequences along the last axis."""
    if isinstance(inputs, Tensor):
        coeffs, initial = _on_device(coeffs, inputs), _on_device(initial, inputs)
    check("linrec", ("inputs", inputs), [("coeffs", coeffs), ("initial", initial)])
    if inputs.dtype != coeffs.dtype:
        dtype = _result_type(inputs, coeffs)
        inputs, coeffs = inputs.to(dtype), coeffs.to(dtype)
    if initial is not None and initial.is_complex() and not inputs.is_complex():
        raise TypeError(f"linrec: initial is {describe(initial)}, and inputs are {describe(inputs)}: they are real")
    # An export with symbolic sizes compares only sizes of the same axis.
    if inputs.ndim != coeffs.ndim or inputs.shape != coeffs.shape:
        try:
            inputs, coeffs = torch.broadcast_tensors(inputs, coeffs)
        except RuntimeError:
            raise ValueError(
                f"linrec: inputs are {describe(inputs)}, and coeffs are {describe(coeffs)}, which do not broadcast"
            ) from None
    axes = inputs.ndim
    if not -axes <= dim < axes:
        raise IndexError(f"linrec: there is no dim {dim} in inputs, {describe(inputs)}")
    if dim not in (-1, axes - 1):
        inputs, coeffs = inputs.movedim(dim, -1), coeffs.movedim(dim, -1)
    return inputs, coeffs, None if initial is None else _states(initial, inputs)


def _transformed_with_final(inputs, coeffs, initial, reverse, *options) -> tuple[Tensor, Tensor]:
    """``scan_with_final`` for forward mode and transforms: the type of the computation is wide."""
    dtype = inputs.dtype
    wide = ACCUMULATORS[dtype]
    outputs = DifferentiableScan.apply(inputs.to(wide), coeffs.to(wide), initial, reverse, *options)
    if outputs.shape[-1] > 0:
        final = outputs.select(-1, 0 if reverse else -1).clone()
    elif initial is not None:
        final = initial.clone()
    else:
        final = outputs.new_zeros(outputs.shape[:-1])
    return outputs.to(dtype), final


def _on_device(value: Tensor | complex | None, inputs: Tensor) -> Tensor | None:
    """Returns a number as a tensor without axes, and moves such a tensor from the CPU as PyTorch does."""
    if isinstance(value, (int, float, complex)):
        return torch.full((), value, dtype=_type_of(value, inputs), device=inputs.device)
    if isinstance(value, Tensor) and value.ndim == 0 and value.device.type == "cpu":
        return value.to(inputs.device)
    return value


def _type_of(number: complex, inputs: Tensor) -> torch.dtype:
    dtype = _result_type(inputs, number)
    return dtype if dtype in ACCUMULATORS else torch.get_default_dtype()


def _result_type(inputs: Tensor, other: Tensor | complex) -> torch.dtype:
    """``torch.result_type``, which compilers do not trace: for them the type of an empty product."""
    if not torch.compiler.is_compiling():
        return torch.result_type(inputs, other)
    empty = lambda tensor: tensor.new_empty((0,) * tensor.ndim)
    return (empty(inputs) * (empty(other) if isinstance(other, Tensor) else other)).dtype


def _are_alike(inputs: Tensor, coeffs: Tensor) -> bool:
    """True for the same shape, with an axis, the same supported type, and the same device."""
    dtype, shape = inputs.dtype, inputs.shape
    return (
        dtype in ACCUMULATORS
        and dtype is coeffs.dtype
        and len(shape) > 0
        and shape == coeffs.shape
        and inputs.get_device() == coeffs.get_device()
    )


def is_transformed() -> bool:
    """True within forward mode or a transform of ``torch.func``, for which operators lack rules."""
    if torch.compiler.is_compiling():
        return False
    return forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active()


def _states(initial: Tensor, rows: Tensor) -> Tensor:
    """Returns the initial states, one for each of the ``rows``, in the accumulator's type."""
    shape = rows.shape[:-1]
    if initial.ndim != len(shape) or initial.shape != shape:
        try:
            initial = initial.expand(shape)
        except RuntimeError:
            raise ValueError(
                f"linrec: initial is {describe(initial)}, which does not broadcast to {list(shape)}: what is left of "
                f"{list(rows.shape)} without its sequences' axis, the last one here"
            ) from None
    dtype = ACCUMULATORS[rows.dtype]
    return initial if initial.dtype == dtype else initial.to(dtype)
