"""The recurrence for JAX."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from linrec import linrec as linrec_of_pytorch
from loops import LARGE, rows_of

jax = pytest.importorskip("jax", reason="needs JAX")
jnp = jax.numpy

from linrec.jax import linrec  # noqa: E402

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def double_precision():
    enable = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64
    with enable(True):
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


@pytest.mark.parametrize(
    "dtype, options",
    [
        (np.float64, {}),
        (np.float64, {"reverse": True, "log_coeffs": True}),
        (np.complex128, {"reverse": True}),
        (np.complex128, {"log_coeffs": True}),
    ],
)
def test_derivatives_in_both_modes(dtype, options):
    """Compares derivatives of up to the third order with those of a loop of JAX's own operations."""
    arguments = tuple(0.5 * numbers(shape, dtype) for shape in [(2, 4), (2, 4), (2,)])
    ways = [tuple(0.5 * numbers(shape, dtype) for shape in [(2, 4), (2, 4), (2,)]) for _ in range(3)]
    weights = numbers((2, 4), dtype)

    def ours(x, c, h):
        y, last = linrec(x, c, initial=h, return_final=True, **options)
        return jnp.sum(y**2 * weights) + jnp.sum(last**3)

    def exact(x, c, h):
        y = loop(x, jnp.exp(c) if options.get("log_coeffs") else c, h, options.get("reverse", False))
        return jnp.sum(y**2 * weights) + jnp.sum(y[:, 0 if options.get("reverse") else -1] ** 3)

    def along(of, way):
        return lambda *given: jax.jvp(of, given, way)[1]

    def gradient_along(of, way):
        """The derivative of the gradient, in a sum for each argument, so that it has derivatives itself."""
        gradient = jax.grad(of, argnums=(0, 1, 2), holomorphic=dtype == np.complex128)
        return lambda *given: sum(jnp.sum(part**2) for part in jax.jvp(gradient, given, way)[1])

    tried = [
        lambda of: along(along(along(of, ways[0]), ways[1]), ways[2]),
        lambda of: gradient_along(along(of, ways[0]), ways[1]),
        lambda of: jax.grad(gradient_along(of, ways[0]), argnums=1, holomorphic=dtype == np.complex128),
        lambda of: jax.grad(along(jax.checkpoint(of), ways[0]), argnums=(0, 1, 2), holomorphic=dtype == np.complex128),
        lambda of: lambda *given: jax.linearize(of, *given)[1](*ways[0]),
    ]
    # One program, as the compiler takes most of the time.
    results = [jax.jit(lambda *given, of=of: [way(of)(*given) for way in tried])(*arguments) for of in (ours, exact)]
    for got, wanted in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


def test_some_tangents_and_gradients():
    """Only a few arguments vary, one is used twice, and the outputs or the final state are unused."""
    x, c, h = given = numbers((3, 5)), 0.5 * numbers((3, 5)), numbers((3,))
    ours = lambda x, c, h: linrec(x, c, initial=h, return_final=True)
    exact = lambda x, c, h: (y := loop(x, c, h), y[..., -1])

    def derivatives(of):
        for returned in range(2):
            for number in range(3):
                alone = lambda one: of(*(one if n == number else other for n, other in enumerate(given)))[returned]
                total = lambda one: jnp.sum(jnp.sin(alone(one)))
                yield jax.hessian(total)(given[number])
                yield jax.jacrev(jax.jacrev(total))(given[number])
            yield jax.hessian(lambda c: jnp.sum(of(c, c, c[..., 0])[returned]))(c)

    for got, wanted in zip(*(jax.jit(lambda of=of: list(derivatives(of)))() for of in (ours, exact)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10)
    forward = lambda x, h: linrec(x, c, initial=h)
    back = jax.linear_transpose(forward, x, h)
    for got, wanted in zip(back(x), jax.vjp(lambda x, h: loop(x, c, h), x, h)[1](x)):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
    np.testing.assert_allclose(jax.linear_transpose(back, x)((x, h))[0], forward(x, h), rtol=1e-12)
    gradient = jax.vjp(lambda c: linrec(x, c, initial=h), c)[1]
    tangent = jax.jvp(lambda c: loop(x, c, h), (c,), (x,))[1]
    np.testing.assert_allclose(jax.linear_transpose(gradient, x)((x,))[0], tangent, rtol=1e-10)
    with pytest.raises(NotImplementedError, match="not linear in the coefficients"):
        jax.linear_transpose(lambda c: linrec(x, c), c)(x)


def test_derivatives_within_scan_and_vmap():
    """A chain of chunks in ``lax.scan``, with derivatives of rows in ``vmap``."""
    x, c = numbers((3, 12)), 0.5 * numbers((3, 12))

    def chained(x, c):
        def step(state, chunk):
            y, state = linrec(*chunk, initial=state, return_final=True)
            return state, y

        chunks = x.reshape(4, 3), c.reshape(4, 3)
        return jnp.sum(jnp.cos(jax.lax.scan(jax.checkpoint(step), jnp.zeros(()), chunks)[1]))

    whole = lambda x, c: jnp.sum(jnp.cos(loop(x, c, jnp.zeros(()))))
    for way in (jax.grad, jax.hessian):
        got, wanted = (jax.jit(jax.vmap(way(of, argnums=1)))(x, c) for of in (chained, whole))
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10)
    unbatched = [jax.vmap(jax.grad(of, argnums=(0, 1)), in_axes=(None, 0))(x[0], c) for of in (chained, whole)]
    for got, wanted in zip(*unbatched):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype, tolerance", [("bfloat16", 0.05), ("float16", 0.01), ("float32", 1e-4), ("complex64", 1e-4)])
