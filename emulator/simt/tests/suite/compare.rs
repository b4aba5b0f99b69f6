//! `setp`, `selp`, and their like: `set`, `slct`, `testp`.

use std::cmp::Ordering::{self, Equal, Greater, Less};

use crate::exact::{F32, F64, Number, flushed};
use crate::form::Kind::{self, H, L, P, W};
use crate::form::{Form, check, form, several};
use crate::integer::{INTS, Int};
use crate::values::{f32s, f64s};

/// A comparison: whether it holds for an order, `None` if an operand is NaN.
pub type Holds = fn(Option<Ordering>) -> bool;

pub const COMPARISONS: [(&str, Holds); 6] = [
    ("eq", |order| order == Some(Equal)),
    ("ne", |order| matches!(order, Some(Less | Greater))),
    ("lt", |order| order == Some(Less)),
    ("le", |order| matches!(order, Some(Less | Equal))),
    ("gt", |order| order == Some(Greater)),
    ("ge", |order| matches!(order, Some(Greater | Equal))),
];

const OF_UNSIGNED: [(&str, Holds); 4] = [
    ("lo", |order| order == Some(Less)),
    ("ls", |order| matches!(order, Some(Less | Equal))),
    ("hi", |order| order == Some(Greater)),
    ("hs", |order| matches!(order, Some(Greater | Equal))),
];

pub const UNORDERED: [(&str, Holds); 6] = [
    ("equ", |order| matches!(order, None | Some(Equal))),
    ("neu", |order| order != Some(Equal)),
    ("ltu", |order| matches!(order, None | Some(Less))),
    ("leu", |order| order != Some(Greater)),
    ("gtu", |order| matches!(order, None | Some(Greater))),
    ("geu", |order| order != Some(Less)),
];

pub const NAN: [(&str, Holds); 2] =
    [("num", |order| order.is_some()), ("nan", |order| order.is_none())];

pub fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    for ty in INTS {
        let order = move |a: u64, b: u64| Some(ty.value(a).cmp(&ty.value(b)));
        let own = if ty.signed { &[][..] } else { &OF_UNSIGNED[..] };
        for (name, holds) in COMPARISONS.iter().chain(own) {
            set(&mut all, name, ty.name, ty.kind(), order, *holds, &[]);
        }
    }
    for (name, bits) in [("b16", 16), ("b32", 32), ("b64", 64)] {
        let ty = Int { name, bits, signed: false };
        let order = move |a: u64, b: u64| Some(ty.value(a).cmp(&ty.value(b)));
        for (comparison, holds) in &COMPARISONS[..2] {
            set(&mut all, comparison, name, ty.kind(), order, *holds, &[]);
        }
    }
    for (name, format, kind, pool) in
        [("f32", F32, W, f32s()), ("ftz.f32", F32, W, f32s()), ("f64", F64, L, f64s())]
    {
        let flushes = name.starts_with("ftz");
        let operand = move |bits| if flushes { flushed(bits, format) } else { bits };
        let number = move |bits| Number::decode(operand(bits), format);
        let order = move |a, b| number(a).order(&number(b));
        for (comparison, holds) in COMPARISONS.iter().chain(&UNORDERED).chain(&NAN) {
            set(&mut all, comparison, name, kind, order, *holds, &pool);
        }
    }
    let types = ["b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"];
    for name in types {
        let kind = [H, W, L][name[1..].parse::<usize>().unwrap_or(0) / 32];
        let wanted = |[a, b, p]: [u64; 3]| if p == 1 { a } else { b };
        all.push(form(&format!("selp.{name}"), kind, [kind, kind, P], wanted).at_most(1500));
    }
    by_sign(&mut all);
    classes(&mut all);
    all
}

/// One comparison of one type: alone, with its complement, and combined with a third predicate.
fn set(
    all: &mut Vec<Form>,
    comparison: &str,
    ty: &str,
    kind: Kind,
    order: impl Fn(u64, u64) -> Option<Ordering> + Copy + 'static,
    holds: Holds,
    pool: &[u64],
) {
    let own = |form: Form| if pool.is_empty() { form } else { form.over(&[pool, pool]) };
    let opcode = format!("setp.{comparison}.{ty}");
    let test = move |a, b| u64::from(holds(order(a, b)));
    all.push(own(form(&opcode, P, [kind; 2], move |[a, b]| test(a, b))));
    let text = format!("{opcode} {{d}}|{{e}}, {{1}}, {{2}};");
    let pair =
        several(&opcode, &text, [P, P], [kind; 2], move |[a, b]| [test(a, b), 1 - test(a, b)]);
    all.push(own(pair).at_most(600));
    for (name, logic) in LOGIC {
        let opcode = format!("setp.{comparison}.{name}.{ty}");
        let text = format!("{opcode} {{d}}|{{e}}, {{1}}, {{2}}, {{3}};");
        let text_not = format!("{opcode} {{d}}|{{e}}, {{1}}, {{2}}, !{{3}};");
        for (text, flip) in [(text, 0), (text_not, 1)] {
            let wanted = move |[a, b, c]: [u64; 3]| {
                [logic(test(a, b), c ^ flip), logic(1 - test(a, b), c ^ flip)]
            };
            let combined = several(&opcode, &text, [P, P], [kind, kind, P], wanted);
            let integers = crate::values::integers(kind.bits());
            let pool = if pool.is_empty() { &integers } else { pool };
            all.push(combined.over(&[pool, pool, &[0, 1]]).at_most(600));
        }
    }
    values(all, comparison, ty, kind, test, pool);
}

