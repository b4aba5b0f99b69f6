"""Rows of a CSV file with date, machine and version."""

from __future__ import annotations

import csv
import datetime
import platform
from pathlib import Path

import torch


def machine(device: str) -> str:
    if device == "cuda":
        return torch.cuda.get_device_name()
    information = Path("/proc/cpuinfo")
    for line in information.read_text().splitlines() if information.exists() else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


class Table:
    """A file that is rewritten with each row, so that its rows stay if the run is cut off."""

    def __init__(self, path: Path | None, device: str):
        self.path = path
        self.origin = {"date": datetime.date.today().isoformat(), "machine": machine(device), "torch": torch.__version__}
        self.rows: list[dict] = []

    def add(self, **row) -> None:
        self.rows.append(self.origin | row)
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(self.rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
