"""What a call costs beside its work: wall time per call above an operator that does nothing, and the time on the GPU.

    python python/tests/overhead.py [--device cuda] [--calls 2000]

All are taken in turn, nine times, and medians are printed: microseconds of a call that computes next to nothing; then, for
lengths from 16 to 65536 on a GPU, milliseconds of the recurrence between two events, with `torch.add` beside it.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from linrec import linrec
from linrec._operators import scan

RUNS = 9

_library = torch.library.Library("linrec_overhead", "DEF")
for _name in ("empty", "differentiable"):
    _library.define(f"{_name}(Tensor inputs, Tensor coeffs, Tensor? initial, bool reverse, bool log_coeffs) -> Tensor")
    for _key in ("CPU", "CUDA"):
        _library.impl(_name, lambda inputs, coeffs, initial, reverse, log_coeffs: torch.empty_like(inputs), _key)
torch.library.register_autograd(
    "linrec_overhead::differentiable",
    lambda ctx, d_outputs: (d_outputs, *ctx.saved_tensors, None, None, None),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output),
)


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def wall(call, device: str, calls: int) -> float:
    """Microseconds per call, of calls that are queued one behind the other."""
    wait(device)
    start = time.perf_counter()
    for _ in range(calls):
        call()
    wait(device)
    return (time.perf_counter() - start) / calls * 1e6


def on_gpu(call) -> float:
    """Milliseconds between two events, behind what empties the caches."""
    torch.empty(256 << 20, dtype=torch.int8, device="cuda").zero_()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def medians(named: dict, measure) -> dict[str, float]:
    for call in named.values():
        call()
    runs = [{name: measure(call) for name, call in named.items()} for _ in range(RUNS)]
    return {name: statistics.median(run[name] for run in runs) for name in named}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--calls", type=int, default=2000)
    arguments = parser.parse_args()
    device = arguments.device
    print(f"torch {torch.__version__} on {torch.cuda.get_device_name() if device == 'cuda' else 'the CPU'}")

    x, c = torch.randn(4, 32, device=device), torch.rand(4, 32, device=device)
    h = torch.randn(4, device=device)
    empty, differentiable = torch.ops.linrec_overhead.empty.default, torch.ops.linrec_overhead.differentiable.default
    calls = {
        "an empty operator": lambda: empty(x, c, None, False, False),
        "an empty operator that has gradients": lambda: differentiable(x, c, None, False, False),
        "torch.ops.linrec.scan": lambda: scan(x, c, None, False, False),
        "linrec": lambda: linrec(x, c),
        "linrec, with a state": lambda: linrec(x, c, initial=h, return_final=True),
    }
    for grad in (False, True):
        x.requires_grad_(grad)
        print(f"\nmicroseconds of a call{', recorded for gradients' if grad else ''}")
        for name, us in medians(calls, lambda call: wall(call, device, arguments.calls)).items():
            print(f"{us:8.2f}  {name}")
    if device != "cuda":
        return
    rows = 100 * torch.cuda.get_device_properties(0).multi_processor_count
    print(f"\nmilliseconds on the GPU, {rows} sequences of float32: torch.add, linrec, their ratio")
    for length in [2**i for i in range(4, 17)]:
        x, c = torch.randn(rows, length, device=device), torch.rand(rows, length, device=device)
        got = medians({"add": lambda: torch.add(x, c), "linrec": lambda: linrec(x, c)}, on_gpu)
        print(f"{length:8d} {got['add']:9.4f} {got['linrec']:9.4f} {got['add'] / got['linrec']:6.3f}")


if __name__ == "__main__":
    main()
