"""Tests of the recurrence and the selective scan over the ranks of a group, against one process.

The ranks of the CPU are processes that live as long as this module, with the backend gloo. The
tests on GPUs, with NCCL, need two; without them they are skipped, or fail if LINREC_REQUIRE_CUDA=1.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import traceback
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from linrec import distributed, linrec, selective_scan
from loops import WIDE, bound, loop
from test_selective_scan import NAMES, arguments, step_by_step

REQUIRED = os.environ.get("LINREC_REQUIRE_CUDA") == "1"
GPUS = torch.cuda.device_count()
TIMEOUT = 60
#: The numbers of steps of the ranks.
STRETCHES = [(13,), (7, 6), (1, 12), (0, 13), (5, 0, 1, 7), (0, 9, 4, 0), (3, 4, 5, 1)]


def _serve(place, rank, size, file, pipe):
    """A rank: runs what the test sends, and sends back the result, or the exception's name."""
    torch.set_num_threads(1)
    if place == "cuda":
        torch.cuda.set_device(rank)
    backend = {"cpu": "gloo", "cuda": "nccl"}[place]
    store = {"init_method": f"file://{file}", "rank": rank, "world_size": size}
    dist.init_process_group(backend, timeout=timedelta(seconds=TIMEOUT), **store)
    groups = {some: dist.new_group(list(range(some))) for some in (1, 2)} | {size: None}
    while (work := pipe.recv()) is not None:
        function, number, arguments = work
        try:
            pipe.send((function(groups[number], rank, place, *arguments), None))
        except Exception as error:
            pipe.send((type(error).__name__, f"{error}\n---\n{traceback.format_exc()}"))
    dist.destroy_process_group()


class Ranks:
    def __init__(self, place, size, folder):
        context = multiprocessing.get_context("spawn" if place == "cuda" else "forkserver")
        if place == "cpu":
            context.set_forkserver_preload(["torch", "torch.distributed", "test_distributed"])
        self.pipes, self.processes = [], []
        for rank in range(size):
            here, there = context.Pipe()
            process = context.Process(
                target=_serve, args=(place, rank, size, folder / "ranks", there), daemon=True
            )
            process.start()
            self.pipes.append(here)
            self.processes.append(process)

    def run(self, function, each):
        """Calls ``function(group, rank, place, *arguments)`` on the first ranks, one for each."""
        for pipe, arguments in zip(self.pipes, each):
            pipe.send((function, len(each), arguments))
        results = []
        for rank, pipe in zip(range(len(each)), self.pipes):
            assert pipe.poll(2 * TIMEOUT), f"rank {rank} is silent"
            results.append(pipe.recv())
        return results

    def results(self, function, each):
        found = self.run(function, each)
        for rank, (result, text) in enumerate(found):
            assert text is None, f"rank {rank}: {result}: {text}"
        return [result for result, _ in found]

    def close(self):
        for pipe in self.pipes:
            with contextlib.suppress(OSError):
                pipe.send(None)
        for process in self.processes:
            process.join(10)
            process.kill()


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    ranks = Ranks("cpu", 4, tmp_path_factory.mktemp("gloo"))
    yield ranks
    ranks.close()


@pytest.fixture(scope="module")
def gpus(tmp_path_factory):
    if GPUS < 2 and not REQUIRED:
        pytest.skip("needs two NVIDIA GPUs")
    ranks = Ranks("cuda", min(GPUS, 4), tmp_path_factory.mktemp("nccl"))
    yield ranks
    ranks.close()


# What a rank runs. Tensors go back as they are; they share no memory with the rank.


def _detached(tensors):
    return [None if tensor is None else tensor.detach().cpu().clone() for tensor in tensors]


def _leaves(place, tensors):
    return [None if one is None else one.detach().to(place).requires_grad_() for one in tensors]


