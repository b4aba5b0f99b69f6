"""The time of `selective_scan` on a GPU, and of mamba-ssm's own function if it is installed.

    python python/benches/selective.py --out FOLDER

The problem has 8 rows of 2048 channels with 16 states, as in chapter 14. All functions take turns, in
nine rounds, between two CUDA events, after the caches are emptied: it is the kernels' time, not the
host's. FOLDER gets all runs as `selective.csv`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from linrec import selective_scan
from timing import Table, in_turn, medians, on_gpu

BATCH, CHANNELS, STATES = 8, 2048, 16
LENGTHS = (1024, 4096, 16384)


def functions() -> dict:
    """Returns the forward passes by name; of mamba-ssm it is the kernel without its wrapper."""
    found = {"linrec": selective_scan}
    try:
        from selective_scan_cuda import fwd
    except ImportError as why:
        print(f"left out: mamba-ssm: {why}")
        return found

    def mamba(u, delta, A, B, C, D, z, delta_bias, softplus):
        return fwd(u, delta, A, B[:, None], C[:, None], D, z, delta_bias, softplus)[-1]

    return found | {"mamba-ssm": mamba}


def arguments(length: int, dtype: torch.dtype) -> list:
    torch.manual_seed(length)
    make = lambda *shape: torch.randn(*shape, device="cuda")
    rows = [make(BATCH, CHANNELS, length).to(dtype) for _ in range(3)]
    couplings = [make(BATCH, STATES, length).to(dtype) for _ in range(2)]
    rates = -torch.rand(CHANNELS, STATES, device="cuda") - 0.1
    u, delta, z = rows
    return [u, delta, rates, *couplings, make(CHANNELS), z, make(CHANNELS), True]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("selective.py needs a GPU")
    table = Table(options.out / "selective.csv", "cuda")
    ways = functions()
    for dtype, element in [(torch.float32, "f32"), (torch.bfloat16, "bf16")]:
        for length in LENGTHS:
            given = arguments(length, dtype)
            with torch.no_grad():
                outputs = {name: way(*given) for name, way in ways.items()}
                for name, out in outputs.items():
                    far = (out - outputs["linrec"]).abs().max() / outputs["linrec"].abs().max()
                    if not far < (1e-4 if element == "f32" else 2e-2):
                        raise SystemExit(f"{name} is off by {far:.1e} of the largest output")
                calls = {name: lambda way=way: way(*given) for name, way in ways.items()}
                got = in_turn(calls, on_gpu)
            for name, runs in got.items():
                for ms in runs:
                    table.add(
                        batch=BATCH, channels=CHANNELS, seq_len=length, states=STATES, element=element,
                        direction="forward", engine=name, ms=f"{ms:.6f}",
                    )
            shown = ", ".join(f"{name} {ms:.4f} ms" for name, ms in medians(got).items())
            print(f"{element}, {length} steps: {shown}", flush=True)
            del given, outputs, calls


if __name__ == "__main__":
    main()
