"""A plugin for pytest that replaces the modules that the suites import.

Only the operators of each package are ours. The references that its tests compare with are its own
files. Without a GPU, the tests run on the CPU.
"""

from __future__ import annotations

import csv
import datetime
import importlib.util
import os
import platform
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from linrec import linrec, selective_scan, selective_state_update
from torch.overrides import TorchFunctionMode


def module(name: str, folder: Path | None = None, **contents) -> ModuleType:
    """Makes a module with these contents; with a folder, a package of its files.

    The package's own `__init__` is left out.
    """
    made = ModuleType(name)
    if folder is not None:
        made.__path__ = [str(folder)]
    vars(made).update(contents)
    sys.modules[name] = made
    parent, _, child = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], child, made)
    return made


def accelerated_scan(checkout: Path) -> None:
    def scan(gates, tokens, reverse=False):
        return linrec(tokens, gates, reverse=reverse)

    module("accelerated_scan", checkout / "accelerated_scan")
    for name in ["warp", "triton", "scalar", "complex"]:
        module(f"accelerated_scan.{name}", scan=scan)


def torchlpc(_checkout: Path) -> None:
    class Recurrence:
        @staticmethod
        def apply(decay, impulse, initial_state):
            return linrec(impulse, decay, initial=initial_state)

    module("torchlpc")
    module("torchlpc.recurrence", Recurrence=Recurrence)
    module("torchlpc.core", LPC=None)


def mamba(checkout: Path) -> None:
    package = checkout / "mamba_ssm"
    for name in ["", "ops", "ops.triton", "utils"]:
        module(f"mamba_ssm.{name}".rstrip("."), package.joinpath(*name.split(".")))
    # Needed by the code around the scan only.
    module("mamba_ssm.ops.triton.layer_norm", _layer_norm_fwd=None)
    from mamba_ssm.ops import selective_scan_interface

    selective_scan_interface.selective_scan_fn = selective_scan
    if importlib.util.find_spec("triton"):
        from mamba_ssm.ops.triton import selective_state_update as one_step

        one_step.selective_state_update = selective_state_update


def fla(checkout: Path) -> None:
    def hgrn(x, g, initial_state=None, output_final_state=False, cu_seqlens=None):
        """Scans axis 1 of ``[batch, length, channels]`` with logarithms; rows may be packed."""
        if cu_seqlens is None:
            out, last = linrec(x, g, initial=initial_state, dim=1, log_coeffs=True, return_final=True)
        else:
            parts = []
            for i, (begin, end) in enumerate(zip(cu_seqlens[:-1], cu_seqlens[1:])):
                state = None if initial_state is None else initial_state[i : i + 1]
                row = slice(begin, end)
                parts.append(linrec(x[:, row], g[:, row], initial=state, dim=1, log_coeffs=True, return_final=True))
            out, last = (torch.cat(tensors, dim=dim) for tensors, dim in zip(zip(*parts), (1, 0)))
        return out, last if output_final_state else None

    def assert_close(name, reference, tensor, ratio):
        """Compares the root mean square of the error with the reference's."""
        error = (reference - tensor).float().square().mean().sqrt()
        assert error <= ratio * reference.float().square().mean().sqrt() + 1e-8, name

    module("fla")
    module("fla.ops")
    module("fla.ops.hgrn", checkout / "fla/ops/hgrn", chunk_hgrn=hgrn, fused_recurrent_hgrn=hgrn)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    module("fla.utils", assert_close=assert_close, device=device, device_torch_lib=getattr(torch, device))


class OnTheCpu(TorchFunctionMode):
    """Makes tensors on the CPU in place of a GPU."""

    def __torch_function__(self, function, types, arguments=(), options=None):
        options = options or {}
        if "cuda" in str(options.get("device")):
            options["device"] = "cpu"
        return function(*arguments, **options)


@pytest.fixture(autouse=True)
def where():
    if torch.cuda.is_available():
        yield
    else:
        with OnTheCpu():
            yield


def pytest_terminal_summary(terminalreporter) -> None:
    """Adds the counts to the file in the environment variable."""
    if "LINREC_PEER_COUNTS" not in os.environ:
        return
    path = Path(os.environ["LINREC_PEER_COUNTS"])
    count = lambda *kinds: sum(len(terminalreporter.stats.get(kind, [])) for kind in kinds)
    cuda = torch.cuda.is_available()
    row = {
        "date": datetime.date.today().isoformat(),
        "machine": torch.cuda.get_device_name() if cuda else f"a CPU ({platform.machine()})",
        "torch": torch.__version__,
        "suite": os.environ["LINREC_PEER"],
        "revision": os.environ["LINREC_PEER_REVISION"][:7],
        "passed": count("passed"),
        "failed": count("failed", "error"),
        "skipped": count("skipped", "xfailed"),
        "left_out": count("deselected"),
    }
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


SUITES = {"accelerated-scan": accelerated_scan, "torchlpc": torchlpc, "mamba": mamba, "fla": fla}
SUITES[os.environ["LINREC_PEER"]](Path(os.environ["LINREC_PEER_CHECKOUT"]))
