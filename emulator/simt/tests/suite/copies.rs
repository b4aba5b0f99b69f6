//! `cp.async`: what arrives, and when.

use simt::{ReportKind, Trace, What};

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

/// Two copies in two groups; the first has arrived when at most one group is pending.
const TWO_GROUPS: &str = "
    mul.lo.u32 %r5, %r2, 8;
    cp.async.ca.shared.global [%r5], [%rd3], 4;
    cp.async.commit_group;
    cp.async.ca.shared.global [%r5+4], [%rd3], 4;
    cp.async.commit_group;
";

#[test]
fn groups_arrive_in_order() {
    let bench = Bench::new(&format!(
        "{TWO_GROUPS}
        cp.async.wait_group 1;
        ld.shared.u32 %r6, [%r5];
        cp.async.wait_group 0;
        ld.shared.u32 %r7, [%r5+4];
        add.u32 %r6, %r6, %r7;
        st.global.u32 [%rd4], %r6;"
    ));
    bench.run().unwrap();
    assert_eq!(bench.words::<32>(), std::array::from_fn(|i| 2 * i as u32));
}

#[test]
fn a_trace_tells_where_copies_go() {
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

#[test]
fn what_has_not_been_waited_for_is_reported() {
    let pending = |wait: &str, read: &str| {
        let bench = Bench::new(&format!("{TWO_GROUPS}\n{wait}\n{read}"));
        let found = bench.run();
        let at = read.split(' ').next().unwrap();
        let line =
            bench.line_of(if read.contains("+4") { "[%r5+4], [%rd3]" } else { "[%r5], [%rd3]" });
        let verb = if at.starts_with("ld") { "reads" } else { "writes" };
        let offset = if read.contains("+4") { 4 } else { 0 };
        let message = format!(
            "{verb} 4 bytes at offset {offset} of shared memory, where the cp.async that lane 0 of warp 0 started \
             at PTX line {line} has not been waited for"
        );
        bench.reports(found, ReportKind::Race, at, &message);
    };
    pending("", "ld.shared.u32 %r6, [%r5];");
    pending("cp.async.wait_group 2;", "ld.shared.u32 %r6, [%r5];");
    pending("cp.async.wait_group 1;", "ld.shared.u32 %r6, [%r5+4];");
    pending("cp.async.wait_group 1;", "st.shared.u32 [%r5+4], %r6;");
    // A barrier does not wait for copies.
    pending("bar.sync 0;", "ld.shared.u32 %r6, [%r5];");
}

/// A thread that has nothing to copy closes its group all the same, and waits for as many as the
/// others.
#[test]
fn groups_of_nothing_count() {
    let body = "
        setp.lt.u32 %p1, %r2, 7;
        @%p1 cp.async.ca.shared.global [%r4], [%rd3], 4;
        cp.async.commit_group;
        cp.async.commit_group;
        cp.async.wait_group 1;
        mov.u32 %r5, 99;
        @%p1 ld.shared.u32 %r5, [%r4];
        st.global.u32 [%rd4], %r5;";
    let bench = Bench::new(body);
    bench.run().unwrap();
    assert_eq!(bench.words::<32>(), std::array::from_fn(|i| if i < 7 { i as u32 } else { 99 }));
    // Without the group of nothing there is none that may be left.
    let bench = Bench::new(&body.replacen("cp.async.commit_group;", "", 1));
    assert_eq!(bench.run().unwrap_err().kind, ReportKind::Race);
}

/// The places of a ring: taken again by the thread that has read them, and not before.
#[test]
fn a_place_is_copied_to_again_when_it_has_been_read() {
    let body = "
        cp.async.ca.shared.global [%r4], [%rd3], 4;
        cp.async.commit_group;
        {wait}
        cp.async.ca.shared.global [%r4], [%rd3], 4;
        cp.async.commit_group;
        cp.async.wait_group 0;
        ld.shared.u32 %r6, [%r4];
        st.global.u32 [%rd4], %r6;";
    let bench =
        Bench::new(&body.replace("{wait}", "cp.async.wait_group 0;\nld.shared.u32 %r5, [%r4];"));
    bench.run().unwrap();
    assert_eq!(bench.words::<32>(), std::array::from_fn(|i| i as u32));
    let bench = Bench::new(&body.replace("{wait}", ""));
    let report = bench.run().unwrap_err();
    assert_eq!(report.kind, ReportKind::Race);
    let sentence = report.to_string();
    assert!(
        sentence.contains("copies 4 bytes at offset 0 of shared memory, where the cp.async"),
        "{sentence}"
    );
}

#[test]
fn a_copy_that_is_not_in_a_group_is_not_waited_for_with_the_groups() {
    let body = "cp.async.ca.shared.global [%r4], [%rd3], 4;\ncp.async.wait_group 0;\nld.shared.u32 %r5, [%r4];";
    let bench = Bench::new(body);
    assert_eq!(bench.run().unwrap_err().kind, ReportKind::Race);
    let bench = Bench::new(&body.replace("wait_group 0", "wait_all"));
    bench.run().unwrap();
}

/// The thread that copied has waited, but others see its data only behind a barrier.
#[test]
fn copies_of_other_threads_need_a_barrier_too() {
    let body = "
        cp.async.ca.shared.global [%r4], [%rd3], 4;
        cp.async.wait_all;
        {barrier}
        xor.b32 %r5, %r4, 4;
        ld.shared.u32 %r6, [%r5];
        st.global.u32 [%rd4], %r6;";
    let bench = Bench::new(&body.replace("{barrier}", "")).threads(64);
    let found = bench.run();
    assert_eq!(found.unwrap_err().kind, ReportKind::Race);
    let bench = Bench::new(&body.replace("{barrier}", "bar.sync 0;")).threads(64);
    bench.run().unwrap();
    assert_eq!(bench.words::<64>(), std::array::from_fn(|i| i as u32 ^ 1));
}
