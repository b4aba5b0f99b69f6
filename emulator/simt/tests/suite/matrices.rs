//! Products of matrices in the registers of all lanes: `mma`, by the tables of the PTX ISA.
//!
//! Integers and sums that are exact have one result, and the rows compare it. Other sums of floats
//! are only bounded here, since PTX leaves their order open; `measured_products` compares them with
//! a GPU's bits. `wmma` has the products whose matrices lie in memory, and `cases/products.ptx` the
//! wrong uses.

use crate::exact::{self, Mode, Number};
use crate::form::Kind::{self, L, W};
use crate::form::{Form, across, check};
use crate::kernel::Bench;
use crate::values::{Random, integers};

/// Row and column of element `i` of a lane: `g` and `t` are what the PTX ISA calls `groupID` and
/// `threadID_in_group`.
type Places = fn(g: usize, t: usize, i: usize) -> [usize; 2];

/// A shape of `mma`: rows and depth (columns are 8), where elements lie, and what they are.
struct Shape {
    name: &'static str,
    a: Places,
    b: Places,
    types: &'static [&'static str],
}

impl Shape {
    /// Returns the rows of the first factor and the depth of the sum, which the name has.
    fn extents(&self) -> [usize; 2] {
        let number = |text: &str| text.parse().unwrap_or(0);
        let (m, rest) = self.name[1..].split_once('n').unwrap_or_default();
        [number(m), number(rest.split_once('k').unwrap_or_default().1)]
    }
}

/// The accumulators of every shape.
fn c_place(g: usize, t: usize, i: usize) -> [usize; 2] {
    [if i < 2 { g } else { g + 8 }, t * 2 + (i & 1)]
}

