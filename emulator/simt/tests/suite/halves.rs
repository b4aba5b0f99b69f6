//! `f16` and `bf16`, alone and in pairs: arithmetic with one rounding, minimum and maximum, signs,
//! comparisons.
//!
//! A result is defined by `exact`, rounded once from the exact number. It must not be rounded to
//! `f32` on the way, which the last test tries with operands that lie between two halves.
//! Conversions are in `convert`.

use crate::compare::{COMPARISONS, Holds, LOGIC, NAN, UNORDERED};
use crate::exact::{
    BF16, F16, F32, Format, Mode, Number, encode_flushed, flushed, product, saturated, sum,
};
use crate::form::Kind::{H, P, W};
use crate::form::{Form, check, form, several};
use crate::values::{Random, floats};

/// A type of halves, or of pairs of them.
#[derive(Clone, Copy)]
struct Half {
    name: &'static str,
    format: Format,
    /// `.ftz`: subnormal operands and results are zeros.
    ftz: &'static str,
    pair: bool,
}

const SIGN: u64 = 1 << 15;
/// The NaN that results have.
const CANONICAL: u64 = 0x7fff;

const HALVES: [Half; 6] = [
    Half { name: "f16", format: F16, ftz: "", pair: false },
    Half { name: "f16", format: F16, ftz: ".ftz", pair: false },
    Half { name: "bf16", format: BF16, ftz: "", pair: false },
    Half { name: "f16x2", format: F16, ftz: "", pair: true },
    Half { name: "f16x2", format: F16, ftz: ".ftz", pair: true },
    Half { name: "bf16x2", format: BF16, ftz: "", pair: true },
];

impl Half {
    fn operand(self, bits: u64) -> u64 {
        if self.ftz.is_empty() { bits } else { flushed(bits, self.format) }
    }

    fn number(self, bits: u64) -> Number {
        Number::decode(self.operand(bits), self.format)
    }

    fn encode(self, number: &Number, clamp: &str) -> u64 {
        let bits = match self.ftz {
            "" => number.encode(self.format, Mode::Nearest),
            _ => encode_flushed(number, self.format, Mode::Nearest),
        };
        match clamp {
            ".sat" => saturated(bits, self.format),
            _ if number.is_nan() => CANONICAL,
            ".relu" if bits & SIGN != 0 => 0,
            _ => bits,
        }
    }

    /// Values of an operand: halves, or pairs of them at random.
    fn pool(self) -> Vec<u64> {
        let halves = floats(self.format.fraction, self.format.exponent);
        self.paired(halves)
    }

    fn paired(self, halves: Vec<u64>) -> Vec<u64> {
        if !self.pair {
            return halves;
        }
        let mut random = Random(11);
        let mut some = || halves[random.below(halves.len())];
        (0..600).map(|_| some() << 16 | some()).collect()
    }

    /// The types that `set` gives, and what it gives where it holds: in a half, if there are two.
    fn results(self, one: u64) -> Vec<(&'static str, u64)> {
        let ones = |bits: u32| (1_u64 << bits) - 1;
        if self.pair {
            return vec![(self.name, one), ("u32", ones(16)), ("s32", ones(16))];
        }
        // ptxas has neither `f16` of `bf16`, nor `bf16` with `.ftz`.
        let mut numbers = vec![("f16", 0x3c00), ("bf16", 0x3f80)];
        numbers.retain(|(to, _)| match *to {
            "f16" => self.format == F16,
            _ => self.ftz.is_empty(),
        });
        let integers = [("u16", ones(16)), ("s16", ones(16)), ("u32", ones(32)), ("s32", ones(32))];
        numbers.into_iter().chain(integers).collect()
    }

