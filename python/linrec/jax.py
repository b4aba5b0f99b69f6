"""The recurrence for JAX on the CPU and on NVIDIA GPUs, through XLA's foreign function interface.

It works under all of JAX's transformations: ``jit``, ``vmap``, derivatives in both modes and of any
order, ``checkpoint``, ``lax.scan``, ``shard_map`` and ``jax.export``.

Three primitives of JAX do the work. Sequences are along the last axis, and a flag reverses them.
States are of the accumulator's type. ``*`` is a product without conjugation, as in JAX::

    scan        x, c, h -> y, final           y[l] = y[l-1] c[l] + x[l],  with y[-1] = h
    tangent     dx, dc, dh; c, y, h -> dy     dy[l] = dy[l-1] c[l] + dx[l] + y[l-1] dc[l]
    backward    g; c, y, h -> d, dc, dh       d[l] = g[l] + c[l+1] d[l+1],  dc[l] = d[l] y[l-1],  dh = c[0] d[0]

``tangent`` is the derivative of ``scan``, and ``backward`` is the transpose of ``tangent``. The library
computes ``scan`` and ``backward``, each in one pass. ``tangent`` is a ``scan``, and so are the derivatives of
``backward``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.typing import ArrayLike

from . import _native

__all__ = ["linrec"]

for _name, _is_backward in (("linrec_forward", False), ("linrec_backward", True)):
    for _platform, _is_cuda in (("cpu", False), ("CUDA", True)):
        jax.ffi.register_ffi_target(_name, _native.xla_handler(_is_backward, _is_cuda), platform=_platform)

#: Bits of the flags.
_REVERSE, _LOG_COEFFS, _IN_ORDER = 1, 2, 4

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
    in_order: bool = False,
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
    in_order: bool = False,
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
    in_order: bool = False,
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
    in_order: bool = False,
    return_final: bool = False,
):
    """The linear recurrence ``y[l] = y[l-1] * c[l] + x[l]`` along an axis.

    On a GPU it runs on JAX's stream, by kernels that are part of this package. It has derivatives of
    any order in both modes.

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
        ``return_final``, the outputs and the final state. Elements are float32, float64, complex64,
        complex128, bfloat16 or float16, promoted as in JAX. The last two are computed in float32,
        and then the final state is float32.

    By default the steps are not taken in order: products of several coefficients are computed on the
    way. Where such a product overflows (``1e20 * 1e20`` in float32), outputs and derivatives can be
    infinite or NaN although the states are finite. ``in_order=True`` takes one step after the other, in
    the derivatives as well, as a loop does. A single sequence is then computed by one thread.
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
    x, c = (jnp.moveaxis(jnp.broadcast_to(array.astype(dtype), shape), axis, -1) for array in (x, c))
    h = jnp.zeros((), wide) if initial is None else jnp.asarray(initial)
    if jnp.iscomplexobj(h) and not jnp.iscomplexobj(x):
        raise TypeError(f"linrec: initial is {h.dtype}: {described}")
    try:
        h = jnp.broadcast_to(h.astype(wide), x.shape[:-1])
    except ValueError:
        raise ValueError(
            f"linrec: initial {list(h.shape)} does not broadcast to {list(x.shape[:-1])}, without the axis: {described}"
        ) from None
    # A symbolic length of an exported function is at least one step.
    is_empty = isinstance(x.shape[-1], int) and x.shape[-1] == 0
    if initial is None and not is_empty:
        h = jnp.zeros_like(x[..., 0], wide)  # on the devices of `x`
    flags = _REVERSE * bool(reverse) + _LOG_COEFFS * bool(log_coeffs) + _IN_ORDER * bool(in_order)
    y, final = (x, h) if is_empty else _scan.bind(x, c, h, flags=flags)
    outputs = jnp.moveaxis(y, -1, axis)
    return (outputs, final) if return_final else outputs


# The states before each step, and the products in the formulas above.


def _end(flags: int) -> int:
    """Returns the index of the last step."""
    return 0 if flags & _REVERSE else -1


def _start(flags: int) -> int:
    """Returns the index of the first step."""
    return -1 if flags & _REVERSE else 0


