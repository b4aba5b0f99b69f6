"""The ways to compute the recurrence in the race.

Each is a function of inputs and coefficients ``[rows, length]``. A way is made, and compiled, for one
length; if it cannot take that length, an exception says why.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable

import torch
from linrec import linrec
from torch import Tensor

Way = Callable[[Tensor, Tensor], Tensor]


class TooLong(Exception):
    """The way does not take rows of this length, or is not measured at it."""


def of_linrec(length: int) -> Way:
    return linrec


def loop(length: int) -> Way:
    """Runs step by step in Python, with one operation of PyTorch for all rows."""
    if length > 1024:
        raise TooLong("a launch per step: not measured above 1024")

    def run(inputs: Tensor, coeffs: Tensor) -> Tensor:
        outputs = torch.empty_like(inputs)
        state = torch.zeros_like(inputs[:, 0])
        for step in range(inputs.shape[1]):
            state = torch.addcmul(inputs[:, step], state, coeffs[:, step], out=outputs[:, step])
        return outputs

    return run


def _behind(left, right):
    (x_left, c_left), (x_right, c_right) = left, right
    return x_left * c_right + x_right, c_left * c_right


def torch_associative_scan(length: int) -> Way:
    """PyTorch's own scan, compiled (on a GPU it runs in no other way)."""
    from torch._higher_order_ops.associative_scan import associative_scan

    # It is compiled again for every length.
    torch._dynamo.config.recompile_limit = 64
    mode = "pointwise" if torch.cuda.is_available() else "generic"

    def scan(inputs: Tensor, coeffs: Tensor) -> Tensor:
        return associative_scan(_behind, (inputs, coeffs), dim=1, combine_mode=mode)[0]

    return torch.compile(scan, fullgraph=True, dynamic=False)


def jax_associative_scan(length: int) -> Way:
    """JAX's scan, under its jit. It has its own stream, so its caller waits: ``OWN_STREAM``."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    compiled = jax.jit(lambda x, c: jax.lax.associative_scan(_behind, (x, c), axis=1)[0])

    def run(inputs, coeffs):
        return compiled(inputs, coeffs)

    run.given = lambda inputs, coeffs: (jax.dlpack.from_dlpack(inputs), jax.dlpack.from_dlpack(coeffs))
    run.wait = jax.block_until_ready
    return run


def triton_tile(length: int) -> Way:
    import triton_scans

    if length > triton_scans.LONGEST_TILE:
        raise TooLong(f"a row at once: not above {triton_scans.LONGEST_TILE}")
    return triton_scans.tile


def triton_pipe(length: int, block: int = 2048, warps: int = 4) -> Way:
    import triton_scans

    return lambda inputs, coeffs: triton_scans.pipe(inputs, coeffs, block, warps)


@functools.cache
def build_accelerated_scan() -> subprocess.Popen | None:
    """Starts to compile the package's CUDA kernel in the background, if it is installed."""
    if importlib.util.find_spec("accelerated_scan") is None:
        return None
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-c", "import accelerated_scan.warp"], **quiet)


def accelerated_scan_warp(length: int) -> Way:
    """The package's kernel in CUDA C++, for rows of 32 to 65536 steps, powers of 2."""
    if length < 32 or length & (length - 1):
        raise TooLong("it takes powers of 2 from 32 on")
    build = build_accelerated_scan()
    if build is None or build.wait() != 0:
        raise ModuleNotFoundError("accelerated_scan.warp cannot be imported or compiled")
    from accelerated_scan.warp import scan

    return lambda inputs, coeffs: scan(coeffs[None], inputs[None])[0]


def accelerated_scan_triton(length: int) -> Way:
    from accelerated_scan.scalar import scan

    return lambda inputs, coeffs: scan(coeffs[None], inputs[None])[0]


def mamba(length: int) -> Way:
    """mamba-ssm's kernel with one state for each channel.

    With A = -1 and B = C = 1 it computes h = exp(-delta) h + delta u. The steps' sizes delta and
    their u are made from coefficients and inputs before it is timed.
    """
    from selective_scan_cuda import fwd

    def given(inputs: Tensor, coeffs: Tensor) -> tuple[Tensor, ...]:
        delta = (-coeffs.log()).clamp(min=1e-8)
        ones = torch.ones(len(inputs), 1, device=inputs.device)
        return (inputs / delta)[None], delta[None], -ones, ones

    def run(u: Tensor, delta: Tensor, rates: Tensor, ones: Tensor) -> Tensor:
        return fwd(u, delta, rates, ones, ones, None, None, None, False)[0][0]

    run.given = given
    return run


def heinsen(length: int) -> Way:
    """Two cumulative sums of logarithms, for positive arguments, as in chapter 15."""

    def run(inputs: Tensor, coeffs: Tensor) -> Tensor:
        products = torch.cumsum(coeffs.log(), dim=-1)
        sums = torch.logcumsumexp(inputs.log() - products, dim=-1)
        return (products + sums).exp()

    return run


#: The ways with their own stream, which are timed by the wall clock over queued calls.
OWN_STREAM = {"jax.lax.associative_scan"}

#: The ways that take seconds to compile, which are skipped first if time is short.
SLOW = {"torch associative_scan", "jax.lax.associative_scan"}

WAYS: dict[str, Callable[[int], Way]] = {
    "linrec": of_linrec,
    "a loop in Python": loop,
    "Triton tile": triton_tile,
    "Triton pipe": triton_pipe,
    "accelerated-scan Triton": accelerated_scan_triton,
    "mamba-ssm": mamba,
    "Heinsen's two sums": heinsen,
    "torch associative_scan": torch_associative_scan,
    "jax.lax.associative_scan": jax_associative_scan,
    "accelerated-scan warp": accelerated_scan_warp,
}
