"""The selective scan against a loop over the steps."""

from __future__ import annotations

import pytest
import torch
from linrec import selective_scan, selective_state_update
from torch.nn import functional

NAMES = ("u", "delta", "A", "B", "C", "D", "z", "delta_bias")


def step_by_step(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, initial_state=None):
    (batch, channels, length), states = u.shape, A.shape[1]
    steps = delta if delta_bias is None else delta + delta_bias[:, None]
    steps = functional.softplus(steps) if delta_softplus else steps

    def of_each_channel(coupling):
        if coupling.ndim == 2:
            return coupling[None, :, :, None].expand(batch, channels, states, length)
        coupling = coupling[:, None] if coupling.ndim == 3 else coupling
        if A.is_complex():
            coupling = torch.complex(coupling[..., 0::2], coupling[..., 1::2])
        return coupling.repeat_interleave(channels // coupling.shape[1], 1)

    B, C = of_each_channel(B), of_each_channel(C)
    state, out = torch.zeros(batch, channels, states, dtype=A.dtype) if initial_state is None else initial_state, []
    for t in range(length):
        decay = torch.exp(steps[..., t, None] * A)
        state = decay * state + (steps[..., t] * u[..., t])[..., None] * B[..., t]
        y = (state * C[..., t]).sum(-1)
        out.append(2 * y.real if y.is_complex() else y)
    out = torch.stack(out, -1) if out else torch.zeros_like(u)
    out = out if D is None else out + D[:, None] * u
    return (out if z is None else out * functional.silu(z)), state


def arguments(kinds, complex_rates=False, length=9, dtype=torch.float64):
    batch, channels, states = 2, 4, 3
    rows = lambda: torch.randn(batch, channels, length, dtype=dtype)
    A = -torch.rand(channels, states, dtype=dtype)
    A = torch.complex(A, torch.randn_like(A)) if complex_rates else A
    parts = 2 if complex_rates else 1
    coupling = {
        "constant": lambda: torch.randn(channels, states, dtype=A.dtype),
        "varying": lambda: torch.randn(batch, states, parts * length, dtype=dtype),
        "grouped": lambda: torch.randn(batch, 2, states, parts * length, dtype=dtype),
    }
    each = lambda: torch.randn(channels, dtype=dtype)
    tensors = [rows(), rows(), A, *(coupling[kind]() for kind in kinds), each(), rows(), each()]
    return {name: tensor.requires_grad_() for name, tensor in zip(NAMES, tensors)}


@pytest.mark.parametrize("complex_rates", [False, True])
@pytest.mark.parametrize("kinds", [("varying", "varying"), ("constant", "varying"), ("grouped", "constant"), ("grouped", "grouped")])
@pytest.mark.parametrize("softplus", [False, True])
def test_values_and_gradients(kinds, complex_rates, softplus):
    given = arguments(kinds, complex_rates)
    for left_out in [(), ("D",), ("z", "delta_bias"), ("D", "z", "delta_bias")]:
        some = {name: tensor for name, tensor in given.items() if name not in left_out}
        got = selective_scan(**some, delta_softplus=softplus, return_last_state=True)
        exact = step_by_step(**some, delta_softplus=softplus)
        torch.testing.assert_close(got, exact)
        assert torch.equal(selective_scan(**some, delta_softplus=softplus), got[0])
        sums = [out.pow(2).sum() + last.abs().sum() for out, last in (got, exact)]
        gradients = [torch.autograd.grad(total, list(some.values())) for total in sums]
        torch.testing.assert_close(*gradients)


def test_gradients_of_gradients():
    given = arguments(("varying", "constant"), length=3)
    names, tensors = zip(*given.items())
    scan = lambda *tensors: selective_scan(**dict(zip(names, tensors)), delta_softplus=True)
    assert torch.autograd.gradcheck(scan, tensors)
    assert torch.autograd.gradgradcheck(scan, tensors)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.bfloat16, 0.02), (torch.float16, 4e-3)])
def test_types(dtype, tolerance):
    given = {name: tensor.detach() for name, tensor in arguments(("varying", "varying"), length=100).items()}
    stored = {name: tensor.to(dtype if tensor.ndim > 2 else torch.float32) for name, tensor in given.items()}
    out, last = selective_scan(**stored, delta_softplus=True, return_last_state=True)
    exact, exact_last = step_by_step(**{name: tensor.double() for name, tensor in stored.items()}, delta_softplus=True)
    assert (out.dtype, last.dtype) == (dtype, torch.float32)
    assert (out.double() - exact).abs().max() <= tolerance * exact.abs().max()
    assert (last.double() - exact_last).abs().max() <= 1e-5 * exact_last.abs().max()


