"""Runs every shipped kernel under the four tools of compute-sanitizer, and in the emulator.

Kernels without a planted mistake must be clean everywhere. For the others, a table shows what finds
the mistake: the tools, the emulator, or only a comparison of the results.
"""

import argparse
import os
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from common import HERE, outcomes, print_table, probes, program, run, write_csv

TOOLS = ["memcheck", "racecheck", "initcheck", "synccheck"]
# The exit code for a finding; the probe never uses it.
FINDING = 86
# The time limits in seconds for many kernels together, and for a kernel with gigabytes. An option
# sets the limit for any other kernel.
MANY, LARGE = 120, 60

# These kernels pass tiles on by mbarriers, at which one lane arrives for its warp after a
# __syncwarp. By the memory model (causality is transitive) and on the emulator, that orders the
# accesses of the other lanes as well, but not for racecheck: a kernel of two warps that passes on a
# single place gives 124 hazards if one lane arrives, and none if every lane does (2025.3, H200).
BEYOND_RACECHECK = re.compile(r"selective-scan-(fwd|bwd)-plain-")

SUMMARY = re.compile(r"^=+ (?:ERROR|RACECHECK) SUMMARY: (\d+) (?:error|hazard)", re.MULTILINE)
NO_FINDING = re.compile(r"COMPUTE-SANITIZER|SUMMARY|Target application|Internal Sanitizer|"
                        r"Saved host|LEAK|Program hit|Process (?:didn't|did not)|No attachable")
# Two kernels with gigabytes might not fit into memory at the same time.
large = threading.Lock()


def findings(output):
    """Returns a tool's findings, a sentence each, with the source line if it is known."""
    sentences = []
    for line in output.splitlines():
        text = line.removeprefix("=========")
        if text == line:
            continue
        if text.startswith("     ") or not text.strip():
            place = re.search(r"\bin (\S+:\d+)$", text)
            if place and sentences and " at " not in sentences[-1]:
                sentences[-1] += f" at {place[1]}"
        elif not NO_FINDING.search(text):
            sentences.append(text.strip())
    return sentences


def judge(code, output):
    """Returns the outcome of a tool's run in a word, and its first sentence.

    found: the tool reported a mistake. clean: it reported none. hang: the kernel did not end.
    crash: the driver stopped the kernel, and the tool reported nothing. refused: the tool did not
    do its work."""
    summary = SUMMARY.search(output)
    sentences = findings(output)
    first = sentences[0] if sentences else ""
    if code == FINDING or (summary and int(summary[1]) > 0) or (code is None and first):
        return "found", first or "an error without a sentence"
    if code is None:
        return "hang", "it did not end"
    ran = outcomes(output)
    if summary and ran and all(outcome[1] in ("right", "wrong") for outcome in ran):
        return "clean", ""
    error = next((text for _, word, text in ran if word == "error"), "")
    if error:
        return "crash", error
    lines = [line for line in output.splitlines() if line.strip()]
    return "refused", first or (lines[-1] if lines else f"exit code {code}")


class Sanitizer:
    def __init__(self, path, probe, seconds):
        self.path, self.probe, self.seconds = path, probe, seconds

    def run(self, tool, names, seconds):
        # The probe itself reports errors of driver calls.
        options = ["--tool", tool, "--error-exitcode", str(FINDING), "--report-api-errors", "no",
                   "--print-limit", "20"]
        command = [self.path, *options, self.probe, "run", *names, "--device", "cuda"]
        return judge(*run(command, seconds))

    def one(self, tool, name, is_large):
        if is_large:
            with large:
                return self.run(tool, [name], LARGE)
        return self.run(tool, [name], self.seconds)