def _shifted(sequences: Array, first: Array, flags: int) -> Array:
    """Shifts sequences by one step, after ``first``."""
    first = first.astype(sequences.dtype)[..., None]
    parts = [sequences[..., 1:], first] if flags & _REVERSE else [first, sequences[..., :-1]]
    return jnp.concatenate(parts, axis=-1)


def _factors(c: Array, flags: int) -> Array:
    return jnp.exp(c) if flags & _LOG_COEFFS else c


def _of_coeffs(deltas: Array, c: Array, flags: int) -> Array:
    """Multiplies by the derivative of the factors with respect to ``c``."""
    return deltas * jnp.exp(c) if flags & _LOG_COEFFS else deltas


# What the primitives compute.


def _call(target: str, operands: tuple[Array, ...], results: tuple[Array, ...], flags: int):
    like = [jax.ShapeDtypeStruct(result.shape, result.dtype) for result in results]
    return jax.ffi.ffi_call(target, like)(*operands, flags=np.int32(flags))


def _compute_scan(x: Array, c: Array, h: Array, *, flags: int):
    return _call("linrec_forward", (x, c, h), (x, h), flags)


def _compute_tangent(dx: Array, dc: Array, dh: Array, c: Array, y: Array, h: Array, *, flags: int):
    """Computes numbers of 16 bits in the accumulator's type, as a sum of them would lose digits."""
    narrow = y.dtype
    dx, dc, c, y = (array.astype(h.dtype) for array in (dx, dc, c, y))
    changes = dx + _of_coeffs(dc, c, flags) * _shifted(y, h, flags)
    dy, d_final = _scan.bind(changes, c, dh, flags=flags)
    return dy.astype(narrow), d_final


def _compute_backward(g: Array, c: Array, y: Array, h: Array, *, flags: int):
    """The library conjugates complex gradients, and JAX does not."""
    gradients = _call("linrec_backward", (jnp.conj(g), c, y, h), (y, c, h), flags)
    return [jnp.conj(gradient) for gradient in gradients]


def _products(deltas: Array, c: Array, y: Array, h: Array, *, flags: int) -> tuple[Array, Array]:
    """Returns the gradients of coefficients and initial states from the gradient of the inputs."""
    d_c = _of_coeffs(deltas, c, flags) * _shifted(y, h, flags)
    first = _start(flags)
    return d_c, (_factors(c[..., first], flags) * deltas[..., first]).astype(h.dtype)


def _primitive(name: str, compute: Callable, results: tuple[int, int] | tuple[int, int, int]) -> Primitive:
    """Returns a primitive whose results are like the operands with these numbers."""
    primitive = Primitive(f"linrec_{name}")
    primitive.multiple_results = True
    primitive.def_impl(jax.jit(compute, static_argnames="flags"))
    primitive.def_abstract_eval(lambda *operands, flags: [operands[number] for number in results])
    mlir.register_lowering(primitive, mlir.lower_fun(compute, multiple_results=True))
    batching.primitive_batchers[primitive] = partial(_batched, primitive)
    return primitive


def _batched(primitive: Primitive, operands, dims, *, flags: int):
    """Adds one axis in front."""
    size = next(operand.shape[dim] for operand, dim in zip(operands, dims) if dim is not None)
    results = primitive.bind(
        *(
            jnp.broadcast_to(operand, (size, *operand.shape)) if dim is None else jnp.moveaxis(operand, dim, 0)
            for operand, dim in zip(operands, dims)
        ),
        flags=flags,
    )
    return results, [0] * len(results)


_scan = _primitive("scan", _compute_scan, (0, 2))
_tangent = _primitive("tangent", _compute_tangent, (4, 5))
_backward = _primitive("backward", _compute_backward, (2, 1, 3))

# Derivatives. Tangents and cotangents that are zero are of the type `ad.Zero`.


def _jvp(compute: Callable, operands, tangents, *, flags: int):
    """The derivative of a function of JAX's own operations and these primitives."""
    numbers = [number for number, tangent in enumerate(tangents) if type(tangent) is not ad.Zero]

    def run(*varied):
        arguments = list(operands)
        for number, operand in zip(numbers, varied):
            arguments[number] = operand
        return compute(*arguments, flags=flags)

    return jax.jvp(run, [operands[number] for number in numbers], [tangents[number] for number in numbers])