def test_narrow_types_against_double_precision(dtype, tolerance):
    wide = "complex128" if dtype == "complex64" else "float64"
    state = {"complex64": "complex64"}.get(dtype, "float32")
    # More than the library and its callers compute on one thread.
    x, c, h = numbers((30, 2500), wide), 0.9 * jnp.tanh(numbers((30, 2500), wide)), numbers((30,), wide)
    narrow = x.astype(dtype), c.astype(dtype), h.astype(state)
    exact = [array.astype(wide) for array in narrow]
    for returns in range(2):
        total = lambda x, c, h: jnp.sum(jnp.abs(linrec(x, c, initial=h, return_final=True)[returns].astype(wide)) ** 2)
        run = lambda x, c, h: linrec(x, c, initial=h, return_final=True)[returns]
        results = [
            [run(*given), *jax.grad(total, argnums=(0, 1, 2))(*given), jax.jvp(run, given, given)[1]]
            for given in (narrow, tuple(exact))
        ]
        for got, wanted in zip(*results):
            scale = 1 + jnp.max(jnp.abs(wanted))
            assert jnp.max(jnp.abs(got.astype(wide) - wanted)) <= tolerance * scale
        assert [got.dtype for got in results[0][1:4]] == [dtype, dtype, state]


def test_gradients_of_a_carried_state_keep_their_digits():
    """Runs 400 steps one by one in bfloat16, whose gradients are sums of 400 ones."""

    def total(state):
        step = lambda state, x: linrec(x, jnp.ones(1, "bfloat16"), initial=state, return_final=True)[::-1]
        return jnp.sum(jax.lax.scan(step, state, jnp.ones((400, 3, 1), "bfloat16"))[1].astype("float32"))

    assert jax.grad(total)(jnp.zeros(3, "float32")).tolist() == [400, 400, 400]
    whole = lambda state: jnp.sum(linrec(jnp.ones((3, 400), "bfloat16"), 1.0, initial=state).astype("float32"))
    assert jax.grad(whole)(jnp.zeros(3, "float32")).tolist() == [400, 400, 400]
    assert jax.jvp(whole, (jnp.zeros(3, "float32"),), (jnp.ones(3, "float32"),))[1] == 1200


def of_pytorch(array):
    """A tensor with the numbers of an array, on a GPU if the array is."""
    host = np.asarray(array)
    is_bfloat16 = host.dtype == jnp.bfloat16
    tensor = torch.from_numpy(host.view(np.uint16).copy() if is_bfloat16 else host.copy())
    tensor = tensor.view(torch.bfloat16) if is_bfloat16 else tensor
    return tensor.to("cuda" if jax.default_backend() == "gpu" else "cpu")


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "complex64", "complex128"])
@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"log_coeffs": True}])
def test_the_bits_are_those_of_pytorch(dtype, options):
    """On the CPU, and on a GPU if JAX and PyTorch have one."""
    state = "float32" if dtype in ("bfloat16", "float16") else dtype
    wide = "complex128" if "complex" in dtype else "float64"
    shapes = [(5, 1500), (5, 1500), (5,), (5, 1500)]
    x, c, h, g = (numbers(shape, wide).astype(dtype) for shape in shapes)
    # Shrinking, as a number or as a logarithm.
    c, h = c / (1 + jnp.abs(c)) - jnp.asarray(1 if "log_coeffs" in options else 0, dtype), h.astype(state)
    ours = lambda x, c, h: linrec(x, c, initial=h, return_final=True, **options)
    gradients = jax.jit(lambda x, c, h, g: jax.vjp(lambda *given: ours(*given)[0], x, c, h)[1](g))(x, c, h, g)
    leaves = [of_pytorch(array).requires_grad_() for array in (x, c, h)]
    y, last = linrec_of_pytorch(*leaves[:2], initial=leaves[2], return_final=True, **options)
    others = torch.autograd.grad(y, leaves, of_pytorch(jnp.conj(g)))
    for got, expected in zip([*jax.jit(ours)(x, c, h), *map(jnp.conj, gradients)], [y, last, *others]):
        assert torch.equal(of_pytorch(got), expected.resolve_conj())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("reverse", [False, True])
