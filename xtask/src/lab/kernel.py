"""Starts evcxr for a notebook in a folder that stays, so that compiled code is found again at the next start.

Arguments: the program evcxr_jupyter, and Jupyter's connection file. The folders are in `kept/` beside this file: one
for each notebook, and a further one for each time that the same notebook is open again.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

LAB = Path(__file__).resolve().parent
# Made by `cargo lab`: the library and its dependencies, compiled once for all notebooks.
BASE = "base"


def lock(folder):
    """Returns an open file that this process has locked, or None if another kernel has locked it."""
    file = open(folder / "lock", "a+b")
    try:
        if os.name == "nt":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The kernel holds the lock as long as it runs.
            os.set_inheritable(file.fileno(), True)
    except OSError:
        file.close()
        return None
    return file


def free_folder(notebook):
    """Returns the first folder of this notebook that no kernel uses, and its lock."""
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
    """Links libraries, which never change in place, and copies other files with their times."""
    if source.endswith((".rlib", ".rmeta")):
        try:
            os.link(source, target)
            return
        except OSError:
            pass
    shutil.copy2(source, target)


def furnish(folder):
    """Copies the compiled libraries into a new folder."""
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
