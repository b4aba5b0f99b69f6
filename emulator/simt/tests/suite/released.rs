//! Releases and acquires in shared memory: what they order between the warps of a block, and what
//! is a race without them.

use simt::ReportKind;

use crate::kernel::{self, Bench};

/// Two warps of 64 threads: the first one writes 32 words, each lane its own, and one of its lanes
/// `gives` word `s` another value; the other warp `takes` it in all lanes, again and again, until
/// it is there, and reads what lanes beside have written.
fn source(gives: &str, takes: &str) -> String {
    kernel::source(&format!(
        "setp.eq.u32 %p1, %r2, 0; @%p1 st.shared.u32 [s], 0;
        and.b32 %r20, %r2, 31; shl.b32 %r21, %r20, 2; add.u32 %r21, %r21, %r3;
        xor.b32 %r22, %r20, 5; shl.b32 %r22, %r22, 2; add.u32 %r22, %r22, %r3;
        cvt.u64.u32 %rd9, %r3; cvta.shared.u64 %rd9, %rd9;
        setp.lt.u32 %p2, %r2, 32;
        bar.sync 0;
        @!%p2 bra WAIT;
        mul.lo.u32 %r6, %r2, 3;
        st.shared.u32 [%r21+256], %r6;
        bar.warp.sync -1;
        @%p1 bra GIVE;
        bra DONE;
        GIVE:
        {gives}
        bra DONE;
        WAIT:
        {takes}
        setp.eq.u32 %p3, %r7, 0;
        @%p3 bra WAIT;
        ld.shared.u32 %r8, [%r22+256];
        st.global.u32 [%rd4], %r8;
        DONE:"
    ))
}

fn bench(gives: &str, takes: &str) -> Bench {
    Bench::of(&source(gives, takes)).threads(64)
}

/// Ways to give, and to take, of which each goes with each.
const GIVES: [&str; 9] = [
    "st.release.cta.shared.u32 [s], 1;",
    "st.release.gpu.u32 [%rd9], 1;",
    "red.release.cta.shared.add.u32 [s], 1;",
    "red.release.cta.or.b32 [%rd9], 1;",
    "atom.release.cta.shared.exch.b32 %r9, [s], 1;",
    "atom.acq_rel.gpu.shared.cas.b32 %r9, [s], 0, 1;",
    "fence.acq_rel.cta; st.relaxed.cta.shared.u32 [s], 1;",
    "membar.cta; st.volatile.shared.u32 [s], 1;",
    "fence.sc.gpu; atom.shared.add.u32 %r9, [s], 1;",
];
const TAKES: [&str; 7] = [
    "ld.acquire.cta.shared.u32 %r7, [s];",
    "ld.acquire.gpu.u32 %r7, [%rd9];",
    "atom.acquire.cta.shared.or.b32 %r7, [s], 0;",
    "atom.acq_rel.cta.add.u32 %r7, [%rd9], 0;",
    "ld.relaxed.cta.shared.u32 %r7, [s]; fence.acq_rel.cta;",
    "ld.volatile.shared.u32 %r7, [s]; membar.gl;",
    "atom.shared.max.u32 %r7, [s], 0; membar.cta;",
];

/// In each way to run it.
fn right(bench: &Bench) {
    let counters = bench.run().unwrap_or_else(|report| panic!("{report}"));
    let words = bench.words::<64>();
    for lane in 0..32 {
        assert_eq!(words[32 + lane], 3 * (lane as u32 ^ 5));
    }
    assert_eq!(bench.gone_through(false), Ok(counters));
    let counters = bench.run_together().unwrap_or_else(|report| panic!("together: {report}"));
    assert_eq!(bench.gone_through(true), Ok(counters));
}

/// A race of what is read at first with what a lane of the other warp has written.
fn wrong(bench: &Bench) {
    let message = format!(
        "reads 4 bytes at offset 276 of shared memory, which lane 5 of warp 0 writes at PTX line {}: no barrier lies between the two",
        bench.line_of("st.shared.u32 [%r21+256]")
    );
    let report = bench.reports(bench.run(), ReportKind::Race, "ld.shared.u32 %r8", &message);
    assert_eq!(bench.gone_through(false).as_ref(), Err(&report));
    assert_eq!(bench.run_together(), Err(report));
}

