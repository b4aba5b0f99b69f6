#!/usr/bin/env python3
"""Runs the kernels that `kernels.csv` lists, and compares their outcomes with the recorded ones.

    cargo build --release && foreign/run.py --clones FOLDER --include FOLDER

The kernels are from public repositories, and neither their sources nor their PTX are kept here:
`--clones` contains a clone of each repository, at the commit in the list. The command `simt`
compiles and runs the kernels. README.md, in this folder, describes the columns of the list, and
test_run.py tests what needs no clones.
"""

import argparse
import collections
import csv
import hashlib
import io
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
COLUMNS = ["repository", "commit", "path", "sha256", "kernel", "grid", "block", "shared", "arguments", "variables",
           "outcome", "words", "judgement"]
INSTRUCTIONS = 1 << 27  # the bound of a launch: most foreign kernels get little data
FEW_INSTRUCTIONS = 1 << 20  # the bound of a launch that is judged to be too long
ROUNDS = 24  # the number of times that refused items are left out

# NVIDIA's headers with device code. The compiler itself has what device code needs from others.
FOR_DEVICES = ("cooperative_groups", "cuda_fp16", "cuda_bf16", "cuda_pipeline", "cuda_awbarrier", "cuComplex", "curand_kernel",
               "mma.h", "math_constants", "cub/", "cuda/", "sm_", "vector_functions", "cuda_texture_types")


# The following extracts the device code of a file that also has host code, by one rule for all
# files. A file is a sequence of items: directives, functions, types, variables. Items that a device
# compiler needs are kept: directives (an `#include` only of an existing file), items marked
# `__global__`, `__device__` or `__constant__`, types, constants, and uses of macros. All other
# items become blank, so that every line keeps its number.

QUOTED = r'"(?:\\.|[^"\\\n])*.?|' + r"'(?:\\.|[^'\\\n])*.?"
TOKEN = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|" + QUOTED, re.S)
MARK = re.compile(r"[(){};=]|" + QUOTED, re.S)
DIRECTIVE = re.compile(r"#(?:[^\n]*\\[ \t\r]*\n)*[^\n]*")
FRAME = re.compile(r'(?:extern\s+"[^\s{]*|namespace|(?:inline\s+)?namespace\s+[^\s{]+)\s*\{')
MACRO = re.compile(r"(?=\w*[A-Z])[A-Z0-9_]+\s*\(")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"\n]*)|<([^>\n]*))', re.M)
START = re.compile(r"[^ \t\n\r\f]")


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def behind_template(head):
    """The text behind one or several `template <…>`."""
    depth = 0
    if head.startswith("template"):
        for at in range(8, len(head)):
            depth += {"<": 1, ">": -1}.get(head[at], 0)
            if head[at] == ">" and depth == 0:
                return behind_template(head[at + 1:].lstrip())
    return head


def declares_function(head):
    """True if a parameter list follows a name, as in `struct point move(struct point p)`."""
    before, opened, _ = head.partition("(")
    before = before.rstrip()
    return bool(opened) and not before.endswith(("__align__", "alignas", "__attribute__")) and len(before.split()) > 2


def is_function(head):
    bare = behind_template(head.lstrip())
    first = next((word for word in re.findall(r"\w+", bare) if word != "typedef"), "")
    is_type = first in ("struct", "class", "union", "enum") and not declares_function(bare)
    return "(" in head and not is_type


def end_of_item(text, start):
    """The end of an item, and the end of its head, which is at its first brace or at its end."""
    depth, curly, head, assigned = 0, 0, None, False
    # Directives inside an item belong to it, with their quotation marks.
    for mark in MARK.finditer(text, start):
        at, outside = mark.start(), curly == 0
        match mark[0][0]:
            case "(":
                depth += 1
            case ")":
                depth -= 1
                rest = text[at + 1:].partition("\n")[0]
                # A macro that expands to items, alone in its line.
                if depth == 0 and outside and MACRO.match(text, start) and not rest.strip(" \t\r\f;"):
                    return at + 1, at + 1
            case "=":
                assigned |= depth == 0 and outside
            case "{":
                head = at if head is None else head
                curly += 1
            case "}":
                curly -= 1
                if curly < 0:
                    return at, at if head is None else head
                if curly == 0 and not assigned and is_function(text[start:head]):
                    return at + 1, head
            case ";" if depth <= 0 and outside:
                return at + 1, at + 1 if head is None else head
    return len(text), len(text) if head is None else head