def _recurrence(group, _rank, place, x, c, h, d_y, d_last, options):
    """Returns outputs, final state, and the gradients of the sum of all ranks' losses."""
    x, c, h = leaves = _leaves(place, (x, c, h))
    y, last = distributed.linrec(x, c, initial=h, return_final=True, group=group, **options)
    wanted = [leaf for leaf in leaves if leaf is not None]
    gradients = torch.autograd.grad((y, last), wanted, (d_y.to(place), d_last.to(place)))
    return _detached([y, last, *gradients, *([None] * (h is None))])


def cut(tensor, stretches, dim=-1):
    """Returns the stretches, which are not contiguous."""
    return tensor.split(stretches, dim)


def over(ranks, x, c, h, d_y, d_last, stretches, **options):
    """Returns outputs, last states and gradients over the ranks, joined."""
    size = len(stretches)
    first = size - 1 if options.get("reverse") else 0
    zeros = torch.zeros_like(d_last)
    each = [
        (*parts, h if rank == first else None)
        for rank, parts in enumerate(zip(cut(x, stretches), cut(c, stretches)))
    ]
    each = [
        (*parts, part, d_last if rank == size - 1 - first else zeros, options)
        for rank, (parts, part) in enumerate(zip(each, cut(d_y, stretches)))
    ]
    found = ranks.results(_recurrence, each)
    y, last, d_x, d_c, d_h = zip(*found)
    joined = [torch.cat(parts, dim=-1) for parts in (y, d_x, d_c)]
    return joined[0], last[size - 1 - first], joined[1], joined[2], d_h[first]


def drawn(dtype, length, rows=(3,), log_coeffs=False):
    wide = WIDE[dtype]
    x, d_y = torch.randn(2, *rows, length, dtype=wide)
    h, d_last = torch.randn(2, *rows, dtype=wide)
    c = 0.7 + 0.3 * torch.rand(*rows, length, dtype=torch.float64)
    c = (
        torch.polar(c, 6 * torch.rand(*rows, length, dtype=torch.float64))
        if dtype.is_complex
        else c.to(wide)
    )
    c = c.log() if log_coeffs else c
    state = torch.float32 if dtype.itemsize == 2 else dtype
    return [x.to(dtype), c.to(dtype), h.to(state), d_y.to(dtype), d_last.to(state)]


def check_recurrence(ranks, dtype, stretches, reverse, has_initial=True):
    """Compares with the loop in twice the precision, within the bound of one call."""
    wide = WIDE[dtype]
    x, c, h, d_y, d_last = drawn(dtype, sum(stretches))
    h = h if has_initial else None
    got = over(ranks, x, c, h, d_y, d_last, stretches, reverse=reverse)
    to_wide = [None if one is None else one.to(wide).requires_grad_() for one in (x, c, h)]
    y = loop(*to_wide, reverse=reverse)
    last = y[..., 0 if reverse else -1]
    assert got[0].dtype == dtype and got[1].dtype == d_last.dtype
    limits = bound(x, c, h, reverse)
    assert ((got[0].to(wide) - y).abs() <= limits).all()
    assert ((got[1].to(wide) - last).abs() <= limits[..., 0 if reverse else -1]).all()
    # The gradients: a recurrence in the other direction, and products of its states and of outputs.
    wanted = [one for one in to_wide if one is not None]
    exact = torch.autograd.grad((y, last), wanted, (d_y.to(wide), d_last.to(wide)))
    zero, one = torch.zeros_like(c[..., :1]), torch.ones_like(c[..., :1])
    forth = lambda rows, first: torch.cat(
        [rows[..., 1:], first] if reverse else [first, rows[..., :-1]], -1
    )
    back = lambda rows, end: torch.cat(
        [end, rows[..., :-1]] if reverse else [rows[..., 1:], end], -1
    )
    d_rows = d_y.to(wide)
    d_rows[..., 0 if reverse else -1] += d_last
    factor = 2 if dtype.itemsize == 2 else 1  # the loss of the sum is one more rounding
    d_limits = factor * bound(
        d_rows.to(dtype), back(c, zero).conj().resolve_conj(), None, not reverse
    )
    unit = {2: 2**-8, 4: 2**-24, 8: 2**-53}[dtype.itemsize // (2 if dtype.is_complex else 1)]
    assert ((got[2].to(wide) - exact[0]).abs() <= d_limits + 2 * unit * exact[0].abs()).all()
    before = forth(
        y.detach(), torch.zeros_like(y[..., :1]) if h is None else h.to(wide).unsqueeze(-1)
    )
    y_limits = forth(limits, torch.zeros_like(limits[..., :1]))
    size_d, size_y = exact[0].abs(), before.abs()
    c_limits = (
        size_d * y_limits + d_limits * size_y + d_limits * y_limits + 4 * unit * size_d * size_y
    )
    assert ((got[3].to(wide) - exact[1]).abs() <= c_limits).all()
    if h is not None:
        step = -1 if reverse else 0
        h_limits = d_limits[..., step] * c[..., step].abs() + 4 * unit * exact[2].abs()
        assert ((got[4].to(wide) - exact[2]).abs() <= h_limits).all()


DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.complex64, torch.complex128]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reverse", [False, True])
def test_values_and_gradients_keep_the_bound_of_one_call(ranks, dtype, reverse):
    for stretches in [*STRETCHES, (501, 499), (300, 301, 17, 402)]:
        check_recurrence(ranks, dtype, stretches, reverse, has_initial=len(stretches) == 4)