def test_no_step():
    given = {name: tensor.detach() for name, tensor in arguments(("varying", "constant"), length=0).items()}
    out, last = selective_scan(**given, return_last_state=True)
    assert out.shape == (2, 4, 0) and torch.equal(last, torch.zeros(2, 4, 3, dtype=torch.float64))


def with_initial(given):
    (batch, channels, _), states = given["u"].shape, given["A"].shape[1]
    initial = torch.randn(batch, channels, states, dtype=given["A"].dtype, requires_grad=True)
    return {**given, "initial_state": initial}


@pytest.mark.parametrize("complex_rates", [False, True])
@pytest.mark.parametrize("kinds", [("varying", "varying"), ("constant", "grouped")])
def test_initial_states_and_their_gradients(kinds, complex_rates):
    given = with_initial(arguments(kinds, complex_rates))
    got = selective_scan(**given, delta_softplus=True, return_last_state=True)
    exact = step_by_step(**given, delta_softplus=True)
    torch.testing.assert_close(got, exact)
    sums = [out.pow(2).sum() + last.abs().pow(2).sum() for out, last in (got, exact)]
    gradients = [torch.autograd.grad(total, list(given.values())) for total in sums]
    torch.testing.assert_close(*gradients)
    names, tensors = zip(*with_initial(arguments(kinds, complex_rates, length=3)).items())
    run = lambda *tensors: selective_scan(**dict(zip(names, tensors)), delta_softplus=True, return_last_state=True)
    assert torch.autograd.gradcheck(run, tensors) and torch.autograd.gradgradcheck(run, tensors)
    assert torch.autograd.gradcheck(run, tensors, check_forward_ad=True, check_backward_ad=False)


