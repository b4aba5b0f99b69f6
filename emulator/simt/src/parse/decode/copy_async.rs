//! `cp.async`: copies from global to shared memory that go on beside the program.

use super::modifiers::Rest;
use super::refusal::{Refusal, exactly};
use crate::isa::{Op, Space};
use crate::parse::body::state::Body;
use crate::parse::source::statement::{Atom, Operand};
use crate::parse::source::types::{B64, Number, U32};

pub(super) fn decode<'s>(
    body: &mut Body<'_, 's>,
    parts: &[&str],
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    match *parts {
        ["cp", "async", "commit_group"] => {
            let [] = exactly(operands)?;
            Ok(Op::CommitGroup {})
        }
        ["cp", "async", "wait_all"] => {
            let [] = exactly(operands)?;
            Ok(Op::WaitGroup { pending: None })
        }
        ["cp", "async", "wait_group"] => match exactly(operands)? {
            [Operand::Atom(Atom::Number(Number::Integer(pending)))] if *pending <= 1 << 16 => {
                Ok(Op::WaitGroup { pending: Some(*pending as u32) })
            }
            _ => Err("the number of groups is a literal up to 65536".to_string().into()),
        },
        ["cp", "async", "mbarrier", "arrive", ref rest @ ..] => {
            let mut rest = Rest(rest);
            let counts = rest.accept(&["noinc"]);
            if !rest.accept(&["shared", "shared::cta"]) || rest.0 != ["b64"] {
                return Err(Refusal::Unknown);
            }
            let [address] = exactly(operands)?;
            let address = body.address(address, Space::Shared)?;
            // The copies before it have come when it is executed; else it counts for itself.
            body.preceded_by.push(Op::WaitGroup { pending: None });
            Ok(match counts {
                true => Op::MbarrierArrive { d: None, address, count: None },
                false => Op::MbarrierExpect { d: None, address, bytes: None, arrives: false },
            })
        }
        ["cp", "async", "bulk", ref rest @ ..] => bulk(body, rest, operands),
        ["cp", "async", cache @ ("ca" | "cg"), ref rest @ ..] => {
            let mut rest = Rest(rest);
            let spaces = rest.accept(&["shared", "shared::cta"]) && rest.accept(&["global"]);
            rest.accept(&["L2::64B", "L2::128B", "L2::256B"]);
            if !spaces || !rest.0.is_empty() {
                return Err(Refusal::Unknown);
            }
            copy(body, cache == "cg", operands)
        }
        _ => Err(Refusal::Unknown),
    }
}

fn copy<'s>(
    body: &mut Body<'_, 's>,
    past_first_cache: bool,
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    let (to, from, bytes, source_bytes) = match operands {
        [to, from, bytes] => (to, from, bytes, None),
        [to, from, bytes, source_bytes] => (to, from, bytes, Some(source_bytes)),
        _ => return Err("it takes 3 or 4 operands".to_string().into()),
    };
    let to = body.address(to, Space::Shared)?;
    let from = body.address(from, Space::Global)?;
    let bytes = match (*bytes, past_first_cache) {
        (Operand::Atom(Atom::Number(Number::Integer(bytes @ (4 | 8)))), false) => bytes as u8,
        (Operand::Atom(Atom::Number(Number::Integer(16))), _) => 16,
        (_, false) => return Err("4, 8 or 16 bytes are copied".to_string().into()),
        (_, true) => return Err("with `.cg` 16 bytes are copied".to_string().into()),
    };
    if let Some(Operand::Atom(Atom::Number(Number::Integer(source)))) = source_bytes
        && *source > bytes.into()
    {
        return Err(format!("{source} bytes are more than the {bytes} that are copied").into());
    }
    let source_bytes = source_bytes.map(|operand| body.source(operand, U32)).transpose()?;
    Ok(Op::CopyAsync { to, from, bytes, source_bytes })
}

/// `cp.async.bulk`, its groups, and what it fetches in advance.
fn bulk<'s>(
    body: &mut Body<'_, 's>,
    parts: &[&str],
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    let (parts, hinted) = match parts.split_last() {
        Some((&"L2::cache_hint", rest)) => (rest, true),
        _ => (parts, false),
    };
    // The policy of a hint changes nothing but the time that the copy takes.
    let (operands, policy) = match operands.split_last() {
        Some((policy, rest)) if hinted => (rest, Some(policy)),
        _ => (operands, None),
    };
    policy.map(|policy| body.source(policy, B64)).transpose()?;
    match *parts {
        ["shared::cluster" | "shared::cta", "global", "mbarrier::complete_tx::bytes"] => {
            let [to, from, bytes, mbarrier] = exactly(operands)?;
            let to = body.address(to, Space::Shared)?;
            let mbarrier = body.address(mbarrier, Space::Shared)?;
            body.preceded_by.push(Op::BulkTarget { to, mbarrier });
            let from = body.address(from, Space::Global)?;
            Ok(Op::BulkIn { from, bytes: body.source(bytes, U32)? })
        }
        ["global", "shared::cta", "bulk_group"] => {
            let [to, from, bytes] = exactly(operands)?;
            let to = body.address(to, Space::Global)?;
            let from = body.address(from, Space::Shared)?;
            Ok(Op::BulkOut { to, from, bytes: body.source(bytes, U32)? })
        }
        ["prefetch", "L2", "global"] => {
            let [from, bytes] = exactly(operands)?;
            body.address(from, Space::Global)?;
            body.source(bytes, U32)?;
            Ok(Op::Nothing {})
        }
        // What goes out has gone when it is executed.
        ["commit_group"] if !hinted => {
            let [] = exactly(operands)?;
            Ok(Op::Nothing {})
        }
        ["wait_group"] | ["wait_group", "read"] if !hinted => match exactly(operands)? {
            [Operand::Atom(Atom::Number(Number::Integer(pending)))] if *pending <= 1 << 16 => {
                Ok(Op::Nothing {})
            }
            _ => Err("the number of groups is a literal up to 65536".to_string().into()),
        },
        _ => Err(Refusal::Unknown),
    }
}
