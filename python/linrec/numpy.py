"""The recurrence for NumPy on the CPU: ``linrec.numpy.linrec`` and its gradients.

Arrays may have any strides and may broadcast; they are not copied.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native

__all__ = ["Gradients", "backward", "linrec"]

_TYPES = (np.float32, np.float64, np.complex64, np.complex128)


class Gradients(NamedTuple):
    """The gradients of a loss with respect to the arguments of :func:`linrec`."""

    inputs: NDArray[Any]
    coeffs: NDArray[Any]
    initial: NDArray[Any]


@overload
def linrec(
    inputs: ArrayLike,
    coeffs: ArrayLike,
    *,
    initial: ArrayLike | None = None,
    axis: int = -1,
    reverse: bool = False,
    log_coeffs: bool = False,
    in_order: bool = False,
    return_final: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def linrec(
    inputs: ArrayLike,
    coeffs: ArrayLike,
    *,
    initial: ArrayLike | None = None,
    axis: int = -1,
    reverse: bool = False,
    log_coeffs: bool = False,
    in_order: bool = False,
    return_final: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def linrec(
    inputs: ArrayLike,
    coeffs: ArrayLike,
    *,
    initial: ArrayLike | None = None,
    axis: int = -1,
    reverse: bool = False,
    log_coeffs: bool = False,
    in_order: bool = False,
    return_final: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def linrec(
    inputs: ArrayLike,
    coeffs: ArrayLike,
    *,
    initial: ArrayLike | None = None,
    axis: int = -1,
    reverse: bool = False,
    log_coeffs: bool = False,
    in_order: bool = False,
    return_final: bool = False,
):
    """The linear recurrence ``y[l] = y[l-1] * c[l] + x[l]`` along an axis.

    Args:
        inputs: ``x``, of any shape with at least one axis.
        coeffs: ``c``, of a shape that broadcasts with the shape of ``inputs``.
        initial: the state before the first step, of a shape that broadcasts to the outputs' shape
            without ``axis``; ``None`` means zero.
        axis: the axis of the sequences.
        reverse: walk from the last element to the first.
        log_coeffs: ``coeffs`` are ``ln c``.
        in_order: take the steps one after the other, for large coefficients (see below).
        return_final: also return the state after the last step.

    Returns:
        The outputs, of the shape to which ``inputs`` and ``coeffs`` broadcast; with
        ``return_final``, the outputs and the final state. Elements are float32, float64, complex64
        or complex128, promoted as in NumPy (``linrec(x, 0.9)`` is of the type of ``x``). Integers
        become float64. float16 is computed in float32, and the final state is float32.

    By default the steps are not taken in order: products of several coefficients are computed on the
    way. Where such a product overflows (``1e20 * 1e20`` in float32), outputs and gradients can be
    infinite or NaN although the states are finite. ``in_order=True`` takes one step after the other, as
    a loop does, with one rounding a step.

    >>> from linrec.numpy import linrec
    >>> linrec([1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.5, 0.5])
    array([1.  , 3.  , 4.5 , 6.25])
    """
    arrays, before, axis, narrow = _prepared("linrec", [("inputs", inputs), ("coeffs", coeffs)], initial, axis)
    x, c = arrays
    y = np.empty_like(x, subok=False)
    _native.forward(
        _capsule(x),
        _capsule(c),
        _capsule(before),
        _capsule(y),
        axis=axis,
        reverse=bool(reverse),
        log_coeffs=bool(log_coeffs),
        in_order=bool(in_order),
    )
    outputs = y.astype(narrow, copy=False)
    if not return_final:
        return outputs
    if y.shape[axis] > 0:
        return outputs, y.take(0 if reverse else -1, axis=axis)
    final = np.zeros(x.shape[:axis] + x.shape[axis + 1 :], x.dtype) if before is None else before.copy()
    return outputs, final


def backward(
    d_outputs: ArrayLike,
    coeffs: ArrayLike,
    outputs: ArrayLike,
    *,
    initial: ArrayLike | None = None,
    axis: int = -1,
    reverse: bool = False,
    log_coeffs: bool = False,
    in_order: bool = False,
) -> Gradients:
    """Computes the gradients of a loss from its gradient with respect to the outputs.

    Args:
        d_outputs: the gradient with respect to the outputs.
        coeffs: the coefficients of :func:`linrec`.
        outputs: the outputs of :func:`linrec`.
        initial, axis, reverse, log_coeffs, in_order: the other arguments of :func:`linrec`.

    Returns:
        The gradients with respect to ``inputs`` and ``coeffs`` (with ``log_coeffs``, to their
        logarithms), of the outputs' shape, and with respect to the initial state, of that shape
        without ``axis``. Complex gradients are conjugated, as in PyTorch. The gradient with respect
        to the initial state is float32 if the others are float16.
    """
    named = [("d_outputs", d_outputs), ("coeffs", coeffs), ("outputs", outputs)]
    arrays, before, axis, narrow = _prepared("backward", named, initial, axis)
    d_y = arrays[0]
    results = (
        np.empty_like(d_y, subok=False),
        np.empty_like(d_y, subok=False),
        np.empty(d_y.shape[:axis] + d_y.shape[axis + 1 :], d_y.dtype),
    )
    _native.backward(
        *map(_capsule, arrays),
        _capsule(before),
        *map(_capsule, results),
        axis=axis,
        reverse=bool(reverse),
        log_coeffs=bool(log_coeffs),
        in_order=bool(in_order),
    )
    *sequences, d_initial = results
    return Gradients(*(result.astype(narrow, copy=False) for result in sequences), d_initial)


def _prepared(operation: str, named: list[tuple[str, ArrayLike]], initial: ArrayLike | None, axis: int):
    """Returns arrays of one type and shape, the states, the axis >= 0, and the results' type."""
    states = [] if initial is None else [np.asarray(initial)]
    for name, array in [*named, ("initial", initial)]:
        if isinstance(array, np.ma.MaskedArray):
            raise TypeError(
                f"{operation}: {name} is a masked array, and linrec has no masks: pass {name}.filled(value), with "
                "inputs of 0 and coefficients of 1 where nothing is to change the state"
            )
    # Python's numbers widen no array, but NumPy's do.
    weak = (bool, int, float, complex)
    arrays = [np.asarray(array) for _, array in named]
    narrow = np.result_type(*(given if type(given) in weak else array for (_, given), array in zip(named, arrays)))
    if narrow.kind in "biu":
        narrow = np.dtype(np.float64)
    wide = np.dtype(np.float32) if narrow == np.float16 else narrow.newbyteorder("=")
    if wide.type not in _TYPES:
        described = ", ".join(f"{name} {array.dtype}{list(array.shape)}" for (name, _), array in zip(named, arrays))
        raise TypeError(f"{operation}: elements can be float32, float64, complex64 or complex128: {described}")
    if states and states[0].dtype.kind not in "biufc"[: 5 if wide.kind == "c" else 4]:
        raise TypeError(f"{operation}: initial is {states[0].dtype}, and {named[0][0]} are {arrays[0].dtype}")
    try:
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        described = ", ".join(f"{name} {list(array.shape)}" for (name, _), array in zip(named, arrays))
        raise ValueError(f"{operation}: shapes do not broadcast: {described}") from None
    if not -len(shape) <= axis < len(shape):
        raise IndexError(f"{operation}: there is no axis {axis} in {named[0][0]} {list(shape)}")
    axis %= len(shape)
    without = shape[:axis] + shape[axis + 1 :]
    arrays = [np.broadcast_to(array.astype(wide, copy=False), shape) for array in arrays]
    before = None
    if states:
        try:
            before = np.broadcast_to(states[0].astype(wide, copy=False), without)
        except ValueError:
            raise ValueError(
                f"{operation}: initial {list(states[0].shape)} does not broadcast to {list(without)}, which is "
                f"{list(shape)} without axis {axis}"
            ) from None
    return arrays, before, axis, narrow


def _capsule(array: NDArray[Any] | None) -> object | None:
    """Returns the array as a DLPack capsule; nothing is copied."""
    if array is None:
        return None
    if not array.flags.aligned or any(stride % array.itemsize for stride in array.strides):
        array = array.copy()
    if array.flags.writeable:
        return array.__dlpack__()
    try:
        return array.__dlpack__(max_version=(1, 0))
    except TypeError:  # NumPy before 2.1 does not export read-only arrays
        return array.copy().__dlpack__()
