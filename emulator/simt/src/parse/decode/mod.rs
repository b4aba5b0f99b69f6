//! Decodes the parts of an instruction to an [`Op`].
//!
//! Each family matches the parts of the opcode as a slice, `["fma", round, "f32"]`, so that it
//! refuses any order or combination that is not listed.

mod arithmetic;
mod atomic;
mod bits;
mod compare;
mod control;
mod convert;
mod copy_async;
mod integer;
mod matrix;
mod memory;
mod modifiers;
mod moves;
mod refusal;
mod texture;
mod video;
mod warp;

use crate::isa::Op;
use crate::parse::body::state::Body;
use crate::parse::source::statement::Operand;
use modifiers::{Coder, Decoded};
use refusal::Refusal;

/// Decodes the instructions of a family, given the parts of the opcode and the operands.
type Family = fn(&mut Coder, &[&str]) -> Decoded;

/// Refuses an unknown opcode before its operands are read, which may have another syntax.
pub(super) fn check_opcode(parts: &[&str]) -> Result<(), String> {
    family(parts).map(|_| ()).ok_or_else(|| refusal::unknown(parts))
}

/// Decodes an instruction, given the parts of its opcode and its operands.
pub(super) fn decode<'s>(
    body: &mut Body<'_, 's>,
    parts: &[&str],
    operands: &[Operand<'s>],
) -> Result<Op, String> {
    let family = family(parts).ok_or_else(|| refusal::unknown(parts))?;
    family(&mut Coder { body, operands }, parts).map_err(|refusal| match refusal {
        Refusal::Because(reason) => reason,
        Refusal::Unknown => refusal::unknown(parts),
    })
}

/// Returns the family of an opcode. The table of instructions lists the opcodes, too.
fn family(parts: &[&str]) -> Option<Family> {
    Some(match parts[0] {
        "addc" | "subc" | "madc" => integer::carry,
        "add" | "sub" | "mad" if parts.contains(&"cc") => integer::carry,
        "add" | "sub" | "mul" | "mad" | "fma" | "div" | "rem" | "abs" | "neg" | "min" | "max"
        | "sad" | "mul24" | "mad24" | "dp4a" | "dp2a" => {
            if arithmetic::is_float(parts) {
                arithmetic::decode
            } else {
                integer::decode
            }
        }
        "sqrt" | "rcp" | "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" | "copysign" => {
            arithmetic::function
        }
        "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" | "shf" | "lop3" | "prmt"
        | "popc" | "clz" | "bfind" | "brev" | "bfe" | "bfi" | "szext" | "bmsk" | "fns" => {
            bits::decode
        }
        "setp" | "selp" | "set" | "slct" | "testp" | "isspacep" => compare::decode,
        "cvt" => convert::decode,
        "mov" | "cvta" => moves::decode,
        "ld" | "st" | "prefetch" | "prefetchu" => memory::decode,
        "atom" | "red" | "membar" | "fence" => atomic::decode,
        // Operands of tensor maps have a separate syntax.
        "cp" if !parts.contains(&"tensor") => copy_async::decode,
        "shfl" | "vote" | "redux" | "match" | "activemask" | "elect" => warp::decode,
        "mbarrier" => copy_async::mbarrier,
        "mma" | "wmma" | "ldmatrix" | "stmatrix" | "movmatrix" => matrix::decode,
        "vadd" | "vsub" | "vabsdiff" | "vmin" | "vmax" | "vshl" | "vshr" | "vmad" | "vset" => {
            video::decode
        }
        "tex" | "suld" | "sust" | "txq" | "suq" => texture::decode,
        name if video::is_simd(name) => video::simd,
        "bar" | "barrier" | "bra" | "ret" | "exit" | "trap" | "nanosleep" => control::decode,
        _ => return None,
    })
}
