"""The post's figure in one process: every way to compute the recurrence, and element-wise addition.

    python python/benches/figure.py --out FOLDER [--seconds 90] [--lengths 16,64,…]

It runs on a GPU, with 100 sequences of float32 per multiprocessor. First, everything is compiled, and
each way is compared with a loop in float64. Then all ways take turns for each length, in nine rounds,
between two CUDA events, after the caches are emptied. JAX, which has its own stream, is timed by the
wall clock over queued calls. FOLDER gets all runs as `figure.csv`, and `heinsen.csv` with the bytes,
launches, memory and correct digits of two cumulative sums. The program names the ways that are not
installed or that do not take rows of a length, and skips them. Without a GPU it is only a trial.
"""

from __future__ import annotations

import argparse
import gc
import time
from pathlib import Path

import torch
from linrec import linrec
from timing import Table, in_turn, medians, on_gpu, wall
from torch.utils._python_dispatch import TorchDispatchMode
from ways import OWN_STREAM, SLOW, WAYS, TooLong, build_accelerated_scan, heinsen, triton_pipe

LENGTHS = (16, 64, 256, 1024, 4096, 16384, 65536)
#: The lengths for the slow ways, to save time.
FEW = (64, 1024, 4096, 65536)
#: The blocks and warps to try for Triton's pipe, once for each length.
PIPES = ((1024, 4), (2048, 4), (2048, 8), (4096, 8))
BYTES = 12
#: The largest error relative to the largest output; Heinsen's is printed and not judged.
TOLERANCE = 1e-4


