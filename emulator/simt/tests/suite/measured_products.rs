//! Sums of products as an H100 has formed them (driver 580.159), by exact bits: where another way
//! of rounding would give others.

use crate::kernel::{Bench, source};

/// Factors, a summand, and the sum.
type Sum<'a> = (&'a [(u16, u16)], u32, u32);

#[rustfmt::skip]
const HALVES_TO_F32: &[Sum<'_>] = &[
    // Cut off, and not rounded.
    (&[(0x94c5, 0x93e5)], 0x3f0e_41d7, 0x3f0e_41e9),
    (&[(0x14f3, 0x8691)], 0xbc6a_9f87, 0xbc6a_a008),
    // Behind the largest exponent 25 bits count: with 24 these would be others, and with 26 those
    // below.
    (&[(0x0ed4, 0x0c04)], 0xc04c_3be6, 0xc04c_3be5),
    (&[(0x06ad, 0x1bd0)], 0xbb8c_e799, 0xbb8c_e456),
    (&[(0x8e7e, 0x084b)], 0x3917_390e, 0x3917_2b1e),
    (&[(0x07e8, 0x19af)], 0xb910_e19f, 0xb910_87c0),
    (&[(0x923f, 0x1b11)], 0x3d19_a8bd, 0x3d19_a5fb),
    (&[(0x5faa, 0xf49b)], 0x40e2_c327, 0xcb0d_2fb1),
    // Infinity.
    (&[(0xb62b, 0x2d27), (0x7c00, 0xbbbd), (0x30e1, 0x35cc), (0x4edf, 0x49ef)], 0xbe02_1f4c, 0xff80_0000),
    (&[], 0x8000_0000, 0),
];

#[rustfmt::skip]
const HALVES: &[Sum<'_>] = &[
    // What is rounded to 0 is positive.
    (&[(0x0800, 0x8800)], 0, 0),
    (&[(0x8c00, 0x0400)], 0, 0),
    (&[(0x6b2f, 0x76dc)], 0x1dcd, 0x7c00),
    (&[(0x5166, 0x78f1)], 0x8000, 0x7c00),
];

#[rustfmt::skip]
const BFLOATS: &[Sum<'_>] = &[
    (&[(0xbb7f, 0xba25)], 0xbd36_fd15, 0xbd36_fa83),
    (&[(0x9a00, 0x1980)], 0x0020_0000, 0x001f_ffff),
    (&[(0x1980, 0x1a80)], 0x8020_0000, 0x801f_ffff),
    (&[(0x1980, 0x1980)], 0x8060_0000, 0x8060_0000),
    (&[(0x3d0c, 0xbf88)], 0x3927_4023, 0xbd14_18c0),
    // Overflow, though it is cut off.
    (&[(0x70d2, 0xd094)], 0, 0xff80_0000),
    // What is less than the smallest number, and positive then.
    (&[(0x9a00, 0x1980)], 0, 0),
    (&[(0x1a00, 0x9a00)], 0x8000_0000, 0),
    // 2^-158 of what small numbers lack counts …
    (&[(0x1a80, 0x9a80), (0x9780, 0x9880)], 0x8000_0000, 0x8000_0001),
    (&[(0x1680, 0x9980), (0x1a00, 0x1b00)], 0x8000_0000, 1),
    (&[(0x1900, 0x9700), (0x9a80, 0x9b00)], 0x8000_0000, 3),
    // … and 2^-159 does not.
    (&[(0x9500, 0x1a80), (0x9a00, 0x9b00)], 0, 2),
    (&[(0x1a80, 0x1a80), (0x9980, 0x1600)], 0x8000_0000, 2),
    (&[(0x9480, 0x9b00), (0x1b00, 0x9a80)], 0, 0x8000_0004),
];