    /// A row of an instruction on `N` operands, which does the same with each half.
    fn row<const N: usize>(self, opcode: &str, wanted: impl Fn([u64; N]) -> u64 + 'static) -> Form {
        let opcode = format!("{opcode}.{}", self.name);
        let form = if self.pair {
            form(&opcode, W, [W; N], move |operands| {
                let [low, high] =
                    [0, 16].map(|by| wanted(operands.map(|bits| bits >> by & 0xffff)));
                high << 16 | low
            })
        } else {
            form(&opcode, H, [H; N], wanted)
        };
        form.all_over(&self.pool()).at_most(6000)
    }
}

pub fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    for ty in HALVES {
        arithmetic(&mut all, ty);
        signs(&mut all, ty);
        comparisons(&mut all, ty);
    }
    all
}

fn arithmetic(all: &mut Vec<Form>, ty: Half) {
    let ftz = ty.ftz;
    let clamps = if ty.format == F16 { &["", ".sat"][..] } else { &[""] };
    for clamp in clamps {
        for rounding in ["", ".rn"] {
            let opcode = |op: &str| format!("{op}{rounding}{ftz}{clamp}");
            all.push(ty.row(&opcode("add"), move |[a, b]| {
                ty.encode(&sum(&ty.number(a), &ty.number(b), Mode::Nearest), clamp)
            }));
            all.push(ty.row(&opcode("sub"), move |[a, b]| {
                ty.encode(&sum(&ty.number(a), &ty.number(b).negated(), Mode::Nearest), clamp)
            }));
            all.push(ty.row(&opcode("mul"), move |[a, b]| {
                ty.encode(&product(&ty.number(a), &ty.number(b)), clamp)
            }));
        }
    }
    for clamp in clamps.iter().chain(&[".relu"]) {
        all.push(multiply_add(ty, clamp));
    }
}

fn multiply_add(ty: Half, clamp: &'static str) -> Form {
    ty.row(&format!("fma.rn{}{clamp}", ty.ftz), move |operands| {
        let [a, b, c] = operands.map(|bits| ty.number(bits));
        ty.encode(&sum(&product(&a, &b), &c, Mode::Nearest), clamp)
    })
}

fn signs(all: &mut Vec<Form>, ty: Half) {
    let every = ty.paired((0..=0xffff).collect());
    let ftz = ty.ftz;
    let or_nan = move |a: u64, bits: u64| if ty.number(a).is_nan() { CANONICAL } else { bits };
    let neg = ty.row(&format!("neg{ftz}"), move |[a]| or_nan(a, ty.operand(a) ^ SIGN));
    let abs = ty.row(&format!("abs{ftz}"), move |[a]| or_nan(a, ty.operand(a) & !SIGN));
    all.extend([neg, abs].map(|form| form.over(&[&every]).at_most(1 << 16)));
    for (op, smaller) in [("min", true), ("max", false)] {
        for (suffix, passes_on) in [("", false), (".NaN", true)] {
            all.push(ty.row(&format!("{op}{ftz}{suffix}"), move |operands| {
                let [a, b] = operands.map(|bits| ty.operand(bits));
                let (x, y) = (ty.number(a), ty.number(b));
                let a_first = match x.order(&y) {
                    Some(order) => order.then((b & SIGN).cmp(&(a & SIGN))).is_le() == smaller,
                    None if passes_on || x.is_nan() && y.is_nan() => return CANONICAL,
                    None => y.is_nan(),
                };
                if a_first { a } else { b }
            }));
        }
    }
}

