//! Races between blocks: run one by one, no block may touch what another writes; run together, what
//! the kernel itself orders is allowed.

use simt::ReportKind;

use crate::kernel::Bench;

/// Two blocks of a warp; block 0 executes the first part, block 1 the second.
fn two_blocks(first: &str, second: &str) -> Bench {
    let bench = Bench::new(&format!(
        "mov.u32 %r20, %ctaid.x;
        setp.eq.u32 %p1, %r20, 1;
        @%p1 bra SECOND;
        {first}
        ret;
        SECOND:
        {second}"
    ))
    .blocks(2);
    bench.memory.fill(bench.b, 1024, 0).unwrap();
    bench
}

#[test]
fn independent_blocks_must_not_touch_what_another_writes() {
    let write = "st.global.u32 [%rd2], 1;";
    let read = "ld.global.u32 %r5, [%rd2];";
    let where_ = "4 bytes at offset 0 of buffer `outputs` (4096 bytes)";
    for (first, second, at, verb, does) in [
        (write, read, "ld.global", "reads", "writes"),
        (read, write, "st.global", "writes", "reads"),
        (write, write, "st.global", "writes", "writes"),
    ] {
        let bench = two_blocks(first, second);
        let message = format!(
            "{verb} {where_}, which block 0 {does} in the same launch: nothing orders the two"
        );
        let found = bench.run();
        let report = bench.reports(found, ReportKind::Race, at, &message);
        assert_eq!(report.block, [1, 0, 0]);
    }
    two_blocks(read, read).run().unwrap();
    two_blocks(write, "st.global.u32 [%rd2+4], 1; ld.global.u32 %r5, [%rd2+4];").run().unwrap();
}

#[test]
fn several_readers_before_a_writer() {
    let bench = Bench::new(
        "ld.global.u32 %r5, [%rd1];
        mov.u32 %r6, %ctaid.x;
        setp.eq.u32 %p1, %r6, 2;
        @%p1 st.global.u32 [%rd1], %r5;",
    )
    .blocks(3);
    let message = "writes 4 bytes at offset 0 of buffer `inputs` (4096 bytes), which several other blocks read in the \
                   same launch: nothing orders the two";
    let found = bench.run();
    bench.reports(found, ReportKind::Race, "st.global", message);
}

/// A launch comes after the one before: what that wrote may be read.
#[test]
fn launches_are_ordered() {
    let bench = Bench::new("ld.global.u32 %r5, [%rd1]; st.global.u32 [%rd4], %r5;").blocks(2);
    for _ in 0..3 {
        bench.run().unwrap();
        bench.run_together().unwrap();
    }
    let second = two_blocks("st.global.u32 [%rd2], 1;", "ld.global.u32 %r5, [%rd1];");
    second.run().unwrap();
    second.run().unwrap();
}

/// Block 0 writes 42 to the outputs and raises the flag behind them; block 1 waits for the flag and
/// reads.
fn message(raise: &str, wait: &str, after: &str) -> Bench {
    two_blocks(
        &format!("st.global.u32 [%rd2], 42; {raise}"),
        &format!(
            "AGAIN:
            {wait}
            setp.eq.u32 %p2, %r6, 0;
            @%p2 bra AGAIN;
            {after}
            ld.global.u32 %r7, [%rd2];
            st.global.u32 [%rd2+256], %r7;"
        ),
    )
}

fn arrives(bench: &Bench) {
    bench.run_together().unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(bench.words::<65>()[64], 42);
}

fn is_unordered(bench: &Bench) {
    let message = format!(
        "reads offset 0 of buffer `outputs` (4096 bytes), which warp 0 of block 0 writes at PTX line {}: nothing orders \
         the two",
        bench.line_of("[%rd2], 42")
    );
    let found = bench.run_together();
    let report = bench.reports(found, ReportKind::Race, "ld.global.u32 %r7", &message);
    assert_eq!((report.block, report.lanes), ([1, 0, 0], 1));
}

const RELEASE: &str = "st.release.gpu.global.u32 [%rd2+128], 1;";
const ACQUIRE: &str = "ld.acquire.gpu.global.u32 %r6, [%rd2+128];";
const RAISE: &str = "st.relaxed.gpu.global.u32 [%rd2+128], 1;";
const LOOK: &str = "ld.relaxed.gpu.global.u32 %r6, [%rd2+128];";
const FENCE: &str = "fence.acq_rel.gpu;";