/// Subnormal halves as summands of an `f32`: they are normal in that.
#[rustfmt::skip]
const FROM_HALVES: &[Sum<'_>] = &[
    (&[(0x0b39, 0x8a84)], 0x800f, 0xb57b_c3d9),
    (&[(0x050e, 0x8365), (0x8399, 0x8581), (0x0323, 0x0a7e), (0x028a, 0x0366), (0x0cf0, 0x0bef), (0x8931, 0x00e6),
       (0x01e6, 0x03b7), (0x0b83, 0x8231), (0x85c9, 0x0254), (0x806c, 0x8275), (0x0eb3, 0x0194), (0x0177, 0x866b),
       (0x082f, 0x8619), (0x00e2, 0x0856), (0x802c, 0x8025)], 0x81c7, 0xb7e2_e65b),
    (&[(0x0d7c, 0x0718), (0x034c, 0x0d90), (0x03fd, 0x0200), (0x85b1, 0x03f5), (0x8228, 0x03f2), (0x0c23, 0x0318),
       (0x848a, 0x0c46), (0x8e6c, 0x8863), (0x8e4b, 0x06b4), (0x0043, 0x02eb), (0x8194, 0x01f3), (0x8d03, 0x88a7),
       (0x82b6, 0x01de), (0x07c0, 0x0255), (0x0321, 0x8c8a)], 0x00c7, 0x3748_7895),
    (&[], 0x8100, 0xb780_0000),
];

/// An `f32` that becomes a half is rounded twice; and what is rounded to 0 behind keeps its sign.
#[rustfmt::skip]
const INTO_HALVES: &[Sum<'_>] = &[
    (&[(0x3827, 0xd7ae), (0x6249, 0xbf88)], 0x8000_0000, 0xe62a),
    (&[(0x3c00, 0x3c02), (0xbc02, 0xbc01), (0xbc02, 0x3c01), (0x3c01, 0x3c01), (0x3c02, 0x3c00), (0xbc03, 0xbc03),
       (0xbc00, 0xbc01), (0x3c02, 0x3c00), (0x3c03, 0xbc01), (0xbc03, 0x3c01), (0xbc03, 0x3c00), (0x3c03, 0x3c00),
       (0xbc03, 0x3c00), (0xbc03, 0x3c02), (0x3c00, 0xbc02), (0x3c00, 0x3c03)], 0x3ba0_10a0, 0x4002),
    (&[(0x4de0, 0xafd0), (0xa0e0, 0x17a0), (0xbc90, 0x49e0), (0x3de0, 0x3e40), (0x18f0, 0x2e00), (0xa870, 0x28a0),
       (0xbd30, 0x2060), (0xa330, 0xae70), (0xbe30, 0xc620), (0xcad0, 0xcc50), (0xc0e0, 0xcab0), (0x2e70, 0x4df0),
       (0x3c00, 0x4bd0), (0x90f0, 0x4bb0), (0x8cb0, 0x4ff0), (0x4a90, 0x1180)], 0xb566_a7ec, 0x5c64),
    (&[], 0x8020_0000, 0x8000),
    (&[], 0xc8ae_ef30, 0xfc00),
];

/// A list of registers in braces.
fn list(first: usize, count: usize) -> String {
    let names: Vec<_> = (first..first + count).map(|i| format!("%r{i}")).collect();
    format!("{{{}}}", names.join(", "))
}

/// The sum of `mma.m16n8k16` in row and column 0.
fn by_mma(ty: &str, to: &str, (pairs, c, _): Sum<'_>) -> u32 {
    let sums = if to == "f16" { 2 } else { 4 };
    // Of row and column 0 four lanes have two words each, and the first lane the summand.
    let mut body = String::new();
    for (register, word) in [(5, 0), (7, 1), (9, 2), (10, 3), (11, 4)] {
        body += &format!("ld.global.b32 %r{register}, [%rd3+{}];", 128 * word);
    }
    for register in [6, 8, 12, 13, 14] {
        body += &format!("mov.b32 %r{register}, 0;");
    }
    body += &format!(
        "mma.sync.aligned.m16n8k16.row.col.{to}.{ty}.{ty}.{to} {}, {{%r5, %r6, %r7, %r8}}, {{%r9, %r10}}, {};
        st.global.b32 [%rd4], %r15;",
        list(15, sums),
        list(11, sums)
    );
    let bench = Bench::new(&body);
    let mut words = [[0_u32; 32]; 5];
    for (k, (a, b)) in pairs.iter().enumerate() {
        let (register, lane, shift) = (k / 8, k % 8 / 2, 16 * (k % 2));
        words[register][lane] |= u32::from(*a) << shift;
        words[2 + register][lane] |= u32::from(*b) << shift;
    }
    words[4][0] = c;
    let bytes: Vec<u8> = words.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect();
    first_sum(&bench, &bytes, to)
}

