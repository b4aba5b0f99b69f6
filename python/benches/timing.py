"""The common part of the measurements: two clocks, and taking turns."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).resolve().parents[1] / "examples"))
from records import Table  # noqa: E402, F401: for those that measure

RUNS = 9


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def wall(call: Callable, device: str, calls: int) -> float:
    """Returns the microseconds per call, of calls that are queued one after the other."""
    wait(device)
    start = time.perf_counter()
    for _ in range(calls):
        call()
    wait(device)
    return (time.perf_counter() - start) / calls * 1e6


_flushed: list[torch.Tensor] = []


def on_gpu(call: Callable) -> float:
    """Returns the milliseconds between two events, after work that empties the caches.

    That work also lets the host get ahead.
    """
    if not _flushed:
        _flushed.append(torch.empty(1 << 30, dtype=torch.int8, device="cuda"))
    _flushed[0].zero_()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def in_turn(calls: dict[str, Callable], measure: Callable, runs: int = RUNS) -> dict[str, list[float]]:
    """Measures each call once a round, so that drift affects all of them."""
    for call in calls.values():
        call()
    rounds = [{name: measure(call) for name, call in calls.items()} for _ in range(runs)]
    return {name: [one[name] for one in rounds] for name in calls}


def medians(measured: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(runs) for name, runs in measured.items()}
