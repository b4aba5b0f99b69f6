//! Launches one after the other, ranges of blocks, and which kernels communicate. Races between
//! blocks are in `cases/blocks.ptx`.

use simt::ReportKind;

use crate::kernel::Bench;

/// What an earlier launch wrote may be read by a later one.
#[test]
fn launches_are_ordered() {
    let bench = Bench::new("ld.global.u32 %r5, [%rd1]; st.global.u32 [%rd4], %r5;").blocks(2);
    for _ in 0..3 {
        bench.run().unwrap();
        bench.run_together().unwrap();
    }
    let second = Bench::new(
        "mov.u32 %r20, %ctaid.x; setp.eq.u32 %p1, %r20, 1;
        @!%p1 st.global.u32 [%rd2], 1;
        @%p1 ld.global.u32 %r5, [%rd1];",
    )
    .blocks(2);
    second.run().unwrap();
    second.run().unwrap();
}

/// Each block waits for the word of its neighbour, except for one, and the neighbour of the first or
/// last block of a range is not in the range.
#[test]
fn a_chain_with_a_block_missing_makes_no_progress() {
    for (first, other, range) in [(0, -4, 1..10), (49, 4, 40..49), (30, 4, 20..40)] {
        let mut bench = Bench::new(&format!(
            "setp.ne.u32 %p1, %r2, 0;
            @%p1 ret;
            mov.u32 %r5, %ctaid.x;
            mul.wide.u32 %rd5, %r5, 4;
            add.u64 %rd5, %rd5, %rd2;
            setp.eq.u32 %p2, %r5, {first};
            @%p2 bra FIRST;
            AGAIN:
            ld.acquire.gpu.global.u32 %r6, [%rd5+{other}];
            setp.eq.u32 %p3, %r6, 0;
            @%p3 bra AGAIN;
            FIRST:
            st.release.gpu.global.u32 [%rd5], 3;"
        ))
        .blocks(50);
        bench.memory.fill(bench.b, 4096, 0).unwrap();
        bench.setup.instructions = u64::MAX;
        assert!(bench.kernel().communicates());
        let found = bench.with(|launch, _| launch.run_together(range, None));
        let message = "makes no progress: 9 blocks wait for what none of them does";
        bench.reports(found, ReportKind::NoProgress, "", message);
    }
}

#[test]
fn kernels_that_communicate() {
    for (body, wanted) in [
        ("ld.global.u32 %r5, [%rd1];", false),
        ("ld.volatile.shared.u32 %r5, [s];", false),
        ("ld.volatile.global.u32 %r5, [%rd1];", true),
        ("ld.acquire.gpu.global.u32 %r6, [%rd2+128];", true),
        ("ld.relaxed.gpu.global.u32 %r6, [%rd2+128];", true),
        ("fence.acq_rel.gpu;", true),
        ("membar.cta;", false),
        ("membar.gl;", true),
    ] {
        assert_eq!(Bench::new(body).kernel().communicates(), wanted, "{body}");
    }
}
