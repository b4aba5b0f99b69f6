//! The video instructions. Scalar: `vadd.u32.u32.s32.add %r1, %r2.b0, %r3.h1, %r4` and similar. On
//! halves or bytes: `vadd4.s32.s32.s32.sat` and similar, without selectors and masks.
//!
//! Three scalar forms are refused because an H100 computes other results for them than PTX
//! documents: those with bounds (`.sat`), with a minimum or maximum of the result and a third
//! operand, and with a shifted product.

use super::modifiers::{Coder, Decoded, Rest, compare, is_signed};
use super::refusal::Refusal;
use crate::isa::{Op, Part32, Simd, SimdFinish, SimdOp, Ternary, Video, VideoEnd, VideoOp};
use crate::parse::source::statement::{Atom, Operand};
use crate::parse::source::types::B32;

pub(super) fn decode(body: &mut Coder, parts: &[&str]) -> Decoded {
    let mut video = read(parts).ok_or(Refusal::Unknown)?;
    let takes_c = video.end != VideoEnd::Plain || matches!(video.op, VideoOp::MultiplyAdd { .. });
    let (d, a, b, c) = match body.operands {
        [d, a, b] if !takes_c => (d, a, b, None),
        [d, a, b, c] => (d, a, b, Some(c)),
        _ => {
            let [d, a, b, c] = body.exactly()?;
            (d, a, b, Some(c))
        }
    };
    let ((d, to), (a, a_part), (b, b_part)) = (selected(d), selected(a), selected(b));
    match (to, video.end, c) {
        (Part32::Whole, VideoEnd::Plain, Some(_)) if !takes_c => {
            return Err("the fourth operand is for a part of the result that is replaced: `.b0` or `.h0` is missing".into());
        }
        (Part32::Whole, _, _) => {}
        (part, VideoEnd::Plain, Some(_)) if !takes_c => video.end = VideoEnd::Merge(part),
        _ => {
            return Err(
                "a part of the result is replaced only if nothing else is done with it".into()
            );
        }
    }
    video.select = [a_part, b_part];
    let d = body.destination(&d, B32)?;
    let (a, b) = (body.source(&a, B32)?, body.source(&b, B32)?);
    let c = c.map_or(Ok(b), |c| body.source(c, B32))?;
    Ok(Op::Ternary { op: Ternary::Video(video), ty: B32.ty, d, a, b, c })
}

/// Returns an operand and the part of it that is selected.
fn selected<'s>(operand: &Operand<'s>) -> (Operand<'s>, Part32) {
    let Operand::Atom(Atom::Name(name)) = *operand else { return (*operand, Part32::Whole) };
    let part = name.rsplit_once('.').and_then(|(_, part)| {
        named!(part, Part32 {
            "b0" => Byte(0), "b1" => Byte(1), "b2" => Byte(2), "b3" => Byte(3), "h0" => Half(0),
            "h1" => Half(1),
        })
    });
    match part {
        Some(part) => (Operand::Atom(Atom::Name(&name[..name.len() - 3])), part),
        None => (*operand, Part32::Whole),
    }
}

fn read(parts: &[&str]) -> Option<Video> {
    let mut rest = Rest(&parts[1..]);
    // Without bounds, the sign of the result does not matter. `vset` does not name it.
    if parts[0] != "vset" {
        rest.take(is_signed)?;
    }
    let signed = [rest.take(is_signed)?, rest.take(is_signed)?];
    let is_shift = matches!(parts[0], "vshl" | "vshr");
    if is_shift && signed[1] {
        return None;
    }
    let test = if parts[0] == "vset" { Some(rest.take(compare)?) } else { None };
    let more = parts[0] == "vmad" && rest.accept(&["po"]);
    let wrap = match is_shift {
        true => rest.take(|name| ["clamp", "wrap"].iter().position(|mode| *mode == name))? == 1,
        false => false,
    };
    let op = match parts[0] {
        "vadd" => VideoOp::Add,
        "vsub" => VideoOp::Sub,
        "vabsdiff" => VideoOp::AbsoluteDifference,
        "vmin" => VideoOp::Min,
        "vmax" => VideoOp::Max,
        "vshl" => VideoOp::ShiftLeft { wrap },
        "vshr" => VideoOp::ShiftRight { wrap },
        "vset" => VideoOp::Compare(test?),
        _ => VideoOp::MultiplyAdd { more },
    };
    let end = if rest.accept(&["add"]) { VideoEnd::Add } else { VideoEnd::Plain };
    let is_whole = rest.0.is_empty() && (parts[0] != "vmad" || end == VideoEnd::Plain);
    is_whole.then_some(Video { op, signed, select: [Part32::Whole; 2], end })
}

/// Returns true if the instruction works on halves or bytes.
pub(super) fn is_simd(name: &str) -> bool {
    split(name).is_some()
}

/// Splits the name into the operation and the bits of an element.
fn split(name: &str) -> Option<(&str, u8)> {
    let (name, bits) = match name.strip_suffix('4') {
        Some(name) => (name, 8),
        None => (name.strip_suffix('2')?, 16),
    };
    let known = matches!(name, "vadd" | "vsub" | "vavrg" | "vabsdiff" | "vmin" | "vmax" | "vset");
    known.then_some((name, bits))
}

pub(super) fn simd(body: &mut Coder, parts: &[&str]) -> Decoded {
    let simd = read_simd(parts).ok_or(Refusal::Unknown)?;
    body.ternary(Ternary::Simd(simd), B32)
}

fn read_simd(parts: &[&str]) -> Option<Simd> {
    let (name, bits) = split(parts[0])?;
    // `vset` names the comparison where the others name the type of the result.
    let (op, [d, a, b], rest) = match (name, &parts[1..]) {
        ("vset", [a, b, test, rest @ ..]) => {
            (SimdOp::Compare(compare(test)?), ["u32", *a, *b], rest)
        }
        (_, [d, a, b, rest @ ..]) => (operation(name)?, [*d, *a, *b], rest),
        _ => return None,
    };
    let finish = match *rest {
        [] => SimdFinish::Cut,
        ["sat"] if name != "vset" => SimdFinish::Clamp,
        ["add"] => SimdFinish::Sum,
        _ => return None,
    };
    Some(Simd { op, bits, signed: [is_signed(a)?, is_signed(b)?, is_signed(d)?], finish })
}

fn operation(name: &str) -> Option<SimdOp> {
    named!(name, SimdOp {
        "vadd" => Add, "vsub" => Sub, "vavrg" => Average, "vabsdiff" => AbsoluteDifference,
        "vmin" => Min, "vmax" => Max,
    })
}
