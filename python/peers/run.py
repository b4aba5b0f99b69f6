"""Runs the unchanged test suites of other packages with their operators replaced by ours.

    python python/peers/run.py torchlpc            # fetches the suite, then runs it
    python python/peers/run.py mamba --from FOLDER # an existing checkout
    python python/peers/run.py fla -- -k chunk     # arguments after `--` are for pytest
    python python/peers/run.py mamba --out FOLDER  # adds a line with the counts to FOLDER/peers.csv

A suite is fetched by `git` or, for torchlpc, by `pip`, into a folder that is removed afterwards. The
program needs `linrec`, PyTorch and pytest, and einops for mamba's suite. Tests that name a GPU run on
the CPU if there is no GPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent


@dataclass
class Suite:
    """The source of a suite, and its tests that apply to the recurrence."""

    #: A repository and its revision, or a package and its version.
    source: tuple[str, str]
    tests: list[str]
    #: Pytest's expression for the tests that apply.
    applies: str = ""
    #: The tests that do not apply, and the reasons.
    left_out: list[str] = field(default_factory=list)


SUITES = {
    "accelerated-scan": Suite(
        ("https://github.com/proger/accelerated-scan", "866fa4cd4eaf01338ee6d77a4f99fcd4b2f656d1"),
        ["tests/test_eq.py", "tests/tests_eq_complex.py"],
    ),
    "torchlpc": Suite(
        ("torchlpc", "0.7.2"),
        ["tests/test_grad.py", "tests/test_vmap.py"],
        "parallel_scan",
        ["tests of LPC, a recurrence of higher order"],
    ),
    "mamba": Suite(
        ("https://github.com/state-spaces/mamba", "e9594ce1c732d97440f0332fdc43170a2294dbfa"),
        ["tests/ops/test_selective_scan.py", "tests/ops/triton/test_selective_state_update.py"],
        "not inner",
        ["tests of mamba_inner_fn, a block around the scan, which needs causal_conv1d"],
    ),
    "fla": Suite(
        ("https://github.com/fla-org/flash-linear-attention", "bc3b101dcb713ddc5bd8924b66754eb68b5ccf89"),
        ["tests/ops/test_hgrn.py"],
    ),
}


def fetch(suite: Suite, folder: Path) -> Path:
    """Downloads the suite; returns its folder."""
    name, revision = suite.source
    if not name.startswith("https://"):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*command, "--no-build-isolation", f"{name}=={revision}", "--dest", folder], check=True)
        (archive,) = folder.glob("*.tar.gz")
        subprocess.run(["tar", "xzf", archive, "-C", folder], check=True)
        return folder / archive.name.removesuffix(".tar.gz")
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "fetch", "--quiet", "--depth", "1", name, revision], check=True)
    subprocess.run([*git, "checkout", "--quiet", "FETCH_HEAD"], check=True)
    return folder


def run(name: str, checkout: Path, arguments: list[str], out: Path | None) -> int:
    """Runs pytest over the suite, with the adapter as a plugin."""
    suite = SUITES[name]
    left_out, tests = suite.left_out, suite.tests
    if importlib.util.find_spec("triton") is None:
        tests = [test for test in tests if "triton" not in test]
        left_out = left_out + [f"{test}, whose modules need Triton" for test in suite.tests if test not in tests]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "adapter", "-p", "no:cacheprovider", "--import-mode=importlib"]
    command += ["--rootdir", str(checkout), "-c", os.devnull, *(str(checkout / test) for test in tests)]
    command += ["-k", suite.applies] if suite.applies and "-k" not in arguments else []
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path, "LINREC_PEER": name, "LINREC_PEER_CHECKOUT": str(checkout)}
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        environment |= {"LINREC_PEER_COUNTS": str(out.resolve() / "peers.csv"), "LINREC_PEER_REVISION": suite.source[1]}
    for what in left_out:
        print(f"left out: {what}")
    return subprocess.run([*command, *arguments], env=environment, cwd=checkout).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, usage="run.py SUITE [--from FOLDER] [--out FOLDER] [-- PYTEST...]", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--from", dest="checkout", type=Path, metavar="FOLDER", help="a checkout, in place of a download")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where peers.csv gets a line with the counts")
    given = sys.argv[1:]
    cut = given.index("--") if "--" in given else len(given)
    own, others = given[:cut], given[cut + 1 :]
    arguments = parser.parse_args(own)
    if arguments.checkout:
        return run(arguments.suite, arguments.checkout.resolve(), others, arguments.out)
    with tempfile.TemporaryDirectory(prefix="linrec-peer-") as folder:
        return run(arguments.suite, fetch(SUITES[arguments.suite], Path(folder)), others, arguments.out)


if __name__ == "__main__":
    sys.exit(main())
