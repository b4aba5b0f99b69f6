//! `cp.async`: what arrives. When it arrives is in `cases/copies.ptx`.

use simt::{Trace, What};

use crate::form::Kind::{L, W};
use crate::form::{Form, across, check};
use crate::kernel::Bench;
use crate::values::integers;

/// Opcodes that take no operands of their own and are part of every row.
pub const GROUPS: [&str; 3] = ["cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all"];

pub fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    for (cache, sizes) in [("ca", &[4, 8, 16][..]), ("cg", &[16])] {
        for space in ["shared", "shared::cta"] {
            for hint in ["", ".L2::64B", ".L2::128B", ".L2::256B"] {
                let opcode = format!("cp.async.{cache}.{space}.global{hint}");
                for &bytes in sizes {
                    for partial in [false, true] {
                        all.push(copy(&opcode, bytes, partial));
                    }
                }
            }
        }
    }
    all
}

/// Copies the first bytes of two operands over what was there; with `partial` a third says how many
/// are read.
fn copy(opcode: &str, bytes: u32, partial: bool) -> Form {
    let (pair, result) = ("{{2}, {1}}", "{{d}, {e}}");
    let size = if partial { ", {3}" } else { "" };
    let wait = if bytes == 8 { "wait_all" } else { "wait_group 0" };
    let text = format!(
        "st.shared.v2.b64 [%r31], {pair};
        and.b64 %rd25, %rd20, -16;
        {opcode} [%r31], [%rd25], {bytes}{size};
        cp.async.commit_group;
        cp.async.{wait};
        ld.shared.v2.b64 {result}, [%r31];"
    );
    let form = across(opcode, &text, [L, L], [L, L, W, W], move |warp, lane| {
        let values = &warp[lane];
        let from = u128::from(values[0]) | u128::from(values[1]) << 64;
        let to = u128::from(values[1]) | u128::from(values[0]) << 64;
        let ones = |bytes: u32| if bytes == 16 { u128::MAX } else { (1 << (8 * bytes)) - 1 };
        let read = if partial { values[2] as u32 } else { bytes };
        let result = to & !ones(bytes) | from & ones(read);
        vec![result as u64, (result >> 64) as u64]
    });
    let reads: Vec<u64> = (0..=bytes.into()).collect();
    form.over(&[&integers(64), &integers(64), &reads, &[0]]).at_most(256)
}

#[test]
fn copies_arrive() {
    check("copies", &forms());
}

#[test]
fn a_trace_has_the_addresses_of_copies() {
    let bench = Bench::new(
        "mul.lo.u32 %r5, %r2, 4;
        and.b32 %r6, %r2, 1;
        mul.lo.u32 %r6, %r6, 4;
        cp.async.ca.shared.global [%r5], [%rd3], 4, %r6;
        cp.async.wait_all;",
    );
    let mut trace = Trace::new(10);
    bench.with(|launch, _| launch.run_traced(0..1, &mut trace)).unwrap();
    let [event] = &trace.events[..] else { panic!("{:?}", trace.events) };
    let What::Copy(copied) = &event.what else { panic!("{event:?}") };
    assert!(bench.line(event.line).starts_with("cp.async"));
    assert_eq!((event.lanes, copied.bytes), (u32::MAX, 4));
    assert_eq!(copied.read, std::array::from_fn(|lane| 4 * (lane as u32 % 2)));
    assert_eq!(copied.from, std::array::from_fn(|lane| bench.a + 4 * lane as u64));
    assert_eq!(copied.to, std::array::from_fn(|lane| 4 * lane as u64));
}
