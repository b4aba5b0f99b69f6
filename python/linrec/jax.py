"""The recurrence for JAX on the CPU, through XLA's foreign function interface.

It works under ``jit``, ``grad`` and ``vmap``.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from . import _native

__all__ = ["linrec"]

jax.ffi.register_ffi_target("linrec_forward", _native.xla_forward(), platform="cpu")

#: The type in which each type of element is computed.
_ACCUMULATORS = {
    "float32": "float32",
    "float64": "float64",
    "complex64": "complex64",
    "complex128": "complex128",
    "bfloat16": "float32",
    "float16": "float32",
}


@overload
def linrec(
    inputs: ArrayLike,
    coeffs: ArrayLike,
    *,
    initial: ArrayLike | None = None,
    axis: int = -1,
    reverse: bool = False,
    log_coeffs: bool = False,
    return_final: Literal[False] = False,
) -> Array: ...
@overload
def linrec(
    inputs: ArrayLike,
    coeffs: ArrayLike,
    *,
    initial: ArrayLike | None = None,
    axis: int = -1,
    reverse: bool = False,
    log_coeffs: bool = False,
    return_final: Literal[True],
) -> tuple[Array, Array]: ...
@overload
def linrec(
    inputs: ArrayLike,
    coeffs: ArrayLike,
    *,
    initial: ArrayLike | None = None,
    axis: int = -1,
    reverse: bool = False,
    log_coeffs: bool = False,
    return_final: bool,
) -> Array | tuple[Array, Array]: ...
def linrec(
    inputs: ArrayLike,
    coeffs: ArrayLike,
    *,
    initial: ArrayLike | None = None,
    axis: int = -1,
    reverse: bool = False,
    log_coeffs: bool = False,
    return_final: bool = False,
):
    """The linear recurrence ``y[l] = y[l-1] * c[l] + x[l]`` along an axis.

    It has gradients of any order in reverse mode.

    Args:
        inputs: ``x``, of any shape with at least one axis.
        coeffs: ``c``, of a shape that broadcasts with the shape of ``inputs``.
        initial: the state before the first step, of a shape that broadcasts to the outputs' shape
            without ``axis``; ``None`` means zero.
        axis: the axis of the sequences.
        reverse: walk from the last element to the first.
        log_coeffs: ``coeffs`` are ``ln c``.
        return_final: also return the state after the last step.

    Returns:
        The outputs, of the shape to which ``inputs`` and ``coeffs`` broadcast; with
        ``return_final``, the outputs and the final state. Elements are float32, float64, complex64,
        complex128, bfloat16 or float16, promoted as in JAX. The last two are computed in float32,
        and then the final state is float32.

    The steps are not taken in order: products of several coefficients are computed on the way. Where
    such a product overflows (``1e20 * 1e20`` in float32), outputs can be infinite or NaN that are
    finite when the steps are taken one after the other.
    """
    x, c = jnp.asarray(inputs), jnp.asarray(coeffs)
    described = f"inputs {x.dtype}{list(x.shape)}, coeffs {c.dtype}{list(c.shape)}"
    dtype = jnp.result_type(x, c)
    if dtype.name not in _ACCUMULATORS:
        raise TypeError(f"linrec: elements can be {', '.join(_ACCUMULATORS)}: {described}")
    try:
        shape = jnp.broadcast_shapes(x.shape, c.shape)
    except ValueError:
        raise ValueError(f"linrec: shapes do not broadcast: {described}") from None
    if not -len(shape) <= axis < len(shape):
        raise IndexError(f"linrec: there is no axis {axis}: {described}")
    wide = _ACCUMULATORS[dtype.name]
    x, c = (jnp.moveaxis(jnp.broadcast_to(array.astype(wide), shape), axis, -1) for array in (x, c))
    h = jnp.zeros((), wide) if initial is None else jnp.asarray(initial)
    if jnp.iscomplexobj(h) and not jnp.iscomplexobj(x):
        raise TypeError(f"linrec: initial is {h.dtype}: {described}")
    try:
        h = jnp.broadcast_to(h.astype(wide), x.shape[:-1])
    except ValueError:
        raise ValueError(
            f"linrec: initial {list(h.shape)} does not broadcast to {list(x.shape[:-1])}, without the axis: {described}"
        ) from None
    y = _scan(x, c, h, bool(reverse), bool(log_coeffs))
    outputs = jnp.moveaxis(y.astype(dtype), -1, axis)
    if not return_final:
        return outputs
    return outputs, (h if _is_empty(y) else y[..., 0 if reverse else -1])


def _is_empty(sequences: Array) -> bool:
    """True if there is no step. A symbolic length of an exported function is at least one step."""
    length = sequences.shape[-1]
    return isinstance(length, int) and length == 0


@partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def _scan(x: Array, c: Array, h: Array, reverse: bool, log_coeffs: bool) -> Array:
    call = jax.ffi.ffi_call("linrec_forward", jax.ShapeDtypeStruct(x.shape, x.dtype), vmap_method="broadcast_all")
    return call(x, c, h, flags=np.int32(reverse + 2 * log_coeffs))


def _forward(x: Array, c: Array, h: Array, reverse: bool, log_coeffs: bool):
    y = _scan(x, c, h, reverse, log_coeffs)
    return y, (c, h, y)


def _backward(reverse: bool, log_coeffs: bool, saved: tuple[Array, Array, Array], d_y: Array):
    """Runs the recurrence in the other direction. JAX does not conjugate complex gradients."""
    c, h, y = saved
    if _is_empty(y):
        return d_y, jnp.zeros_like(c), jnp.zeros_like(h)
    zeros = jnp.zeros_like(h)
    deltas = _scan(d_y, _shifted(c, zeros, not reverse), zeros, not reverse, log_coeffs)
    d_c = deltas * _shifted(y, h, reverse)
    factors = jnp.exp(c) if log_coeffs else c
    first = -1 if reverse else 0
    d_h = factors[..., first] * deltas[..., first]
    return deltas, d_c * factors if log_coeffs else d_c, d_h


def _shifted(sequences: Array, first: Array, reverse: bool) -> Array:
    """Shifts sequences by one step, after ``first``."""
    first = first[..., None]
    parts = [sequences[..., 1:], first] if reverse else [first, sequences[..., :-1]]
    return jnp.concatenate(parts, axis=-1)


_scan.defvjp(_forward, _backward)