const fn layout(name: &'static str, types: &'static [&'static str], a: Places, b: Places) -> Shape {
    Shape { name, a, b, types }
}

const SHAPES: [Shape; 16] = [
    layout(
        "m16n8k16",
        &["f16", "bf16"],
        |g, t, i| {
            let row = if matches!(i, 0 | 1 | 4 | 5) { g } else { g + 8 };
            [row, t * 2 + (i & 1) + if i >= 4 { 8 } else { 0 }]
        },
        |g, t, i| [t * 2 + (i & 1) + if i >= 2 { 8 } else { 0 }, g],
    ),
    layout(
        "m16n8k8",
        &["f16", "bf16"],
        |g, t, i| [if i < 2 { g } else { g + 8 }, t * 2 + (i & 1)],
        |g, t, i| [t * 2 + i, g],
    ),
    layout(
        "m16n8k4",
        &["tf32", "f64"],
        |g, t, i| [if i == 0 { g } else { g + 8 }, t],
        |g, t, _| [t, g],
    ),
    layout(
        "m16n8k8",
        &["tf32", "f64"],
        |g, t, i| [if i % 2 == 0 { g } else { g + 8 }, if i < 2 { t } else { t + 4 }],
        |g, t, i| [if i == 0 { t } else { t + 4 }, g],
    ),
    layout("m8n8k4", &["f64"], |g, t, _| [g, t], |g, t, _| [t, g]),
    layout(
        "m16n8k16",
        &["f64"],
        |g, t, i| match i % 2 {
            0 => [g, i * 2 + t],
            _ => [g + 8, i * 2 - 2 + t],
        },
        |g, t, i| [i * 4 + t, g],
    ),
    layout("m8n8k16", &["s8", "u8"], |g, t, i| [g, t * 4 + i], |g, t, i| [t * 4 + i, g]),
    layout(
        "m16n8k16",
        &["s8", "u8"],
        |g, t, i| [if i < 4 { g } else { g + 8 }, t * 4 + (i & 3)],
        |g, t, i| [t * 4 + i, g],
    ),
    layout(
        "m16n8k32",
        &["s8", "u8"],
        |g, t, i| {
            let row = if i < 4 || (8..12).contains(&i) { g } else { g + 8 };
            [row, t * 4 + (i & 3) + if i >= 8 { 16 } else { 0 }]
        },
        |g, t, i| [t * 4 + (i & 3) + if i >= 4 { 16 } else { 0 }, g],
    ),
    layout("m8n8k32", &["s4", "u4"], |g, t, i| [g, t * 8 + i], |g, t, i| [t * 8 + i, g]),
    layout(
        "m16n8k32",
        &["s4", "u4"],
        |g, t, i| [if i < 8 { g } else { g + 8 }, t * 8 + (i & 7)],
        |g, t, i| [t * 8 + i, g],
    ),
    layout(
        "m16n8k64",
        &["s4", "u4"],
        |g, t, i| {
            let row = if i < 8 || (16..24).contains(&i) { g } else { g + 8 };
            [row, t * 8 + (i & 7) + if i >= 16 { 32 } else { 0 }]
        },
        |g, t, i| [t * 8 + (i & 7) + if i >= 8 { 32 } else { 0 }, g],
    ),
    layout("m8n8k128", &["b1"], |g, t, i| [g, t * 32 + i], |g, t, i| [t * 32 + i, g]),
    layout(
        "m16n8k128",
        &["b1"],
        |g, t, i| [if i < 32 { g } else { g + 8 }, t * 32 + (i & 31)],
        |g, t, i| [t * 32 + i, g],
    ),
    layout(
        "m16n8k256",
        &["b1"],
        |g, t, i| {
            let row = if i < 32 || (64..96).contains(&i) { g } else { g + 8 };
            [row, t * 32 + (i & 31) + if i >= 64 { 128 } else { 0 }]
        },
        |g, t, i| [t * 32 + (i & 31) + if i >= 32 { 128 } else { 0 }, g],
    ),
    // The rest of one that is above.
    layout("", &[], |_, _, _| [0; 2], |_, _, _| [0; 2]),
];

pub fn bits_of(ty: &str) -> usize {
    match ty {
        "b1" => 1,
        "s4" | "u4" => 4,
        "s8" | "u8" => 8,
        "f16" | "bf16" => 16,
        "f64" => 64,
        _ => 32,
    }
}

pub fn format_of(ty: &str) -> exact::Format {
    match ty {
        "f16" => exact::F16,
        "bf16" => exact::BF16,
        "tf32" => exact::Format { fraction: 10, exponent: 8 },
        "f64" => exact::F64,
        _ => exact::F32,
    }
}

/// A matrix from the registers of a warp's lanes: `first` is the number of the first of its
/// registers, `count` how many there are.
fn matrix(
    warp: &[Vec<u64>],
    [first, count]: [usize; 2],
    ty: &str,
    place: Places,
    [rows, columns]: [usize; 2],
) -> Vec<Vec<u64>> {
    let bits = bits_of(ty);
    let each = (32 / bits).max(1);
    let mut all = vec![vec![0; columns]; rows];
    for (lane, registers) in warp.iter().enumerate() {
        for i in 0..count * each {
            let [row, column] = place(lane / 4, lane % 4, i);
            let held = registers[first + i / each] >> (bits * (i % each));
            all[row][column] = if bits == 64 { held } else { held & ((1 << bits) - 1) };
        }
    }
    all
}

/// An element as an integer.
fn integer(ty: &str, bits: u64) -> i64 {
    match ty {
        "s8" => (bits as i8).into(),
        "s4" => (bits as i64) << 60 >> 60,
        _ => bits as i64,
    }
}

struct Types {
    a: &'static str,
    b: &'static str,
    c: &'static str,
    d: &'static str,
    how: &'static str,
}

/// Returns a row of the table. Floats are small integers, so that all sums are exact; the registers
/// of other types hold any bits.
fn form(shape: &'static Shape, types: Types) -> Form {
    let Types { a, b, c, d, how } = types;
    let [m, k] = shape.extents();
    let registers = |elements: usize, ty: &str| elements / 32 / (32 / bits_of(ty)).max(1);
    let counts =
        [registers(m * k, a), registers(k * 8, b), registers(m * 8, c), registers(m * 8, d)];
    let kind = |ty: &str| if ty == "f64" { L } else { W };
    let opcode = match how {
        "" | "satfinite" => {
            let how = if how.is_empty() { "" } else { ".satfinite" };
            format!("mma.sync.aligned.{}.row.col{how}.{d}.{a}.{b}.{c}", shape.name)
        }
        _ => format!("mma.sync.aligned.{}.row.col.{d}.{a}.{b}.{c}.{how}", shape.name),
    };
    let names = |range: std::ops::Range<usize>| -> String {
        range.map(|i| format!("{{{}}}", i + 1)).collect::<Vec<_>>().join(", ")
    };
    let [of_a, of_b, of_c, of_d] = counts;
    let results = &["{d}", "{e}", "{f}", "{g}"][..of_d];
    let text = format!(
        "{opcode} {{{}}}, {{{}}}, {{{}}}, {{{}}};",
        results.join(", "),
        names(0..of_a),
        names(of_a..of_a + of_b),
        names(of_a + of_b..of_a + of_b + of_c),
    );
    let wanted = move |warp: &[Vec<u64>], lane: usize| {
        let a = matrix(warp, [0, of_a], types.a, shape.a, [m, k]);
        let b = matrix(warp, [of_a, of_b], types.b, shape.b, [k, 8]);
        let c = matrix(warp, [of_a + of_b, of_c], types.c, c_place, [m, 8]);
        let element = |i: usize| {
            let [row, column] = c_place(lane / 4, lane % 4, i);
            let pairs = (0..k).map(|l| (a[row][l], b[l][column]));
            one(&types, pairs, c[row][column])
        };
        let each = (32 / bits_of(types.d)).max(1);
        let register = |r: usize| {
            (0..each).fold(0, |all, i| all | element(each * r + i) << (bits_of(types.d) * i))
        };
        (0..of_d).map(register).collect()
    };
    let pools: Vec<Vec<u64>> = [(of_a, a), (of_b, b), (of_c, c)]
        .into_iter()
        .flat_map(|(count, ty)| (0..count).map(move |i| pool(ty, i as u64)))
        .collect();
    let pools: Vec<&[u64]> = pools.iter().map(Vec::as_slice).collect();
    // As many results and operands as there are.
    macro_rules! sized {
        ($($d:literal $n:literal),*) => {
            match (of_d, pools.len()) {
                $(($d, $n) => across(&opcode, &text, [kind(d); $d], kinds::<$n>(counts, kind(a), kind(c)), wanted),)*
                other => panic!("{opcode}: {other:?}"),
            }
        };
    }
    let form = sized!(2 4, 2 5, 4 7, 4 10, 2 6, 2 8, 4 8, 4 16);
    form.over(&pools).at_most(1600)
}

fn kinds<const N: usize>(counts: [usize; 4], factors: Kind, sums: Kind) -> [Kind; N] {
    std::array::from_fn(|i| if i < counts[0] + counts[1] { factors } else { sums })
}

/// At most 24 values, so that no others are tried: of floats small integers.
fn pool(ty: &str, seed: u64) -> Vec<u64> {
    let mut random = Random(seed);
    let format = format_of(ty);
    let small = |random: &mut Random| {
        let value = random.next() % 17;
        let bits = Number::integer(i128::from(value) - 8).encode(format, Mode::Nearest);
        // The bits of an f32 that do not take part are there, too.
        if ty == "tf32" { bits << 13 | random.next() & 0x1fff } else { bits }
    };
    match ty {
        "f16" | "bf16" => (0..24).map(|_| small(&mut random) << 16 | small(&mut random)).collect(),
        "tf32" | "f32" | "f64" => (0..24).map(|_| small(&mut random)).collect(),
        _ => {
            let edges = integers(32);
            (0..24)
                .map(|i| {
                    if i < 8 {
                        edges[random.below(edges.len())]
                    } else {
                        random.next() & 0xffff_ffff
                    }
                })
                .collect()
        }
    }
}

/// One element of the result.
fn one(types: &Types, pairs: impl Iterator<Item = (u64, u64)>, c: u64) -> u64 {
    let Types { a, b, c: of_c, d, how } = *types;
    if of_c == "s32" {
        let products = pairs.map(|(x, y)| match how {
            "xor.popc" => (x ^ y) as i64,
            "and.popc" => (x & y) as i64,
            _ => integer(a, x) * integer(b, y),
        });
        let sum = products.sum::<i64>() + i64::from(c as i32);
        return match how {
            "satfinite" => sum.clamp(i32::MIN.into(), i32::MAX.into()) as u32,
            _ => sum as u32,
        }
        .into();
    }
    let format = format_of(a);
    let shift = if a == "tf32" { 13 } else { 0 };
    let number = |bits: u64| Number::decode(bits >> shift, format);
    let c = Number::decode(c, format_of(of_c));
    let sum = pairs.fold(c, |sum, (x, y)| {
        exact::sum(&sum, &exact::product(&number(x), &number(y)), Mode::Nearest)
    });
    sum.encode(format_of(d), Mode::Nearest)
}

fn shape(name: &str, ty: &str) -> &'static Shape {
    static ALL: [Shape; 16] = SHAPES;
    ALL.iter().find(|shape| shape.name == name && shape.types.contains(&ty)).unwrap()
}