def keeps(head, has_body):
    if any(mark in head for mark in ("__global__", "__device__", "__constant__", "__managed__")):
        return True
    bare = behind_template(head.lstrip())
    match re.match(r"\w*", bare)[0]:
        case "typedef" | "using" | "namespace" | "static_assert" | "enum" | "constexpr" | "const":
            return True
        case "struct" | "class" | "union":
            return not declares_function(bare)
        case "static" | "inline":
            return "constexpr" in head or ("const " in head and "(" not in head)
    return not has_body and bool(re.fullmatch(r"[A-Z0-9_]+", bare.partition("(")[0].strip()))


def keeps_directive(text, keeps_include):
    words = text[1:].lstrip()
    if not words.startswith("include"):
        return not words.startswith(("pragma omp", "pragma comment"))
    return keeps_include(re.split('[">]', words[7:].strip().strip('"<>'))[0])


def kernel_of(item):
    """The name of the kernel that an item defines, or None."""
    _, marked, rest = item.partition("__global__")
    head, body, _ = rest.partition("{")
    if item.startswith("#") or not marked or not body:
        return None
    # `__launch_bounds__(256, 2)` has parentheses too.
    while found := re.search("__launch_bounds__|__cluster_dims__", head):
        depth, at = 0, head.find("(", found.start())
        while 0 <= at < len(head) and (depth := depth + {"(": 1, ")": -1}.get(head[at], 0)):
            at += 1
        if not 0 <= at < len(head):
            return None
        head = head[:found.start()] + head[at + 1:]
    name, opened, _ = head.partition("(")
    return re.search(r"\w*$", name.rstrip())[0] or None if opened else None


class Item:
    def __init__(self, text, start, end, kept, frame):
        self.start, self.end, self.kept = start, end, kept
        self.frame = frame  # True if it begins or ends a namespace, which is always kept
        self.lines = range(1 + text.count("\n", 0, start), 2 + text.count("\n", 0, end))
        self.kernel = kernel_of(text[start:end]) if kept else None


class Cut:
    """A file, cut into items. `keeps_include` returns whether a file of a name exists."""

    def __init__(self, source, keeps_include):
        source = re.sub(r"[^\x00-\x7f]", "?", source)
        self.text = text = TOKEN.sub(lambda token: blank(token[0]) if token[0][0] == "/" else token[0], source)
        self.items, end = [], 0
        while found := START.search(text, end):
            at, frame = found.start(), False
            if text[at] == "#":
                end = DIRECTIVE.match(text, at).end()
                kept = keeps_directive(text[at:end], keeps_include)
            elif text[at] == ";":
                end, kept = at + 1, False
            elif opened := FRAME.match(text, at):
                end, kept, frame = opened.end(), True, True
            elif text[at] == "}":
                end, kept, frame = at + 1, True, True
            else:
                end, head = end_of_item(text, at)
                kept = keeps(text[at:head], end > head)
            self.items.append(Item(text, at, end, kept, frame))

    def kernels(self):
        return [item.kernel for item in self.items if item.kernel]

    def drop_line(self, line, kernels):
        """Drops the items in a line, kernels only if `kernels` is true. True if it dropped any."""
        dropped = [item for item in self.items
                   if item.kept and not item.frame and (kernels or not item.kernel) and line in item.lines]
        for item in dropped:
            item.kept = False
        return bool(dropped)

    def kept(self, kernel=None):
        """The text of the kept items. If a kernel is named, other kernels are left out."""
        parts, end = [], 0
        for item in self.items:
            is_wanted = item.kept and (kernel is None or item.kernel in (None, kernel))
            text = self.text[item.start:item.end]
            parts += [blank(self.text[end:item.start]), text if is_wanted else blank(text)]
            end = item.end
        return "".join(parts) + blank(self.text[end:])


def included(source):
    return [quoted or angled for quoted, angled in INCLUDE.findall(source)]


