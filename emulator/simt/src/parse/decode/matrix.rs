//! Products of matrices by a warp: `mma`, `wmma`, `ldmatrix` and similar instructions.
//!
//! Two tables list the shapes and types of factors that exist. Everything else about a form follows
//! from the types. A product has more registers than one instruction can name, so it becomes two:
//! the factors, and the product itself. Tested by `matrices.rs`, `wmma.rs` and `matrix_rows.rs` in
//! `tests/suite`.

use super::modifiers::{Coder, Decoded, Rest, space};
use super::refusal::Refusal;
use crate::isa::{Element, Fragment, How, Op, Part, Product, Shape, Slot, Space, held};
use crate::parse::body::state::Body;
use crate::parse::source::statement::{Atom, Operand};
use crate::parse::source::types::{B32, F32, Number, Typed, U32, float};

/// The factors of `mma`, by shape.
const PRODUCTS: [(&str, &[Element]); 11] = {
    use Element::{B1, Bf16, F16, F64, S4, S8, Tf32, U4, U8};
    [
        ("m8n8k4", &[F64]),
        ("m16n8k4", &[Tf32, F64]),
        ("m16n8k8", &[F16, Bf16, Tf32, F64]),
        ("m16n8k16", &[F16, Bf16, S8, U8, F64]),
        ("m8n8k16", &[S8, U8]),
        ("m16n8k32", &[S8, U8, S4, U4]),
        ("m8n8k32", &[S4, U4]),
        ("m16n8k64", &[S4, U4]),
        ("m8n8k128", &[B1]),
        ("m16n8k128", &[B1]),
        ("m16n8k256", &[B1]),
    ]
};

/// The factors of `wmma`, by shape.
const WARP_PRODUCTS: [(&str, &[Element]); 5] = {
    use Element::{Bf16, F16, F64, S8, Tf32, U8};
    [
        ("m16n16k16", &[F16, Bf16, S8, U8]),
        ("m8n32k16", &[F16, Bf16, S8, U8]),
        ("m32n8k16", &[F16, Bf16, S8, U8]),
        ("m16n16k8", &[Tf32]),
        ("m8n8k4", &[F64]),
    ]
};

pub(super) fn decode(body: &mut Coder, parts: &[&str]) -> Decoded {
    match *parts {
        ["mma", "sync", "aligned", shape, "row", "col", ref rest @ ..] => {
            let product = product(shape, rest, &PRODUCTS, false).ok_or(Refusal::Unknown)?;
            multiply(body, product, product_registers(product, false))
        }
        ["wmma", "mma", "sync", "aligned", a, b, shape, ref rest @ ..]
            if is_layout(a) && is_layout(b) =>
        {
            let product = product(shape, rest, &WARP_PRODUCTS, true).ok_or(Refusal::Unknown)?;
            multiply(body, product, product_registers(product, true))
        }
        [
            "wmma",
            way @ ("load" | "store"),
            part,
            "sync",
            "aligned",
            layout,
            shape,
            ref rest @ ..,
        ] if is_layout(layout) => {
            let loads = way == "load";
            let part = match (part, loads) {
                ("a", true) => Part::A,
                ("b", true) => Part::B,
                ("c", true) | ("d", false) => Part::C,
                _ => return Err(Refusal::Unknown),
            };
            let (space, fragment) = fragment(part, layout, shape, rest).ok_or(Refusal::Unknown)?;
            let (first, second, stride) = match body.operands {
                [first, second] => (first, second, None),
                [first, second, stride] => (first, second, Some(stride)),
                _ => return Err("it takes 2 or 3 operands".into()),
            };
            let (all, address) = if loads { (first, second) } else { (second, first) };
            let all = registers(body, all, held(fragment), fragment.element, loads)?;
            let address = body.address(address, space)?;
            let stride = self::stride(body, fragment, stride)?;
            Ok(match loads {
                true => Op::MatrixLoad { fragment, space, d: all, address, stride },
                false => Op::MatrixStore { fragment, space, a: all, address, stride },
            })
        }
        [name @ ("ldmatrix" | "stmatrix"), "sync", "aligned", ref rest @ .., "b16"] => {
            let [count, transposed, is_shared] = rows(rest).ok_or(Refusal::Unknown)?;
            let transposed = transposed > 0;
            let space = if is_shared > 0 { Space::Shared } else { Space::Generic };
            let [first, second] = body.exactly()?;
            let loads = name == "ldmatrix";
            let (d, address) = if loads { (first, second) } else { (second, first) };
            let all = registers(body, d, count, Element::F16, loads)?;
            let slots = std::array::from_fn(|i| all[i]);
            let (address, count) = (body.address(address, space)?, count as u8);
            Ok(match loads {
                true => Op::RowsLoad { count, transposed, space, d: slots, address },
                false => Op::RowsStore { count, transposed, space, a: slots, address },
            })
        }
        ["movmatrix", "sync", "aligned", "m8n8", "trans", "b16"] => {
            let [d, a] = body.exactly()?;
            Ok(Op::RowsTranspose { d: body.destination(d, B32)?, a: body.source(a, B32)? })
        }
        _ => Err(Refusal::Unknown),
    }
}