#[test]
fn what_is_released_is_there_for_who_acquires() {
    for gives in GIVES {
        for takes in TAKES {
            right(&bench(gives, takes));
        }
    }
}

#[test]
fn half_of_it_orders_nothing() {
    for gives in [
        "st.relaxed.cta.shared.u32 [s], 1;",
        "st.volatile.shared.u32 [s], 1;",
        "atom.shared.exch.b32 %r9, [s], 1;",
        "atom.acquire.cta.shared.exch.b32 %r9, [s], 1;",
        // Behind the store the fence comes too late; and another place is not taken from.
        "st.relaxed.cta.shared.u32 [s], 1; fence.acq_rel.cta;",
        "st.release.cta.shared.u32 [s+128], 1; st.relaxed.cta.shared.u32 [s], 1;",
    ] {
        wrong(&bench(gives, TAKES[0]));
    }
    for takes in [
        "ld.relaxed.cta.shared.u32 %r7, [s];",
        "ld.volatile.shared.u32 %r7, [s];",
        "atom.shared.or.b32 %r7, [s], 0;",
        "atom.release.cta.shared.or.b32 %r7, [s], 0;",
        "fence.acq_rel.cta; ld.relaxed.cta.shared.u32 %r7, [s];",
    ] {
        wrong(&bench(GIVES[0], takes));
    }
}

/// What a lane has not seen of its warp it cannot hand on.
#[test]
fn a_release_is_of_what_its_thread_has_seen() {
    let without = source(GIVES[0], TAKES[0]).replacen("bar.warp.sync -1;", "", 1);
    wrong(&Bench::of(&without).threads(64));
}

/// An atomic operation between carries on what was released, and a plain store ends it.
#[test]
fn what_was_released_is_carried_on() {
    let gives = "st.release.cta.shared.u32 [s], 2; red.relaxed.cta.shared.and.b32 [s], 3;";
    right(&bench(gives, TAKES[0]));
    wrong(&bench("st.release.cta.shared.u32 [s], 2; st.relaxed.cta.shared.u32 [s], 3;", TAKES[0]));
}

/// What is done behind a release is not released.
#[test]
fn a_release_is_of_what_lies_before() {
    let gives = "st.release.cta.shared.u32 [s], 1; st.shared.u32 [s+276], 9;";
    let bench = bench(gives, TAKES[0]);
    let report = bench.run().unwrap_err();
    assert_eq!(report.kind, ReportKind::Race, "{report}");
    assert!(report.message.contains("offset 276 of shared memory"), "{report}");
}

/// Also global memory is ordered so between the warps of a block, which matters where blocks run
/// together.
#[test]
fn global_memory_is_ordered_as_well() {
    let with = |gives: &str, takes: &str| {
        let source = source(gives, takes);
        // The words are in global memory, in the place of the buffer's first 32.
        let source = source.replace("st.shared.u32 [%r21+256], %r6;", "st.global.u32 [%rd3], %r6;");
        Bench::of(&source.replace(
            "ld.shared.u32 %r8, [%r22+256];",
            "xor.b32 %r10, %r20, 5; mul.wide.u32 %rd8, %r10, 4; add.u64 %rd8, %rd8, %rd1; ld.global.u32 %r8, [%rd8];",
        ))
        .threads(64)
    };
    right(&with(GIVES[0], TAKES[0]));
    right(&with("fence.acq_rel.gpu; atom.shared.add.u32 %r9, [s], 1;", TAKES[5]));
    for (gives, takes) in [
        ("st.relaxed.cta.shared.u32 [s], 1;", TAKES[0]),
        (GIVES[0], "ld.relaxed.cta.shared.u32 %r7, [s];"),
    ] {
        let report = with(gives, takes).run_together().unwrap_err();
        assert_eq!(report.kind, ReportKind::Race, "{report}");
    }
}