def places(log):
    """The files and lines of the errors in a log: `a.cu(12): error: …`."""
    found = (re.match(r"(.*)\((\d+)\): (?:catastrophic )?error", line) for line in log.splitlines())
    return [(place[1], int(place[2])) for place in found if place]


def local(clone, file, name):
    """A header of the clone: next to the file, or in a usual subfolder of a folder above."""
    above = [folder for folder in [file.parent, *file.parent.parents] if folder.is_relative_to(clone)]
    candidates = [file.parent / name] + [folder / part / name for folder in above
                                         for part in ("Common", "include", "inc", "src", "")]
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def bare(kernel):
    """The bare name: `scale` for `some::scale<float>`."""
    return kernel.split("<")[0].rsplit("::")[-1]


class Unit:
    """The device code of a file and its includes. Kernels of a file share the dropped items."""

    def __init__(self, options, clone, path):
        self.options, self.path, include = options, path, options.include
        self.files = {}  # the file itself first, then the others as their `#include` names them
        unread = [(path, clone / path)]
        while unread:
            name, file = unread.pop()
            if name in self.files:
                continue
            source = file.read_bytes().decode(errors="replace")

            def nvidia(name):
                return include and name.startswith(FOR_DEVICES) and (include / name).is_file()

            cut = Cut(source, lambda name: bool(nvidia(name) or local(clone, file, name)))
            unread += [(name, found) for name in included(source)
                       if not nvidia(name) and (found := local(clone, file, name))]
            self.files[name] = cut

    def ptx(self, instance):
        """The PTX of one kernel, or None and the first error. Items that the compiler refuses are
        dropped one by one, until it refuses nothing or only the kernel."""
        why, kernel = None, bare(instance)
        for _ in range(ROUNDS):
            ptx, log = self.compile(instance, kernel)
            if ptx is not None:  # it lacks the kernel if an earlier round has dropped it
                return (ptx, "") if re.search(r"\.entry .*" + re.escape(kernel), ptx) else (None, why or "")
            why = why or first_error(log)
            # An error in a kernel may be caused by an error before it.
            dropped = [self.files[name].drop_line(line, number == 0)
                       for number, (name, line) in enumerate(places(log)) if name in self.files]
            if not any(dropped):
                break
        return None, why

    def compile(self, instance, kernel):
        with tempfile.TemporaryDirectory() as scratch:
            command = [self.options.simt, "compile", self.path, "--compile=-default-device"]
            texts = {name: cut.kept(kernel) for name, cut in self.files.items()}
            main = '#include "simt-foreign-prelude"\n#line 1\n' + texts.pop(self.path)
            headers = {"simt-foreign-prelude": (HERE / "prelude.cuh").read_text(),
                       "utility": (HERE / "utility.cuh").read_text()} | texts
            for number, (name, text) in enumerate(headers.items()):
                Path(scratch, f"header{number}").write_text(text)
                command.append(f"--header={name}=header{number}")
            file = Path(scratch, self.path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(main)
            command += [f"--compile={option}" for option in self.options.compile]
            if self.options.include:
                command.append(f"--compile=--include-path={self.options.include}")
            if "<" in instance:  # only a template has to be named to be there
                command.append(f"--kernel={instance}")
            done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, errors="replace")
        # The words in the list do not depend on the folder of the headers.
        return (done.stdout.replace(f"{self.options.include}/", ""), "") if done.returncode == 0 else (None, done.stderr)


def first_error(log):
    lines = log.splitlines()
    line = next((line for line in lines if "error" in line), lines[0] if lines else "")
    return (line.partition("error: ")[2] or line).strip()


def split(text):
    return [one.strip() for one in text.split("|") if one.strip()]