/// `set`: the same as a value of each type, alone and combined.
fn values(
    all: &mut Vec<Form>,
    comparison: &str,
    ty: &str,
    kind: Kind,
    test: impl Fn(u64, u64) -> u64 + Copy + 'static,
    pool: &[u64],
) {
    let integers = crate::values::integers(kind.bits());
    let pool = if pool.is_empty() { &integers } else { pool };
    // `.ftz` comes before both types.
    let (ftz, ty) = ty.strip_prefix("ftz.").map_or(("", ty), |ty| (".ftz", ty));
    let bits = u64::from(u32::MAX);
    let types = [("u32", W, bits), ("s32", W, bits), ("f32", W, 0x3f80_0000)];
    let halves = [("f16", H, 0x3c00), ("bf16", H, 0x3f80)];
    for (to, result, truth) in types.into_iter().chain(halves) {
        if to == "bf16" && !ftz.is_empty() {
            continue;
        }
        let opcode = format!("set.{comparison}{ftz}.{to}.{ty}");
        let set = form(&opcode, result, [kind; 2], move |[a, b]| truth * test(a, b));
        all.push(set.over(&[pool, pool]).at_most(200));
        for ((name, logic), (not, flip)) in LOGIC.into_iter().zip([("", 0), ("!", 1), ("", 0)]) {
            let opcode = format!("set.{comparison}.{name}{ftz}.{to}.{ty}");
            let text = format!("{opcode} {{d}}, {{1}}, {{2}}, {not}{{3}};");
            let wanted = move |[a, b, c]: [u64; 3]| [truth * logic(test(a, b), c ^ flip)];
            let set = several(&opcode, &text, [result], [kind, kind, P], wanted);
            all.push(set.over(&[pool, pool, &[0, 1]]).at_most(200));
        }
    }
}

/// `slct`: by the sign of a third operand, of which -0 is none.
fn by_sign(all: &mut Vec<Form>) {
    let names = ["b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"];
    for name in names {
        let kind = [H, W, L][name[1..].parse::<usize>().unwrap_or(0) / 32];
        let values = crate::values::integers(kind.bits());
        let mut by = |opcode: String, pool: Vec<u64>, holds: fn(u64) -> bool| {
            let wanted = move |[a, b, c]: [u64; 3]| if holds(c) { a } else { b };
            let row = form(&opcode, kind, [kind, kind, W], wanted);
            all.push(row.over(&[&values, &values, &pool]).at_most(1500));
        };
        by(format!("slct.{name}.s32"), crate::values::integers(32), |c| (c as i32) >= 0);
        by(format!("slct.{name}.f32"), f32s(), |c| {
            let order = Number::decode(c, F32).order(&Number::integer(0));
            matches!(order, Some(Equal | Greater))
        });
        by(format!("slct.ftz.{name}.f32"), f32s(), |c| {
            let order = Number::decode(flushed(c, F32), F32).order(&Number::integer(0));
            matches!(order, Some(Equal | Greater))
        });
    }
}

/// `testp`, by the fields of the number.
fn classes(all: &mut Vec<Form>) {
    for (name, format, kind, pool) in [("f32", F32, W, f32s()), ("f64", F64, L, f64s())] {
        let mut test = |test: &str, holds: fn(u64, u64, u64) -> bool| {
            let wanted = move |[a]: [u64; 1]| {
                let highest = (1 << format.exponent) - 1;
                let field = a >> format.fraction & highest;
                u64::from(holds(field, a & ((1 << format.fraction) - 1), highest))
            };
            let opcode = format!("testp.{test}.{name}");
            all.push(form(&opcode, P, [kind], wanted).over(&[&pool]));
        };
        test("finite", |field, _, highest| field != highest);
        test("infinite", |field, rest, highest| field == highest && rest == 0);
        test("number", |field, rest, highest| field != highest || rest == 0);
        test("notanumber", |field, rest, highest| field == highest && rest != 0);
        // Zeros are normal.
        test("normal", |field, rest, highest| field != highest && (field != 0 || rest == 0));
        test("subnormal", |field, rest, _| field == 0 && rest != 0);
    }
}

pub type Logic = fn(u64, u64) -> u64;

pub const LOGIC: [(&str, Logic); 3] =
    [("and", |a, b| a & b), ("or", |a, b| a | b), ("xor", |a, b| a ^ b)];

#[test]
fn comparisons_hold_where_they_should() {
    check("comparisons", &forms());
}