/// `setp`: each half of a pair has its own predicate.
fn comparisons(all: &mut Vec<Form>, ty: Half) {
    let pool = ty.pool();
    let shift = move |upper: usize| 16 * upper as u64;
    for (comparison, holds) in COMPARISONS.iter().chain(&UNORDERED).chain(&NAN) {
        let holds: Holds = *holds;
        let test = move |a: u64, b: u64, upper: usize| {
            let [a, b] = [a, b].map(|bits| ty.number(bits >> shift(upper) & 0xffff));
            u64::from(holds(a.order(&b)))
        };
        let rows =
            [("", "", None)].into_iter().chain(LOGIC.into_iter().flat_map(|(name, logic)| {
                [("", 0), ("!", 1)].map(|(not, flip)| (name, not, Some((logic, flip))))
            }));
        for (name, not, logic) in rows {
            let dot = if name.is_empty() { "" } else { "." };
            let opcode = format!("setp.{comparison}{dot}{name}{}.{}", ty.ftz, ty.name);
            let (d, kind) = if ty.pair { ("{d}|{e}", W) } else { ("{d}", H) };
            let c = if logic.is_some() { format!(", {not}{{3}}") } else { String::new() };
            let text = format!("{opcode} {d}, {{1}}, {{2}}{c};");
            let wanted = move |[a, b, c]: [u64; 3]| {
                [0, 1].map(|upper| match logic {
                    Some((logic, flip)) => logic(test(a, b, upper), c ^ flip),
                    None => test(a, b, upper),
                })
            };
            let row = if ty.pair {
                several(&opcode, &text, [P, P], [kind, kind, P], wanted)
            } else {
                several(&opcode, &text, [P], [kind, kind, P], move |values| [wanted(values)[0]])
            };
            all.push(row.over(&[&pool, &pool, &[0, 1]]).at_most(400));
            let one = if ty.format == F16 { 0x3c00 } else { 0x3f80 };
            for (to, truth) in ty.results(one) {
                let opcode = format!("set.{comparison}{dot}{name}{}.{to}.{}", ty.ftz, ty.name);
                let text = format!("{opcode} {{d}}, {{1}}, {{2}}{c};");
                let both = move |values| wanted(values);
                let row = if ty.pair {
                    several(&opcode, &text, [W], [kind, kind, P], move |values| {
                        let [low, high] = both(values).map(|holds| holds * truth);
                        [high << 16 | low]
                    })
                } else {
                    let result = if to.ends_with("32") { W } else { H };
                    several(&opcode, &text, [result], [kind, kind, P], move |values| {
                        [both(values)[0] * truth]
                    })
                };
                all.push(row.over(&[&pool, &pool, &[0, 1]]).at_most(200));
            }
        }
    }
}

#[test]
fn halves_are_rounded_once() {
    check("halves", &forms());
}

/// Products in the middle between two numbers, and summands that decide to which side: what is
/// rounded to f32 in between has lost them.
#[test]
fn multiply_add_of_halves_is_not_rounded_twice() {
    for ty in HALVES.into_iter().filter(|ty| !ty.pair && ty.ftz.is_empty()) {
        let Format { fraction, exponent } = ty.format;
        let bias = (1 << (exponent - 1)) - 1;
        let power = |p: i64| ((bias + p) as u64) << fraction;
        // Odd numbers, three times which have one bit more than the format.
        let odd = (1..(1_u64 << fraction) / 3).step_by(2).map(|odd| power(fraction.into()) + odd);
        let small = (14..24).map(|p| if p < bias { power(-p) } else { 1 << (24 - p) });
        let both = |bits: u64| [bits, bits | SIGN];
        let (odd, small): (Vec<u64>, Vec<u64>) =
            (odd.flat_map(both).collect(), small.flat_map(both).collect());
        let three = [power(1) + (1 << (fraction - 1)), power(2) + (1 << (fraction - 1))];
        let twice = |operands: [u64; 3]| {
            let [a, b, c] = operands.map(|bits| ty.number(bits));
            let exact = sum(&product(&a, &b), &c, Mode::Nearest);
            let single = Number::decode(exact.encode(F32, Mode::Nearest), F32);
            single.encode(ty.format, Mode::Nearest) != exact.encode(ty.format, Mode::Nearest)
        };
        let wrong = odd.iter().flat_map(|a| small.iter().map(move |c| (*a, *c)));
        let wrong = wrong.filter(|(a, c)| twice([*a, three[0], *c])).count();
        assert!(wrong > 100, "{}: rounded twice, {wrong} would be wrong", ty.name);
        check("ties", &[multiply_add(ty, "").over(&[&odd, &three, &small]).at_most(60_000)]);
    }
}
