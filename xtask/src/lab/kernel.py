"""Starts evcxr for a notebook in a folder that is kept, so that what it compiles is there the next time.

Arguments: the program evcxr_jupyter, and Jupyter's connection file. The folders lie beside this file in `kept/`, one
for each notebook, and a further one for each time that the same notebook is open once more.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

LAB = Path(__file__).resolve().parent
# Made by `cargo lab`: the library and what it needs, compiled once for all notebooks.
BASE = "base"


def lock(folder):
    """An open file that this process has locked, or None if another kernel has."""
    file = open(folder / "lock", "a+b")
    try:
        if os.name == "nt":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The lock is the kernel's as long as it runs.
            os.set_inheritable(file.fileno(), True)
    except OSError:
        file.close()
        return None
    return file


def free_folder(notebook):
    """The first folder of this notebook that no kernel uses, and its lock."""
    number = 1
    while True:
        name = notebook if number == 1 else f"{notebook}.{number}"
        folder = LAB / "kept" / name
        folder.mkdir(parents=True, exist_ok=True)
        locked = lock(folder)
        if locked is not None:
            return folder, locked
        number += 1


def copy(source, target):
    """Libraries are never changed in place, and so can be shared; other files are copied with their times."""
    if source.endswith((".rlib", ".rmeta")):
        try:
            os.link(source, target)
            return
        except OSError:
            pass
    shutil.copy2(source, target)


def furnish(folder):
    """Gives a new folder what is compiled already, and the versions of the workspace's dependencies."""
    base = LAB / "kept" / BASE
    if (folder / "target").exists() or folder == base:
        return
    if (base / "target").is_dir():
        leave_out = shutil.ignore_patterns("incremental", "libcode_*", "ctx*", "libctx*")
        unfinished = folder / "copying"
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(base / "target", unfinished, copy_function=copy, ignore=leave_out)
        unfinished.rename(folder / "target")


def main():
    evcxr, connection = sys.argv[1:]
    # Jupyter names the notebook in this variable: its path, or a label.
    session = os.environ.get("JPY_SESSION_NAME", "")
    notebook = Path(session).stem if session.endswith(".ipynb") else ""
    folder, locked = free_folder(notebook or "other")
    furnish(folder)
    shutil.copyfile(LAB / "Cargo.lock", folder / "Cargo.lock")
    os.environ["EVCXR_TMPDIR"] = str(folder)
    command = [evcxr, "--control_file", connection]
    if os.name == "nt":
        # This process stays, and so does its lock.
        sys.exit(subprocess.run(command).returncode)
    os.execv(evcxr, command)


main()
