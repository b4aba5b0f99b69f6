"""The recurrence for JAX."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="needs JAX")
jnp = jax.numpy

from linrec.jax import linrec  # noqa: E402

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def numbers(shape, dtype=np.float64):
    real = RNG.normal(size=shape)
    return jnp.asarray((real + 1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else real).astype(dtype))


def loop(x, c, h, reverse=False):
    """Runs along the last axis, in JAX's own operations."""
    steps = (jnp.moveaxis(x, -1, 0), jnp.moveaxis(c, -1, 0))

    def step(state, each):
        state = state * each[1] + each[0]
        return state, state

    return jnp.moveaxis(jax.lax.scan(step, h, steps, reverse=reverse)[1], 0, -1)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("log_coeffs", [False, True])
def test_values_and_gradients(dtype, reverse, log_coeffs):
    x, c, h = numbers((2, 3, 9), dtype), 0.5 * numbers((2, 3, 9), dtype), numbers((2, 3), dtype)
    weights = numbers((2, 3, 9), dtype)
    ours = lambda x, c, h: linrec(x, c, initial=h, reverse=reverse, log_coeffs=log_coeffs)
    exact = lambda x, c, h: loop(x, jnp.exp(c) if log_coeffs else c, h, reverse)
    np.testing.assert_allclose(jax.jit(ours)(x, c, h), exact(x, c, h), rtol=1e-12, atol=1e-12)
    totals = [lambda *a, of=of: jnp.real(jnp.sum(of(*a) ** 2 * weights)) for of in (ours, exact)]
    got, wanted = (jax.jit(jax.grad(total, argnums=(0, 1, 2)))(x, c, h) for total in totals)
    for one, other in zip(got, wanted):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
    squares = [lambda c, of=of: jnp.sum(jnp.abs(jax.grad(of, argnums=1)(x, c, h)) ** 2) for of in totals]
    np.testing.assert_allclose(*(jax.grad(of)(c) for of in squares), rtol=1e-8, atol=1e-8)


def test_axes_types_and_batches():
    x, c = numbers((4, 5, 6)), numbers((5, 1))
    for axis in range(-3, 3):
        y, last = linrec(x, c, axis=axis, return_final=True)
        full = jnp.moveaxis(jnp.broadcast_to(c, x.shape), axis, -1)
        exact = loop(jnp.moveaxis(x, axis, -1), full, jnp.zeros(full.shape[:-1]))
        np.testing.assert_allclose(y, jnp.moveaxis(exact, -1, axis), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(last, exact[..., -1], rtol=1e-12, atol=1e-12)
    for dtype in ["float32", "bfloat16", "float16", "complex64"]:
        assert linrec(x.astype(dtype), c.astype(dtype)).dtype == dtype
    single = lambda x, c: linrec(x, c)
    got = jax.vmap(single, in_axes=(1, None))(x, x[:, 0])
    for i in range(5):
        np.testing.assert_array_equal(got[i], single(x[:, i], x[:, 0]))
    per_row = jax.vmap(jax.grad(lambda x: linrec(x, x).sum()))(x[:, 0])
    np.testing.assert_allclose(per_row[2], jax.grad(lambda x: linrec(x, x).sum())(x[2, 0]))
    empty, last = linrec(jnp.zeros((2, 0)), jnp.zeros((2, 0)), initial=3.0, return_final=True)
    assert empty.shape == (2, 0) and last.tolist() == [3, 3]


def test_weak_types_widen_nothing():
    for dtype in ["float32", "bfloat16", "complex64"]:
        x = jnp.ones((2, 3), dtype)
        for c in [0.5, jnp.asarray(0.5), 1]:
            assert linrec(x, c).dtype == dtype and linrec(x, c, initial=2.0).dtype == dtype
    assert linrec(jnp.ones(3, "float32"), jnp.float64(0.5)).dtype == "float64"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_a_state_is_carried_by_scan(dtype):
    """Runs 1000 steps one by one in ``lax.scan``, whose carry keeps its type."""
    x = jnp.ones((1000, 2, 1), dtype)

    def step(state, inputs):
        y, state = linrec(inputs, 1.0, initial=state, return_final=True)
        return state, y

    last, y = jax.lax.scan(step, jnp.zeros(2, "float32"), x)
    assert last.dtype == "float32" and last.tolist() == [1000, 1000]
    np.testing.assert_array_equal(y[:, 0, 0], linrec(x[:, 0, 0], 1.0))


def test_exported_with_symbolic_shapes():
    from jax import export

    rows, length = export.symbolic_shape("rows, length")
    spec = jax.ShapeDtypeStruct((rows, length), np.float64)
    disabled = [export.DisabledSafetyCheck.custom_call("linrec_forward")]
    whole = jax.jit(lambda x, c: linrec(x, c, return_final=True))
    exported = export.export(whole, disabled_checks=disabled)(spec, spec)
    gradient = export.export(jax.jit(jax.grad(lambda x, c: linrec(x, c).sum())), disabled_checks=disabled)(spec, spec)
    x, c = numbers((3, 7)), 0.5 * numbers((3, 7))
    for one, other in zip(exported.call(x, c), whole(x, c)):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(gradient.call(x, c), jax.grad(lambda x, c: linrec(x, c).sum())(x, c))


@pytest.mark.parametrize(
    "kind, message, call",
    [
        (TypeError, r"elements can be .*: inputs int64\[3\], coeffs int64\[3\]", lambda: linrec(jnp.arange(3), jnp.arange(3))),
        (ValueError, r"shapes do not broadcast: inputs float64\[2\], coeffs float64\[3\]", lambda: linrec(jnp.ones(2), jnp.ones(3))),
        (IndexError, "there is no axis 1", lambda: linrec(jnp.ones(2), jnp.ones(2), axis=1)),
        (ValueError, r"initial \[3\] does not broadcast to \[\]", lambda: linrec(jnp.ones(2), 1.0, initial=jnp.ones(3))),
        (TypeError, "initial is complex128", lambda: linrec(jnp.ones(2), 1.0, initial=1j)),
    ],
)
def test_errors(kind, message, call):
    with pytest.raises(kind, match=message):
        call()


def test_an_error_of_the_handler_is_an_error_of_jax():
    call = jax.ffi.ffi_call("linrec_forward", jax.ShapeDtypeStruct((3,), np.float64))
    with pytest.raises(jax.errors.JaxRuntimeError, match="takes three arrays and flags"):
        jax.block_until_ready(call(jnp.ones(3), jnp.ones(3)))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"shape mismatch in forward_along: inputs \[3\], coeffs \[2\]"):
        jax.block_until_ready(call(jnp.ones(3), jnp.ones(2), jnp.ones(()), flags=np.int32(0)))
    whole = jax.ffi.ffi_call("linrec_forward", jax.ShapeDtypeStruct((3,), np.int32))
    with pytest.raises(jax.errors.JaxRuntimeError, match="inputs has elements of XLA's type 4"):
        jax.block_until_ready(whole(*[jnp.ones(3, np.int32)] * 3, flags=np.int32(0)))