OPTIONS = [
    {"log_coeffs": True},
    {"in_order": True},
    {"reverse": True, "log_coeffs": True, "in_order": True},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_options(ranks, options):
    for stretches in STRETCHES:
        x, c, h, d_y, d_last = drawn(
            torch.float64, sum(stretches), log_coeffs=options.get("log_coeffs", False)
        )
        got = over(ranks, x, c, h, d_y, d_last, stretches, **options)
        leaves = _leaves("cpu", (x, c, h))
        y, last = linrec(*leaves[:2], initial=leaves[2], return_final=True, **options)
        exact = y, last, *torch.autograd.grad((y, last), leaves, (d_y, d_last))
        torch.testing.assert_close(got, exact, rtol=1e-13, atol=1e-13)
        if options.get("in_order"):
            assert all(map(torch.equal, got[:4], exact[:4]))


def _other_axes(group, _rank, place, x, c):
    x, c = _leaves(place, (x, c))
    y, last = distributed.linrec(x, c, dim=1, return_final=True, group=group)
    number = distributed.linrec(x, 0.5, dim=1, group=group)
    gradients = torch.autograd.grad(y.sum() + 2 * number.sum(), (x, c))
    return _detached([y, number, *gradients, last])


def test_other_axes_broadcasting_and_numbers(ranks):
    x, c = torch.randn(2, 13, 3, dtype=torch.float64), torch.rand(13, 1, dtype=torch.float64)
    exact = _other_axes_alone(x, c)
    for stretches in STRETCHES:
        found = ranks.results(_other_axes, list(zip(cut(x, stretches, 1), cut(c, stretches, 0))))
        joined = [torch.cat(parts, axis) for parts, axis in zip(zip(*found), (1, 1, 1, 0))]
        torch.testing.assert_close([*joined, found[-1][-1]], exact)


def _other_axes_alone(x, c):
    x, c = _leaves("cpu", (x, c))
    (y, last), number = linrec(x, c, dim=1, return_final=True), linrec(x, 0.5, dim=1)
    return _detached([y, number, *torch.autograd.grad(y.sum() + 2 * number.sum(), (x, c)), last])


def _third(scan, leaves):
    """Returns gradients of three orders, each of the sum of the squares of the ones before."""
    y, last = scan(*leaves)
    wanted = [leaf for leaf in leaves if leaf is not None]
    orders, total = [], y.pow(3).sum() + last.abs().pow(2).sum()
    for order in range(3):
        gradients = torch.autograd.grad(total, wanted, create_graph=order < 2)
        orders.append(_detached(gradients))
        total = sum(gradient.pow(2).sum() for gradient in gradients)
    return orders


def _third_over(group, rank, place, x, c, h, options):
    weight = 1.0 if rank == dist.get_world_size(group) - 1 else 0.0
    leaves = _leaves(place, (x, c, h))

    def scan(x, c, h):
        y, last = distributed.linrec(x, c, initial=h, return_final=True, group=group, **options)
        return y, last * weight

    return _third(scan, leaves)


@pytest.mark.parametrize("options", [{}, {"log_coeffs": True}, {"in_order": True}])
def test_gradients_of_any_order(ranks, options):
    for stretches in [(3, 2), (1, 0, 2, 2)]:
        x, c, h, _, _ = drawn(torch.float64, sum(stretches), log_coeffs="log_coeffs" in options)
        parts = list(zip(cut(x, stretches), cut(c, stretches)))
        found = ranks.results(
            _third_over, [(*part, None if rank else h, options) for rank, part in enumerate(parts)]
        )
        alone = lambda x, c, h: linrec(x, c, initial=h, return_final=True, **options)
        exact = _third(alone, _leaves("cpu", (x, c, h)))
        for order in range(3):
            for place in range(2):
                joined = torch.cat([result[order][place] for result in found], -1)
                torch.testing.assert_close(joined, exact[order][place])
            torch.testing.assert_close(found[0][order][2], exact[order][2])


def _unused(group, rank, place, x, c):
    """Only rank 0 has a leaf, and only the last rank a loss that is not linear."""
    x = x.to(place).requires_grad_(rank == 0)
    y = distributed.linrec(x, c.to(place), group=group)
    is_recorded, total = y.requires_grad, (y.pow(2) if rank == 3 else 0 * y).sum()
    if rank > 0:
        total.backward()
        return is_recorded, None
    return is_recorded, torch.autograd.grad(total, x)[0].cpu()


def test_a_rank_without_leaves_passes_gradients_on(ranks):
    x, c, *_ = drawn(torch.float64, 13)
    stretches = (3, 4, 5, 1)
    found = ranks.results(_unused, list(zip(cut(x, stretches), cut(c, stretches))))
    assert all(is_recorded for is_recorded, _ in found)
    leaf = x[..., :3].clone().requires_grad_()
    y = linrec(torch.cat([leaf, x[..., 3:]], -1), c)
    torch.testing.assert_close(found[0][1], torch.autograd.grad(y[..., -1:].pow(2).sum(), leaf)[0])


def _without_gradients(group, _rank, place, x, c):
    x = x.to(place).requires_grad_()
    with torch.no_grad():
        return distributed.linrec(x, c.to(place), group=group, check=_rank < 0).requires_grad


def test_without_gradients_and_without_a_check(ranks):
    x, c, *_ = drawn(torch.float32, 13)
    assert ranks.results(_without_gradients, list(zip(cut(x, (6, 7)), cut(c, (6, 7))))) == [
        False,
        False,
    ]


# The selective scan.


def _selective(group, rank, place, given, initial, d_out, d_last, softplus):
    given = dict(zip(given, _leaves(place, given.values())))
    initial = None if initial is None else initial.detach().to(place).requires_grad_()
    out, last = distributed.selective_scan(
        **given, delta_softplus=softplus, return_last_state=True, initial_state=initial, group=group
    )
    wanted = [*given.values(), *([] if initial is None else [initial])]
    gradients = torch.autograd.grad((out, last), wanted, (d_out.to(place), d_last.to(place)))
    return _detached([out, last, *gradients])


def pieces(given, stretches, parts=1):
    """Returns the arguments of each rank. Complex couplings have ``parts`` numbers for a step."""
    each = [{} for _ in stretches]
    for name, tensor in given.items():
        factor = parts if name in "BC" else 1
        stretch = (
            cut(tensor, [factor * steps for steps in stretches])
            if tensor.ndim > 2
            else [tensor] * len(stretches)
        )
        for of_rank, part in zip(each, stretch):
            of_rank[name] = part
    return each


def selective_over(ranks, given, initial, d_out, d_last, stretches, softplus, parts=1):
    last_rank = len(stretches) - 1
    each = [
        (
            own,
            initial if rank == 0 else None,
            part,
            d_last if rank == last_rank else torch.zeros_like(d_last),
            softplus,
        )
        for rank, (own, part) in enumerate(
            zip(pieces(given, stretches, parts), cut(d_out, stretches))
        )
    ]
    found = ranks.results(_selective, each)
    joined = {"out": torch.cat([result[0] for result in found], -1), "last": found[last_rank][1]}
    for place, (name, tensor) in enumerate(given.items()):
        of_ranks = [result[2 + place] for result in found]
        joined[name] = torch.cat(of_ranks, -1) if tensor.ndim > 2 else sum(of_ranks)
    if initial is not None:
        joined["initial"] = found[0][-1]
    return joined


def selective_alone(scan, given, initial, d_out, d_last, softplus):
    leaves = dict(zip(given, _leaves("cpu", given.values())))
    initial = None if initial is None else initial.detach().requires_grad_()
    out, last = scan(**leaves, delta_softplus=softplus, initial_state=initial)
    wanted = [*leaves.values(), *([] if initial is None else [initial])]
    gradients = torch.autograd.grad((out, last), wanted, (d_out, d_last))
    names = [*given, *([] if initial is None else ["initial"])]
    return {"out": out.detach(), "last": last.detach(), **dict(zip(names, gradients))}


def selective_case(kinds, length, dtype=torch.float64, complex_rates=False):
    given = arguments(kinds, complex_rates, length=length, dtype=torch.float64)
    given = {name: tensor.detach() for name, tensor in given.items()}
    in_time = lambda tensor: tensor.to(dtype) if tensor.ndim > 2 else tensor.to(torch.float32)
    given = (
        given
        if dtype == torch.float64
        else {name: in_time(tensor) for name, tensor in given.items()}
    )
    state = torch.randn(2, 2, 4, 3, dtype=given["A"].dtype)
    return given, state[0], torch.randn_like(given["u"]), state[1]


@pytest.mark.parametrize(
    "kinds", [("varying", "varying"), ("constant", "grouped"), ("grouped", "constant")]
)
@pytest.mark.parametrize("complex_rates", [False, True])
def test_selective_scan(ranks, kinds, complex_rates):
    for stretches in [(7, 6), (0, 13), (5, 0, 1, 7), (3, 4, 5, 1)]:
        given, initial, d_out, d_last = selective_case(kinds, 13, complex_rates=complex_rates)
        for first, softplus in [(initial, True), (None, len(stretches) == 2)]:
            some = given if softplus else {name: given[name] for name in NAMES[:5]}
            problem = (some, first, d_out, d_last)
            got = selective_over(
                ranks, *problem, stretches, softplus, parts=2 if complex_rates else 1
            )
            torch.testing.assert_close(got, selective_alone(step_by_step, *problem, softplus))


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.bfloat16, 0.02)])
def test_selective_scan_in_other_types(ranks, dtype, tolerance):
    stretches = (120, 65, 1, 300)
    given, initial, d_out, d_last = selective_case(("varying", "varying"), sum(stretches), dtype)
    got = selective_over(ranks, given, initial, d_out, d_last, stretches, True)
    wide = lambda tensor: tensor.double()
    exact = {name: wide(tensor) for name, tensor in given.items()}
    exact = selective_alone(step_by_step, exact, wide(initial), wide(d_out), wide(d_last), True)
    for name, tensor in got.items():
        assert (
            tensor.dtype
            == {"out": dtype, "last": torch.float32, "initial": torch.float32}.get(name)
            or given[name].dtype
        )
        assert (tensor.double() - exact[name]).abs().max() <= tolerance * exact[name].abs().max(), (
            name
        )