def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def data(rows: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns inputs in (0, 1], for logarithms, and coefficients near one, which keep the carry."""
    torch.manual_seed(length)
    inputs = 1 - torch.rand(rows, length, device=device())
    return inputs, 1 - 0.02 * torch.rand(rows, length, device=device())


def off(outputs: torch.Tensor, inputs: torch.Tensor, coeffs: torch.Tensor, rows: int = 64) -> float:
    """Returns the error of some rows against float64, relative to the largest output."""
    exact = linrec(inputs[:rows].double(), coeffs[:rows].double())
    return ((outputs[:rows] - exact).abs().max() / exact.abs().max()).item()


def arguments(way, inputs: torch.Tensor, coeffs: torch.Tensor) -> tuple:
    """Returns the arguments of the way, which are made before it is timed."""
    return way.given(inputs, coeffs) if hasattr(way, "given") else (inputs, coeffs)


def milliseconds(way, inputs: torch.Tensor, coeffs: torch.Tensor):
    """Returns a function that measures a way, by events or by the wall clock."""
    given = arguments(way, inputs, coeffs)
    if not hasattr(way, "wait"):
        call = lambda: way(*given)
        return (lambda: on_gpu(call)) if device() == "cuda" else (lambda: wall(call, "cpu", 3) / 1e3)
    torch.cuda.synchronize() if device() == "cuda" else None

    def queued(calls: int = 5) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            outputs = way(*given)
        way.wait(outputs)
        return (time.perf_counter() - start) / calls * 1e3

    return queued


class Traffic(TorchDispatchMode):
    """Counts operations, and the bytes of the tensors that they read and write."""

    def __init__(self):
        super().__init__()
        self.bytes, self.operations = 0, 0

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        result = function(*arguments, **(named or {}))
        tensors = [tensor for tensor in (*arguments, result) if isinstance(tensor, torch.Tensor)]
        if not function.is_view:
            self.bytes += sum(tensor.numel() * tensor.element_size() for tensor in tensors)
            self.operations += 1
        return result


def ready(length: int, rows: int, start: float, deadline: float, left_out: list[str]) -> dict:
    """Returns the ways that take rows of this length, compiled and compared."""
    inputs, coeffs = data(rows, length)
    found = {}
    for name, make in WAYS.items():
        try:
            if name in SLOW and length not in FEW:
                raise TooLong("it compiles for seconds, and is measured at some lengths only")
            if name in SLOW and time.monotonic() > deadline:
                raise TooLong("no time was left to compile it")
            way = tuned(inputs, coeffs) if name == "Triton pipe" and device() == "cuda" else make(length)
            outputs = way(*arguments(way, inputs, coeffs))
            if hasattr(way, "wait"):
                outputs = torch.from_dlpack(way.wait(outputs))
            far = off(outputs, inputs, coeffs)
            outputs = None
            if not far < TOLERANCE and make is not heinsen:
                raise ValueError(f"wrong by {far:.1e} of the largest output")
            found[name] = way
            print(f"  {time.monotonic() - start:6.1f} s: {name} at {length}, off by {far:.1e}", flush=True)
        except Exception as why:  # whatever another package raises is reported, and the others go on
            left_out.append(f"{name} at {length}: {type(why).__name__}: {str(why).strip().splitlines()[:1]}")
    return found


def tuned(inputs: torch.Tensor, coeffs: torch.Tensor):
    ways = {which: triton_pipe(inputs.shape[1], *which) for which in PIPES}
    calls = {which: milliseconds(way, inputs, coeffs) for which, way in ways.items()}
    best = medians(in_turn(calls, lambda call: call(), runs=3))
    return ways[min(best, key=best.get)]


def launches(call) -> int:
    """Returns the number of kernels that a call launches, by the profiler."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    kernels = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    return len([event for event in kernels if "memcpy" not in event.name.lower() and "memset" not in event.name.lower()])


def digits(table: Table, rows: int, length: int, times: dict[str, float]) -> None:
    """Compares two cumulative sums with the recurrence: time, bytes, launches, memory, error."""
    inputs, coeffs = data(rows, length)
    for name, way in [("linrec", linrec), ("Heinsen's two sums", heinsen(length))]:
        if name not in times:
            continue
        with Traffic() as traffic:
            way(inputs, coeffs)
        peak = started = ""
        if device() == "cuda":
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            outputs = way(inputs, coeffs)
            peak = f"{(torch.cuda.max_memory_allocated() - before) / inputs.numel():.1f}"
            started = launches(lambda: way(inputs, coeffs))
        else:
            outputs = way(inputs, coeffs)
        table.add(
            num_seqs=rows,
            seq_len=length,
            engine=name,
            ms=f"{times[name]:.5f}",
            bytes_per_element=f"{traffic.bytes / inputs.numel():.1f}",
            operations=traffic.operations,
            launches=started,
            peak_bytes_per_element=peak,
            error=f"{off(outputs, inputs, coeffs):.3e}",
        )
        del outputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)))
    parser.add_argument("--seconds", type=float, default=90, help="afterwards, skip the ways that take seconds to compile")
    options = parser.parse_args()
    lengths = [int(length) for length in options.lengths.split(",")]
    start = time.monotonic()
    build_accelerated_scan()
    on_a_gpu = device() == "cuda"
    rows = 100 * torch.cuda.get_device_properties(0).multi_processor_count if on_a_gpu else 40
    print(f"torch {torch.__version__}, {rows} sequences of float32", flush=True)
    figure = Table(options.out / "figure.csv", device())
    heinsens = Table(options.out / "heinsen.csv", device())
    left_out: list[str] = []
    # The longest first, where the ways that compile slowly matter.
    deadline = start + options.seconds
    compiled = {length: ready(length, rows, start, deadline, left_out) for length in sorted(lengths, reverse=True)}
    print(f"{time.monotonic() - start:6.1f} s: compiled and compared", flush=True)
    for length, ways in compiled.items():
        inputs, coeffs = data(rows, length)
        calls = {name: milliseconds(way, inputs, coeffs) for name, way in ways.items()}
        calls["torch.add"] = milliseconds(torch.add, inputs, coeffs)
        got = in_turn(calls, lambda call: call())
        times = medians(got)
        elements = rows * length
        for name, runs in got.items():
            clock = "wall" if name in OWN_STREAM or not on_a_gpu else "events"
            for ms, add in zip(runs, got["torch.add"]):
                rate = f"{BYTES * elements / ms / 1e6:.1f}"
                figure.add(
                    element="f32", direction="forward", engine=name, clock=clock, num_seqs=rows, seq_len=length,
                    ms=f"{ms:.6f}", gb_per_s=rate, ratio=f"{add / ms:.4f}",
                )
        digits(heinsens, rows, length, times)
        shown = ", ".join(f"{name} {times['torch.add'] / ms:.3f}" for name, ms in times.items())
        print(f"{time.monotonic() - start:6.1f} s: L={length}, add {times['torch.add']:.4f} ms; {shown}", flush=True)
        del inputs, coeffs, calls
        gc.collect()
        torch.cuda.empty_cache() if on_a_gpu else None
    for what in left_out:
        print("left out:", what)


if __name__ == "__main__":
    main()
