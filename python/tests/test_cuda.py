"""Tests on a GPU: values, streams, graphs, devices.

Without a GPU they are skipped, or fail if LINREC_REQUIRE_CUDA=1.
"""

from __future__ import annotations

import os

import pytest
import torch
from linrec import linrec, selective_scan, selective_state_update
from linrec._tensors import ACCUMULATORS
from loops import LARGE, NOT_FINITE, WIDE, bound, few_digits, in_order, loop, rows_of
from torch.autograd import gradcheck, gradgradcheck
from torch.library import opcheck

scan, scan_backward = torch.ops.linrec.scan.default, torch.ops.linrec.scan_backward.default

REQUIRED = os.environ.get("LINREC_REQUIRE_CUDA") == "1"
pytestmark = pytest.mark.skipif(not torch.cuda.is_available() and not REQUIRED, reason="needs an NVIDIA GPU")

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.complex128]
ON = {"device": "cuda"}


def case(shape, dtype):
    wide = WIDE[dtype]
    x, h = torch.randn(shape, dtype=wide), torch.randn(shape[:-1], dtype=wide)
    c = 0.98 + 0.02 * torch.rand(shape, dtype=torch.float64)
    if dtype.is_complex:
        c = torch.polar(c, 6 * torch.rand(shape, dtype=torch.float64))
    return x.to(dtype), c.to(dtype), h.to(dtype)


def on_gpu(*tensors):
    return [tensor.detach().cuda().requires_grad_(tensor.requires_grad) for tensor in tensors]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (3, 16), (5, 33), (2, 3, 1000), (17, 1024), (3, 4093), (1, 70_001)])
@pytest.mark.parametrize("reverse", [False, True])
def test_values(dtype, shape, reverse):
    x, c, h = case(shape, dtype)
    # NaN in the memory that the allocator hands out next, for the results.
    poison = torch.full((4, *shape), float("nan"), dtype=dtype, **ON)
    del poison
    y, last = linrec(*on_gpu(x, c), initial=h.cuda(), reverse=reverse, return_final=True)
    wide = WIDE[dtype]
    exact = loop(x.to(wide), c.to(wide), h.to(wide), reverse) if shape[-1] < 10_000 else linrec(x.to(wide), c.to(wide), initial=h.to(wide), reverse=reverse)
    limits = bound(x, c, h, reverse)
    assert y.dtype == dtype and y.is_cuda
    assert ((y.cpu().to(wide) - exact).abs() <= limits).all()
    assert last.dtype == ACCUMULATORS[dtype] and torch.equal(last.to(dtype), y[..., 0 if reverse else -1])
    before = y.clone()
    last.zero_()
    assert torch.equal(y, before)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_state_carried_between_calls_keeps_its_digits(dtype):
    """Compares 1000 calls of one step each with one call."""
    ones = torch.ones(3, 1000, dtype=dtype)
    for x, c in [(ones, ones), case((3, 1000), dtype)[:2]]:
        x, c, steps, state = x.cuda(), c.cuda(), [], None
        whole, last = linrec(x, c, return_final=True)
        for step in range(1000):
            y, state = linrec(x[:, step, None], c[:, step, None], initial=state, return_final=True)
            steps.append(y)
        single = torch.cat(steps, dim=-1)
        if (x == 1).all():
            assert torch.equal(single, whole) and torch.equal(state, last) and (state == 1000).all()
        exact, limits = loop(x.double(), c.double()), bound(x, c)
        assert ((single.double() - exact).abs() <= limits).all()
    start = torch.zeros(3, requires_grad=True, **ON)
    state, total = start, 0
    for step in range(400):
        y, state = linrec(ones[:, :1].cuda(), ones[:, :1].cuda(), initial=state, return_final=True)
        total = total + y.float().sum()
    assert (torch.autograd.grad(total, start)[0] == 400).all()


def test_numbers_and_memory_that_was_given_back():
    x = torch.rand(3, 50, dtype=torch.bfloat16, **ON)
    full = torch.full_like(x, 0.5)
    for c in [0.5, torch.tensor(0.5, dtype=torch.float64), torch.tensor(0.5, **ON)]:
        assert torch.equal(linrec(x, c, initial=1.0), linrec(x, full, initial=torch.ones(3, **ON)))
    full.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="its memory was given back"):
        linrec(x, full)
    torch.cuda.synchronize()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1, 40, 1500])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("log_coeffs", [False, True])
