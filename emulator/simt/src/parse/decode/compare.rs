//! `setp`, `selp`, `set`, `slct`, `testp` and `isspacep`.
//!
//! One instruction compares and writes predicates. The others are built from it: `set` and `slct`
//! select by a scratch predicate, and `isspacep` compares an address with both ends of a window of
//! generic addresses. The comparisons of a type depend on its kind. Tested by
//! `tests/suite/compare.rs` and `tests/suite/moves.rs`.

use super::bits::{logic, predicate_destination};
use super::modifiers::{Coder, Decoded, Rest, compare};
use super::refusal::Refusal;
use crate::isa::{Binary, Compare, Guard, Logic, Op, Slot, TestFloat, Type};
use crate::parse::body::slots::Constant;
use crate::parse::body::state::Body;
use crate::parse::source::statement::{Atom, Operand};
use crate::parse::source::types::{B32, F32, Kind, S32, Typed, U64, any, half, word};

pub(super) fn decode(body: &mut Coder, parts: &[&str]) -> Decoded {
    match *parts {
        ["selp", ty] if let Some(typed) = word(ty) => {
            let [d, a, b, predicate] = body.exactly()?;
            let d = body.destination(d, typed)?;
            let (a, b) = (body.source(a, typed)?, body.source(b, typed)?);
            let Guard { predicate, negated } = body.guard(predicate)?;
            let (a, b) = if negated { (b, a) } else { (a, b) };
            Ok(Op::Select { ty: typed.ty, d, a, b, predicate })
        }
        ["setp", ref modifiers @ .., ty]
            if let Some(typed) = word(ty).or_else(|| half(ty))
                && let Some(test) = Test::read(modifiers, typed) =>
        {
            let (d, sources) = test.operands(body)?;
            let is_pair = matches!(d, Operand::Pair(..));
            if is_pair && typed.ty.is_half() {
                return Err("of one half there is one destination".into());
            }
            if !is_pair && typed.ty.is_pair() {
                return Err("of two halves there are two destinations".into());
            }
            let (d, complement) = destinations(body, d)?;
            test.set(body, typed, d, complement, sources)
        }
        ["set", ref modifiers @ .., to, from]
            if let Some(typed) = word(from).or_else(|| half(from))
                && let Some(truth) = Truth::read(to, typed)
                && let Some(test) = Test::read(modifiers, typed)
                && truth.goes(modifiers, typed) =>
        {
            let (d, sources) = test.operands(body)?;
            let d = body.destination(d, truth.typed)?;
            let predicates = body.scratch_predicates()?;
            let upper = typed.ty.is_pair().then_some(predicates[1]);
            let op = test.set(body, typed, predicates[0], upper, sources)?;
            truth.select(body, d, predicates[0], upper)?;
            Ok(op)
        }
        ["slct", ref modifiers @ .., ty, by @ ("s32" | "f32")] if let Some(typed) = word(ty) => {
            let by = if by == "s32" { S32 } else { F32 };
            let mut rest = Rest(modifiers);
            let by_ty = rest.flushed(by.ty);
            if !rest.0.is_empty() {
                return Err(Refusal::Unknown);
            }
            let (d, [a, b, c]) = body.slots(typed, [typed, typed, by])?;
            let zero = body.slots.constant(Constant::Word(0))?;
            let [predicate, _] = body.scratch_predicates()?;
            body.followed_by.push(Op::Select { ty: typed.ty, d, a, b, predicate });
            Ok(Op::set_predicate(Compare::Ge, by_ty, predicate, None, [c, zero]))
        }
        ["isspacep", space] if let Some((begin, end)) = window(space) => {
            let [d, a] = body.exactly()?;
            let (d, a) = (predicate_destination(body, d)?, body.source(a, U64)?);
            let [begin, end] = [begin, end].map(|at| body.slots.constant(Constant::Long(at)));
            let (begin, end, is_global) = (begin?, end?, space == "global");
            // Global memory is everything outside of the windows.
            let (op, first, second) = match is_global {
                true => (Logic::Or, Compare::Lt, Compare::Ge),
                false => (Logic::And, Compare::Ge, Compare::Lt),
            };
            let [p, _] = body.scratch_predicates()?;
            let before = Some((op, Guard { predicate: p, negated: false }));
            body.followed_by.push(Op::set_predicate(second, Type::U64, d, before, [a, end]));
            Ok(Op::set_predicate(first, Type::U64, p, None, [a, begin]))
        }
        ["testp", test, ty @ ("f32" | "f64")]
            if let (Some(test), Some(typed)) = (test_float(test), word(ty)) =>
        {
            let [d, a] = body.exactly()?;
            let d = predicate_destination(body, d)?;
            Ok(Op::Test { test, ty: typed.ty, d, a: body.source(a, typed)? })
        }
        _ => Err(Refusal::Unknown),
    }
}

