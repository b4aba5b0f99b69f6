//! `mov`, packing and unpacking, and `cvta`.

use crate::form::Kind::{H, L, W};
use crate::form::{Form, check, form, several};

pub fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    for (kind, names) in [
        (H, &["b16", "u16", "s16"][..]),
        (W, &["b32", "u32", "s32", "f32"]),
        (L, &["b64", "u64", "s64", "f64"]),
    ] {
        for name in names {
            all.push(form(&format!("mov.{name}"), kind, [kind], |[a]| a));
        }
    }
    let mov32 = |text| ("mov.b32", text);
    let mov64 = |text| ("mov.b64", text);
    let part = |value: u64, i: u32| value >> (16 * i) & 0xffff;
    {
        let mut packs = |(opcode, text): (&str, &str), results, count: usize| {
            let sixteen = move |v: [u64; 4]| [(0..count).fold(0, |all, i| all | v[i] << (16 * i))];
            all.push(several(opcode, text, [results], [H; 4], sixteen).at_most(3000));
        };
        packs(mov32("mov.b32 {d}, {{1}, {2}};"), W, 2);
        packs(mov64("mov.b64 {d}, {{1}, {2}, {3}, {4}};"), L, 4);
    }
    let (opcode, text) = mov64("mov.b64 {d}, {{1}, {2}};");
    all.push(several(opcode, text, [L], [W; 2], |[a, b]| [a | b << 32]));
    let (opcode, text) = mov32("mov.b32 {{d}, {e}}, {1};");
    all.push(several(opcode, text, [H; 2], [W], move |[a]| [part(a, 0), part(a, 1)]));
    let (opcode, text) = mov32("mov.b32 {_, {d}}, {1};");
    all.push(several(opcode, text, [H], [W], move |[a]| [part(a, 1)]));
    let (opcode, text) = mov64("mov.b64 {{d}, {e}}, {1};");
    all.push(several(opcode, text, [W; 2], [L], |[a]| [a, a >> 32]));
    let (opcode, text) = mov64("mov.b64 {{d}, _}, {1};");
    all.push(several(opcode, text, [W], [L], |[a]| [a]));
    let (opcode, text) = mov64("mov.b64 {{d}, {e}, {f}, {g}}, {1};");
    all.push(several(opcode, text, [H; 4], [L], move |[a]| [0, 1, 2, 3].map(|i| part(a, i))));
    // Both halves come from what was there before.
    let (opcode, text) =
        mov64("mov.b64 {d}, {1}; mov.b64 {{e}, {f}}, {d}; mov.b64 {d}, {{f}, {e}};");
    all.push(several(opcode, text, [L, W, W], [L], |[a]| [a.rotate_left(32), a, a >> 32]));
    addresses(&mut all);
    all
}

/// A generic address is its space's again when it is converted back, and differs between spaces.
fn addresses(all: &mut Vec<Form>) {
    for space in ["global", "shared", "shared::cta", "local", "const", "param", "param::entry"] {
        let text = format!(
            "and.b64 %rd25, {{1}}, 31;
            cvta.{space}.u64 %rd26, %rd25;
            cvta.to.{space}.u64 {{d}}, %rd26;"
        );
        for opcode in [format!("cvta.{space}.u64"), format!("cvta.to.{space}.u64")] {
            all.push(several(&opcode, &text, [L], [L], |[a]| [a & 31]));
        }
    }
}

#[test]
fn moves_keep_all_bits() {
    check("moves", &forms());
}