#[test]
fn release_and_acquire_order_what_comes_before_and_after() {
    arrives(&message(RELEASE, ACQUIRE, ""));
    is_unordered(&message(RAISE, ACQUIRE, ""));
    is_unordered(&message(RELEASE, LOOK, ""));
    is_unordered(&message(RAISE, LOOK, ""));
}

#[test]
fn fences_make_relaxed_accesses_order() {
    let raise = format!("{FENCE} {RAISE}");
    arrives(&message(&raise, LOOK, FENCE));
    arrives(&message(&raise, ACQUIRE, ""));
    arrives(&message(RELEASE, LOOK, FENCE));
    is_unordered(&message(RAISE, LOOK, FENCE));
    is_unordered(&message(&raise, LOOK, ""));
    // The fence comes too late, and one of the block does not reach the other.
    is_unordered(&message(&format!("{RAISE} {FENCE}"), LOOK, FENCE));
    is_unordered(&message(&raise.replace(".gpu;", ".cta;"), LOOK, FENCE));
    // CUDA's __threadfence and volatile.
    let raise = "membar.gl; st.volatile.global.u32 [%rd2+128], 1;";
    arrives(&message(raise, "ld.volatile.global.u32 %r6, [%rd2+128];", "membar.gl;"));
}

#[test]
fn atomics_synchronise() {
    let raise = "atom.release.gpu.global.exch.b32 %r5, [%rd2+128], 1;";
    let wait = "atom.acquire.gpu.global.add.u32 %r6, [%rd2+128], 0;";
    arrives(&message(raise, wait, ""));
    arrives(&message(raise, ACQUIRE, ""));
    arrives(&message(RELEASE, wait, ""));
    let relaxed = "red.global.add.u32 [%rd2+128], 1;";
    is_unordered(&message(relaxed, wait, ""));
    arrives(&message(&format!("{FENCE} {relaxed}"), wait, ""));
    // An operation in between carries on what was released before it.
    let both = format!("{RELEASE} red.relaxed.gpu.global.add.u32 [%rd2+128], 1;");
    arrives(&message(&both, ACQUIRE, ""));
}

#[test]
fn a_flag_that_is_not_synchronised_races_itself() {
    let bench = message("st.global.u32 [%rd2+128], 1;", LOOK, FENCE);
    assert_eq!(bench.run_together().unwrap_err().kind, ReportKind::Race);
    let bench = message(RELEASE, "ld.global.u32 %r6, [%rd2+128];", FENCE);
    assert_eq!(bench.run_together().unwrap_err().kind, ReportKind::Race);
}

/// The thread that waits need not be the one that reads: a barrier passes on what it has seen.
#[test]
fn barriers_pass_on_what_one_thread_has_seen() {
    let body = "
        setp.ne.u32 %p3, %r2, 0;
        mov.u32 %r20, %ctaid.x;
        setp.eq.u32 %p1, %r20, 1;
        @%p1 bra SECOND;
        st.global.u32 [%rd4], %r2;
        PUBLISH
        @!%p3 st.release.gpu.global.u32 [%rd2+2048], 1;
        ret;
        SECOND:
        @%p3 bra READ;
        AGAIN:
        ld.acquire.gpu.global.u32 %r6, [%rd2+2048];
        setp.eq.u32 %p2, %r6, 0;
        @%p2 bra AGAIN;
        READ:
        bar.sync 0;
        ld.global.u32 %r7, [%rd4+-256];
        st.global.u32 [%rd4], %r7;
    ";
    let run = |publish: &str| {
        let bench = Bench::new(&body.replace("PUBLISH", publish)).threads(64).blocks(2);
        bench.memory.fill(bench.b, 4096, 0).unwrap();
        (bench.run_together(), bench.words::<128>())
    };
    let (found, words) = run("bar.sync 0;");
    found.unwrap();
    assert_eq!(words[64..], std::array::from_fn::<u32, 64, _>(|i| i as u32));
    assert_eq!(run("").0.unwrap_err().kind, ReportKind::Race);
}

/// Each block waits for the word of the block so many bytes further, and one for none, and leaves
/// three more than it found.
fn chain(first: u32, other: i32) -> Bench {
    let bench = Bench::new(&format!(
        "setp.ne.u32 %p1, %r2, 0;
        @%p1 ret;
        mov.u32 %r5, %ctaid.x;
        mul.wide.u32 %rd5, %r5, 4;
        add.u64 %rd5, %rd5, %rd2;
        setp.eq.u32 %p2, %r5, {first};
        mov.u32 %r6, 0;
        @%p2 bra FIRST;
        AGAIN:
        ld.acquire.gpu.global.u32 %r6, [%rd5+{other}];
        setp.eq.u32 %p3, %r6, 0;
        @%p3 bra AGAIN;
        FIRST:
        add.u32 %r6, %r6, 3;
        st.release.gpu.global.u32 [%rd5], %r6;"
    ))
    .blocks(50);
    bench.memory.fill(bench.b, 4096, 0).unwrap();
    bench
}