def run(options, row, ptx, save):
    """Runs a row's kernel on the emulator. Returns the outcome and its words. The folder `save`
    gets everything that is needed to launch it elsewhere, and the contents of the buffers afterwards."""
    text, kernel = ptx.read_text(), bare(row["kernel"])
    named = dict(re.findall(r"^// entry (.*) = (.*)$", text, re.M))
    symbols = re.findall(r"\.entry\s+([\w$]+)", text)
    wanted = [symbol for symbol in symbols
              if symbol in (named.get(row["kernel"]), kernel) or f"{len(kernel)}{kernel}" in symbol]
    is_long = row["judgement"].startswith("too long")
    command = [options.simt, "run", ptx, f"--save={save}", f"--grid={row['grid']}", f"--block={row['block']}",
               f"--shared={row['shared'] or 0}", f"--instructions={FEW_INSTRUCTIONS if is_long else INSTRUCTIONS}"]
    command += [f"--kernel={symbol}" for symbol in wanted[:1]]
    command += [f"--arg={argument}" for argument in split(row["arguments"])]
    command += [f"--variable={variable}" for variable in split(row["variables"])]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode == 0:
        return "ran", ""
    if done.returncode == 1:
        # Blocks on all cores share the bound, so the place differs from run to run.
        bound = re.match(r"(\S+) at .*?: (is over the launch's bound of \d+ instructions.*)", done.stdout)
        # The line in the PTX depends on the compiler.
        return "reported", " ".join(bound.groups()) if bound else re.sub(r" \(PTX line \d+\)", "", done.stdout.strip(), count=1)
    error = done.stderr.strip().removeprefix("simt: ")
    if refused := re.search(r"(?:is not emulated|\.ptx): PTX line \d+: (.*)", error):
        return "refused", refused[1]
    # An impossible launch is a mistake in the list.
    return "reported", f"cannot be launched: {error if done.returncode == 2 else 'PANIC'}"


class Gpu:
    """The first GPU, through the driver's own interface."""

    def __init__(self):
        import ctypes
        self.c, self.cuda, context = ctypes, ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        if status := getattr(self.cuda, name)(*arguments):
            raise OSError(f"{name}: error {status} of the driver")

    def compare(self, row, ptx, save):
        """Launches a row's kernel. Returns how a buffer differs from the emulator's, or None."""
        c, module, function = self.c, self.c.c_void_p(), self.c.c_void_p()
        lines = [line.split(" ") for line in (save / "launch.txt").read_text().splitlines()]
        if any("@" in hole for _, _, *holes in lines if holes for hole in holes[1:]):
            raise OSError("textures and surfaces are made on the emulator only")
        buffers = {words[1]: words for words in lines if words[0] == "buffer"}
        at = {name: c.c_uint64() for name in buffers}
        try:
            self.call("cuModuleLoadData", c.byref(module), ptx.read_bytes() + b"\0")
            self.call("cuModuleGetFunction", c.byref(function), module, lines[0][1].encode())
            for name, (_, _, _, size, *_) in buffers.items():
                self.call("cuMemAlloc_v2", c.byref(at[name]), c.c_size_t(max(int(size), 1)))

            def filled(data, holes):
                for hole in holes:
                    place, name, offset = re.match(r"(\d+)&(.*)\+(\d+)$", hole).groups()
                    data[int(place):int(place) + 8] = struct.pack("<Q", at[name].value + int(offset))
                return bytes(data)

            for name, (_, _, _, size, *holes) in buffers.items():
                data = filled(bytearray((save / "before" / name).read_bytes()), holes)
                self.call("cuMemcpyHtoD_v2", at[name], data, c.c_size_t(len(data)))
            for _, name, _, size, symbol in (words for words in lines if words[0] == "variable"):
                place, data = c.c_uint64(), (save / "before" / name).read_bytes()
                self.call("cuModuleGetGlobal_v2", c.byref(place), None, module, symbol.encode())
                self.call("cuMemcpyHtoD_v2", place, data, c.c_size_t(len(data)))
            given = [filled(bytearray.fromhex(words[2]), words[3:]) for words in lines if words[0] == "argument"]
            given = [c.create_string_buffer(data, len(data)) for data in given]
            pointers = (c.c_void_p * max(len(given), 1))(*[c.addressof(data) for data in given])
            extent = [int(part) for axes in (row["grid"], row["block"]) for part in (axes.split(",") + ["1", "1"])[:3]]
            shared = int(row["shared"] or 0)
            self.call("cuFuncSetAttribute", function, 8, shared)
            # A kernel with a barrier of the grid reads the workspace of a cooperative launch.
            if b"%envreg2" in ptx.read_bytes():
                self.call("cuLaunchCooperativeKernel", function, *extent, shared, None, pointers)
            else:
                self.call("cuLaunchKernel", function, *extent, shared, None, pointers, None)
            self.call("cuCtxSynchronize")
            for name, (_, _, kind, size, *_) in buffers.items():
                found = c.create_string_buffer(int(size))
                self.call("cuMemcpyDtoH_v2", found, at[name], c.c_size_t(int(size)))
                if differs := difference(kind, found.raw, (save / "after" / name).read_bytes()):
                    return f"{name}: {differs}"
        finally:
            for address in at.values():
                self.cuda.cuMemFree_v2(address)
            self.cuda.cuModuleUnload(module)


