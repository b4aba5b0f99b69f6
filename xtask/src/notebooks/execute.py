"""Executes a notebook from a clean state. Reads it from the standard input, and writes to the standard output
one JSON object: the notebook with its outputs, the seconds of each cell, and the first error, if there was one.

The argument is the notebook's path, whose folder the kernel runs in. Progress goes to the standard error.
"""

import json
import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

SECONDS = 900  # for one cell; the first one compiles the library


def said(cell):
    """What the kernel says of a cell that failed: a panic's words go to the standard error, the compiler's do not."""
    words = []
    for output in cell.outputs:
        if output.output_type == "error":
            words += output.traceback or [output.evalue]
        elif output.output_type == "stream" and output.name == "stderr":
            words.append(output.text)
    return "\n".join(words)


def main():
    path = Path(sys.argv[1])
    # What the kernel itself prints must not get between; it is of no interest.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    notebook = nbformat.reads(sys.stdin.read(), as_version=4)
    started = time.perf_counter()
    seconds = {}
    current = {}

    def begins(cell, cell_index):
        if not current:
            print(f"  kernel: {time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)
        current.update(index=cell_index, start=time.perf_counter())

    def ends(cell, cell_index, **_):
        seconds[cell_index] = time.perf_counter() - current["start"]
        print(f"  cell {cell_index + 1}: {seconds[cell_index]:.1f} s", file=sys.stderr, flush=True)

    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        startup_timeout=300,
        record_timing=False,
        coalesce_streams=True,
        shutdown_kernel="immediate",  # it holds nothing that would have to be saved
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_execute=begins,
        on_cell_executed=ends,
    )
    error = None
    try:
        client.execute()
    except CellExecutionError:
        error = {"cell": current.get("index"), "message": said(notebook.cells[current["index"]])}
    except (CellTimeoutError, DeadKernelError) as failure:
        error = {"cell": current.get("index"), "message": str(failure)}
    json.dump({"notebook": notebook, "seconds": seconds, "error": error}, answer)
    answer.close()


main()
