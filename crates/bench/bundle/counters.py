"""Compares the emulator's counters with those that Nsight Compute reads from the GPU.

For every shipped kernel without a planted mistake, compares the requests and the 32-byte sectors of
loads and stores of global memory and of copies from global to shared memory. It compares the sums,
and each instruction where the driver has kept the instructions apart. It also shows the executed
warp instructions of both. Fails if the numbers of requests or sectors differ. Tested by
crates/bench/tests/suite.rs.
"""

import argparse
import csv
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from common import HERE, outcomes, print_table, probes, program, run, write_csv

# The accesses in terms of the emulator and of Nsight Compute.
# Copies to shared memory that bypass the L1 cache count as loads, because an H200's counters do not
# distinguish them.
ACCESSES = {
    "load": (("GlobalLoad", "CopyAsync"), "ld", ("LDG", "LD", "LDGSTS")),
    "store": (("GlobalStore",), "st", ("STG", "ST")),
}
INSTRUCTIONS = "smsp__inst_executed.sum"


def metric(what, access):
    return f"l1tex__t_{what}_pipe_lsu_mem_global_op_{ACCESSES[access][1]}.sum"


METRICS = [metric(what, access) for what in ("requests", "sectors") for access in ACCESSES]
METRICS.append(INSTRUCTIONS)

WHY = """\
The emulator executes the PTX as it stands; the GPU executes what its driver compiled from it. There
parameters are operands of other instructions, not loads of their own; addresses are computed with fewer
and wider instructions, once for a loop and not in every step; comparisons become predicates; and loops
are unrolled. So the numbers of instructions differ. Which memory is accessed, and by which lanes
together, the compiler may not change: requests and sectors are the same."""


def emulated(probe, names, folder):
    """Returns the emulator's counters by the kernel's name in the PTX."""
    file = folder / "counters.json"
    code, output = run([probe, "run", *names, "--device", "simt", "--counters", file], 120)
    if code != 0:
        sys.exit(f"the kernels do not run in the emulator:\n{output}")
    kernels = json.loads(file.read_text())
    return {kernel["symbol"]: kernel for kernel in kernels}


def profile(ncu, arguments, command, log):
    """Runs a command under ncu and returns ncu's output. The clocks stay as they are."""
    always = ["--clock-control", "none", "--target-processes", "all", "--log-file", log]
    code, output = run([ncu, *always, *arguments, *command], 150)
    written = log.read_text(errors="replace") if log.exists() else ""
    if code != 0 or any(outcome[1] != "right" for outcome in outcomes(output)):
        sys.exit(f"ncu failed (exit code {code}):\n{written[-3000:]}\n{output[-3000:]}")
    return written


def number(text):
    """Parses a number as ncu writes it: `1,024`, `1024.00`; returns None for anything else."""
    try:
        return round(float(text.replace(",", "")))
    except ValueError:
        return None


