//! `setp` and `selp`.

use super::super::body::Body;
use super::super::program::{Compare, Guard, Logic, Op, Slot, Type};
use super::super::statement::{Atom, Operand};
use super::super::types::{Kind, Typed, half, word};
use super::bits::logic;
use super::modifiers::{Rest, compare};
use super::refusal::{Refusal, exactly};

pub(super) fn decode<'s>(
    body: &mut Body<'_, 's>,
    parts: &[&str],
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    match *parts {
        ["selp", ty] if let Some(typed) = word(ty) => {
            let [d, a, b, predicate] = exactly(operands)?;
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
            let (d, sources) = test.operands(operands)?;
            let is_pair = matches!(d, Operand::Pair(..));
            if is_pair && typed.ty.is_half() {
                return Err("of one half there is one destination".to_string().into());
            }
            if !is_pair && typed.ty.is_pair() {
                return Err("of two halves there are two destinations".to_string().into());
            }
            let (d, complement) = destinations(body, d)?;
            test.set(body, typed, d, complement, sources)
        }
        _ => Err(Refusal::Unknown),
    }
}

type Sources<'o, 's> = ([&'o Operand<'s>; 2], Option<&'o Operand<'s>>);

/// What is asked of two operands: `.lt.and.ftz`.
struct Test {
    compare: Compare,
    or_unordered: bool,
    logic: Option<Logic>,
    /// The type, with what `.ftz` makes of it.
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

    /// The destination, and what is compared: two operands, and a predicate that the result is combined with.
    fn operands<'o, 's>(
        &self,
        operands: &'o [Operand<'s>],
    ) -> Result<(&'o Operand<'s>, Sources<'o, 's>), String> {
        match self.logic {
            None => exactly(operands).map(|[d, a, b]| (d, ([a, b], None))),
            Some(_) => exactly(operands).map(|[d, a, b, c]| (d, ([a, b], Some(c)))),
        }
    }

    fn set<'s>(
        &self,
        body: &mut Body<'_, 's>,
        typed: Typed,
        d: Slot,
        complement: Option<Slot>,
        ([a, b], c): Sources<'_, 's>,
    ) -> Result<Op, Refusal> {
        let Test { compare, or_unordered, logic, ty } = *self;
        let (a, b) = (body.source(a, typed)?, body.source(b, typed)?);
        let combine = match (logic, c) {
            (Some(logic), Some(c)) => Some((logic, body.guard(c)?)),
            _ => None,
        };
        Ok(Op::SetPredicate { compare, or_unordered, ty, d, complement, combine, a, b })
    }
}

/// The comparison, and whether it also holds where an operand is NaN. Which there are depends on
/// the type: bits are equal or not, only unsigned integers are `lo`wer or `hi`gher.
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

/// `%p1` or `%p1|%p2`, of which the second may be `_`.
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