def _selective_second(group, rank, place, given):
    given = dict(zip(given, _leaves(place, given.values())))
    out = distributed.selective_scan(**given, delta_softplus=True, group=group)
    return _second(out, given)


def _second(out, given):
    gradients = torch.autograd.grad(out.pow(2).sum(), list(given.values()), create_graph=True)
    # Only the gradients of what has steps: the rates have sums over ranks, and squares do not add.
    total = sum(
        gradient.pow(2).sum() for gradient, one in zip(gradients, given.values()) if one.ndim > 2
    )
    return _detached(torch.autograd.grad(total, list(given.values())))


@pytest.mark.parametrize("complex_rates", [False, True])
def test_second_gradients_of_the_selective_scan(ranks, complex_rates):
    stretches = (2, 0, 3, 2)
    given, *_ = selective_case(("varying", "varying"), 7, complex_rates=complex_rates)
    found = ranks.results(
        _selective_second, [(one,) for one in pieces(given, stretches, 2 if complex_rates else 1)]
    )
    leaves = dict(zip(given, _leaves("cpu", given.values())))
    exact = _second(selective_scan(**leaves, delta_softplus=True), leaves)
    for (name, tensor), of_ranks, wanted in zip(given.items(), zip(*found), exact):
        joined = torch.cat(of_ranks, -1) if tensor.ndim > 2 else sum(of_ranks)
        torch.testing.assert_close(joined, wanted, msg=lambda text: f"{name}: {text}")