/// Returns the range of generic addresses of a space; for global memory, the range of all others.
fn window(space: &str) -> Option<(u64, u64)> {
    use crate::isa::{LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, WINDOW_END};
    Some(match space {
        "global" => (SHARED_WINDOW, WINDOW_END),
        "shared" | "shared::cta" | "shared::cluster" => (SHARED_WINDOW, LOCAL_WINDOW),
        "local" => (LOCAL_WINDOW, PARAMETER_WINDOW),
        "param" | "param::entry" => (PARAMETER_WINDOW, WINDOW_END),
        _ => return None,
    })
}

fn test_float(name: &str) -> Option<TestFloat> {
    named!(name, TestFloat {
        "finite" => Finite, "infinite" => Infinite, "number" => Number, "notanumber" => NotANumber,
        "normal" => Normal, "subnormal" => Subnormal,
    })
}

/// The result of `set` where a comparison is true: all ones, or the number 1. Elsewhere it is 0.
struct Truth {
    typed: Typed,
    /// The value of one result; for a pair, the value of one half.
    value: u32,
}

impl Truth {
    fn read(to: &str, from: Typed) -> Option<Truth> {
        let typed = any(to).or_else(|| half(to))?;
        let value = match (from.ty, typed.ty) {
            (Type::F16x2, Type::F16x2) => 0x3c00,
            (Type::Bf16x2, Type::Bf16x2) => 0x3f80,
            (Type::F16x2 | Type::Bf16x2, Type::U32 | Type::S32) => 0xffff,
            (Type::F16x2 | Type::Bf16x2, _) => return None,
            (_, Type::F16) => 0x3c00,
            (_, Type::Bf16) => 0x3f80,
            (Type::F16 | Type::Bf16, Type::U16 | Type::S16) => 0xffff,
            (_, Type::U32 | Type::S32) => u32::MAX,
            (Type::F16 | Type::Bf16, _) => return None,
            (_, Type::F32) => 0x3f80_0000,
            _ => return None,
        };
        let is_value = typed.kind != Kind::Bits;
        is_value.then_some(Truth { typed, value })
    }

    /// Returns true if ptxas accepts the combination, too. It has no `f16` result for a comparison
    /// of `bf16`, and no `bf16` result with `.ftz`.
    fn goes(&self, modifiers: &[&str], from: Typed) -> bool {
        match self.typed.ty {
            Type::F16 => from.ty != Type::Bf16,
            Type::Bf16 => !modifiers.contains(&"ftz"),
            _ => true,
        }
    }

    /// Turns predicates into the result: a single value, or a value for each half.
    fn select(
        &self,
        body: &mut Body<'_, '_>,
        d: Slot,
        lower: Slot,
        upper: Option<Slot>,
    ) -> Result<(), String> {
        let ty = B32.ty;
        let b = body.slots.constant(Constant::Word(0))?;
        let a = body.slots.constant(Constant::Word(self.value))?;
        body.followed_by.push(Op::Select { ty, d, a, b, predicate: lower });
        if let Some(predicate) = upper {
            let a = body.slots.constant(Constant::Word(self.value << 16))?;
            let high = body.scratch()?;
            body.followed_by.push(Op::Select { ty, d: high, a, b, predicate });
            body.followed_by.push(Op::Binary { op: Binary::Or, ty, d, a: d, b: high });
        }
        Ok(())
    }
}

