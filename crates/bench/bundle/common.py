"""Shared by the bundle's scripts: finds programs, runs them, and prints and writes tables."""

import csv
import os
import shutil
import signal
import subprocess
import sys
from glob import glob
from pathlib import Path

HERE = Path(__file__).resolve().parent

# The folders of the toolkit's programs if they are not on the PATH.
FOLDERS = [
    "/usr/local/cuda/bin",
    "/usr/local/cuda/compute-sanitizer",
    "/opt/nvidia/nsight-compute/*",
    "/usr/local/cuda-*/bin",
]


def program(name):
    """Returns the path of a program, or exits with an error if it is missing."""
    path = shutil.which(name)
    found = [path] if path else []
    for folder in FOLDERS:
        found += [path for path in sorted(glob(f"{folder}/{name}")) if os.access(path, os.X_OK)]
    if not found:
        sys.exit(f"{name} was not found on the PATH or in {', '.join(FOLDERS)}: "
                 "install the CUDA toolkit, or omit this step")
    return found[0]


def run(command, seconds):
    """Runs a command in a new process group. Returns the exit code, or None if the command took too
    long and was stopped, and everything it wrote to both outputs."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output.decode(errors="replace")
    except subprocess.TimeoutExpired:
        pass
    # Its child processes must end with it, because a kernel that never ends keeps the GPU busy.
    for name in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, name)
        except ProcessLookupError:
            pass
        try:
            output, _ = process.communicate(timeout=5)
            return None, output.decode(errors="replace")
        except subprocess.TimeoutExpired:
            pass
    return None, ""


class Probe:
    """One kernel of `probe list`."""

    def __init__(self, line):
        self.name, kind, note = line.split("\t")
        self.module, self.symbol = self.name.rsplit("/", 1)
        self.is_correct = kind == "correct"
        self.is_large = note == "large"
        self.is_countable = note != "uncounted"


def probes(probe):
    """Returns all kernels of the bundle."""
    code, output = run([probe, "list"], 60)
    if code != 0:
        sys.exit(f"`probe list` failed: {output}")
    return [Probe(line) for line in output.splitlines()]


def outcomes(output):
    """Parses the output of `probe run`: each kernel's name, the outcome in a word, and a sentence."""
    lines = [line.split("\t") for line in output.splitlines()]
    words = ("right", "wrong", "report", "error")
    return [tuple(line) for line in lines if len(line) == 3 and line[1] in words]


def origin():
    """Returns machine, driver and date, the last columns of every record."""
    return {
        "machine": os.environ.get("LINREC_GPU", "unknown GPU"),
        "driver": os.environ.get("LINREC_DRIVER", "unknown"),
        "date": os.environ.get("LINREC_DATE", ""),
    }


def write_csv(path, rows):
    """Writes dictionaries with equal keys, adding machine, driver and date."""
    rows = [{**row, **origin()} for row in rows]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys() if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def print_table(header, rows):
    """Prints rows of texts and numbers; numbers are aligned right."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    right = [all(isinstance(row[i], (int, float)) for row in rows) for i in range(len(header))]
    for row in cells:
        padded = [cell.rjust(width) if to_right else cell.ljust(width)
                  for cell, width, to_right in zip(row, widths, right)]
        print("  ".join(padded).rstrip())
    print()