def test_gradients(dtype, length, reverse, log_coeffs):
    x, c, h = case((3, length), dtype)
    c = (c.to(WIDE[dtype]).log() if log_coeffs else c).to(dtype)
    h = h.to(torch.float32 if dtype.itemsize == 2 else dtype)
    cpu = [tensor.requires_grad_() for tensor in (x, c, h)]
    gpu = on_gpu(*cpu)
    tolerance = {torch.bfloat16: 0.1, torch.float16: 0.02, torch.float32: 1e-4, torch.complex64: 1e-4}.get(dtype, 1e-11)
    weights = torch.randn(x.shape, dtype=WIDE[dtype]).to(dtype)
    results = []
    for tensors, weight in [(cpu, weights), (gpu, weights.cuda())]:
        y = linrec(tensors[0], tensors[1], initial=tensors[2], reverse=reverse, log_coeffs=log_coeffs)
        results.append(torch.autograd.grad(y, tensors, weight))
    for one, other, leaf in zip(*results, gpu):
        assert other.dtype == leaf.dtype and other.is_cuda
        one, other = one.to(WIDE[dtype]), other.cpu().to(WIDE[dtype])
        assert (one - other).abs().max() <= tolerance * (1 + one.abs().max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("log_coeffs", [False, True])
def test_in_order(dtype, reverse, log_coeffs):
    """Large coefficients, and numbers that are not finite, give what the CPU gives; and the loop's bits."""
    log_coeffs = log_coeffs and not dtype.is_complex
    options = {"reverse": reverse, "in_order": True, "log_coeffs": log_coeffs}
    for cases in [LARGE] if log_coeffs or dtype.itemsize == 2 or dtype.is_complex else [LARGE, NOT_FINITE]:
        x, c = (tensor.flip(-1) if reverse else tensor for tensor in rows_of(cases, 400, dtype))
        c = c.log() if log_coeffs else c
        results = []
        for tensors in [(x.requires_grad_(), c.requires_grad_()), on_gpu(x.requires_grad_(), c.requires_grad_())]:
            y, last = linrec(*tensors, return_final=True, **options)
            results.append((y, last, *torch.autograd.grad(y[:, 3].real.sum(), tensors)))
        tolerance = {"rtol": 2e-2 if dtype.itemsize == 2 else 1e-4, "atol": 0, "equal_nan": True}
        for one, other in zip(*results):
            torch.testing.assert_close(other.cpu(), one, **tolerance)
        assert cases is NOT_FINITE or results[1][0].isfinite().all()
    if not dtype.is_complex and not log_coeffs:
        x, c = few_digits((70, 50), dtype)
        assert torch.equal(linrec(*on_gpu(x, c), **options).cpu(), in_order(x, c, reverse=reverse))


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("log_coeffs", [False, True])
def test_derivatives(dtype, reverse, log_coeffs):
    x, c, h = (torch.randn(shape, dtype=dtype, requires_grad=True, **ON) for shape in [(2, 5), (2, 5), (2,)])
    run = lambda x, c, h: linrec(x, c, initial=h, reverse=reverse, log_coeffs=log_coeffs, return_final=True)
    assert gradcheck(run, (x, c, h), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(run, (x, c, h), check_fwd_over_rev=True)


def test_the_operators_pass_opcheck():
    for dtype in [torch.float32, torch.bfloat16]:
        x, c, y = (torch.randn(2, 3, 7, dtype=dtype, requires_grad=True, **ON) for _ in range(3))
        h = torch.randn(2, 3, requires_grad=True, **ON)
        for tensors in [(x, c, y), [tensor.detach().mT.contiguous().mT.requires_grad_() for tensor in (x, c, y)]]:
            opcheck(scan, (*tensors[:2], h, True, False, False))
            opcheck(scan_backward, (*tensors, h, False, True, False))


def test_every_axis_stride_and_offset():
    for dim in range(3):
        x, c = torch.randn(5, 6, 7, dtype=torch.float64, **ON), torch.rand(6, 1, dtype=torch.float64, **ON)
        torch.testing.assert_close(linrec(x, c, dim=dim).cpu(), linrec(x.cpu(), c.cpu(), dim=dim))
    wide = torch.randn(8 * 1024 + 8, **ON)
    for offset in range(5):  # rows at any address, including odd ones
        x = wide[offset : offset + 8 * 1024].view(8, 1024)
        torch.testing.assert_close(linrec(x, x.sigmoid()).cpu(), linrec(x.cpu(), x.cpu().sigmoid()))
    for shape in [(0, 5), (5, 0), (0, 0)]:
        empty = torch.zeros(shape, requires_grad=True, **ON)
        y = linrec(empty, empty)
        assert y.shape == shape
        y.sum().backward()


def wait(stream, cycles=200_000_000):
    """Keeps a stream busy for about a tenth of a second."""
    with torch.cuda.stream(stream):
        torch.cuda._sleep(cycles)


@pytest.mark.parametrize("shape", [(64, 1000), (1, 1 << 20)])
@pytest.mark.parametrize("log_coeffs", [False, True])
def test_work_is_on_the_current_stream_and_waits_for_nothing(shape, log_coeffs):
    """Inputs appear on a busy stream: work on another stream would read old values."""
    stream = torch.cuda.Stream()
    x, c = torch.randn(shape, **ON), torch.rand(shape, **ON)
    given = c.log() if log_coeffs else c
    expected = linrec(x, given, log_coeffs=log_coeffs)  # loads the kernels, too
    late_x, late_c = torch.full_like(x, float("nan")), torch.full_like(c, float("nan"))
    torch.cuda.synchronize()
    wait(stream)
    with torch.cuda.stream(stream):
        late_x.copy_(x)
        late_c.copy_(given)
        y = linrec(late_x, late_c, log_coeffs=log_coeffs)
        assert not stream.query(), "the call waited for the stream"
        doubled = 2 * y
    stream.synchronize()
    assert torch.equal(doubled, 2 * expected)


def test_gradients_are_on_the_stream_of_the_forward_pass():
    stream = torch.cuda.Stream()
    x, c = torch.randn(64, 1000, requires_grad=True, **ON), torch.rand(64, 1000, requires_grad=True, **ON)
    expected = torch.autograd.grad(linrec(x, c).pow(2).sum(), (x, c))
    stream.wait_stream(torch.cuda.current_stream())
    torch.cuda.synchronize()
    wait(stream)
    with torch.cuda.stream(stream):
        y = linrec(x, c).pow(2).sum()
        got = torch.autograd.grad(y, (x, c))
        assert not stream.query()
    stream.synchronize()
    assert all(torch.equal(one, other) for one, other in zip(got, expected))


@pytest.mark.parametrize("shape", [(64, 1000), (1, 1 << 20)])
@pytest.mark.parametrize("log_coeffs", [False, True])
def test_graphs(shape, log_coeffs):
    x, c = torch.randn(shape, **ON), torch.rand(shape, **ON)
    c = c.log() if log_coeffs else c
    x.requires_grad_(), c.requires_grad_()

    def step():
        y = linrec(x, c, log_coeffs=log_coeffs)
        return y, *torch.autograd.grad(y.sum(), (x, c))

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    for _ in range(3):
        with torch.no_grad():
            x.normal_()
        for result in captured:
            result.fill_(float("nan"))
        graph.replay()
        assert all(torch.equal(one, other) for one, other in zip(captured, step()))


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled_calls_have_the_bits_of_eager_calls(mode):
    torch._dynamo.reset()
    layer = lambda x, c, h: linrec(2 * x, c, initial=h, return_final=True)
    compiled = torch.compile(layer, fullgraph=True, mode=mode)
    x, c, h = (torch.rand(shape, requires_grad=True, **ON) for shape in [(16, 300), (16, 300), (16,)])
    for _ in range(4):
        results = []
        for run in (layer, compiled):
            y, last = run(x, c, h)
            results.append([y.clone(), last.clone(), *torch.autograd.grad(y.sum() + last.sum(), (x, c, h))])
        assert all(torch.equal(one, other) for one, other in zip(*results))


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_the_device_of_the_tensors():
    x = torch.randn(8, 100, device="cuda:1")
    y = linrec(x, x.sigmoid())
    assert y.device == x.device and torch.cuda.current_device() == 0
    assert torch.zeros(1, device="cuda").device.index == 0
    torch.testing.assert_close(y.cpu(), linrec(x.cpu(), x.cpu().sigmoid()))
    with pytest.raises(ValueError, match="on cuda:1, and coeffs is .* on cuda:0"):
        linrec(x, x.to("cuda:0"))


def test_autocast():
    x, c = torch.randn(8, 64, **ON), torch.rand(8, 64, requires_grad=True, **ON)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        narrow = torch.nn.functional.linear(x, torch.eye(64, **ON))
        assert linrec(narrow, narrow.sigmoid()).dtype == torch.bfloat16
        y = linrec(narrow, c)
    assert y.dtype == torch.float32
    y.sum().backward()
    assert c.grad.dtype == torch.float32


def scan_arguments(kinds, length, dtype):
    batch, channels, states = 2, 48, 16
    shapes = {"constant": (channels, states), "varying": (batch, states, length), "grouped": (batch, 3, states, length)}
    coupling = lambda kind: torch.randn(shapes[kind], dtype=torch.float32 if kind == "constant" else dtype)
    rows = lambda: torch.randn(batch, channels, length, dtype=dtype)
    tensors = {"u": rows(), "delta": 0.3 * rows(), "A": -torch.rand(channels, states) - 0.1}
    tensors |= {"B": coupling(kinds[0]), "C": coupling(kinds[1]), "D": torch.randn(channels)}
    tensors |= {"z": rows(), "delta_bias": torch.randn(channels)}
    return {name: tensor.requires_grad_() for name, tensor in tensors.items()}


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-4), (torch.bfloat16, 0.05), (torch.float16, 0.01)])
@pytest.mark.parametrize("kinds", [("varying", "varying"), ("constant", "varying"), ("grouped", "constant"), ("grouped", "grouped")])
@pytest.mark.parametrize("length", [1, 100, 1001])
def test_the_fused_selective_scan(dtype, tolerance, kinds, length):
    given = scan_arguments(kinds, length, dtype)
    for left_out in [(), ("D", "z", "delta_bias")]:
        some = {name: tensor for name, tensor in given.items() if name not in left_out}
        fused = dict(zip(some, on_gpu(*some.values())))
        # The composition in double precision on the CPU.
        exact = {name: tensor.detach().double().requires_grad_() for name, tensor in some.items()}
        results = []
        for tensors in (fused, exact):
            out, last = selective_scan(**tensors, delta_softplus=True, return_last_state=True)
            total = out.double().pow(2).sum() + last.double().pow(2).sum()
            results.append([out, last, *torch.autograd.grad(total, list(tensors.values()))])
        assert results[0][0].dtype == dtype and results[0][1].dtype == torch.float32
        for name, one, other in zip(["out", "last", *some], *results):
            error = (one.cpu().double() - other).abs().max() / other.abs().max().clamp(min=1e-3)
            assert error <= tolerance, (name, error)


