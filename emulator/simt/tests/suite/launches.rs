//! Sizes of grids, arguments, ranges of blocks, launches one after the other, and which kernels
//! communicate. Block sizes and shared memory are in `cases/launches.ptx`, races between blocks in
//! `cases/blocks.ptx`.

use simt::{Launch, Memory, Module, Report, ReportKind};

use crate::kernel::{Bench, HEAD};

/// A kernel with 12 bytes of arguments in 16.
fn module() -> Module {
    let source = format!("{HEAD}.visible .entry k(.param .u32 n, .param .u64 a) {{ ret; }}");
    Module::parse(&source).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(found: Result<(), Report>, message: &str) {
    let report = found.unwrap_err();
    assert_eq!(report.kind, ReportKind::Launch);
    assert_eq!(report.message, message);
    assert_eq!(report.to_string(), format!("k: {message}"));
}

/// Extents whose product does not fit.
#[test]
fn grids_that_overflow() {
    let module = module();
    let kernel = module.kernel("k").unwrap();
    let memory = Memory::new(1 << 20);
    let largest = [u32::MAX; 3];
    let launch = Launch::new(kernel, largest, [32, 1, 1], &[0; 16]);
    assert_eq!(launch.blocks(), u64::MAX);
    assert_eq!(launch.prepare(&memory).unwrap_err().kind, ReportKind::Launch);
    let launch = Launch::new(kernel, [i32::MAX as u32, 65_535, 65_535], largest, &[0; 16]);
    assert_eq!(launch.blocks(), i32::MAX as u64 * 65_535 * 65_535);
    assert_eq!(launch.prepare(&memory).unwrap_err().kind, ReportKind::Launch);
}

#[test]
fn arguments() {
    let module = module();
    let kernel = module.kernel("k").unwrap();
    let memory = Memory::new(1 << 20);
    for given in [0, 12, 15, 16, 17] {
        let bytes = vec![0; given];
        let found = Launch::new(kernel, [1; 3], [32, 1, 1], &bytes).prepare(&memory);
        match given {
            16 => drop(found.unwrap()),
            _ => {
                let message = format!("takes 16 bytes of arguments, not {given}");
                refused(found.map(drop), &message);
            }
        }
    }
}

/// Runs the last block of grids of the largest extents.
#[test]
fn largest_grids() {
    let module = module();
    let memory = Memory::new(1 << 20);
    let most = i32::MAX as u32;
    for grid in [[most, 1, 1], [most, 2, 1], [1, 65_535, 1], [3, 1, 65_535]] {
        let launch = Launch::new(module.kernel("k").unwrap(), grid, [1; 3], &[0; 16]);
        let blocks = launch.blocks();
        let prepared = launch.prepare(&memory).unwrap();
        assert_eq!(prepared.run(blocks - 1..blocks).unwrap().blocks, 1);
    }
}

#[test]
fn ranges_of_blocks() {
    let module = module();
    let kernel = module.kernel("k").unwrap();
    let memory = Memory::new(1 << 20);
    let launch = Launch::new(kernel, [100, 200, 1], [64, 1, 1], &[0; 16]);
    let prepared = launch.prepare(&memory).unwrap();
    assert_eq!(prepared.launch().blocks(), 20_000);
    assert_eq!(prepared.run(7..7).unwrap().blocks, 0);
    assert_eq!(prepared.run(19_990..20_000).unwrap().blocks, 10);
    #[expect(clippy::reversed_empty_ranges, reason = "what is refused")]
    for range in [0..20_001, 20_001..20_001, 5..4] {
        let message = format!("has 20000 blocks, not {range:?}");
        refused(prepared.run(range.clone()).map(drop), &message);
        refused(prepared.run_together(range, None).map(drop), &message);
    }
    assert_eq!(prepared.run_together(0..4096, None).unwrap().blocks, 4096);
    let message = "cannot run 8194 warps together: 8192 at most, so run a part of the grid";
    refused(prepared.run_together(0..4097, None).map(drop), message);
}

/// A launch may read what an earlier launch wrote.
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

/// Each block but one waits for the word of its neighbour, and the neighbour of the first or the
/// last block is not in the range.
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