def _compiled(group, rank, place, x, c):
    x = x.to(place).requires_grad_()
    scan = lambda x: 2 * distributed.linrec(x + 1, c.to(place), group=group)
    compiled = torch.compile(scan, backend="aot_eager")
    y = compiled(x)
    return _detached([y, torch.autograd.grad(y.sum(), x)[0]])


def test_a_call_breaks_compiled_graphs(ranks):
    x, c, *_ = drawn(torch.float64, 13)
    found = ranks.results(_compiled, list(zip(cut(x, (6, 7)), cut(c, (6, 7)))))
    x.requires_grad_()
    y = 2 * linrec(x + 1, c)
    exact = y, torch.autograd.grad(y.sum(), x)[0]
    torch.testing.assert_close(tuple(torch.cat(parts, -1) for parts in zip(*found)), exact)


# Mistakes.


def _mistaken(group, _rank, place, call, options):
    call = {"linrec": distributed.linrec, "selective_scan": distributed.selective_scan}[call]
    with torch.set_grad_enabled(options.pop("grad", True)):
        return call(*options.pop("of"), group=group, **options)


def rows(*shape, **options):
    return torch.ones(shape, **options)


X = rows(2, 5)
MISTAKES = [
    (
        "linrec",
        [{"of": (X, rows(2, 4))}, {"of": (X, X)}],
        "rank 0: linrec: inputs are float32[2, 5]",
    ),
    ("linrec", [{"of": (X, X)}, {"of": ("no tensor", X)}], "rank 1: linrec: inputs is of type str"),
    (
        "linrec",
        [{"of": (X, X)}, {"of": (rows(3, 5), rows(3, 5))}],
        "inputs is float32[2, steps] on cpu on rank 0 and float32[3, steps] on cpu on rank 1",
    ),
    (
        "linrec",
        [{"of": (X, X)}, {"of": (X.double(), X)}],
        "inputs is float32[2, steps] on cpu on rank 0 and float64[2, steps] on cpu on rank 1",
    ),
    (
        "linrec",
        [{"of": (X, X)}, {"of": (X, X), "reverse": False, "log_coeffs": True}],
        "log_coeffs is False on rank 0 and True on rank 1",
    ),
    (
        "linrec",
        [{"of": (X, X)}, {"of": (X, X), "initial": rows(2)}],
        "rank 1: distributed.linrec: initial is float32[2] on cpu; only rank 0",
    ),
    (
        "linrec",
        [{"of": (X, X), "reverse": True, "initial": 0.0}, {"of": (X, X), "reverse": True}],
        "only rank 1, where the walk begins",
    ),
    ("linrec", [{"of": (X, X), "dim": 2}, {"of": (X, X)}], "rank 0: linrec: there is no dim 2"),
    (
        "linrec",
        [{"of": (X, X), "grad": False}, {"of": (X, X)}],
        "is_grad_enabled() is False on rank 0 and True on rank 1",
    ),
]