def test_states_are_saved_only_for_gradients():
    given = on_gpu(*scan_arguments(("varying", "varying"), 1000, torch.float32).values())
    plain = [tensor.detach() for tensor in given]
    run = lambda tensors: selective_scan(*tensors, delta_softplus=True, return_last_state=True)

    def peak(tensors):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        results = run(tensors)
        return results, torch.cuda.max_memory_allocated() - before

    peak(given)
    kept, with_gradients = peak(given)
    results, without = peak(plain)
    with torch.no_grad():
        in_no_grad, without_grad = peak(given)
    states = 2 * 125 * 48 * 16 * 4
    assert with_gradients - without >= states and without_grad == without < states
    for one, other, third in zip(kept, results, in_no_grad):
        assert torch.equal(one, other) and torch.equal(one, third)


def test_the_fused_selective_scan_compiled_and_in_graphs():
    torch._dynamo.reset()
    tensors = on_gpu(*(tensor.detach() for tensor in scan_arguments(("varying", "varying"), 500, torch.float32).values()))
    run = lambda *tensors: selective_scan(*tensors, delta_softplus=True, return_last_state=True)
    expected = run(*tensors)
    for got, wanted in zip(torch.compile(run, fullgraph=True)(*tensors), expected):
        assert torch.equal(got, wanted)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = run(*tensors)
    graph.replay()
    assert all(torch.equal(one, other) for one, other in zip(captured, expected))
    double = [tensor.double() for tensor in tensors]
    torch.testing.assert_close(run(*double)[0].float(), expected[0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("seq_len", [0, 1])
def test_empty_batches_and_sequences(seq_len):
    u, A = torch.zeros(0, 4, seq_len, **ON), -torch.ones(4, 2, **ON)
    B = torch.zeros(0, 2, seq_len, requires_grad=True, **ON)
    out, last = selective_scan(u, u, A, B, B, return_last_state=True)
    assert out.shape == u.shape and last.shape == (0, 4, 2)
    out.sum().backward()


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-4), (torch.bfloat16, 0.05), (torch.float16, 0.01)])
@pytest.mark.parametrize("packed", [None, "seq_idx", "cu_seqlens"])
def test_the_fused_selective_scan_with_states_and_packed_sequences(dtype, tolerance, packed):
    length, ends = 1001, torch.tensor([0, 0, 3, 700, 700, 1001])
    given = scan_arguments(("grouped", "grouped"), length, dtype)
    if packed == "cu_seqlens":
        given = {name: tensor[:1].detach().requires_grad_() if tensor.ndim > 2 else tensor for name, tensor in given.items()}
    rows = len(ends) - 1 if packed == "cu_seqlens" else 2
    given["initial_state"] = torch.randn(rows, 48, 16, requires_grad=True)
    numbers = torch.repeat_interleave(torch.arange(5), ends.diff()).expand(2, length)
    options = {"seq_idx": {"seq_idx": numbers}, "cu_seqlens": {"cu_seqlens": ends}}.get(packed, {})
    fused = dict(zip(given, on_gpu(*given.values())))
    exact = {name: tensor.detach().double().requires_grad_() for name, tensor in given.items()}
    results = []
    for tensors in (fused, exact):
        out, last = selective_scan(**tensors, **options, delta_softplus=True, return_last_state=True)
        total = out.double().pow(2).sum() + last.double().pow(2).sum()
        results.append([out, last, *torch.autograd.grad(total, list(tensors.values()))])
    for name, one, other in zip(["out", "last", *given], *results):
        error = (one.cpu().double() - other).abs().max() / other.abs().max().clamp(min=1e-3)
        assert error <= tolerance, (name, error)


