//! Bulk copies: what they bring and take, who learns of them, and each wrong use with its sentence;
//! and `elect`.

use std::collections::BTreeSet;

use simt::{Counters, ReportKind};

use crate::kernel::Bench;

/// What `coverage` asks for.
pub fn opcodes() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for space in ["shared", "shared::cta"] {
        for order in ["", ".relaxed.cta"] {
            all.insert(format!("mbarrier.expect_tx{order}.{space}.b64"));
        }
        for order in ["", ".relaxed.cta", ".release.cta"] {
            all.insert(format!("mbarrier.arrive.expect_tx{order}.{space}.b64"));
        }
        for noinc in ["", ".noinc"] {
            all.insert(format!("cp.async.mbarrier.arrive{noinc}.{space}.b64"));
        }
    }
    for hint in ["", ".L2::cache_hint"] {
        for to in ["shared::cta", "shared::cluster"] {
            all.insert(format!("cp.async.bulk.{to}.global.mbarrier::complete_tx::bytes{hint}"));
        }
        all.insert(format!("cp.async.bulk.global.shared::cta.bulk_group{hint}"));
        all.insert(format!("cp.async.bulk.prefetch.L2.global{hint}"));
    }
    let groups = ["commit_group", "wait_group", "wait_group.read"];
    all.extend(groups.map(|name| format!("cp.async.bulk.{name}")));
    all.insert("elect.sync".to_string());
    all
}

/// An mbarrier `[s]` for one arrival, `%p1` in the first thread, then `body`. `s+16` and on are
/// data.
fn bench(body: &str) -> Bench {
    Bench::new(&format!(
        "setp.eq.u32 %p1, %r2, 0; @%p1 mbarrier.init.shared::cta.b64 [s], 1; fence.mbarrier_init.release.cluster;
        fence.proxy.async; bar.sync 0;
        {body}"
    ))
    .threads(64)
}

fn right(body: &str) -> (Bench, Counters) {
    let one = bench(body);
    let counters = one.run().unwrap_or_else(|report| panic!("{report}\n{body}"));
    for together in [false, true] {
        assert_eq!(one.gone_through(together), Ok(counters.clone()), "{body}");
    }
    let other = bench(body);
    assert_eq!(other.run_together().unwrap_or_else(|report| panic!("{report}")), counters);
    (one, counters)
}

fn wrong(body: &str, kind: ReportKind, at: &str, message: &str) {
    let bench = bench(body);
    bench.reports(bench.run(), kind, at, message);
}

const COPY: &str = "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+16], [%rd1+64], 256, [s];";
const EXPECT: &str = "@%p1 mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [s], 256;";
const WAIT: &str = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p5, [s], 0;\n@!%p5 bra WAIT;";
/// Each thread reads another's word.
const READ: &str = "xor.b32 %r5, %r4, 252; add.u32 %r5, %r5, %r3; ld.shared.u32 %r6, [%r5+16]; st.global.u32 [%rd4], %r6;";

#[test]
fn copies_bring_what_the_mbarrier_waits_for() {
    let whole = |first: &str, second: &str| format!("{first}\n{second}\n{WAIT}\n{READ}");
    let apart = "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [s], 256; @%p1 mbarrier.arrive.shared.b64 _, [s];";
    let halves = "@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s+16], [%rd1+64], 128, [s];
        mov.u32 %r7, 128; mov.b64 %rd7, 0;
        @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [s+144], [%rd1+192], %r7, [s], %rd7;";
    let state = "@%p1 mbarrier.arrive.expect_tx.shared.b64 %rd8, [s], 256;";
    for (first, second) in
        [(EXPECT, COPY), (COPY, EXPECT), (apart, COPY), (halves, EXPECT), (COPY, state)]
    {
        let (bench, counters) = right(&whole(first, second));
        let wanted: Vec<u32> = (0..64).map(|i| 16 + (63 - i)).collect();
        assert_eq!(bench.words::<64>()[..], wanted[..]);
        let copies: Vec<_> =
            counters.sites.iter().filter(|site| site.opcode.starts_with("cp.async.bulk")).collect();
        let [requests, sectors, bytes] = [0, 1, 2].map(|i| {
            copies.iter().map(|site| [site.requests, site.sectors, site.bytes][i]).sum::<u64>()
        });
        assert_eq!((requests, sectors, bytes), (copies.len() as u64, 8, 256));
    }
}

#[test]
fn what_is_not_waited_for_is_told() {
    let body = format!("{EXPECT}\n{COPY}\n{READ}");
    let report = bench(&body).run().unwrap_err();
    assert_eq!(report.kind, ReportKind::Race, "{report}");
    // By the thread that has started it, too.
    let own = format!("{EXPECT}\n{COPY}\n@%p1 ld.shared.u32 %r6, [s+16];\n{WAIT}");
    let report = bench(&own).run().unwrap_err();
    assert!(report.message.contains("that lane 0 of warp 0 started at"), "{report}");
    // Nor may the place be written in between.
    let written = format!("{EXPECT}\n{COPY}\nbar.sync 0;\n@%p1 st.shared.u32 [s+16], 5;\n{WAIT}");
    assert_eq!(bench(&written).run().unwrap_err().kind, ReportKind::Race);
    let after = format!("{EXPECT}\n{COPY}\n{WAIT}\nbar.sync 0;\n@%p1 st.shared.u32 [s+16], 5;");
    right(&after);
}

