//! `mbarrier`: barriers that are objects in shared memory.

use super::bits::predicate_destination;
use super::modifiers::Rest;
use super::refusal::{Refusal, exactly};
use crate::isa::{Op, Space};
use crate::parse::body::state::Body;
use crate::parse::source::statement::{Atom, Operand};
use crate::parse::source::types::{B64, U32};

pub(super) fn decode<'s>(
    body: &mut Body<'_, 's>,
    parts: &[&str],
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    let [_, operation, ref rest @ ..] = *parts else { return Err(Refusal::Unknown) };
    let mut rest = Rest(rest);
    let expects = operation == "expect_tx" || operation == "arrive" && rest.accept(&["expect_tx"]);
    if expects {
        return expect(body, rest, operation == "arrive", operands);
    }
    let waits = matches!(operation, "test_wait" | "try_wait");
    let parity = waits && rest.accept(&["parity"]);
    // What it is without these words, too.
    let meaning: &[&str] = match operation {
        "arrive" => &["release"],
        "test_wait" | "try_wait" => &["acquire"],
        _ => &[],
    };
    if rest.accept(meaning) && !rest.accept(&["cta"]) {
        return Err(Refusal::Unknown);
    }
    if !rest.accept(&["shared", "shared::cta"]) || !rest.accept(&["b64"]) || !rest.0.is_empty() {
        return Err(Refusal::Unknown);
    }
    match operation {
        "init" => {
            let [address, count] = exactly(operands)?;
            let address = body.address(address, Space::Shared)?;
            Ok(Op::MbarrierInit { address, count: body.source(count, U32)? })
        }
        "inval" => {
            let [address] = exactly(operands)?;
            Ok(Op::MbarrierInvalidate { address: body.address(address, Space::Shared)? })
        }
        "arrive" => {
            let (state, address, count) = match operands {
                [state, address] => (state, address, None),
                [state, address, count] => (state, address, Some(body.source(count, U32)?)),
                _ => return Err("it takes 2 or 3 operands".to_string().into()),
            };
            let d = match state {
                Operand::Atom(Atom::Name("_")) => None,
                state => Some(body.destination(state, B64)?),
            };
            let address = body.address(address, Space::Shared)?;
            Ok(Op::MbarrierArrive { d, address, count })
        }
        "test_wait" | "try_wait" => {
            let (d, address, phase) = match operands {
                [d, address, phase] => (d, address, phase),
                // For how long it may wait: here it never does.
                [d, address, phase, time] if operation == "try_wait" => {
                    body.source(time, U32)?;
                    (d, address, phase)
                }
                _ => return Err("it takes 3 operands".to_string().into()),
            };
            let d = predicate_destination(body, d)?;
            let address = body.address(address, Space::Shared)?;
            let phase = body.source(phase, if parity { U32 } else { B64 })?;
            Ok(Op::MbarrierTest { d, address, phase, parity })
        }
        _ => Err(Refusal::Unknown),
    }
}

/// `mbarrier.expect_tx.relaxed.cta`, `mbarrier.arrive.expect_tx.release.cta`.
fn expect<'s>(
    body: &mut Body<'_, 's>,
    mut rest: Rest<'_>,
    arrives: bool,
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    let orders: &[&str] = if arrives { &["release", "relaxed"] } else { &["relaxed"] };
    if rest.accept(orders) && !rest.accept(&["cta"]) {
        return Err(Refusal::Unknown);
    }
    if !rest.accept(&["shared", "shared::cta"]) || rest.0 != ["b64"] {
        return Err(Refusal::Unknown);
    }
    let (d, address, bytes) = match (operands, arrives) {
        ([Operand::Atom(Atom::Name("_")), address, bytes], true) => (None, address, bytes),
        ([state, address, bytes], true) => (Some(body.destination(state, B64)?), address, bytes),
        ([address, bytes], false) => (None, address, bytes),
        _ => {
            let count = if arrives { 3 } else { 2 };
            return Err(format!("it takes {count} operands, not {}", operands.len()).into());
        }
    };
    let address = body.address(address, Space::Shared)?;
    let bytes = Some(body.source(bytes, U32)?);
    Ok(Op::MbarrierExpect { d, address, bytes, arrives })
}
