//! `wmma`: matrices from memory to memory, in each shape, type and layout.
//!
//! PTX leaves open which lane holds which element, so a test loads all matrices of a product, sums
//! and stores, and looks at memory alone. The elements are small integers, whose products and sums
//! are exact in every type. `measured_products` has sums that are rounded, and `cases/products.ptx`
//! the wrong uses.

use std::collections::BTreeSet;

use crate::exact::{self, Mode, Number};
use crate::kernel::Bench;
use crate::matrices::{bits_of, format_of};

/// Shapes of `wmma`, and the types of factors and sums that go with each.
const WARP_SHAPES: [(&str, [usize; 3], Factors); 5] = [
    ("m16n16k16", [16, 16, 16], &HALVES),
    ("m8n32k16", [8, 32, 16], &HALVES),
    ("m32n8k16", [32, 8, 16], &HALVES),
    ("m16n16k8", [16, 16, 8], &[("tf32", &["f32"])]),
    ("m8n8k4", [8, 8, 4], &[("f64", &["f64"])]),
];
type Factors = &'static [(&'static str, &'static [&'static str])];
const HALVES: [(&str, &[&str]); 4] =
    [("f16", &["f16", "f32"]), ("bf16", &["f32"]), ("s8", &["s32"]), ("u8", &["s32"])];
const LAYOUTS: [&str; 2] = ["row", "col"];
const SPACES: [&str; 4] = ["", ".global", ".shared", ".shared::cta"];

/// The bytes of an element whose value is an integer.
fn bytes(ty: &str, value: i64) -> Vec<u8> {
    let bits = match ty {
        "s8" | "u8" | "s32" => value as u64,
        "tf32" => Number::integer(value.into()).encode(exact::F32, Mode::Nearest),
        _ => Number::integer(value.into()).encode(format_of(ty), Mode::Nearest),
    };
    bits.to_le_bytes()[..bits_of(ty) / 8].to_vec()
}

/// A matrix in memory, with `stride` elements from row to row or column to column.
fn laid_out(
    ty: &str,
    [rows, columns]: [usize; 2],
    layout: &str,
    stride: usize,
    value: impl Fn(usize, usize) -> i64,
) -> Vec<u8> {
    let (outer, inner) = if layout == "row" { (rows, columns) } else { (columns, rows) };
    let mut all = Vec::new();
    for i in 0..outer {
        for j in 0..stride {
            let value = match layout {
                _ if j >= inner => 99,
                "row" => value(i, j),
                _ => value(j, i),
            };
            all.extend(bytes(ty, value));
        }
    }
    all
}

/// A fragment's registers as an operand, from register `first` on.
fn fragment(first: usize, count: usize, ty: &str) -> String {
    let class = match ty {
        "f64" => "%rd",
        _ => "%r",
    };
    let names: Vec<String> = (first..first + count).map(|i| format!("{class}{i}")).collect();
    format!("{{{}}}", names.join(", "))
}

/// Registers of a fragment, as the PTX ISA has them.
fn held(part: &str, shape: [usize; 3], ty: &str) -> usize {
    let [m, n, k] = shape;
    match (part, ty) {
        ("a" | "b", "f16") => 8,
        ("a", _) => m * k * bits_of(ty).min(32) / 32 / 32,
        ("b", _) => n * k * bits_of(ty).min(32) / 32 / 32,
        _ => m * n * bits_of(ty).min(32) / 32 / 32,
    }
}

