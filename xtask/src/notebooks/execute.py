"""Executes a notebook from a clean state. Reads it from the standard input, and writes to the standard output
one JSON object: the notebook with its outputs, the seconds of each cell, and the first error, if there was one.

The argument is the notebook's path, whose folder the kernel runs in. Progress goes to the standard error.

A separate thread of evcxr sends the text that a cell prints, so that a line may arrive after the message that the
cell is done. The client waits a moment for such lines after each cell. A line on the standard error, which is all that
evcxr does for `Err(...)?`, cannot get lost: a last cell prints a mark there, and the client waits for the mark.
"""

import asyncio
import json
import os
import queue
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbclient.util import ensure_async
from nbformat.v4 import new_output

SECONDS = 900  # for one cell; the first one compiles the library
MOMENT = 0.02  # seconds that late lines have, before the next cell begins
MARK = "-- the end of the notebook --"
# The code that prints the mark, by the kernel's language.
PRINTS = {"rust": f'eprintln!("{MARK}");', "python": f"import sys; print({MARK!r}, file=sys.stderr)"}


def message_of(cell):
    """The message of a cell that failed: a panic writes to the standard error, and the compiler does not."""
    words = []
    for output in cell.outputs:
        if output.output_type == "error":
            words += output.traceback or [output.evalue]
        elif output.output_type == "stream" and output.name == "stderr":
            words.append(output.text)
    return "\n".join(words)


def add(cell, name, text):
    """Adds text to the printed text of a cell."""
    last = cell.outputs[-1] if cell.outputs else None
    if last is not None and last.output_type == "stream" and last.name == name:
        last.text += text
    else:
        cell.outputs.append(new_output("stream", name=name, text=text))


async def late(client, cell, seconds):
    """Adds the outputs of the next seconds to a cell, up to the mark. Returns True if the mark came."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        try:
            message = await client.kc.get_iopub_msg(timeout=left)
        except queue.Empty:
            break
        if message["msg_type"] == "stream":
            name, text = message["content"]["name"], message["content"]["text"]
            if name == "stderr" and MARK in text:
                return True
            add(cell, name, text)
    return False


async def run(client, notebook):
    """Runs all cells, and then prints the mark. Text between the last cell and the mark belongs to the last cell."""
    async with client.async_setup_kernel():
        info = await client.async_wait_for_reply(await ensure_async(client.kc.kernel_info()))
        notebook.metadata["language_info"] = info["content"]["language_info"]
        last = None
        for index, cell in enumerate(notebook.cells):
            try:
                await client.async_execute_cell(cell, index, execution_count=client.code_cells_executed + 1)
            except CellExecutionError:
                await late(client, cell, 1)  # a panic's words
                raise
            if cell.cell_type == "code":
                await late(client, cell, MOMENT)
                last = cell
        if last is not None:
            client.kc.execute(PRINTS[info["content"]["language_info"]["name"].lower()])
            if not await late(client, last, SECONDS):
                raise CellTimeoutError("the kernel does not pass on what it prints")


def main():
    path = Path(sys.argv[1])
    # Text that the kernel itself prints must not reach the standard output.
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
        shutdown_kernel="immediate",  # there is nothing to save
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_execute=begins,
        on_cell_executed=ends,
    )
    error = None
    try:
        asyncio.run(run(client, notebook))
    except CellExecutionError:
        error = {"cell": current.get("index"), "message": message_of(notebook.cells[current["index"]])}
    except (CellTimeoutError, DeadKernelError) as failure:
        error = {"cell": current.get("index"), "message": str(failure)}
    json.dump({"notebook": notebook, "seconds": seconds, "error": error}, answer)
    answer.close()


main()
