"""Tests of the recurrence and the selective scan over the ranks of a group, against one process.

The ranks of the CPU are processes that live as long as this module, with the backend gloo. The tests
on GPUs, with NCCL, need two; without them they are skipped, or fail if LINREC_REQUIRE_CUDA=1.
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
STRETCHES = [(7, 6), (1, 12), (0, 13), (5, 0, 1, 7), (0, 0, 4, 9), (3, 4, 5, 1)]


def _serve(place, rank, size, file, pipe):
    """A rank: runs what the test sends, and sends back the result, or the exception and its text."""
    torch.set_num_threads(1)
    if place == "cuda":
        torch.cuda.set_device(rank)
    backend = {"cpu": "gloo", "cuda": "nccl"}[place]
    store = {"init_method": f"file://{file}", "rank": rank, "world_size": size}
    dist.init_process_group(backend, timeout=timedelta(seconds=TIMEOUT), **store)
    groups = {size: None, **({2: dist.new_group([0, 1])} if size > 2 else {})}
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
            process = context.Process(target=_serve, args=(place, rank, size, folder / "ranks", there), daemon=True)
            process.start()
            self.pipes.append(here)
            self.processes.append(process)

    def run(self, function, each):
        """Calls ``function(group, rank, place, *arguments)`` on as many ranks as there are arguments."""
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
    return [part.contiguous() for part in tensor.split(stretches, dim)]


def over(ranks, x, c, h, d_y, d_last, stretches, **options):
    """Returns outputs, last states and gradients over the ranks, joined."""
    size = len(stretches)
    first = size - 1 if options.get("reverse") else 0
    zeros = torch.zeros_like(d_last)
    each = [
        (*parts, h if rank == first else None) for rank, parts in enumerate(zip(cut(x, stretches), cut(c, stretches)))
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
    c = torch.polar(c, 6 * torch.rand(*rows, length, dtype=torch.float64)) if dtype.is_complex else c.to(wide)
    c = c.log() if log_coeffs else c
    state = torch.float32 if dtype.itemsize == 2 else dtype
    return [x.to(dtype), c.to(dtype), h.to(state), d_y.to(dtype), d_last.to(state)]


def check_recurrence(ranks, dtype, stretches, reverse, has_initial=True, length=None):
    """Compares with the loop in twice the precision, within the bound of one call."""
    wide, length = WIDE[dtype], sum(stretches)
    x, c, h, d_y, d_last = drawn(dtype, length)
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
    forth = lambda rows, first: torch.cat([rows[..., 1:], first] if reverse else [first, rows[..., :-1]], -1)
    back = lambda rows, end: torch.cat([end, rows[..., :-1]] if reverse else [rows[..., 1:], end], -1)
    d_rows = d_y.to(wide)
    d_rows[..., 0 if reverse else -1] += d_last
    factor = 2 if dtype.itemsize == 2 else 1  # the loss of the sum is one more rounding
    d_limits = factor * bound(d_rows.to(dtype), back(c, zero).conj().resolve_conj(), None, not reverse)
    unit = {2: 2**-8, 4: 2**-24, 8: 2**-53}[dtype.itemsize // (2 if dtype.is_complex else 1)]
    assert ((got[2].to(wide) - exact[0]).abs() <= d_limits + 2 * unit * exact[0].abs()).all()
    before = forth(y.detach(), torch.zeros_like(y[..., :1]) if h is None else h.to(wide).unsqueeze(-1))
    y_limits = forth(limits, torch.zeros_like(limits[..., :1]))
    size_d, size_y = exact[0].abs(), before.abs()
    c_limits = size_d * y_limits + d_limits * size_y + d_limits * y_limits + 4 * unit * size_d * size_y
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