struct Wmma<'a> {
    shape: &'a str,
    extents: [usize; 3],
    factor: &'a str,
    sum: [&'a str; 2],
    layouts: [&'a str; 4],
    space: &'a str,
    padded: usize,
    /// `.satfinite`, or the rounding, which NVIDIA's header writes for `f64`.
    mode: &'a str,
}

impl Wmma<'_> {
    fn opcodes(&self) -> [String; 5] {
        let Wmma { shape, factor, sum: [c, d], layouts: [la, lb, lc, ld], space, mode, .. } = self;
        let multiply = match *factor {
            "f16" => format!("{d}.{c}"),
            _ => format!("{d}.{factor}.{factor}.{c}{mode}"),
        };
        [
            format!("wmma.load.a.sync.aligned.{la}.{shape}{space}.{factor}"),
            format!("wmma.load.b.sync.aligned.{lb}.{shape}{space}.{factor}"),
            format!("wmma.load.c.sync.aligned.{lc}.{shape}{space}.{c}"),
            format!("wmma.mma.sync.aligned.{la}.{lb}.{shape}.{multiply}"),
            format!("wmma.store.d.sync.aligned.{ld}.{shape}{space}.{d}"),
        ]
    }

    fn body(&self) -> String {
        let Wmma { extents, factor, sum: [c, d], .. } = self;
        let [load_a, load_b, load_c, multiply, store] = self.opcodes();
        let [m, n, k] = *extents;
        let stride = |layout: &str, [rows, columns]: [usize; 2]| match self.padded {
            0 => String::new(),
            more => format!(", {}", if layout == "row" { columns } else { rows } + more),
        };
        let a = fragment(5, held("a", *extents, factor), factor);
        let b = fragment(13, held("b", *extents, factor), factor);
        let sums = fragment(21, held("c", *extents, c), c);
        let result = fragment(31, held("c", *extents, d), d);
        let [la, lb, lc, ld] = self.layouts;
        let (prologue, at, to, epilogue) = match self.space {
            ".shared" | ".shared::cta" => (
                "COPY: mul.wide.u32 %rd5, %r4, 1; add.u64 %rd6, %rd1, %rd5; ld.global.b32 %r6, [%rd6];
                add.u32 %r7, %r3, %r4; st.shared.b32 [%r7], %r6; add.u32 %r4, %r4, 128;
                setp.lt.u32 %p1, %r4, 4096; @%p1 bra COPY; bar.sync 0;",
                "%r3",
                "%r3",
                "bar.sync 0; mul.lo.u32 %r4, %r2, 4;
                BACK: mul.wide.u32 %rd5, %r4, 1; add.u64 %rd6, %rd2, %rd5; add.u32 %r7, %r3, %r4;
                ld.shared.b32 %r6, [%r7]; st.global.b32 [%rd6], %r6; add.u32 %r4, %r4, 128;
                setp.lt.u32 %p1, %r4, 4096; @%p1 bra BACK;",
            ),
            _ => ("", "%rd1", "%rd2", ""),
        };
        format!(
            "{prologue}
            {load_a} {a}, [{at}]{};
            {load_b} {b}, [{at}+1024]{};
            {load_c} {sums}, [{at}+2560]{};
            {multiply} {result}, {a}, {b}, {sums};
            bar.sync 0;
            {store} [{to}], {result}{};
            {epilogue}",
            stride(la, [m, k]),
            stride(lb, [k, n]),
            stride(lc, [m, n]),
            stride(ld, [m, n]),
        )
    }

    fn check(&self) {
        let [m, n, k] = self.extents;
        let Wmma { factor, sum: [of_c, of_d], layouts: [la, lb, lc, ld], .. } = *self;
        let least = if factor == "u8" { 0 } else { -7 };
        let a = |row: usize, column: usize| ((5 * row + 3 * column) % 15) as i64 + least;
        let b = |row: usize, column: usize| ((7 * row + 2 * column) % 11) as i64 + least;
        let c = |row: usize, column: usize| (row as i64) - 2 * (column as i64);
        let stride = |layout: &str, rows: usize, columns: usize| {
            self.padded + if layout == "row" { columns } else { rows }
        };
        let source = crate::kernel::source(&self.body())
            .replace("%r<40>", "%r<64>")
            .replace("%rd<40>", "%rd<64>");
        let bench = Bench::of(&source.replace("[4096]", "[8192]"));
        let mut inputs = vec![0; 4096];
        let mut put =
            |at: usize, bytes: Vec<u8>| inputs[at..at + bytes.len()].copy_from_slice(&bytes);
        put(0, laid_out(factor, [m, k], la, stride(la, m, k), a));
        put(1024, laid_out(factor, [k, n], lb, stride(lb, k, n), b));
        put(2560, laid_out(of_c, [m, n], lc, stride(lc, m, n), c));
        bench.memory.write(bench.a, &inputs).unwrap();
        bench.run().unwrap_or_else(|report| panic!("{report}\n{}", self.body()));
        let wanted = |row: usize, column: usize| {
            (0..k).map(|l| a(row, l) * b(l, column)).sum::<i64>() + c(row, column)
        };
        let width = bits_of(of_d) / 8;
        for row in 0..m {
            for column in 0..n {
                let stride = stride(ld, m, n);
                let place = if ld == "row" { row * stride + column } else { column * stride + row };
                let mut got = vec![0; width];
                bench.memory.read(bench.b + (place * width) as u64, &mut got).unwrap();
                let wanted = bytes(of_d, wanted(row, column));
                assert_eq!(got, wanted, "row {row}, column {column}\n{}", self.body());
            }
        }
    }
}

