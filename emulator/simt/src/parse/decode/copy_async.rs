//! `cp.async`, copies from global to shared memory that run while the program continues, and
//! `mbarrier`, barriers that are objects in shared memory.

use super::bits::predicate_destination;
use super::modifiers::{Coder, Decoded, Rest};
use super::refusal::Refusal;
use crate::isa::{Op, Space};
use crate::parse::source::statement::{Atom, Operand};
use crate::parse::source::types::{B64, Number, U32};

pub(super) fn decode(body: &mut Coder, parts: &[&str]) -> Decoded {
    match *parts {
        ["cp", "async", "commit_group"] => body.plain(Op::CommitGroup {}),
        ["cp", "async", "wait_all"] => body.plain(Op::WaitGroup { pending: None }),
        ["cp", "async", "wait_group"] => Ok(Op::WaitGroup { pending: Some(groups(body)?) }),
        ["cp", "async", "mbarrier", "arrive", ref rest @ ..] => {
            let mut rest = Rest(rest);
            let counts = rest.accept(&["noinc"]);
            if !rest.accept(&["shared", "shared::cta"]) || rest.0 != ["b64"] {
                return Err(Refusal::Unknown);
            }
            let [address] = body.exactly()?;
            let address = body.address(address, Space::Shared)?;
            // Waits for the earlier copies first, so the arrival counts them as complete.
            body.preceded_by.push(Op::WaitGroup { pending: None });
            Ok(match counts {
                true => Op::MbarrierArrive { d: None, address, count: None },
                false => Op::MbarrierExpect { d: None, address, bytes: None, arrives: false },
            })
        }
        ["cp", "async", "bulk", ref rest @ ..] => bulk(body, rest),
        ["cp", "async", cache @ ("ca" | "cg"), ref rest @ ..] => {
            let mut rest = Rest(rest);
            let spaces = rest.accept(&["shared", "shared::cta"]) && rest.accept(&["global"]);
            rest.accept(&["L2::64B", "L2::128B", "L2::256B"]);
            if !spaces || !rest.0.is_empty() {
                return Err(Refusal::Unknown);
            }
            copy(body, cache == "cg")
        }
        _ => Err(Refusal::Unknown),
    }
}

fn copy(body: &mut Coder, past_first_cache: bool) -> Decoded {
    let (to, from, bytes, source_bytes) = match body.operands {
        [to, from, bytes] => (to, from, bytes, None),
        [to, from, bytes, source_bytes] => (to, from, bytes, Some(source_bytes)),
        _ => return Err("it takes 3 or 4 operands".into()),
    };
    let to = body.address(to, Space::Shared)?;
    let from = body.address(from, Space::Global)?;
    let bytes = match (*bytes, past_first_cache) {
        (Operand::Atom(Atom::Number(Number::Integer(bytes @ (4 | 8)))), false) => bytes as u8,
        (Operand::Atom(Atom::Number(Number::Integer(16))), _) => 16,
        (_, false) => return Err("4, 8 or 16 bytes are copied".into()),
        (_, true) => return Err("with `.cg` 16 bytes are copied".into()),
    };
    if let Some(Operand::Atom(Atom::Number(Number::Integer(source)))) = source_bytes
        && *source > bytes.into()
    {
        return Err(format!("{source} bytes are more than the {bytes} that are copied").into());
    }
    let source_bytes = source_bytes.map(|operand| body.source(operand, U32)).transpose()?;
    Ok(Op::CopyAsync { to, from, bytes, source_bytes })
}

/// Returns the number of the newest groups that need not be complete.
fn groups(body: &Coder) -> Result<u32, Refusal> {
    match body.exactly()? {
        [Operand::Atom(Atom::Number(Number::Integer(pending)))] if *pending <= 1 << 16 => {
            Ok(*pending as u32)
        }
        _ => Err("the number of groups is a literal up to 65536".into()),
    }
}