def emulate(probe, name):
    """Returns the emulator's finding in a kernel or module, and whether the results are right."""
    _, output = run([probe, "run", name, "--device", "simt"], 60)
    ran = outcomes(output)
    reports = [text for _, word, text in ran if word in ("report", "error")]
    wrong = [text for _, word, text in ran if word == "wrong"]
    found = ("found", reports[0]) if reports else ("clean", "") if ran else ("refused", output.strip())
    # If the emulator stops a kernel, there are no results to judge.
    results = ("stopped", "") if reports else ("wrong", wrong[0]) if wrong else ("right", "")
    return found, results


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probe", default=HERE / "bin/probe", help="the program that launches kernels")
    parser.add_argument("--out", default=Path("out"), type=Path, help="the folder for the CSV files")
    parser.add_argument("--jobs", default=min(8, os.cpu_count() or 1), type=int, help="processes at a time")
    parser.add_argument("--seconds", default=40, type=int, help="the time limit for one kernel under one tool")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    sanitizer = Sanitizer(program("compute-sanitizer"), arguments.probe, arguments.seconds)

    every = probes(arguments.probe)
    correct = [one.name for one in every if one.is_correct]
    # The large ones come first, because they take longest.
    broken = {one.module: one.is_large for one in sorted(every, key=lambda one: not one.is_large)
              if not one.is_correct}

    with ThreadPoolExecutor(arguments.jobs) as pool:
        together = {tool: pool.submit(sanitizer.run, tool, correct, MANY) for tool in TOOLS}
        single = {(module, tool): pool.submit(sanitizer.one, tool, module, is_large)
                  for module, is_large in broken.items() for tool in TOOLS}
        emulated = {name: pool.submit(emulate, arguments.probe, name) for name in [*correct, *broken]}
        for tool, future in together.items():
            outcome = future.result()
            for name in correct:
                # All clean together means each is clean; otherwise run them one by one.
                single[name, tool] = outcome if outcome[0] == "clean" else pool.submit(
                    sanitizer.one, tool, name, False)

    result = lambda value: value if isinstance(value, tuple) else value.result()
    rows, says, failures, beyond = [], [], [], 0
    for name in [*correct, *sorted(broken)]:
        columns = {tool: result(single[name, tool]) for tool in TOOLS}
        # A tool that could not use the GPU together with others may be able to use it alone.
        for tool in TOOLS:
            if columns[tool][0] == "refused":
                columns[tool] = sanitizer.one(tool, name, broken.get(name, False))
        columns["emulator"], columns["results"] = emulated[name].result()
        kind = "broken" if name in broken else "correct"
        rows.append({"kernel": name, "kind": kind,
                     **{column: outcome for column, (outcome, _) in columns.items()}})
        says += [{"kernel": name, "by": column, "outcome": outcome, "sentence": sentence}
                 for column, (outcome, sentence) in columns.items() if sentence]
        bad = {column: outcome for column, (outcome, _) in columns.items()
               if outcome not in ("clean", "right")}
        if BEYOND_RACECHECK.match(name) and bad.get("racecheck") == "found":
            beyond += 1
            del bad["racecheck"]
        if name in correct:
            failures += [f"{name}: {column}: {outcome}: {columns[column][1]}"
                         for column, outcome in bad.items()]
        elif columns["emulator"][0] != "found" and columns["results"][0] != "wrong":
            failures.append(f"{name}: neither the emulator nor the results show the mistake")

    for line in says:
        print(f"{line['kernel']}, {line['by']}: {line['sentence']}")
    print()
    print_table(list(rows[0]), [list(row.values()) for row in rows])
    write_csv(arguments.out / "sanitize.csv", rows)
    mistakes = [{"mistake": row["kernel"].removeprefix("broken/"),
                 **{by: row[by] for by in [*TOOLS, "emulator", "results"]}}
                for row in rows if row["kind"] == "broken"]
    write_csv(arguments.out / "mistakes.csv", mistakes)
    if says:
        write_csv(arguments.out / "sanitize_says.csv", says)
    counts = [f"{by} {sum(row[by] == 'found' for row in rows if row['kind'] == 'broken')}"
              for by in [*TOOLS, "emulator"]]
    only = sum(row["results"] == "wrong" for row in rows if row["kind"] == "broken")
    for line in failures:
        print(line)
    print(f"sanitize: {len(correct)} correct kernels; of {len(broken)} planted mistakes found by "
          f"{', '.join(counts)}, seen in wrong results {only}; racecheck does not follow {beyond} kernels; "
          f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
