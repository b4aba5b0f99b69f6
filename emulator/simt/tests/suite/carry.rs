//! The carry flag: after every instruction that writes it, before every one that reads it, and in
//! sums and products of many words.

use crate::form::{Form, check, form, several};
use crate::integer::{INTS, Int};
use crate::values::low;

pub fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    for ty in INTS.into_iter().filter(|ty| ty.bits >= 32) {
        let with_flag = move |total: i128| [total as u64, u64::from(total >> ty.bits != 0)];
        let number = move |v: u64| i128::from(low(v, ty.bits));
        let add = move |[a, b, _]: [u64; 3], flag: u64| {
            with_flag(number(a) + number(b) + i128::from(flag))
        };
        rows(&mut all, ty, ("add", "", 0), [2, 1], add);
        // The flag of a difference is that it does not borrow.
        let sub = move |[a, b, _]: [u64; 3], flag: u64| {
            let total = number(a) - number(b) - 1 + i128::from(flag);
            [total as u64, u64::from(total >= 0)]
        };
        rows(&mut all, ty, ("sub", "", 1), [2, 1], sub);
        for (half, shift) in [(".lo", 0), (".hi", ty.bits)] {
            let total = move |[a, b, c]: [u64; 3], flag: u64| {
                let half = low((ty.product(a, b) >> shift) as u64, ty.bits);
                with_flag(i128::from(half) + i128::from(low(c, ty.bits)) + i128::from(flag))
            };
            rows(&mut all, ty, ("mad", half, 0), [3, 0], total);
        }
    }
    all
}

/// Adds the rows of an operation that writes the flag, reads it, or does both. `operands` are the
/// number that it takes, and how many are missing to three. `none` is the flag without an effect.
fn rows(
    all: &mut Vec<Form>,
    ty: Int,
    (name, half, none): (&str, &str, u64),
    operands: [usize; 2],
    wanted: impl Fn([u64; 3], u64) -> [u64; 2] + Copy + 'static,
) {
    let (kind, type_name) = (ty.kind(), ty.name);
    let list = ["{1}, {2}", "{1}, {2}, {3}"][operands[0] - 2];
    // The flag as a number, and from one: 1 and more carries.
    let flag = format!("addc.{type_name} {{e}}, 0, 0;");
    let take =
        format!("add.cc.{type_name} %r{}, {{4}}, -1;", if ty.bits == 32 { "25" } else { "d25" });
    let gives = format!("{name}{half}.cc.{type_name}");
    let text = format!("{gives} {{d}}, {list}; {flag}");
    all.push(several(&gives, &text, [kind; 2], [kind; 3], move |values| wanted(values, none)));
    let both = format!("{name}c{half}.cc.{type_name}");
    let text = format!("{take} {both} {{d}}, {list}; {flag}");
    let carried = move |[a, b, c, flag]: [u64; 4]| wanted([a, b, c], u64::from(flag != 0));
    all.push(several(&both, &text, [kind; 2], [kind; 4], carried));
    // What only reads it leaves it as it was.
    let takes = format!("{name}c{half}.{type_name}");
    let text = format!("{take} {takes} {{d}}, {list}; {flag}");
    all.push(several(&takes, &text, [kind; 2], [kind; 4], move |[a, b, c, flag]| {
        let flag = u64::from(flag != 0);
        [wanted([a, b, c], flag)[0], flag]
    }));
    // Alone, so that it is tried with a guard and into its operands as well: at first there is no
    // carry.
    if operands[1] == 0 {
        all.push(form(&takes, kind, [kind; 3], move |values| wanted(values, 0)[0]));
        all.push(form(&gives, kind, [kind; 3], move |values| wanted(values, none)[0]));
    } else {
        all.push(form(&takes, kind, [kind; 2], move |[a, b]| wanted([a, b, 0], 0)[0]));
        all.push(form(&gives, kind, [kind; 2], move |[a, b]| wanted([a, b, 0], none)[0]));
    }
}

#[test]
fn the_flag_is_written_and_read() {
    check("carries", &forms());
}

/// The product of two numbers of 64 bits, of 32-bit words, as compilers and libraries of big
/// numbers write it.
#[test]
fn words_are_multiplied_to_a_long_product() {
    use crate::form::Kind::L;
    let text = "
        mov.b64 {%r10, %r11}, {1}; mov.b64 {%r12, %r13}, {2};
        mul.lo.u32 %r14, %r10, %r12;
        mul.hi.u32 %r15, %r10, %r12;
        mad.lo.cc.u32 %r15, %r11, %r12, %r15;
        madc.hi.u32 %r16, %r11, %r12, 0;
        mad.lo.cc.u32 %r15, %r10, %r13, %r15;
        madc.hi.cc.u32 %r16, %r10, %r13, %r16;
        addc.u32 %r17, 0, 0;
        mad.lo.cc.u32 %r16, %r11, %r13, %r16;
        madc.hi.u32 %r17, %r11, %r13, %r17;
        mov.b64 {d}, {%r14, %r15}; mov.b64 {e}, {%r16, %r17};";
    let product = |[a, b]: [u64; 2]| {
        let product = u128::from(a) * u128::from(b);
        [product as u64, (product >> 64) as u64]
    };
    check("a long product", &[several("madc.hi.cc.u32", text, [L, L], [L, L], product)]);
}