def test_chunks_of_the_fused_selective_scan_continue_each_other():
    """Compares 60 steps one by one, by both functions, with the whole: the order of all sums is one."""
    given = {name: tensor.detach().cuda() for name, tensor in scan_arguments(("grouped", "grouped"), 60, torch.bfloat16).items()}
    whole, last = selective_scan(**given, delta_softplus=True, return_last_state=True)
    state, updated = None, torch.zeros(2, 48, 16, **ON)
    for t in range(60):
        some = {name: tensor[..., t : t + 1] if tensor.ndim > 2 else tensor for name, tensor in given.items()}
        out, state = selective_scan(**some, delta_softplus=True, return_last_state=True, initial_state=state)
        assert torch.equal(out, whole[..., t : t + 1])
        step = [some[name][..., 0] for name in ("u", "delta", "B", "C", "z")]
        arguments = (*step[:2], some["A"], *step[2:4], some["D"], step[4], some["delta_bias"])
        assert torch.equal(selective_state_update(updated, *arguments, True), whole[..., t])
    assert torch.equal(state, last) and torch.equal(updated, last)


@pytest.mark.parametrize("ends", [[0], [0, 0], [1, 9], [0, 20], [0, 7, 3, 9]])
def test_wrong_ends_of_packed_sequences_lose_no_gpu(ends):
    given = {name: tensor.detach()[:1] if tensor.ndim > 2 else tensor.detach() for name, tensor in scan_arguments(("grouped", "grouped"), 9, torch.float32).items()}
    with pytest.raises(ValueError, match="it has to rise from 0 to the length of u, 9"):
        selective_scan(**dict(zip(given, on_gpu(*given.values()))), cu_seqlens=torch.tensor(ends, **ON), return_last_state=True)
    torch.cuda.synchronize()


def test_gradients_of_gradients_of_the_fused_selective_scan():
    given = {name: tensor.detach()[..., :6] if tensor.ndim > 2 else tensor.detach() for name, tensor in scan_arguments(("varying", "constant"), 6, torch.float32).items()}
    results = []
    for tensors in ({name: tensor.cuda() for name, tensor in given.items()}, {name: tensor.double() for name, tensor in given.items()}):
        leaves = [tensor.requires_grad_() for tensor in tensors.values()]
        out, last = selective_scan(**tensors, delta_softplus=True, return_last_state=True)
        first = torch.autograd.grad(out.pow(2).sum() + last.pow(2).sum(), leaves, create_graph=True)
        results.append(torch.autograd.grad(sum(gradient.pow(2).sum() for gradient in first), leaves))
    for one, other in zip(*results):
        torch.testing.assert_close(one.cpu().double(), other, rtol=1e-3, atol=1e-3 * float(other.abs().max()))