type Sources<'o, 's> = ([&'o Operand<'s>; 2], Option<&'o Operand<'s>>);

/// The test of two operands: `.lt.and.ftz`.
struct Test {
    compare: Compare,
    or_unordered: bool,
    logic: Option<Logic>,
    /// The type, changed by `.ftz`.
    ty: Type,
}

impl Test {
    fn read(modifiers: &[&str], typed: Typed) -> Option<Test> {
        let mut rest = Rest(modifiers);
        let (compare, or_unordered) = rest.take(|name| comparison(name, typed))?;
        let logic = rest.take(logic);
        let ty = rest.flushed(typed.ty);
        rest.0.is_empty().then_some(Test { compare, or_unordered, logic, ty })
    }

    /// Returns the destination and the operands of the comparison: two values, and a predicate that
    /// the result is combined with.
    fn operands<'o, 's>(
        &self,
        body: &Coder<'o, '_, 's>,
    ) -> Result<(&'o Operand<'s>, Sources<'o, 's>), String> {
        match self.logic {
            None => body.exactly().map(|[d, a, b]| (d, ([a, b], None))),
            Some(_) => body.exactly().map(|[d, a, b, c]| (d, ([a, b], Some(c)))),
        }
    }

    fn set<'s>(
        &self,
        body: &mut Body<'_, 's>,
        typed: Typed,
        d: Slot,
        complement: Option<Slot>,
        ([a, b], c): Sources<'_, 's>,
    ) -> Decoded {
        let Test { compare, or_unordered, logic, ty } = *self;
        let (a, b) = (body.source(a, typed)?, body.source(b, typed)?);
        let combine = match (logic, c) {
            (Some(logic), Some(c)) => Some((logic, body.guard(c)?)),
            _ => None,
        };
        Ok(Op::SetPredicate { compare, or_unordered, ty, d, complement, combine, a, b })
    }
}

/// Returns the comparison, and true if it is also true for a NaN operand. The type determines the
/// possible comparisons: bits are equal or not, and only unsigned integers are `lo`wer or `hi`gher.
fn comparison(name: &str, typed: Typed) -> Option<(Compare, bool)> {
    match (typed.kind, name) {
        (Kind::Bits, "eq" | "ne") | (Kind::Integer | Kind::Float, _)
            if let Some(compare) = compare(name) =>
        {
            Some((compare, false))
        }
        (Kind::Integer, _) if !typed.ty.is_signed() => match name {
            "lo" => Some((Compare::Lt, false)),
            "ls" => Some((Compare::Le, false)),
            "hi" => Some((Compare::Gt, false)),
            "hs" => Some((Compare::Ge, false)),
            _ => None,
        },
        (Kind::Float, "num") => Some((Compare::Always, false)),
        (Kind::Float, "nan") => Some((Compare::Never, true)),
        (Kind::Float, _) => Some((compare(name.strip_suffix('u')?)?, true)),
        _ => None,
    }
}

/// Reads `%p1` or `%p1|%p2`, where the second may be `_`.
fn destinations<'s>(
    body: &mut Body<'_, 's>,
    operand: &Operand<'s>,
) -> Result<(Slot, Option<Slot>), String> {
    match *operand {
        Operand::Atom(Atom::Name(name)) => Ok((body.destination_predicate(name)?, None)),
        Operand::Pair(first, "_") => Ok((body.destination_predicate(first)?, None)),
        Operand::Pair(first, second) => {
            let first = body.destination_predicate(first)?;
            Ok((first, Some(body.destination_predicate(second)?)))
        }
        _ => Err("the destination must be a `.pred` register, or two".to_string()),
    }
}