pub fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    for Shape { name, types, .. } in SHAPES.iter().filter(|shape| !shape.name.is_empty()) {
        for &a in *types {
            let mut push = |b, c, d, how| all.push(form(shape(name, a), Types { a, b, c, d, how }));
            match a {
                "f16" => ["f16", "f32"].into_iter().for_each(|c| push("f16", c, c, "")),
                "f64" => push("f64", "f64", "f64", ""),
                "bf16" | "tf32" => push(a, "f32", "f32", ""),
                "b1" => {
                    push("b1", "s32", "s32", "xor.popc");
                    push("b1", "s32", "s32", "and.popc");
                }
                _ => {
                    for &b in *types {
                        push(b, "s32", "s32", "");
                        push(b, "s32", "s32", "satfinite");
                    }
                }
            }
        }
    }
    let transpose = across(
        "movmatrix.sync.aligned.m8n8.trans.b16",
        "movmatrix.sync.aligned.m8n8.trans.b16 {d}, {1};",
        [W],
        [W],
        |warp, lane| {
            let element = |row: usize, column: usize| {
                warp[4 * row + column / 2][0] >> (16 * (column % 2)) & 0xffff
            };
            let (row, column) = (lane / 4, 2 * (lane % 4));
            vec![element(column, row) | element(column + 1, row) << 16]
        },
    );
    all.push(transpose);
    all
}

