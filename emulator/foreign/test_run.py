"""Tests of run.py on texts: `python3 -m unittest discover foreign`."""

import contextlib
import ctypes
import io
import math
import struct
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import run

FILE = r'''
#include <stdio.h>
#include "there.h"
#define N 3 \
    + 4
/* a comment { */ int host = 3; // }
static const float limit = 2.0f;
typedef struct { int x; } point;
struct pair { int a, b; };
template <typename T, int K> struct box { T t[K]; __device__ T get() { return t[0]; } };
struct pair make(struct pair p) { return p; }
namespace here {
__constant__ float table[] = {1, 2, 3};
template <class T> __device__ __forceinline__ T twice(T x) { return 2 * x; }
extern "C" __global__ void __launch_bounds__(64 * (2), 1) first(int *x) { if (x) { x[0] = '{'; } }
}
MAKE(float, "}")
template <typename T>
__global__ static void second(T *x) { x[0] = 1; }
int main(int argc, char **argv) { first<<<1, 1>>>(0); printf("}\n"); return 0; }
'''
LIST = (run.HERE / "kernels.csv").read_text()


class Extraction(unittest.TestCase):
    def test_device_code_is_kept_in_its_lines(self):
        cut = run.Cut(FILE, lambda name: name == "there.h")
        self.assertEqual(cut.kernels(), ["first", "second"])
        text = cut.kept()
        self.assertEqual(text.count("\n"), FILE.count("\n"))
        for kept, whole in zip(text.splitlines(), FILE.splitlines()):
            self.assertIn(kept.strip(), whole)
        for kept in ["there.h", "+ 4", "limit", "point", "pair {", "box", "namespace", "table", "twice", "first", "MAKE", "second"]:
            self.assertIn(kept, text)
        for dropped in ["stdio", "host", "make", "main", "comment"]:
            self.assertNotIn(dropped, text)
        text = cut.kept("second")
        self.assertTrue("second" in text and "first" not in text and "twice" in text)

    def test_refused_items_are_dropped_by_their_lines(self):
        cut = run.Cut(FILE, lambda name: False)
        self.assertFalse(cut.drop_line(15, False), "the kernel stays")
        self.assertTrue(cut.drop_line(15, True) and not cut.drop_line(15, True))
        self.assertFalse(cut.drop_line(16, True), "the end of a namespace stays")
        self.assertNotIn("first", cut.kept())

    def test_any_text_is_cut(self):
        for at in range(len(FILE)):
            for text in (FILE[at:], FILE[:at]):
                run.Cut(text, lambda name: True).kept()
        run.Cut("é ' \" \\ /* é", lambda name: True).kept()

    def test_headers_and_errors_are_read(self):
        self.assertEqual(run.included('# include "a/b.h" // x\n#include <c>\n#define include "d"\n'), ["a/b.h", "c"])
        log = "simt: NVRTC: a.cu could not be compiled: NVRTC_ERROR\na(b).cu(12): error: x is undefined\nh.h(3): catastrophic error: y"
        self.assertEqual(run.places(log), [("a(b).cu", 12), ("h.h", 3)])
        self.assertEqual(run.first_error(log), "x is undefined")
        with tempfile.TemporaryDirectory() as folder:
            clone = Path(folder)
            for file in ("Common/x.h", "src/deep/y.h"):
                (clone / file).parent.mkdir(parents=True, exist_ok=True)
                (clone / file).write_text("")
            self.assertEqual(run.local(clone, clone / "src/deep/a.cu", "x.h"), clone / "Common/x.h")
            self.assertEqual(run.local(clone, clone / "src/deep/a.cu", "y.h"), clone / "src/deep/y.h")
            self.assertIsNone(run.local(clone, clone / "src/deep/a.cu", "z.h"))


class List(unittest.TestCase):
    def test_the_list_is_whole(self):
        rows = run.read(LIST)
        self.assertGreaterEqual(len(rows), 300)
        self.assertEqual(run.written(rows), LIST)
        for row in rows:
            self.assertEqual((len(row["commit"]), len(row["sha256"])), (40, 64), row["path"])
            word, judged, _ = row["judgement"].partition(": ")
            judged = judged and word in ("mistake", "meant", "too long", "gap", "excluded", "false alarm")
            self.assertEqual(row["outcome"] != "ran", bool(judged), row["kernel"])

    def test_lists_survive_reading_and_writing(self):
        empty = dict.fromkeys(run.COLUMNS, "")
        rows = [empty | {"path": "a,b.cu", "words": 'reads "x",\nand y', "arguments": "u32=1 | f32[2]=1,2 | "},
                empty | {"judgement": "mistake"}]
        self.assertEqual(run.read(run.written(rows)), rows)
        self.assertEqual(run.split(rows[0]["arguments"]), ["u32=1", "f32[2]=1,2"])
        for wrong, message in (("x,y\n", "the first line"), (run.written(rows) + "1,2\n", "row 3 has 2 columns")):
            with self.assertRaisesRegex(ValueError, message):
                run.read(wrong)

    def test_the_readme_has_the_figures(self):
        out = io.StringIO()
        with mock.patch("sys.argv", ["run.py", "--summary"]), contextlib.redirect_stdout(out):
            run.main()
        self.assertIn(out.getvalue(), (run.HERE / "README.md").read_text())
        self.assertNotIn("not judged", out.getvalue())

    def test_only_kernels_that_ran_are_compared(self):
        row = dict.fromkeys(run.COLUMNS, "") | {"path": "a.cu", "kernel": "f"}
        with self.assertRaisesRegex(ValueError, "a.cu f"):
            run.summary([row], [{"path": "a.cu", "kernel": "f", "why": "order: of atomics"}])


