//! What is read of shared memory that nothing has written is no mistake by itself, and is one where
//! it has an effect.

use simt::ReportKind;

use crate::kernel::{Bench, source};

/// What `%r5` holds after this is of no thread.
const READ: &str = "ld.shared.u32 %r5, [s+64];";

const MESSAGE: &str = "reads 4 bytes at offset 64 of shared memory, which nothing has written";

/// Where the value goes, and that is reported at the load.
#[test]
fn what_has_an_effect_is_a_mistake() {
    for effect in [
        "st.global.u32 [%rd4], %r5;",
        "add.s32 %r6, %r5, 1; st.global.u32 [%rd4], %r6;",
        "mov.b64 %rd5, {%r5, %r1}; st.global.u64 [%rd2], %rd5;",
        "setp.eq.u32 %p1, %r5, 0; @%p1 bra NEXT; NEXT: mov.u32 %r6, 0;",
        "setp.eq.u32 %p1, %r5, 0; @%p1 mov.u32 %r6, 0;",
        "setp.eq.u32 %p1, %r5, 0; @%p1 exit;",
        "mul.wide.u32 %rd5, %r5, 4; add.s64 %rd5, %rd1, %rd5; ld.global.u32 %r6, [%rd5];",
        "st.shared.u32 [%r5], %r1;",
        "atom.global.add.u32 %r6, [%rd1], %r5;",
        "shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1; st.global.u32 [%rd4], %r6;",
        "shfl.sync.idx.b32 %r6, %r1, %r5, 31, -1;",
        "setp.lt.s32 %p1, %r5, 7; vote.sync.ballot.b32 %r6, %p1, -1; st.global.u32 [%rd4], %r6;",
        "setp.eq.u32 %p1, %r5, 0; selp.u32 %r6, 1, 2, %p1; st.global.u32 [%rd4], %r6;",
        "setp.lt.u32 %p2, %r1, 40; setp.eq.and.u32 %p1, %r5, 0, %p2; @%p1 bra NEXT; NEXT: mov.u32 %r6, 0;",
        // By way of local memory, and of a register of which only a part is.
        "mov.u64 %rd5, l; st.local.u32 [%rd5+4], %r5; ld.local.v2.u32 {%r6, %r7}, [%rd5]; st.global.u32 [%rd4], %r7;",
        "setp.eq.u32 %p1, %r2, 3; mov.u32 %r6, %r5; @!%p1 mov.u32 %r6, 0; st.global.u32 [%rd4], %r6;",
    ] {
        let body = format!("{READ} {effect}");
        let bench = Bench::new(&body);
        let report = bench.run().expect_err(effect);
        assert_eq!(report.kind, ReportKind::Uninitialized, "{effect}: {report}");
        assert_eq!(report.message, MESSAGE, "{effect}");
        assert!(bench.run_together().is_err(), "{effect}");
    }
}

#[test]
fn what_has_none_is_right() {
    for none in [
        "",
        "add.s32 %r6, %r5, 1;",
        "mov.u32 %r5, 1; st.global.u32 [%rd4], %r5;",
        // What another value is chosen for, and what does not matter to what is decided.
        "setp.lt.u32 %p1, %r1, 40; selp.u32 %r6, %r1, %r5, %p1; st.global.u32 [%rd4], %r6;",
        "setp.gt.u32 %p2, %r1, 40; setp.eq.and.u32 %p1, %r5, 0, %p2; @%p1 bra NEXT; NEXT: mov.u32 %r6, 0;",
        "setp.lt.u32 %p2, %r1, 40; setp.eq.u32 %p3, %r5, 0; or.pred %p1, %p3, %p2; @%p1 bra NEXT; NEXT: mov.u32 %r6, 0;",
        "setp.gt.u32 %p2, %r1, 40; @%p2 st.global.u32 [%rd4], %r5;",
        // Lanes take it of each other, and the one that stores does not.
        "setp.eq.u32 %p1, %r2, 31; mov.u32 %r6, %r1; @%p1 mov.u32 %r6, %r5; shfl.sync.up.b32 %r7, %r6, 1, 0, -1;
            st.global.u32 [%rd4], %r7;",
        // A reduction of the first eight lanes, which all lanes take part in.
        "setp.lt.u32 %p1, %r2, 8; selp.u32 %r6, %r1, %r5, %p1; shfl.sync.down.b32 %r7, %r6, 4, 31, -1;
            setp.eq.u32 %p2, %r2, 0; @%p2 st.global.u32 [%rd4], %r7;",
        "mov.u64 %rd5, l; st.local.u32 [%rd5], %r5; st.local.u32 [%rd5], %r1; ld.local.u32 %r6, [%rd5]; st.global.u32 [%rd4], %r6;",
        // Threads put it where nobody reads.
        "shl.b32 %r6, %r2, 2; add.u32 %r6, %r6, 128; add.u32 %r6, %r6, %r3; st.shared.u32 [%r6], %r5;",
    ] {
        let bench = Bench::new(&format!("{READ} {none}"));
        if let Err(report) = bench.run() {
            panic!("{none}: {report}");
        }
        if let Err(report) = bench.run_together() {
            panic!("{none}: {report}");
        }
    }
}

/// A reduction that reads beyond the values, as many do: half of the lanes sum what nobody takes.
#[test]
fn a_reduction_may_read_beyond_its_values() {
    let mut body =
        "add.u32 %r6, %r3, %r4; st.shared.u32 [%r6], %r1; bar.warp.sync -1;\n".to_string();
    for step in [16, 8, 4, 2, 1] {
        body += &format!(
            "ld.shared.u32 %r7, [%r6]; ld.shared.u32 %r8, [%r6+{}]; add.u32 %r7, %r7, %r8;
            bar.warp.sync -1; st.shared.u32 [%r6], %r7; bar.warp.sync -1;\n",
            4 * step
        );
    }
    let take = |lane: u32| {
        format!(
            "setp.eq.u32 %p1, %r2, {lane}; @!%p1 bra NEXT; ld.shared.u32 %r9, [%r6]; st.global.u32 [%rd4], %r9; NEXT:"
        )
    };
    let bench = Bench::new(&format!("{body}{}", take(0)));
    bench.run().unwrap();
    let mut sum = [0; 4];
    bench.memory.read(bench.b, &mut sum).unwrap();
    assert_eq!(u32::from_le_bytes(sum), (0..32).sum());

    // Another lane's sum has what nobody wrote in it, by way of others.
    let body = format!("{body}{}", take(1));
    let report = Bench::new(&body).run().unwrap_err();
    assert_eq!(report.kind, ReportKind::Uninitialized, "{report}");
    // The report is about the first read: that of lanes whose neighbours 16 lanes on there are not.
    let message = "reads 4 bytes at offset 128 of shared memory, which nothing has written";
    assert_eq!((report.lanes, &*report.message), (1 << 16, message), "{report}");
    let source = source(&body);
    let first = source.lines().nth(report.line as usize - 1).unwrap();
    assert!(first.contains("ld.shared.u32 %r8, [%r6+64]"), "{report}");
}

/// That nothing has written a place is no leave to write it at the same time.
#[test]
fn such_a_read_races_with_a_write() {
    let body = "setp.eq.u32 %p1, %r2, 40; ld.shared.u32 %r5, [s]; @%p1 st.shared.u32 [s], %r1;";
    let report = Bench::new(body).threads(64).run().unwrap_err();
    assert_eq!(report.kind, ReportKind::Race, "{report}");
}