#[test]
fn products_are_those_of_the_tables() {
    check("matrices", &forms());
}

/// Sums of any numbers are near the exact ones: each of `k + 1` terms is cut off by less than 2^-25
/// of the largest, and the sum by less than its last place.
#[test]
fn sums_of_floats_are_near() {
    for ty in ["f16", "bf16", "tf32"] {
        let k = if ty == "tf32" { 8 } else { 16 };
        let name = format!("m16n8k{k}");
        let shape = shape(&name, ty);
        let types = Types { a: ty, b: ty, c: "f32", d: "f32", how: "" };
        let mut random = Random(7);
        // Between 2^-9 and 2^8, of both signs.
        let format = format_of(ty);
        let bias = (1_u64 << (format.exponent - 1)) - 1;
        let mut value = move |format: exact::Format, bias: u64| {
            let bits = random.next();
            let exponent = bias - 9 + bits % 18;
            let fraction = bits >> 8 & ((1 << format.fraction) - 1);
            (bits >> 63) << (format.fraction + format.exponent)
                | exponent << format.fraction
                | fraction
        };
        let each = 32 / bits_of(ty);
        let mut register = |ty: &str| match ty {
            "f32" => value(exact::F32, 127),
            "tf32" => value(format, bias) << 13,
            _ => value(format, bias) << 16 | value(format, bias),
        };
        let warp: Vec<Vec<u64>> = (0..32)
            .map(|_| (0..10).map(|i| register(if i < 6 { ty } else { "f32" })).collect())
            .collect();
        let mut body = String::new();
        for i in 0..10 {
            body += &format!("ld.global.b32 %r{}, [%rd3+{}];", 5 + i, 128 * i);
        }
        body += &format!(
            "mma.sync.aligned.{name}.row.col.f32.{ty}.{ty}.f32 {{%r15, %r16, %r17, %r18}}, {{%r5, %r6, %r7, %r8}}, {{%r9, %r10}}, \
             {{%r11, %r12, %r13, %r14}};"
        );
        for i in 0..4 {
            body += &format!("st.global.b32 [%rd4+{}], %r{};", 128 * i, 15 + i);
        }
        let bench = Bench::new(&body);
        let words: Vec<u8> = (0..10)
            .flat_map(|i| warp.iter().flat_map(move |lane| (lane[i] as u32).to_le_bytes()))
            .collect();
        bench.memory.write(bench.a, &words).unwrap();
        bench.run().unwrap();
        let got = bench.words::<128>();
        assert_eq!(each * 4, shape.extents().iter().product::<usize>() / 32);
        let a = matrix(&warp, [0, 4], ty, shape.a, [16, k]);
        let b = matrix(&warp, [4, 2], ty, shape.b, [k, 8]);
        let c = matrix(&warp, [6, 4], "f32", c_place, [16, 8]);
        let shift = if ty == "tf32" { 13 } else { 0 };
        let number = |bits: u64| match ty {
            "f16" => real(bits, exact::F16),
            _ => real(bits >> shift, format),
        };
        let mut differs = false;
        for lane in 0..32 {
            for i in 0..4 {
                let [row, column] = c_place(lane / 4, lane % 4, i);
                let mut terms: Vec<f64> =
                    (0..k).map(|l| number(a[row][l]) * number(b[l][column])).collect();
                terms.push(real(c[row][column], exact::F32));
                // In units of 2^-40 all of them are integers that fit.
                let exact: i128 = terms.iter().map(|term| (term * 2_f64.powi(40)) as i128).sum();
                let exact = exact as f64 / 2_f64.powi(40);
                let largest = terms.iter().fold(0_f64, |most, term| most.max(term.abs()));
                let got = f64::from(f32::from_bits(got[32 * i + lane]));
                let bound =
                    (k + 1) as f64 * largest * 2_f64.powi(-24) + got.abs() * 2_f64.powi(-23);
                assert!(
                    (got - exact).abs() <= bound,
                    "{ty} {types}: {got} and not {exact}",
                    types = types.a
                );
                differs |= got != exact;
            }
        }
        assert!(differs, "{ty}: nothing was rounded");
    }
}

fn real(bits: u64, format: exact::Format) -> f64 {
    f64::from_bits(Number::decode(bits, format).encode(exact::F64, Mode::Nearest))
}