@pytest.mark.parametrize("call, each, text", MISTAKES)
def test_a_mistake_on_one_rank_is_the_same_error_on_all(ranks, call, each, text):
    found = ranks.run(_mistaken, [(call, options) for options in each])
    errors = {(kind, message.split("\n---\n")[0]) for kind, message in found}
    assert len(errors) == 1 and text in errors.pop()[1], found
    # The group is still in step.
    assert ranks.results(_without_gradients, [(X, X)] * len(each)) == [False] * len(each)


def test_a_mistake_on_one_rank_of_the_selective_scan(ranks):
    given, *_ = selective_case(("varying", "varying"), 13)
    each = pieces(given, (3, 4, 5, 1))
    each[2]["A"] = each[2]["A"][:, :2]
    found = ranks.run(_mistaken, [("selective_scan", {"of": tuple(one.values())}) for one in each])
    errors = {(kind, message.split("\n---\n")[0]) for kind, message in found}
    assert (
        len(errors) == 1 and "rank 2: selective_scan: B is float64[2, 3, 5]" in errors.pop()[1]
    ), found
    each[2] = pieces(given, (3, 4, 5, 1))[2]
    del each[2]["delta_bias"]
    found = ranks.run(_mistaken, [("selective_scan", {"of": tuple(one.values())}) for one in each])
    assert all(
        "delta_bias is float64[4] on cpu on rank 0 and None on rank 2" in message
        for _, message in found
    ), found