#[test]
fn bytes_that_are_not_expected_or_do_not_come() {
    let in_vain = |bytes: &str| {
        format!(
            "waits in vain for the mbarrier at offset 0 of shared memory: it is in phase 0, of parity 0, with 1 of 1 arrival, and no \
             thread of the block does anything but wait; {bytes}: warp 1 for that at offset 0 at PTX line "
        )
    };
    for (arrive, bytes) in [
        (
            "@%p1 mbarrier.arrive.shared.b64 _, [s];",
            "256 bytes of bulk copies came that were not expected",
        ),
        (
            "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [s], 272;",
            "16 bytes of bulk copies are expected and have not come",
        ),
    ] {
        let report = bench(&format!("{COPY}\n{arrive}\n{WAIT}")).run().unwrap_err();
        assert_eq!(report.kind, ReportKind::NoProgress);
        assert!(report.message.starts_with(&in_vain(bytes)), "{report}");
    }
    let none = "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [s+64], 16;";
    let message = "tells what to expect to the mbarrier at offset 64 of shared memory, where none has been initialised";
    wrong(none, ReportKind::Uninitialized, "expect_tx", message);
    let message = "expects 1048576 bytes at the mbarrier at offset 0 of shared memory: at most 1048575 are possible";
    let many = "mov.u32 %r5, 1048576; @%p1 mbarrier.expect_tx.shared.b64 [s], %r5;";
    wrong(many, ReportKind::Barrier, "expect_tx", message);
}

#[test]
fn copies_have_their_sizes_and_places() {
    let with = |from: &str, to: &str| COPY.replace(from, to);
    let message = "copies 20 bytes in bulk: it takes a multiple of 16";
    wrong(&with("256", "20"), ReportKind::Misaligned, "cp.async.bulk", message);
    let message =
        "copies 16 bytes at offset 72 of buffer `inputs` (4096 bytes), which is no multiple of 16";
    wrong(&with("+64", "+72"), ReportKind::Misaligned, "cp.async.bulk", message);
    let message = "copies 16 bytes at offset 20 of shared memory, which is no multiple of 16";
    wrong(&with("s+16", "s+20"), ReportKind::Misaligned, "cp.async.bulk", message);
    let message =
        "copies 256 bytes at offset 4080 of shared memory, of which the block has 4096 bytes";
    wrong(&with("s+16", "s+4080"), ReportKind::OutOfBounds, "cp.async.bulk", message);
    let message = "reads 16 bytes at 0 bytes past the end of buffer `inputs` (4096 bytes)";
    wrong(&with("+64", "+3968"), ReportKind::OutOfBounds, "cp.async.bulk", message);
}

#[test]
fn copies_take_what_the_block_has_written() {
    let fill = "add.u32 %r5, %r3, %r4; mul.lo.u32 %r6, %r2, 7; st.shared.u32 [%r5+16], %r6; fence.proxy.async.shared::cta;";
    let out = "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [s+16], 256;
        @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group.read 0; @%p1 cp.async.bulk.wait_group 0;
        cp.async.bulk.prefetch.L2.global [%rd1], 64;";
    let (bench, _) = right(&format!("{fill} bar.sync 0; {out}"));
    assert_eq!(bench.words::<64>(), std::array::from_fn(|i| 7 * i as u32));
    let report = self::bench(&format!("{fill}\n{out}")).run().unwrap_err();
    assert_eq!(report.kind, ReportKind::Race, "{report}");
    let report = self::bench(out).run().unwrap_err();
    assert_eq!(report.kind, ReportKind::Uninitialized, "{report}");
}

/// Copies of single threads, of which an mbarrier learns: each of 64 arrives when its own has come.
#[test]
fn copies_of_all_threads_arrive() {
    let copy = "add.u32 %r5, %r3, %r4; cp.async.ca.shared.global [%r5+16], [%rd3+64], 4;";
    let init =
        "@%p1 mbarrier.inval.shared.b64 [s]; @%p1 mbarrier.init.shared.b64 [s], 64; bar.sync 0;";
    let (bench, _) = right(&format!(
        "{init} {copy} cp.async.mbarrier.arrive.noinc.shared.b64 [s];\n{WAIT}\n{READ}"
    ));
    let wanted: [u32; 64] = std::array::from_fn(|i| 16 + (63 - i as u32));
    assert_eq!(bench.words::<64>(), wanted);
    let (bench, _) = right(&format!(
        "{init} {copy} cp.async.mbarrier.arrive.shared::cta.b64 [s]; mbarrier.arrive.shared.b64 _, [s];\n{WAIT}\n{READ}"
    ));
    assert_eq!(bench.words::<64>(), wanted);
    let report =
        self::bench(&format!("{init} {copy}\nmbarrier.arrive.shared.b64 _, [s];\n{WAIT}\n{READ}"));
    assert_eq!(report.run().unwrap_err().kind, ReportKind::Race);
}

#[test]
fn one_lane_is_elected() {
    let body =
        "mov.u32 %r5, 99; setp.lt.u32 %p6, %r2, 0; and.b32 %r6, %r2, 31; setp.ge.u32 %p2, %r6, 5;
        @%p2 elect.sync %r5|%p6, 0xffffffe0; selp.u32 %r7, 100, 0, %p6; add.u32 %r5, %r5, %r7;
        @%p2 elect.sync _|%p7, 0xffffffe0;
        st.global.u32 [%rd4], %r5;";
    let words = right(body).0.words::<64>();
    let wanted = |lane: usize| match lane {
        0..5 => 99,
        5 => 105,
        _ => 5,
    };
    assert_eq!(words, std::array::from_fn(|i| wanted(i % 32)));
}