/// The sum of products by `wmma.m16n16k16`, whose summand and result may be of different types.
fn by_wmma(ty: &str, [from, to]: [&str; 2], (pairs, c, _): Sum<'_>) -> u32 {
    let count = |ty: &str| if ty == "f16" { 4 } else { 8 };
    let factors = if ty == "f16" { 8 } else { 4 };
    let (a, b, sums, d) =
        (list(5, factors), list(13, factors), list(21, count(from)), list(29, count(to)));
    let types = if ty == "f16" { format!("{to}.{from}") } else { format!("{to}.{ty}.{ty}.{from}") };
    let body = format!(
        "wmma.load.a.sync.aligned.row.m16n16k16.global.{ty} {a}, [%rd1];
        wmma.load.b.sync.aligned.col.m16n16k16.global.{ty} {b}, [%rd1+512];
        wmma.load.c.sync.aligned.row.m16n16k16.global.{from} {sums}, [%rd1+1024];
        wmma.mma.sync.aligned.row.col.m16n16k16.{types} {d}, {a}, {b}, {sums};
        wmma.store.d.sync.aligned.row.m16n16k16.global.{to} [%rd2], {d};"
    );
    let bench = Bench::of(&source(&body));
    let mut bytes = [0; 2048];
    for (k, (a, b)) in pairs.iter().enumerate() {
        bytes[2 * k..][..2].copy_from_slice(&a.to_le_bytes());
        bytes[512 + 2 * k..][..2].copy_from_slice(&b.to_le_bytes());
    }
    bytes[1024..][..4].copy_from_slice(&c.to_le_bytes());
    first_sum(&bench, &bytes, to)
}

/// The first number of the result, for fragments that lie in memory.
fn first_sum(bench: &Bench, fragments: &[u8], to: &str) -> u32 {
    bench.memory.write(bench.a, fragments).unwrap();
    bench.run().unwrap_or_else(|report| panic!("{report}"));
    bench.words::<1>()[0] & if to == "f16" { 0xffff } else { u32::MAX }
}

#[test]
fn sums_have_a_gpus_bits() {
    for (ty, to, sums) in
        [("f16", "f32", HALVES_TO_F32), ("f16", "f16", HALVES), ("bf16", "f32", BFLOATS)]
    {
        for sum in sums {
            assert_eq!(by_mma(ty, to, *sum), sum.2, "mma {ty} to {to}: {sum:x?}");
            assert_eq!(by_wmma(ty, [to, to], *sum), sum.2, "wmma {ty} to {to}: {sum:x?}");
        }
    }
    for (from, to, sums) in [("f16", "f32", FROM_HALVES), ("f32", "f16", INTO_HALVES)] {
        for sum in sums {
            assert_eq!(by_wmma("f16", [from, to], *sum), sum.2, "from {from} to {to}: {sum:x?}");
        }
    }
}

/// NaN has the same bits in every sum.
#[test]
fn nan_is_canonical() {
    for (pairs, c) in [
        (&[(0x7c00, 0)][..], 0),
        (&[(0x7c00, 0x3c00), (0x3c00, 0xfc00)], 0),
        (&[(0x7c01, 0x3c00)], 0),
        (&[], 0xffff),
    ] {
        assert_eq!(by_mma("f16", "f16", (pairs, c, 0)), 0x7fff, "{pairs:x?} {c:x}");
        assert_eq!(by_wmma("f16", ["f16", "f32"], (pairs, c, 0)), 0x7fff_ffff, "{pairs:x?} {c:x}");
    }
}