def table_after(text, start):
    """Parses the CSV that begins at the first line with this beginning."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith(start)), len(lines))
    return list(csv.reader(lines[first:]))


def read_metrics(text):
    """Reads the metrics of each kernel from either of ncu's forms: a row per kernel and metric, or
    a row per kernel and a column per metric."""
    rows = table_after(text, '"ID"')
    if not rows:
        return {}
    header, kernels = rows[0], {}
    name = header.index("Kernel Name")
    for row in rows[1:]:
        if len(row) != len(header) or not row[name]:
            continue
        row = dict(zip(header, row))
        found = kernels.setdefault(row["Kernel Name"].split("(")[0], {})
        if "Metric Name" in row:
            row = {row["Metric Name"]: row["Metric Value"]}
        for metric in METRICS:
            if metric in row and number(row[metric]) is not None:
                found[metric] = number(row[metric])
    return kernels


def read_source(text):
    """Reads the loads and stores of one kernel's machine code: access, instruction, number of
    executions by warps, sectors. Returns nothing if ncu printed no such table."""
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if '"Source"' in line]
    if not starts:
        return []
    rows = list(csv.reader(lines[starts[0]:]))
    header = [cell.strip("# ").lower() for cell in rows[0]]
    columns = []
    for names in (["source"], ["instructions executed", "inst_executed"],
                  ["l2 theoretical sectors global", "memory_l2_theoretical_sectors_global"]):
        found = [header.index(name) for name in names if name in header]
        if not found:
            return []
        columns.append(found[0])
    instructions = []
    for row in rows[1:]:
        if len(row) != len(header):
            continue
        source, executed, sectors = (row[column] for column in columns)
        words = source.split()
        # A guard comes before the instruction: @!P0 LDG.E R2, [R4].
        opcode = next((word for word in words if not word.startswith("@")), "")
        for access, (_, _, opcodes) in ACCESSES.items():
            if opcode.split(".")[0] in opcodes:
                executed, sectors = number(executed) or 0, number(sectors) or 0
                instructions.append((access, opcode, executed, sectors))
    return instructions


def single_instructions(ncu, probe, names, symbols, folder, warnings):
    """Returns the loads and stores in the machine code of each kernel, by its name in the PTX."""
    report = folder / "source.ncu-rep"
    profile(ncu, ["--section", "SourceCounters", "-f", "-o", report],
            [probe, "run", *names, "--device", "cuda"], folder / "source.log")

    def page(symbol):
        arguments = ["--page", "source", "--csv", "--print-source", "sass", "--kernel-name", symbol]
        return run([ncu, "--import", report, *arguments], 60)[1]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        pages = dict(zip(symbols, pool.map(page, symbols)))
    sources = {symbol: read_source(text) for symbol, text in pages.items()}
    if not any(sources.values()):
        sample = next(iter(pages.values()), "")[:1500]
        warnings.append(f"ncu's source page could not be read; it begins:\n{sample}")
    return sources


def compare_single(kernel, machine_code, access):
    """Pairs a kernel's loads or stores in PTX with those in machine code, in the order of the code.
    Returns None if the machine code has other instructions than the PTX."""
    sites = [site for site in kernel["sites"]
             if site["access"] in ACCESSES[access][0] and site["requests"] > 0]
    executed = [one for one in machine_code if one[0] == access and one[2] > 0]
    pairs = lambda sites, executed: [
        (site, one) for site, one in zip(sites, executed)
        if (site["requests"], site["sectors"]) == (one[2], one[3])]
    if len(sites) != len(executed):
        return None
    if len(pairs(sites, executed)) < len(sites):
        # The driver may have reordered them.
        sites = sorted(sites, key=lambda site: (site["requests"], site["sectors"]))
        executed = sorted(executed, key=lambda one: one[2:])
    found = pairs(sites, executed)
    return found if len(found) == len(sites) else None


def by_module(rows, instructions):
    """Makes one row for each PTX file: the sums of its kernels' loads, stores and instructions."""
    sums = {}
    for row in rows:
        module = row["kernel"].rsplit("/", 1)[0]
        one = sums.setdefault(module, {
            "module": module, "kernels": set(), "requests": 0, "sectors": 0, "different": 0,
            "emulator_instructions": 0, "gpu_instructions": 0})
        one["kernels"].add(row["kernel"])
        one["requests"] += row["requests_gpu"]
        one["sectors"] += row["sectors_gpu"]
        one["different"] += row["equal"] != "yes"
    for row in instructions:
        one = sums[row["kernel"].rsplit("/", 1)[0]]
        one["emulator_instructions"] += row["emulator"]
        one["gpu_instructions"] += row["gpu"]
    for one in sums.values():
        one["kernels"] = len(one["kernels"])
        one["ratio"] = round(one["gpu_instructions"] / max(one["emulator_instructions"], 1), 2)
    return list(sums.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probe", default=HERE / "bin/probe", help="the program that launches kernels")
    parser.add_argument("--out", default=Path("out"), type=Path, help="the folder for the CSV files")
    parser.add_argument("--enough", default=6, type=int,
                        help="the smallest number of kernels in which single loads and stores must agree")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    ncu, probe, warnings = program("ncu"), arguments.probe, []

    chosen = [one for one in probes(probe) if one.is_correct]
    names = [one.name for one in chosen]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        kernels = emulated(probe, names, folder)
        text = profile(ncu, ["--csv", "--print-units", "base", "--metrics", ",".join(METRICS)],
                       [probe, "run", *names, "--device", "cuda"], folder / "metrics.log")
        measured = read_metrics(text)
        try:
            symbols = [one.symbol for one in chosen]
            sources = single_instructions(ncu, probe, names, symbols, folder, warnings)
        except SystemExit as error:
            warnings.append(f"single instructions were not compared: {error}")
            sources = {}

    rows, single, instructions, failures, agreeing = [], [], [], [], []
    for one in chosen:
        kernel, gpu = kernels[one.symbol], measured.get(one.symbol, {})
        missing = [metric for metric in METRICS if metric not in gpu]
        if missing:
            failures.append(f"{one.name}: ncu has no {missing[0]}")
            continue
        instructions.append({
            "kernel": one.name, "emulator": kernel["instructions"], "gpu": gpu[INSTRUCTIONS],
            "ratio": round(gpu[INSTRUCTIONS] / max(kernel["instructions"], 1), 3),
        })
        pairs = {}
        for access, (emulated_access, _, _) in ACCESSES.items():
            sites = [site for site in kernel["sites"] if site["access"] in emulated_access]
            row = {"kernel": one.name, "access": access}
            for what in ("requests", "sectors"):
                row[f"{what}_emulator"] = sum(site[what] for site in sites)
                row[f"{what}_gpu"] = gpu[metric(what, access)]
            row["sectors_per_request"] = round(row["sectors_gpu"] / max(row["requests_gpu"], 1), 3)
            equal = all(row[f"{what}_emulator"] == row[f"{what}_gpu"] for what in ("requests", "sectors"))
            row["equal"] = "yes" if equal else "no" if one.is_countable else "waits"
            rows.append(row)
            if row["equal"] == "no":
                failures.append(f"{one.name}: the {access}s differ")
            pairs[access] = compare_single(kernel, sources.get(one.symbol, []), access)
            if pairs[access] is None and equal and sum(site["requests"] > 0 for site in sites) == 1:
                # It is the only access of its kind, so the sum belongs to this instruction.
                site = next(site for site in sites if site["requests"] > 0)
                pairs[access] = [(site, (access, "", row["requests_gpu"], row["sectors_gpu"]))]
            for site, (_, opcode, requests, sectors) in pairs[access] or []:
                single.append({
                    "kernel": one.name, "access": access, "ptx": site["opcode"],
                    "source": site["source"], "machine_code": opcode,
                    "requests_emulator": site["requests"], "requests_gpu": requests,
                    "sectors_emulator": site["sectors"], "sectors_gpu": sectors,
                    "sectors_per_request": round(sectors / max(requests, 1), 3),
                })
        if all(pair is not None for pair in pairs.values()):
            agreeing.append(one.name)

    print("Requests and sectors of loads and stores, emulator and GPU:\n")
    print_table(["kernel", "access", "requests", "GPU", "sectors", "GPU", "per request", "equal"],
                [list(row.values()) for row in rows])
    print("Executed warp instructions:\n")
    print_table(["kernel", "emulator", "GPU", "ratio"], [list(row.values()) for row in instructions])
    print(f"{WHY}\n")
    if any(row["equal"] == "waits" for row in rows):
        print("look_back polls for its neighbour's state: the number of requests depends on the timing.\n")
    print(f"Every single load and store agrees in {len(agreeing)} kernels: {', '.join(agreeing)}\n")
    if rows:
        write_csv(arguments.out / "counters.csv", rows)
        write_csv(arguments.out / "instructions.csv", instructions)
        write_csv(arguments.out / "modules.csv", by_module(rows, instructions))
    if single:
        write_csv(arguments.out / "accesses.csv", single)

    if len(agreeing) < arguments.enough:
        failures.append(f"single loads and stores agree in {len(agreeing)} kernels, "
                        f"not in {arguments.enough}")
    for line in warnings + failures:
        print(line)
    equal = sum(row["equal"] == "yes" for row in rows)
    print(f"counters: equal in {equal} of {len(rows)} comparisons over {len(chosen)} kernels, "
          f"instruction by instruction in {len(agreeing)} kernels; {len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