class Comparison(unittest.TestCase):
    def test_bits_are_compared_and_all_nans_are_equal(self):
        def floats(*values):
            return struct.pack(f"<{len(values)}f", *values)

        one = floats(1, math.nan, 3, 4)
        self.assertIsNone(run.difference("f32", one, floats(1, -math.nan, 3, 4)))
        message = run.difference("f32", one, floats(1, math.nan, 3.5, 8))
        self.assertEqual(message, "2 of 4 numbers differ; the first is number 2: 3.0 and not 3.5, 5.0e-01 apart at most")
        self.assertIn("1 of 2", run.difference("f32", floats(0, 1), floats(-0.0, 1)))
        self.assertEqual(run.numbers("bf16", bytes([0x80, 0x3F, 0, 0xC0])), [1, -2])
        self.assertEqual(run.numbers("i16", bytes([255, 255])), (-1,))


class Driver:
    """A driver that saves what it is given, and whose kernel writes `wanted`."""

    def __init__(self, wanted):
        self.wanted, self.memory, self.constants, self.given = wanted, {}, {}, []

    def __getattr__(self, name):
        return lambda *arguments: 0

    def cuMemAlloc_v2(self, address, size):
        address._obj.value = 4096 * (len(self.memory) + 1)
        self.memory[address._obj.value] = bytes(size.value)
        return 0

    def cuModuleGetGlobal_v2(self, address, size, module, symbol):
        self.constants[symbol] = address._obj.value = 1 << 20
        return 0

    def cuMemcpyHtoD_v2(self, address, data, size):
        self.memory[address.value] = data
        return 0

    def cuMemcpyDtoH_v2(self, host, address, size):
        host.raw = self.memory[address.value]
        return 0

    def cuLaunchKernel(self, function, *launch):
        self.launch, (_, pointers, _) = launch[:7], launch[7:]
        self.given = [ctypes.string_at(pointer, 8) for pointer in pointers]
        self.memory |= self.wanted
        return 0


class Gpu(unittest.TestCase):
    def test_a_launch_has_the_saved_bytes(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch("ctypes.CDLL") as library:
            save, ptx = Path(folder), Path(folder, "0.ptx")
            for file, data in {"before/x": b"\0" * 8, "after/x": b"\1" * 8, "before/t": b"\0" * 16, "after/t": b"\0" * 16,
                               "before/mask": b"\7" * 4}.items():
                (save / file).parent.mkdir(exist_ok=True)
                (save / file).write_bytes(data)
            lines = ["kernel _Z1kPf", "argument 0 0000000000000000 0&x+4", "argument 8 0700000000000000", "buffer x u32 8",
                     "buffer t u64 16 8&x+0", "variable mask u8 4 _ZL4mask"]
            (save / "launch.txt").write_text("\n".join(lines) + "\n")
            ptx.write_text(".version 8.0")
            row = {"grid": "2,3", "block": "64", "shared": "16"}
            table = struct.pack("<QQ", 0, 4096)
            driver = library.return_value = Driver({4096: b"\1" * 8, 8192: b"\0" * 16})
            self.assertIsNone(run.Gpu().compare(row, ptx, save))
            self.assertEqual(driver.launch, (2, 3, 1, 64, 1, 1, 16))
            self.assertEqual(driver.given, [struct.pack("<Q", 4100), struct.pack("<Q", 7)])
            self.assertEqual((driver.constants, driver.memory[1 << 20]), ({b"_ZL4mask": 1 << 20}, b"\7" * 4))
            driver = library.return_value = Driver({})
            self.assertIn("x: 2 of 2 numbers differ", run.Gpu().compare(row, ptx, save))
            self.assertEqual(driver.memory[8192], table, "an address in a buffer is an address on the GPU")
            (save / "launch.txt").write_text("kernel k\nargument 0 0000000000000000 0@t\n")
            with self.assertRaisesRegex(OSError, "textures"):
                run.Gpu().compare(row, ptx, save)


if __name__ == "__main__":
    unittest.main()