/// All blocks wait for the block before them, or behind them, whichever order they run in.
#[test]
fn a_chain_of_blocks() {
    let bench = chain(0, -4);
    assert!(bench.kernel().communicates());
    bench.run_together().unwrap();
    assert_eq!(bench.words::<50>(), std::array::from_fn(|i| 3 * (i as u32 + 1)));
    let bench = chain(49, 4);
    bench.run_together().unwrap();
    assert_eq!(bench.words::<50>(), std::array::from_fn(|i| 3 * (50 - i as u32)));
}

/// Blocks that wait for one that is not among those that run.
#[test]
fn a_chain_with_a_block_missing() {
    for (first, other, range, waiting) in
        [(0, -4, 1..10, 9), (49, 4, 40..49, 9), (30, 4, 20..40, 9)]
    {
        let mut bench = chain(first, other);
        bench.instructions = u64::MAX;
        let found = bench.with(|launch, _| launch.run_together(range, None));
        let message =
            format!("makes no progress: {waiting} blocks wait for what none of them does");
        bench.reports(found, ReportKind::NoProgress, "", &message);
    }
}

#[test]
fn two_blocks_that_wait_for_each_other() {
    let wait = |own: u32, other: u32| {
        format!(
            "WAIT{own}:
            ld.acquire.gpu.global.u32 %r6, [%rd2+{other}];
            setp.eq.u32 %p2, %r6, 0;
            @%p2 bra WAIT{own};
            st.release.gpu.global.u32 [%rd2+{own}], 1;"
        )
    };
    let mut bench = two_blocks(&wait(0, 128), &wait(128, 0));
    let report = bench.run_together().unwrap_err();
    assert_eq!(report.kind, ReportKind::NoProgress, "{report}");
    assert_eq!(report.message, "makes no progress: 2 blocks wait for what none of them does");
    // One that does not wait sets it going.
    let first = wait(0, 128).replace("@%p2 bra WAIT0;", "");
    two_blocks(&first, &wait(128, 0)).run_together().unwrap();
    // Run one by one, block 0 waits until the launch's instructions are used up.
    bench.instructions = 1 << 16;
    assert_eq!(bench.run().unwrap_err().kind, ReportKind::Instructions);
}

#[test]
fn which_kernels_communicate() {
    for (body, wanted) in [
        ("ld.global.u32 %r5, [%rd1];", false),
        ("ld.volatile.shared.u32 %r5, [s];", false),
        ("ld.volatile.global.u32 %r5, [%rd1];", true),
        (ACQUIRE, true),
        (LOOK, true),
        (FENCE, true),
        ("membar.cta;", false),
        ("membar.gl;", true),
    ] {
        assert_eq!(Bench::new(body).kernel().communicates(), wanted, "{body}");
    }
}

#[test]
fn together_blocks_race_as_well() {
    let write = "st.global.u32 [%rd2], 1;";
    for (first, second) in [
        (write, write),
        (write, "ld.global.u32 %r5, [%rd2];"),
        ("ld.global.u32 %r5, [%rd2];", write),
    ] {
        let report = two_blocks(first, second).run_together().unwrap_err();
        assert_eq!(report.kind, ReportKind::Race, "{report}");
    }
    // Of 16-bit values beside each other, each block may have its own.
    let half = "st.global.u16 [%rd2+PLACE], %h5;";
    two_blocks(&half.replace("PLACE", "0"), &half.replace("PLACE", "2")).run_together().unwrap();
    let report =
        two_blocks(&half.replace("PLACE", "2"), &half.replace("PLACE", "2")).run_together();
    assert_eq!(report.unwrap_err().kind, ReportKind::Race);
}

/// Atomic operations of all blocks at one place, in any way to run.
#[test]
fn atomics_of_many_blocks_add_up() {
    let bench = Bench::new("red.global.add.u32 [%rd2], 1; atom.global.max.u32 %r5, [%rd2+4], %r1;")
        .blocks(20);
    bench.memory.fill(bench.b, 8, 0).unwrap();
    bench.run().unwrap();
    assert_eq!(bench.words::<2>(), [640, 639]);
    bench.run_together().unwrap();
    assert_eq!(bench.words::<2>(), [1280, 639]);
}