/// Decodes `cp.async.bulk` with its groups and prefetches.
fn bulk(body: &mut Coder, parts: &[&str]) -> Decoded {
    let (parts, hinted) = match parts.split_last() {
        Some((&"L2::cache_hint", rest)) => (rest, true),
        _ => (parts, false),
    };
    // The policy of a hint only changes the time that the copy takes.
    if let Some((policy, rest)) = body.operands.split_last()
        && hinted
    {
        body.source(policy, B64)?;
        body.operands = rest;
    }
    match *parts {
        ["shared::cluster" | "shared::cta", "global", "mbarrier::complete_tx::bytes"] => {
            let [to, from, bytes, mbarrier] = body.exactly()?;
            let to = body.address(to, Space::Shared)?;
            let mbarrier = body.address(mbarrier, Space::Shared)?;
            body.preceded_by.push(Op::BulkTarget { to, mbarrier });
            let from = body.address(from, Space::Global)?;
            Ok(Op::BulkIn { from, bytes: body.source(bytes, U32)? })
        }
        ["global", "shared::cta", "bulk_group"] => {
            let [to, from, bytes] = body.exactly()?;
            let to = body.address(to, Space::Global)?;
            let from = body.address(from, Space::Shared)?;
            Ok(Op::BulkOut { to, from, bytes: body.source(bytes, U32)? })
        }
        ["prefetch", "L2", "global"] => {
            let [from, bytes] = body.exactly()?;
            body.address(from, Space::Global)?;
            body.source(bytes, U32)?;
            Ok(Op::Nothing {})
        }
        // Copies to global memory are complete when their instruction has executed.
        ["commit_group"] if !hinted => body.plain(Op::Nothing {}),
        ["wait_group"] | ["wait_group", "read"] if !hinted => groups(body).map(|_| Op::Nothing {}),
        _ => Err(Refusal::Unknown),
    }
}

pub(super) fn mbarrier(body: &mut Coder, parts: &[&str]) -> Decoded {
    let [_, operation, ref rest @ ..] = *parts else { return Err(Refusal::Unknown) };
    let mut rest = Rest(rest);
    let expects = operation == "expect_tx" || operation == "arrive" && rest.accept(&["expect_tx"]);
    if expects {
        return expect(body, rest, operation == "arrive");
    }
    let waits = matches!(operation, "test_wait" | "try_wait");
    let parity = waits && rest.accept(&["parity"]);
    // The default semantics, written out.
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
            let [address, count] = body.exactly()?;
            let address = body.address(address, Space::Shared)?;
            Ok(Op::MbarrierInit { address, count: body.source(count, U32)? })
        }
        "inval" => {
            let [address] = body.exactly()?;
            Ok(Op::MbarrierInvalidate { address: body.address(address, Space::Shared)? })
        }
        "arrive" => {
            let (state, address, count) = match body.operands {
                [state, address] => (state, address, None),
                [state, address, count] => (state, address, Some(body.source(count, U32)?)),
                _ => return Err("it takes 2 or 3 operands".into()),
            };
            let d = body.optional(state, B64)?;
            let address = body.address(address, Space::Shared)?;
            Ok(Op::MbarrierArrive { d, address, count })
        }
        "test_wait" | "try_wait" => {
            let (d, address, phase) = match body.operands {
                [d, address, phase] => (d, address, phase),
                // The limit of the waiting time; the emulator never waits here.
                [d, address, phase, time] if operation == "try_wait" => {
                    body.source(time, U32)?;
                    (d, address, phase)
                }
                _ => return Err("it takes 3 operands".into()),
            };
            let d = predicate_destination(body, d)?;
            let address = body.address(address, Space::Shared)?;
            let phase = body.source(phase, if parity { U32 } else { B64 })?;
            Ok(Op::MbarrierTest { d, address, phase, parity })
        }
        _ => Err(Refusal::Unknown),
    }
}

/// Decodes `mbarrier.expect_tx.relaxed.cta` and `mbarrier.arrive.expect_tx.release.cta`.
fn expect(body: &mut Coder, mut rest: Rest<'_>, arrives: bool) -> Decoded {
    let orders: &[&str] = if arrives { &["release", "relaxed"] } else { &["relaxed"] };
    if rest.accept(orders) && !rest.accept(&["cta"]) {
        return Err(Refusal::Unknown);
    }
    if !rest.accept(&["shared", "shared::cta"]) || rest.0 != ["b64"] {
        return Err(Refusal::Unknown);
    }
    let (d, address, bytes) = match (body.operands, arrives) {
        ([state, address, bytes], true) => (body.optional(state, B64)?, address, bytes),
        ([address, bytes], false) => (None, address, bytes),
        _ => {
            let count = if arrives { 3 } else { 2 };
            return Err(format!("it takes {count} operands, not {}", body.operands.len()).into());
        }
    };
    let address = body.address(address, Space::Shared)?;
    let bytes = Some(body.source(bytes, U32)?);
    Ok(Op::MbarrierExpect { d, address, bytes, arrives })
}