def numbers(kind, data):
    if kind == "bf16":
        return [struct.unpack("<f", b"\0\0" + data[at:at + 2])[0] for at in range(0, len(data), 2)]
    code = {"f16": "e", "f32": "f", "f64": "d"}.get(kind) or {"8": "b", "16": "h", "32": "i", "64": "q"}[kind[1:]]
    code = code.upper() if kind[0] == "u" else code
    return struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)


def difference(kind, found, expected):
    """A sentence about the numbers that differ, or None. NaN equals NaN, and distances are relative
    to numbers above 1."""
    pairs = list(zip(numbers(kind, found), numbers(kind, expected)))
    each = len(found) // max(len(pairs), 1)
    differ = [at for at, (a, b) in enumerate(pairs)
              if found[at * each:(at + 1) * each] != expected[at * each:(at + 1) * each] and not (a != a and b != b)]
    if differ:
        apart = max((abs(a - b) / max(abs(b), 1) for a, b in pairs if a - b == a - b), default=0)
        (a, b), first = pairs[differ[0]], differ[0]
        return f"{len(differ)} of {len(pairs)} numbers differ; the first is number {first}: {a} and not {b}, {apart:.1e} apart at most"


def read(text):
    rows = list(csv.reader(io.StringIO(text, newline="")))
    if not rows or rows[0] != COLUMNS:
        raise ValueError(f"the first line is not {','.join(COLUMNS)}")
    for number, row in enumerate(rows[1:], 1):
        if len(row) != len(COLUMNS):
            raise ValueError(f"row {number} has {len(row)} columns, not {len(COLUMNS)}")
    return [dict(zip(COLUMNS, row)) for row in rows[1:]]


def written(rows):
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def summary(rows, unequal):
    """The table of outcomes in README.md. `unequal` lists kernels with bits unlike a GPU's."""
    ran = [(row["path"], row["kernel"]) for row in rows if row["outcome"] == "ran"]
    for one in unequal:
        if (one["path"], one["kernel"]) not in ran:
            raise ValueError(f"{one['path']} {one['kernel']} is compared, and did not run")

    def counted(judgements):
        words = (text.partition(":")[0] if ":" in text else "not judged" for text in judgements)
        return sorted(collections.Counter(words).items())

    def by(outcome):
        return counted(row["judgement"] for row in rows if row["outcome"] == outcome)

    asked = max(len(rows) - dict(by("refused")).get("excluded", 0), 1)
    # A kernel that is reported for its own mistake counts as done.
    judged = len(ran) + sum(count for word, count in by("reported") if word in ("mistake", "meant"))
    lines = [("listed", len(rows)), (f"ran ({100 * len(ran) / asked:.1f} %)", len(ran)),
             ("&emsp;equal in all bits of all buffers", len(ran) - len(unequal))]
    lines += [(f"&emsp;{word}", count) for word, count in counted(one["why"] for one in unequal)]
    for outcome in ("reported", "refused"):
        lines.append((outcome, sum(row["outcome"] == outcome for row in rows)))
        lines += [(f"&emsp;{word}", count) for word, count in by(outcome)]
    lines.append((f"ran, or reported for what they do ({100 * judged / asked:.1f} %)", judged))
    return "| | kernels |\n|:--|--:|\n" + "".join(f"| {what} | {count} |\n" for what, count in lines)