def cut(given, begin, end, complex_rates=False):
    """Returns some steps of the arguments."""
    parts = lambda name: 2 if complex_rates and name in "BC" else 1
    in_time = lambda name, tensor: name in ("u", "delta", "z") or name in "BC" and tensor.ndim > 2
    steps = lambda name: slice(parts(name) * begin, parts(name) * end)
    return {name: tensor[..., steps(name)] if in_time(name, tensor) else tensor for name, tensor in given.items()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_chunks_have_the_bits_of_the_whole(dtype):
    given = {name: tensor.detach() for name, tensor in arguments(("varying", "constant"), length=150, dtype=torch.float32).items()}
    given = {name: tensor.to(dtype if tensor.ndim > 2 else torch.float32) for name, tensor in given.items()}
    whole, last = selective_scan(**given, delta_softplus=True, return_last_state=True)
    for length in [1, 64, 77]:
        parts, state = [], None
        for begin in range(0, 150, length):
            some = cut(given, begin, min(begin + length, 150))
            out, state = selective_scan(**some, delta_softplus=True, return_last_state=True, initial_state=state)
            parts.append(out)
        assert torch.equal(torch.cat(parts, -1), whole) and torch.equal(state, last)


@pytest.mark.parametrize("complex_rates", [False, True])
@pytest.mark.parametrize("softplus", [False, True])
@pytest.mark.parametrize("ends", [[0, 9], [0, 4, 9], [0, 0, 3, 3, 9, 9], [0, 1, 2, 9]])
def test_packed_sequences(ends, softplus, complex_rates):
    """Compares one packed row with its sequences one by one; some are empty."""
    given = arguments(("grouped", "grouped"), complex_rates)
    given = {name: tensor[:1] if tensor.ndim > 2 else tensor for name, tensor in given.items()}
    number, A = len(ends) - 1, given["A"]
    initial = torch.randn(number, *A.shape, dtype=A.dtype, requires_grad=True)
    leaves = [tensor.detach().requires_grad_() for tensor in given.values()]
    given = dict(zip(given, leaves))

    def one_by_one(states):
        parts = []
        for sequence, (begin, end) in enumerate(zip(ends, ends[1:])):
            before = None if states is None else states[sequence : sequence + 1]
            parts.append(step_by_step(**cut(given, begin, end, complex_rates), delta_softplus=softplus, initial_state=before))
        outs, lasts = zip(*parts)
        return torch.cat(outs, -1), torch.cat(lasts)

    cu_seqlens = torch.tensor(ends, dtype=torch.int32)
    for states in [None, initial]:
        options = {"delta_softplus": softplus, "cu_seqlens": cu_seqlens, "initial_state": states}
        got = selective_scan(**given, **options, return_last_state=True)
        exact = one_by_one(states)
        torch.testing.assert_close(got, exact)
        wanted = leaves if states is None else [*leaves, states]
        sums = [out.pow(2).sum() + last.abs().pow(2).sum() for out, last in (got, exact)]
        torch.testing.assert_close(*(torch.autograd.grad(total, wanted) for total in sums))
        torch.testing.assert_close(selective_scan(**given, **options), exact[0])
    # The same by the sequences' numbers, in two rows of which the second is packed in another way.
    numbers = torch.repeat_interleave(torch.arange(number), torch.tensor(ends).diff())
    two = {name: torch.cat([tensor, tensor]) if tensor.ndim > 2 else tensor for name, tensor in given.items()}
    seq_idx = torch.stack([numbers, torch.tensor([5] * 2 + [7] * 7)])
    out, last = selective_scan(**two, delta_softplus=softplus, seq_idx=seq_idx, return_last_state=True)
    torch.testing.assert_close(out[:1], exact_without(one_by_one))
    other = step_by_step(**cut(given, 2, 9, complex_rates), delta_softplus=softplus)
    torch.testing.assert_close((out[1:, :, 2:], last[1:]), other)


def exact_without(one_by_one):
    return one_by_one(None)[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_one_step_at_a_time(dtype):
    """Compares `selective_state_update` with the scan, with and without heads."""
    batch, heads, channels, states, groups, length = 2, 4, 3, 5, 2, 20
    rows = lambda: torch.randn(batch, heads * channels, length).to(dtype)
    x, dt, z = rows(), rows(), rows()
    A, D, bias = -torch.rand(heads * channels, states), torch.randn(heads * channels), torch.randn(heads * channels)
    B, C = torch.randn(batch, groups, states, length).to(dtype), torch.randn(batch, groups, states, length).to(dtype)
    whole, last = selective_scan(x, dt, A, B, C, D, z, bias, True, True)
    state = torch.zeros(batch, heads * channels, states)
    by_heads = state.reshape(batch, heads, channels, states).clone()
    split = lambda tensor: tensor.reshape(*tensor.shape[:-1], heads, channels)
    for t in range(length):
        step = [tensor[..., t] for tensor in (x, dt, B, C, z)]
        out = selective_state_update(state, *step[:2], A, *step[2:4], D, step[4], bias, True)
        assert out.dtype == dtype and torch.equal(out, whole[..., t])
        rates = A.reshape(heads, channels, states)
        arrays = (split(step[0]), split(step[1]), rates, *step[2:4], split(D), split(step[4]), split(bias))
        assert torch.equal(selective_state_update(by_heads, *arrays, True), split(out))
    assert torch.equal(state, last) and torch.equal(by_heads.reshape(state.shape), last)


def test_one_step_with_wider_couplings_rounds_nothing_but_results():
    """With `B` and `C` in float32, a step in bfloat16 is the step in float32, rounded."""
    x, dt, z = (torch.randn(3, 4, dtype=torch.bfloat16) for _ in range(3))
    A, B, C, before = -torch.rand(4, 5), torch.randn(3, 5), torch.randn(3, 5), torch.randn(3, 4, 5)
    states = [before.clone(), before.clone()]
    out = selective_state_update(states[0], x, dt, A, B, C, None, z)
    exact = selective_state_update(states[1], x.float(), dt.float(), A, B, C, None, z.float())
    assert torch.equal(out, exact.bfloat16()) and torch.equal(*states)


def test_one_step_with_the_states_of_a_pool():
    """Entries of a batch find their states by number, and the pool's other states keep their bits."""
    batch, channels, states = 3, 4, 5
    pool = torch.randn(7, channels, states)
    x, dt, z = (torch.randn(batch, channels) for _ in range(3))
    A, D, bias = -torch.rand(channels, states), torch.randn(channels), torch.randn(channels)
    B, C = torch.randn(batch, states), torch.randn(batch, states)
    places = torch.tensor([5, 0, 2], dtype=torch.int32)
    own, before = pool[places], pool.clone()
    expected = selective_state_update(own, x, dt, A, B, C, D, z, bias, True)
    out = selective_state_update(pool, x, dt, A, B, C, D, z, bias, True, state_batch_indices=places)
    assert torch.equal(out, expected) and torch.equal(pool[places], own)
    others = torch.tensor([1, 3, 4, 6])
    assert torch.equal(pool[others], before[others]) and not torch.equal(own, before[places])
    with pytest.raises(ValueError, match="state_batch_indices"):
        selective_state_update(pool, x, dt, A, B, C, state_batch_indices=places[:2])


def test_the_fused_scan_is_an_operator():
    from torch.library import opcheck

    given = with_initial(arguments(("varying", "constant"), length=70, dtype=torch.float32))
    tensors = [tensor.unsqueeze(1) if name == "B" else tensor for name, tensor in given.items()]
    restarts = torch.rand(2, 70) < 0.1
    for flags in [None, restarts]:
        opcheck(torch.ops.linrec.selective_scan.default, (*[tensor.detach().requires_grad_() for tensor in tensors], flags, True, True))
    torch._dynamo.reset()
    run = lambda *tensors: selective_scan(*tensors[:-1], delta_softplus=True, return_last_state=True, initial_state=tensors[-1])
    leaves = list(given.values())
    results = []
    for layer in (run, torch.compile(run, fullgraph=True, backend="aot_eager")):
        out, last = layer(*leaves)
        results.append([out, last, *torch.autograd.grad(out.sum() + last.pow(2).sum(), leaves)])
    assert all(torch.equal(one, other) for one, other in zip(*results))
    batched = torch.vmap(run, in_dims=(0, None, None, None, None, None, None, None, None))(torch.stack([leaves[0], 2 * leaves[0]]), *leaves[1:])
    torch.testing.assert_close(batched[0][0], results[0][0])


def test_memory_holds_no_state_of_all_steps():
    """A million states of all steps would be 256 MB; the process grows by less than an eighth."""
    import resource

    batch, channels, states, length = 1, 64, 16, 65_536
    u = torch.randn(batch, channels, length)
    A, B = -torch.rand(channels, states), torch.randn(batch, states, length)
    selective_scan(u[..., :64], u[..., :64], A, B[..., :64], B[..., :64], delta_softplus=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    selective_scan(u, u, A, B, B, delta_softplus=True)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * 1024 < channels * states * length * 4 / 8, grown


def test_errors_of_the_new_arguments():
    given = {name: tensor.detach() for name, tensor in arguments(("varying", "varying")).items()}
    one = {name: tensor[:1] if tensor.ndim > 2 else tensor for name, tensor in given.items()}
    ends = torch.tensor([0, 4, 9])
    for kind, message, options, tensors in [
        (ValueError, "seq_idx and cu_seqlens are given", {"seq_idx": ends, "cu_seqlens": ends}, one),
        (ValueError, "packed sequences are one row", {"cu_seqlens": ends}, given),
        (ValueError, "cu_seqlens is \\[0, 5, 4, 9\\]; it has to rise from 0", {"cu_seqlens": torch.tensor([0, 5, 4, 9])}, one),
        (ValueError, "to the length of u, 9", {"cu_seqlens": torch.tensor([0, 10])}, one),
        (TypeError, "cu_seqlens has to be a tensor of integers", {"cu_seqlens": [0, 9]}, one),
        (TypeError, "seq_idx has to be a tensor of integers", {"seq_idx": torch.zeros(2, 9)}, given),
        (ValueError, r"seq_idx is int64\[9\] on cpu", {"seq_idx": torch.zeros(9, dtype=torch.int64)}, given),
        (ValueError, r"initial_state is float64\[2, 4\] on cpu", {"initial_state": torch.zeros(2, 4).double()}, given),
        (ValueError, r"it has to be \[2, 4, 3\]", {"initial_state": torch.zeros(1, 4, 3).double(), "cu_seqlens": ends}, one),
    ]:
        with pytest.raises(kind, match=message):
            selective_scan(**tensors, **options)
    with pytest.raises(ValueError, match="or have heads before the channels"):
        selective_state_update(torch.zeros(2, 4, 3), torch.zeros(2, 4, 1), torch.zeros(2, 4, 1), *[torch.zeros(4, 3)] * 3)