def test_large_coefficients_in_order(dtype, reverse):
    """Products of coefficients overflow, and the loop's states do not."""
    x, c = (jnp.asarray((rows.flip(-1) if reverse else rows).numpy()).astype(dtype) for rows in rows_of(LARGE, 40))
    ours = lambda x, c: linrec(x, c, reverse=reverse, in_order=True).astype("float32")
    exact = lambda x, c: loop(x.astype("float32"), c.astype("float32"), jnp.zeros(len(x), "float32"), reverse)
    tolerance = {"rtol": 0.02 if dtype == "bfloat16" else 1e-5, "equal_nan": True}
    y = ours(x, c)
    assert jnp.isfinite(y).all() and not jnp.isfinite(linrec(x, c, reverse=reverse)).all()
    np.testing.assert_allclose(y, exact(x, c), **tolerance)
    for number in range(2):
        got, wanted = (jax.grad(lambda *given, of=of: of(*given).sum(), argnums=number)(x, c) for of in (ours, exact))
        np.testing.assert_allclose(got.astype("float32"), wanted.astype("float32"), **tolerance)
    got, wanted = (jax.jvp(lambda x, of=of: of(x, c), (x,), (x,))[1] for of in (ours, exact))
    np.testing.assert_allclose(got, wanted, **tolerance)


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


@pytest.mark.parametrize("platforms", [None, ["cpu", "cuda"]])
def test_exported_with_symbolic_shapes(platforms):
    from jax import export

    rows, length = export.symbolic_shape("rows, length")
    spec = jax.ShapeDtypeStruct((rows, length), np.float64)
    options = {
        "platforms": platforms,
        "disabled_checks": [export.DisabledSafetyCheck.custom_call(f"linrec_{name}") for name in ("forward", "backward")],
    }
    whole = jax.jit(lambda x, c: linrec(x, c, return_final=True))
    gradient = jax.jit(jax.grad(lambda x, c: linrec(x, c).sum(), argnums=(0, 1)))
    tangent = jax.jit(lambda x, c: jax.jvp(linrec, (x, c), (x, c)))
    x, c = numbers((3, 7)), 0.5 * numbers((3, 7))
    for function in (whole, gradient, tangent):
        exported = export.export(function, **options)(spec, spec)
        for one, other in zip(exported.call(x, c), function(x, c)):
            np.testing.assert_array_equal(one, other)


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


@pytest.mark.parametrize("target, reads, writes", [("linrec_forward", 2, 1), ("linrec_backward", 3, 2)])
def test_an_error_of_a_handler_is_an_error_of_jax(target, reads, writes):
    flags, states = np.int32(0), jax.ShapeDtypeStruct((), np.float64)

    def refused(message, arrays, results, **attributes):
        with pytest.raises(jax.errors.JaxRuntimeError, match=message):
            jax.block_until_ready(jax.ffi.ffi_call(target, results)(*arrays, **attributes))

    like = [jax.ShapeDtypeStruct((3,), np.float64)] * writes
    arrays = [jnp.ones(3)] * reads
    expected = f"takes {reads + 1} arrays and flags, and returns {writes + 1}; here it takes"
    refused(f"{expected} 2 and returns {writes}", arrays[:2], like, flags=flags)
    refused(expected, [*arrays, jnp.ones(())], [*like, states])
    refused(expected, [*arrays, jnp.ones(())], [*like, states], flags=np.float32(0.5))
    refused(r"shape mismatch in .*ward_along: .* \[3\], coeffs \[2\]|coeffs \[2\] of f64 does not fit", [arrays[0], jnp.ones(2), *arrays[2:], jnp.ones(())], [*like, states], flags=flags)
    refused(".*puts has elements of XLA's type 4", [jnp.ones(3, np.int32)] * (reads + 1), [*like, states], flags=flags)
    refused("initial of f32; it has to be of f64", [*arrays, jnp.ones((), np.float32)], [*like, states], flags=flags)
    narrow = [array.astype("bfloat16") for array in arrays]
    refused("of bf16, and initial of f64; it has to be of f32", [*narrow, jnp.ones(())], [jax.ShapeDtypeStruct((3,), "bfloat16")] * writes + [states], flags=flags)