def built():
    """The command `simt` that was built in this workspace, or else the installed one."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
    programs = (str(target / profile / "simt") for profile in ("release", "debug"))
    return next((program for program in programs if Path(program).is_file()), shutil.which("simt") or "simt")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    folder = {"type": lambda text: Path(text).resolve(), "metavar": "FOLDER"}
    parser.add_argument("--clones", help="the clones, each in a folder with its repository's name", **folder)
    parser.add_argument("--include", help="NVIDIA's headers, for cooperative groups, halves and the like", **folder)
    parser.add_argument("--compile", action="append", default=[], metavar="OPTION", help="an option for NVRTC, as in --compile=--fmad=false")
    parser.add_argument("--simt", default=built(), help="the command `simt`, if it is not in this workspace")
    parser.add_argument("--list", type=Path, metavar="FILE", help="another list")
    parser.add_argument("--only", default="", metavar="TEXT", help="only kernels whose path or name contains this")
    parser.add_argument("--pack", help="write PTX and list there, for a machine without clones and NVRTC", **folder)
    parser.add_argument("--packed", help="read PTX and list from there", **folder)
    parser.add_argument("--gpu", action="store_true", help="run kernels on the first GPU too, and compare all bits")
    parser.add_argument("--update", action="store_true", help="write the outcomes into the list")
    parser.add_argument("--summary", action="store_true", help="count the outcomes in the list, and run nothing")
    parser.add_argument("--kernels", metavar="CLONE/PATH", help="print the names of the kernels of a file")
    options = parser.parse_args()
    if options.update and not options.list:
        parser.error("--update needs --list, the list to write")
    if options.kernels:
        clone, _, path = options.kernels.partition("/")
        return print(*Unit(options, options.clones / clone, path).files[path].kernels(), sep="\n")
    list_file = options.packed / "kernels.csv" if options.packed else options.list or HERE / "kernels.csv"
    rows = read(list_file.read_text())
    if options.summary:
        with open(HERE / "h200.csv", newline="") as file:
            return print(summary(rows, list(csv.DictReader(file))), end="")
    if not options.clones and not options.packed:
        parser.error("give the clones with --clones, or a packed folder with --packed")
    units, counts, changed, compared, differ = {}, collections.Counter(), 0, 0, 0
    gpu = Gpu() if options.gpu else None
    with tempfile.TemporaryDirectory() as scratch:
        for number, row in enumerate(rows):
            if options.only not in row["path"] and options.only not in row["kernel"]:
                continue
            what, save = f"{row['path']} {row['kernel']}", Path(scratch, str(number))
            ptx = (options.packed or options.pack or Path(scratch)) / f"{number}.ptx"
            why = ""
            if not options.packed:
                clone = options.clones / row["repository"].rsplit("/")[-1]
                sha256 = hashlib.sha256((clone / row["path"]).read_bytes()).hexdigest()
                row["sha256"] = row["sha256"] or sha256
                if row["sha256"] != sha256:
                    sys.exit(f"{clone / row['path']} is not the file of commit {row['commit']}: its hash is {sha256}")
                key = (row["repository"], row["path"])
                units[key] = units.get(key) or Unit(options, clone, row["path"])
                text, why = units[key].ptx(row["kernel"])
                if text is not None:
                    ptx.parent.mkdir(parents=True, exist_ok=True)
                    ptx.write_text(text)
            came = run(options, row, ptx, save) if ptx.is_file() else ("not compiled", why or "not packed")
            counts[came[0]] += 1
            if came != (row["outcome"], row["words"]):
                changed += 1
                print(f"{what}: {row['outcome']} {row['words']} -> {' '.join(came)}", flush=True)
                row["outcome"], row["words"] = came
            if gpu and came[0] == "ran":
                try:
                    differs = gpu.compare(row, ptx, save)
                    compared, differ = compared + 1, differ + bool(differs)
                    if differs:
                        print(f"{what}: {differs}", flush=True)
                except (OSError, ValueError) as why:
                    print(f"{what}: not compared: {why}", flush=True)
            shutil.rmtree(save, ignore_errors=True)
    print(f"{len(rows)} kernels: {', '.join(f'{n} {outcome}' for outcome, n in sorted(counts.items()))}; {changed} not as recorded")
    if gpu:
        print(f"{compared} compared with a GPU, {differ} differ")
    if options.pack:
        (options.pack / "kernels.csv").write_text(written(rows))
    if options.update:
        options.list.write_text(written(rows))
    return 1 if changed or differ else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError) as error:
        sys.exit(f"run.py: {error}")
