//! `atom` and `red`, on global and shared memory.

use crate::exact::{self, BF16, F16, F32, F64, Format, Mode, Number, flushed, sum};
use crate::form::Kind::{self, W};
use crate::form::{Form, across, check, several};
use crate::integer::{INTS, Int};
use crate::values::{f32s, f64s, integers};

/// The new value, of the old one, the operand and (for `cas`) the second operand.
type New = Box<dyn Fn(u64, u64, u64) -> u64>;

fn int(name: &str) -> Int {
    INTS.into_iter().find(|ty| ty.name == name).unwrap_or(INTS[0])
}

/// The operations: name, type, width, definition. `flush`: sums of f32 lose their subnormal
/// numbers.
fn operations(flush: bool) -> Vec<(&'static str, &'static str, u32, New)> {
    let mut all: Vec<(&str, &str, u32, New)> = Vec::new();
    for (name, bits) in [("u32", 32), ("s32", 32), ("u64", 64)] {
        all.push(("add", name, bits, Box::new(|old, b, _| old.wrapping_add(b))));
    }
    for (name, bits) in [("u32", 32), ("s32", 32), ("u64", 64), ("s64", 64)] {
        let ty = int(name);
        let min = move |old, b, _| if ty.value(b) < ty.value(old) { b } else { old };
        let max = move |old, b, _| if ty.value(b) > ty.value(old) { b } else { old };
        all.push(("min", name, bits, Box::new(min)));
        all.push(("max", name, bits, Box::new(max)));
    }
    for (name, bits) in [("b32", 32), ("b64", 64)] {
        all.push(("and", name, bits, Box::new(|old, b, _| old & b)));
        all.push(("or", name, bits, Box::new(|old, b, _| old | b)));
        all.push(("xor", name, bits, Box::new(|old, b, _| old ^ b)));
        all.push(("exch", name, bits, Box::new(|_, b, _| b)));
        all.push(("cas", name, bits, Box::new(|old, b, c| if old == b { c } else { old })));
    }
    all.push(("inc", "u32", 32, Box::new(|old, b, _| if old >= b { 0 } else { old + 1 })));
    let decrement = |old, b, _| if old == 0 || old > b { b } else { old - 1 };
    all.push(("dec", "u32", 32, Box::new(decrement)));
    let add = |old: u64, b: u64, format| {
        let [x, y] = [old, b].map(|bits| Number::decode(bits, format));
        sum(&x, &y, Mode::Nearest).encode(format, Mode::Nearest)
    };
    let keep = move |bits| if flush { flushed(bits, F32) } else { bits };
    all.push(("add", "f32", 32, Box::new(move |old, b, _| keep(add(keep(old), keep(b), F32)))));
    all.push(("add", "f64", 64, Box::new(move |old, b, _| add(old, b, F64))));
    // Of pairs, each half by itself.
    for (ty, bits, format) in [
        ("noftz.f16", 16, F16),
        ("noftz.bf16", 16, BF16),
        ("noftz.f16x2", 32, F16),
        ("noftz.bf16x2", 32, BF16),
    ] {
        let half = move |old: u64, b: u64| add(old & 0xffff, b & 0xffff, format);
        let halves = move |old, b, _| match bits {
            16 => half(old, b),
            _ => half(old >> 16, b >> 16) << 16 | half(old, b),
        };
        all.push(("add", ty, bits, Box::new(halves)));
    }
    all
}

/// Returns whether two registers hold the same halves, where any NaN equals any other.
fn same_halves(a: u64, b: u64, format: Format) -> bool {
    [0, 16].iter().all(|shift| exact::same(a >> shift & 0xffff, b >> shift & 0xffff, format))
}

const ORDERS: [&str; 5] = ["", ".relaxed", ".acquire", ".release", ".acq_rel"];
const SCOPES: [&str; 4] = ["", ".cta", ".gpu", ".sys"];

/// Space, address, and whether it is global memory.
const PLACES: [(&str, &str, bool); 5] = [
    (".global", "%rd33", true),
    (".shared", "%r31", false),
    (".shared::cta", "%r31", false),
    ("", "%rd30", true),
    ("", "%rd31", false),
];

/// Orders and scopes around a space: PTX has the scope before it, NVRTC also writes it behind.
fn modifiers(space: &str) -> Vec<String> {
    let mut all = Vec::new();
    for order in ORDERS {
        for scope in SCOPES {
            all.push(format!("{order}{scope}{space}"));
            if !scope.is_empty() && !space.is_empty() {
                all.push(format!("{order}{space}{scope}"));
            }
        }
    }
    all
}

pub fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    for (space, address, is_global) in PLACES {
        for modifiers in modifiers(space) {
            for (name, ty, bits, new) in operations(is_global) {
                let kind = Kind::of_bits(bits);
                let operand = if name == "cas" { "{2}, {3}" } else { "{2}" };
                let pool = match ty {
                    "f32" => f32s(),
                    "f64" => f64s(),
                    _ => integers(bits),
                };
                let same: fn(u64, u64) -> bool = match ty {
                    "f32" => exact::same_f32,
                    "f64" => exact::same_f64,
                    _ if ty.contains("bf16") => |a, b| same_halves(a, b, BF16),
                    _ if ty.contains("f16") => |a, b| same_halves(a, b, F16),
                    _ => |a, b| a == b,
                };
                let before = format!("st{space}.b{bits} [{address}], {{1}};");
                let after = format!("ld{space}.b{bits} {{d}}, [{address}];");
                let new = std::rc::Rc::new(new);
                let mut add = |form: Form| {
                    let most = if modifiers == space { 2500 } else { 128 };
                    all.push(form.all_over(&pool).at_most(most).same(same));
                };
                // Without a destination, the memory alone shows what happens.
                let without = |opcode: &str, text: &str| {
                    let new = new.clone();
                    let text = format!("{before} {text}; {after}");
                    several(opcode, &text, [kind], [kind; 3], move |[a, b, c]| [new(a, b, c)])
                };
                let opcode = format!("atom{modifiers}.{name}.{ty}");
                let text = format!("{before} {opcode} {{e}}, [{address}], {operand}; {after}");
                let old = new.clone();
                let both = move |[a, b, c]: [u64; 3]| [old(a, b, c), a];
                add(several(&opcode, &text, [kind; 2], [kind; 3], both));
                if name == "exch" || name == "cas" {
                    add(without(&opcode, &format!("{opcode} _, [{address}], {operand}")));
                } else if !modifiers.contains("acq") {
                    let opcode = format!("red{modifiers}.{name}.{ty}");
                    add(without(&opcode, &format!("{opcode} [{address}], {operand}")));
                }
            }
        }
    }
    contended(&mut all);
    all
}

/// All lanes of a warp at one address: every one of them counts. The values that they see on the
/// way sum up in some order; which, a GPU leaves open, so only the sum of all is looked at.
fn contended(all: &mut Vec<Form>) {
    let text = "
        mov.u32 %r25, %tid.x;
        and.b32 %r25, %r25, 96;
        shl.b32 %r25, %r25, 5;
        mov.u32 %r26, 0;
        st.shared.u32 [%r31], %r26;
        bar.sync 0;
        atom.shared.add.u32 %r27, [%r25], {1};
        bar.sync 0;
        ld.shared.u32 {d}, [%r25];";
    let wanted = |warp: &[Vec<u64>], _: usize| {
        vec![warp.iter().fold(0, |sum: u64, values| sum.wrapping_add(values[0]))]
    };
    all.push(across("atom.shared.add.u32", text, [W], [W], wanted));
}

#[test]
fn atomics_update_and_return_the_old_value() {
    check("atomics", &forms());
}