/// Reads the number of matrices, and whether they are transposed and in shared memory. Programs
/// write these modifiers in any order.
fn rows(modifiers: &[&str]) -> Option<[usize; 3]> {
    let (mut shape, mut count, mut transposed, mut shared) = (0, 0, 0, 0);
    for modifier in modifiers {
        let (which, value) = match *modifier {
            "m8n8" => (&mut shape, 1),
            "x1" => (&mut count, 1),
            "x2" => (&mut count, 2),
            "x4" => (&mut count, 4),
            "trans" => (&mut transposed, 1),
            "shared" | "shared::cta" => (&mut shared, 1),
            _ => return None,
        };
        if std::mem::replace(which, value) != 0 {
            return None;
        }
    }
    (shape > 0 && count > 0).then_some([count, transposed, shared])
}

fn is_layout(name: &str) -> bool {
    matches!(name, "row" | "col")
}

/// Reads a product: the types of the result, the factors and the summand, if they fit together.
fn product(name: &str, rest: &[&str], known: &[(&str, &[Element])], warp: bool) -> Option<Product> {
    use Element::{B1, F16, F32, F64, S4, S8, S32, U4, U8};
    let (_, elements) = known.iter().find(|(known, _)| *known == name)?;
    let shape = Shape::of(name)?;
    let mut rest = Rest(rest);
    let before = rest.accept(&["satfinite"]) && !warp;
    // Rounding to nearest is the only mode.
    let mut rounds = rest.accept(&["rn"]);
    let d = rest.take(Element::of)?;
    // For halves, `wmma` names only the types of the summand and the result.
    let is_short = warp && rest.0.len() == 1;
    let (a, b, c) = match is_short {
        true => (F16, F16, rest.take(Element::of)?),
        false => (rest.take(Element::of)?, rest.take(Element::of)?, rest.take(Element::of)?),
    };
    let after = warp && rest.accept(&["satfinite"]);
    // Compilers write `.rn` here, but the PTX manual does not have it.
    rounds |= warp && !rounds && rest.accept(&["rn"]);
    let how = match (a, rest.0) {
        (B1, ["xor", "popc"]) if !before => How::CountXor,
        (B1, ["and", "popc"]) if !before => How::CountAnd,
        (S8 | U8 | S4 | U4, []) if before || after => How::Saturate,
        (B1, _) => return None,
        (_, []) if !before && !after => How::Plain,
        _ => return None,
    };
    let is_float = matches!(d, F16 | F32);
    let goes = match a {
        F16 => a == b && is_short == warp && is_float && matches!(c, F16 | F32) && (warp || c == d),
        F64 => (a, b, c, d) == (F64, F64, F64, F64),
        S8 | U8 => matches!(b, S8 | U8) && (c, d) == (S32, S32) && (!warp || a == b),
        S4 | U4 => matches!(b, S4 | U4) && (c, d) == (S32, S32),
        B1 => b == B1 && (c, d) == (S32, S32),
        _ => a == b && (c, d) == (F32, F32),
    };
    let is_known = elements.contains(&a) && elements.contains(&b) && goes;
    (is_known && (!rounds || a == F64)).then_some(Product { shape, a, b, c, d, how })
}