def _ending(group, rank, _place, when):
    x = torch.ones(3, 4, requires_grad=True)
    if rank == 1 and when == "forward":
        os._exit(0)
    y = distributed.linrec(x, x, group=group)
    if rank == 1:
        os._exit(0)
    y.sum().backward()


@pytest.mark.parametrize("when", ["forward", "backward"])
def test_a_rank_that_ends_is_an_error_on_the_others(tmp_path, when):
    ranks = Ranks("cpu", 2, tmp_path)
    ranks.pipes[1].send((_ending, 2, (when,)))
    ranks.pipes[0].send((_ending, 2, (when,)))
    assert ranks.pipes[0].poll(2 * TIMEOUT)
    assert ranks.pipes[0].recv()[0] == "RuntimeError"
    ranks.close()


# GPUs.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reverse", [False, True])
def test_gpus_keep_the_bound_of_one_call(gpus, dtype, reverse):
    size = len(gpus.pipes)
    for stretches in [(7, 6), (0, 13), (501, 499), (5, 0, 1, 7), (300, 301, 17, 402)]:
        if len(stretches) in (2, size):
            check_recurrence(gpus, dtype, stretches, reverse)


def test_gpus_compute_the_selective_scan(gpus):
    size = len(gpus.pipes)
    for stretches in [(100, 65), (0, 150), (120, 65, 1, 300)]:
        if len(stretches) not in (2, size):
            continue
        given, initial, d_out, d_last = selective_case(
            ("varying", "varying"), sum(stretches), torch.float32
        )
        got = selective_over(gpus, given, initial, d_out, d_last, stretches, True)
        exact = {name: tensor.double() for name, tensor in given.items()}
        exact = selective_alone(
            step_by_step, exact, initial.double(), d_out.double(), d_last.double(), True
        )
        for name, tensor in got.items():
            assert (tensor.double() - exact[name]).abs().max() <= 2e-5 * exact[name].abs().max(), (
                name
            )


def _on_another_gpu(group, rank, _place, x, c):
    """As in a process that has not chosen its GPU: all ranks have the same current one."""
    torch.cuda.set_device(0)
    x, c = (tensor.to(f"cuda:{rank}") for tensor in (x, c))
    y = distributed.linrec(x, c, group=group)
    torch.cuda.set_device(rank)
    return y.cpu()


def test_gpus_need_not_be_the_current_ones(gpus):
    x, c, *_ = drawn(torch.float64, 13)
    found = gpus.results(_on_another_gpu, list(zip(cut(x, (6, 7)), cut(c, (6, 7)))))
    torch.testing.assert_close(torch.cat(found, -1), linrec(x, c))