/// Calls `visit` with each product of `wmma` in each layout, in some spaces and with some strides.
fn each_wmma(mut visit: impl FnMut(&Wmma<'_>)) {
    let mut number = 0;
    for (shape, extents, factors) in WARP_SHAPES {
        for (factor, sums) in factors {
            for (c, d) in sums.iter().flat_map(|c| sums.iter().map(move |d| (*c, *d))) {
                for layouts in 0..16_usize {
                    let layouts = [0, 1, 2, 3].map(|i| LAYOUTS[layouts >> i & 1]);
                    for space in SPACES {
                        number += 1;
                        let mode = match c {
                            "s32" if number % 2 == 0 => ".satfinite",
                            "f64" if number % 2 == 0 => ".rn",
                            _ => "",
                        };
                        // What is padded with 8 still fits, of the smaller ones.
                        let padded =
                            if number % 3 == 0 && bits_of(d) * extents[0] * extents[1] < 8192 {
                                8
                            } else {
                                0
                            };
                        let padded = if factor == &"f16"
                            || factor == &"bf16"
                            || extents[1] > 16
                            || extents[0] > 16
                        {
                            0
                        } else {
                            padded
                        };
                        let sum = [c, d];
                        visit(&Wmma { shape, extents, factor, sum, layouts, space, padded, mode });
                    }
                }
            }
        }
    }
}

#[test]
fn fragments_come_from_memory_and_go_there() {
    let mut count = 0;
    each_wmma(|wmma| {
        count += 1;
        wmma.check();
    });
    println!("{count} products");
    assert_eq!(count, 16 * 4 * (3 * (4 + 1 + 1 + 1) + 1 + 1));
}
/// The opcodes that these tests cover.
pub fn opcodes() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    each_wmma(|wmma| all.extend(wmma.opcodes()));
    all
}

/// A GPU sums the first half of the depth of `tf32`, and then the second.
#[test]
fn tf32_is_summed_in_two_halves() {
    let wmma = Wmma {
        shape: "m16n16k8",
        extents: [16, 16, 8],
        factor: "tf32",
        sum: ["f32"; 2],
        layouts: ["row", "col", "row", "row"],
        space: "",
        padded: 0,
        mode: "",
    };
    // Two that cancel, and a small one, which is lost beside them but not after them.
    let (large, small_at) = (1_i64 << 40, |row: usize| 2 + row % 6);
    let a = |row: usize, column: usize| match column {
        0 => large,
        1 => -large,
        _ => i64::from(column == small_at(row)),
    };
    let source =
        crate::kernel::source(&wmma.body()).replace("%r<40>", "%r<64>").replace("[4096]", "[8192]");
    let bench = Bench::of(&source);
    let mut inputs = vec![0; 4096];
    let (a, b) =
        (laid_out("tf32", [16, 8], "row", 8, a), laid_out("tf32", [8, 16], "col", 8, |_, _| 1));
    inputs[..a.len()].copy_from_slice(&a);
    inputs[1024..][..b.len()].copy_from_slice(&b);
    bench.memory.write(bench.a, &inputs).unwrap();
    bench.run().unwrap_or_else(|report| panic!("{report}"));
    for row in 0..16 {
        let mut got = [0; 64];
        bench.memory.read(bench.b + 64 * row as u64, &mut got).unwrap();
        let wanted = bytes("f32", i64::from(small_at(row) >= 4)).repeat(16);
        assert_eq!(got[..], wanted[..], "row {row}");
    }
}