/// Reads a matrix in memory: `.shape.space.type`.
fn fragment(part: Part, layout: &str, shape: &str, rest: &[&str]) -> Option<(Space, Fragment)> {
    let (_, elements) = WARP_PRODUCTS.iter().find(|(name, _)| *name == shape)?;
    let mut rest = Rest(rest);
    let space = rest.take(|name| space(name).filter(|space| *space != Space::Local));
    let &[ty] = rest.0 else { return None };
    let element = Element::of(ty)?;
    let sums = |factor: &Element| match factor {
        Element::F16 => matches!(element, Element::F16 | Element::F32),
        Element::Bf16 | Element::Tf32 => element == Element::F32,
        Element::F64 => element == Element::F64,
        _ => element == Element::S32,
    };
    let is_known = match part {
        Part::C => elements.iter().any(sums),
        _ => elements.contains(&element),
    };
    let fragment = Fragment { shape: Shape::of(shape)?, part, element, columns: layout == "col" };
    is_known.then_some((space.unwrap_or(Space::Generic), fragment))
}

fn product_registers(product: Product, warp: bool) -> [usize; 2] {
    let count = |fragment: Fragment| if warp { held(fragment) } else { fragment.registers() };
    [Part::A, Part::B].map(|part| count(product.fragment(part)))
}

fn multiply(body: &mut Coder, product: Product, factors: [usize; 2]) -> Decoded {
    let [d, a, b, c] = body.exactly()?;
    let result = product.result();
    let d = registers(body, d, result.registers(), result.element, true)?;
    let a = registers(body, a, factors[0], product.a, false)?;
    let b = registers(body, b, factors[1], product.b, false)?;
    let summand = product.fragment(Part::C);
    let c = registers(body, c, summand.registers(), summand.element, false)?;
    let count = |part| product.fragment(part).registers() as u8;
    let counts = [count(Part::A), count(Part::B)];
    body.preceded_by.push(Op::Factors { wide: product.a.is_wide(), counts, a, b });
    Ok(Op::Multiply { product, c, d })
}

/// Returns the registers of an operand in braces.
fn registers<'s>(
    body: &mut Body<'_, 's>,
    operand: &Operand<'s>,
    count: usize,
    element: Element,
    writes: bool,
) -> Result<[Slot; 8], String> {
    let typed = typed(element);
    let Operand::Vector(elements) = operand else {
        return Err("registers in braces were expected".to_string());
    };
    let atoms = elements.as_slice();
    if atoms.len() != count {
        return Err(format!("it takes {count} registers there, not {}", atoms.len()));
    }
    let mut slots = [0; 8];
    for (slot, atom) in slots.iter_mut().zip(atoms) {
        let operand = Operand::Atom(*atom);
        *slot =
            if writes { body.destination(&operand, typed)? } else { body.source(&operand, typed)? };
    }
    Ok(slots)
}

fn typed(element: Element) -> Typed {
    match element {
        Element::F32 => F32,
        Element::F64 => float("f64").unwrap_or(F32),
        _ => B32,
    }
}

fn stride<'s>(
    body: &mut Body<'_, 's>,
    fragment: Fragment,
    operand: Option<&Operand<'s>>,
) -> Result<Slot, String> {
    let plain = Operand::Atom(Atom::Number(Number::Integer(fragment.stride() as u64)));
    body.source(operand.unwrap_or(&plain), U32)
}
