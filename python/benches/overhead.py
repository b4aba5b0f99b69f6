"""The overhead of a call: wall time of calls with hardly any work, and of calls that do nothing.

    python python/benches/overhead.py [--device cuda] [--calls 2000] [--out FOLDER]

All calls take turns, nine times, and the program prints medians in microseconds. On a GPU it measures
the host, since the kernels are shorter. FOLDER gets all runs as `overhead.csv`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from linrec import linrec
from timing import Table, in_turn, medians, wall

_library = torch.library.Library("linrec_overhead", "DEF")
for _name in ("empty", "differentiable"):
    _library.define(f"{_name}(Tensor inputs, Tensor coeffs, Tensor? initial, bool reverse, bool log_coeffs, bool in_order) -> Tensor")
    for _key in ("CPU", "CUDA"):
        _library.impl(_name, lambda inputs, coeffs, initial, *options: torch.empty_like(inputs), _key)
torch.library.register_autograd(
    "linrec_overhead::differentiable",
    lambda ctx, d_outputs: (d_outputs, *[None] * 5),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[1], output),
)


#: The options of `scan`: reverse, log_coeffs, in_order.
PLAIN = (False, False, False)


class Function(torch.autograd.Function):
    """An empty function of autograd."""

    @staticmethod
    def forward(ctx, inputs, coeffs):
        output = torch.empty_like(inputs)
        ctx.save_for_backward(coeffs, output)
        return output

    @staticmethod
    def backward(ctx, d_outputs):
        return d_outputs, None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    device = arguments.device
    table = Table(arguments.out and arguments.out / "overhead.csv", device)
    print(f"torch {torch.__version__} on {table.origin['machine']}, {arguments.calls} calls a run")

    x, c = torch.randn(4, 32, device=device), torch.rand(4, 32, device=device)
    h, g = torch.randn(4, device=device), torch.randn(4, 32, device=device)
    empty, differentiable = torch.ops.linrec_overhead.empty.default, torch.ops.linrec_overhead.differentiable.default
    operator = torch.ops.linrec.scan.default
    calls = {
        "torch.add": lambda: torch.add(x, c),
        "an empty autograd.Function": lambda: Function.apply(x, c),
        "an empty operator": lambda: empty(x, c, None, *PLAIN),
        "an empty operator with gradients": lambda: differentiable(x, c, None, *PLAIN),
        "torch.ops.linrec.scan": lambda: operator(x, c, None, *PLAIN),
        "linrec": lambda: linrec(x, c),
        "linrec with a state": lambda: linrec(x, c, initial=h, return_final=True),
    }
    passes = {
        "an empty operator with gradients": lambda: differentiable(x, c, None, *PLAIN).backward(g),
        "an empty autograd.Function": lambda: Function.apply(x, c).backward(g),
        "torch.ops.linrec.scan": lambda: operator(x, c, None, *PLAIN).backward(g),
        "linrec": lambda: linrec(x, c).backward(g),
    }
    for what, grad, measured in [("call", False, calls), ("call, recorded", True, calls), ("both passes", True, passes)]:
        x.requires_grad_(grad)
        got = in_turn(measured, lambda call: wall(call, device, arguments.calls))
        for name, runs in got.items():
            for us in runs:
                table.add(device=device, what=what, name=name, microseconds=f"{us:.3f}")
        print(f"\nmicroseconds of a {what}" if what != "both passes" else "\nmicroseconds of both passes")
        for name, us in medians(got).items():
            print(f"{us:8.2f}  {name}")


if __name__ == "__main__":
    main()