def _tangents(d_x, d_c, d_h, c: Array, y: Array, h: Array, flags: int):
    """Returns the tangents of ``scan``. Without a tangent of the coefficients it does not need ``y``."""
    d_x, d_h = ad.instantiate_zeros(d_x), ad.instantiate_zeros(d_h)
    if type(d_c) is ad.Zero:
        return _scan.bind(d_x, c, d_h, flags=flags)
    return _tangent.bind(d_x, d_c, d_h, c, y, h, flags=flags)


def _scan_jvp(operands, tangents, *, flags: int):
    _, c, h = operands
    y, final = _scan.bind(*operands, flags=flags)
    return [y, final], _tangents(*tangents, c, y, h, flags)


def _backward_jvp(operands, tangents, *, flags: int):
    """The gradients of inputs are a ``scan`` from the other end, and the others are products of them."""
    (_, c, y, h), (d_g, d_c, d_y, d_h) = operands, tangents
    gradients = _backward.bind(*operands, flags=flags)
    deltas, d_deltas = gradients[0], d_g
    if type(d_g) is not ad.Zero or type(d_c) is not ad.Zero:
        zeros, opposite = jnp.zeros_like(h), flags ^ _REVERSE
        # The coefficient after the last step is 0; as a logarithm it is e^0, times a state of 0.
        d_later = d_c if type(d_c) is ad.Zero else _shifted(d_c, zeros, opposite)
        d_deltas, _ = _tangents(d_g, d_later, zeros, _shifted(c, zeros, opposite), deltas, zeros, opposite)
    _, products = _jvp(_products, (deltas, c, y, h), (d_deltas, d_c, d_y, d_h), flags=flags)
    return gradients, [ad.instantiate_zeros(d_deltas), *products]


def _gradient_of_outputs(cotangents, flags: int) -> Array:
    """Adds the gradient of the final state, in its type, to that of the last output."""
    g, of_final = cotangents
    g = ad.instantiate_zeros(g)
    if type(of_final) is ad.Zero:
        return g
    return g.astype(of_final.dtype).at[..., _end(flags)].add(of_final)


def _scan_transpose(cotangents, x, c, h, *, flags: int):
    if ad.is_undefined_primal(c):
        raise NotImplementedError("linrec: the outputs are not linear in the coefficients")
    g = _gradient_of_outputs(cotangents, flags)
    c = c.astype(g.dtype)
    opposite, states = flags ^ _REVERSE, h.aval if ad.is_undefined_primal(h) else h
    zeros = jnp.zeros_like(g[..., 0], states.dtype)
    deltas, first = _scan.bind(g, _shifted(c, zeros, opposite), zeros, flags=opposite)
    of_states = _factors(c[..., _start(flags)].astype(first.dtype), flags) * first
    of_inputs = deltas.astype(x.aval.dtype) if ad.is_undefined_primal(x) else None
    return [of_inputs, None, of_states if ad.is_undefined_primal(h) else None]


def _tangent_transpose(cotangents, d_x, d_c, d_h, c, y, h, *, flags: int):
    g = _gradient_of_outputs(cotangents, flags)
    gradients = _backward.bind(g, c.astype(g.dtype), y.astype(g.dtype), h, flags=flags)
    tangents = zip((d_x, d_c, d_h), gradients)
    linear = [of.astype(d.aval.dtype) if ad.is_undefined_primal(d) else None for d, of in tangents]
    return [*linear, None, None, None]


def _backward_transpose(cotangents, _g, c, y, h, *, flags: int):
    """``backward`` is linear in the gradient of the outputs, and ``tangent`` is its transpose."""
    of_g, _ = _tangent.bind(*map(ad.instantiate_zeros, cotangents), c, y, h, flags=flags)
    return [of_g, None, None, None]


if not hasattr(jax, "shard_map"):  # before JAX 0.6.1 it asks for rules
    from jax.experimental import shard_map

    for _each in (_scan, _tangent, _backward):
        shard_map.register_standard_check(_each)
        shard_map.register_standard_rewrite(_each)

ad.primitive_jvps[_scan] = _scan_jvp
ad.primitive_jvps[_tangent] = partial(_jvp, _compute_tangent)
ad.primitive_jvps[_backward] = _backward_jvp
ad.primitive_transposes[_scan] = _scan_transpose
ad.primitive_transposes[_tangent] = _tangent_transpose
ad.primitive_transposes[_backward] = _backward_transpose
