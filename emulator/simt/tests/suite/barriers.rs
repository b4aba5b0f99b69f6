//! Barriers, and the masks of what a warp does together: each wrong use with its sentence, and its
//! correct twin.

use simt::{Report, ReportKind};

use crate::kernel::Bench;

/// Runs blocks of so many threads; `%p1` holds in lanes 0 to 15 of every warp.
fn bench(body: &str, threads: u32) -> Bench {
    Bench::new(&format!("and.b32 %r20, %r2, 31; setp.lt.u32 %p1, %r20, 16; {body}"))
        .threads(threads)
}

/// Expects a mistake at `at`; `LINE(text)` in the message stands for the line of that text.
fn wrong(body: &str, threads: u32, kind: ReportKind, at: &str, message: &str) -> Report {
    let bench = bench(body, threads);
    let message = match message.split_once("LINE(") {
        None => message.to_string(),
        Some((before, rest)) => {
            let (text, after) = rest.split_once(')').unwrap();
            format!("{before}PTX line {}{after}", bench.line_of(text))
        }
    };
    let found = bench.run();
    bench.reports(found, kind, at, &message)
}

fn right(body: &str, threads: u32) -> Bench {
    let bench = bench(body, threads);
    bench.run().unwrap_or_else(|report| panic!("{report}\n{body}"));
    bench
}

#[test]
fn halves_of_a_warp_at_different_barriers() {
    let body = "
        @%p1 bra FIRST;
        bar.sync 1;
        bra JOIN;
        FIRST:
        BARRIER
        JOIN:";
    let report = wrong(
        &body.replace("BARRIER", "bar.sync 0;"),
        32,
        ReportKind::Barrier,
        "bar.sync",
        "waits at a barrier, and lanes 16-31 of warp 0 at another, at LINE(bar.sync 1)",
    );
    assert_eq!(report.lanes, 0xffff);
    // They join before the barrier.
    let join = body.replace("BARRIER", "").replace("bar.sync 1;", "");
    assert_eq!(right(&format!("{join} bar.sync 0;"), 64).run().unwrap().barriers, 1);
}

#[test]
fn warps_at_different_barriers() {
    let body = "
        setp.lt.u32 %p2, %r2, 32;
        @%p2 bra FIRST;
        bar.sync 0; // second
        bra JOIN;
        FIRST:
        bar.sync 0;
        JOIN:";
    wrong(
        body,
        64,
        ReportKind::Barrier,
        "bar.sync 0;",
        "waits at a barrier, and lanes 0-31 of warp 1 at another, at LINE(// second)",
    );
    // All threads of the block go one way.
    right(&body.replace("%r2, 32", "%r2, 99"), 64);
}

#[test]
fn warps_meet_at_a_numbered_barrier_from_different_places() {
    let body = "
        setp.lt.u32 %p2, %r2, 32;
        @%p2 bra FIRST;
        bar.sync 1; // second
        bra JOIN;
        FIRST:
        bar.sync 1;
        JOIN:";
    assert_eq!(right(body, 64).run().unwrap().barriers, 1);
    // But no warp from two places, nor from one that has another number.
    let second = |lanes: &str, warp: u32| {
        format!(
            "waits at a barrier, and lanes {lanes} of warp {warp} at another, at LINE(// second)"
        )
    };
    let numbers = body.replace("bar.sync 1; // second", "bar.sync 2; // second");
    wrong(&numbers, 64, ReportKind::Barrier, "bar.sync 1;", &second("0-31", 1));
    let halves = body.replace("%r2, 32", "%r2, 48");
    let report = bench(&halves, 64).run().unwrap_err();
    assert_eq!(report.kind, ReportKind::Barrier);
    assert!(report.message.contains("of warp 1 at another"), "{report}");
}

#[test]
fn warps_that_have_left_are_not_waited_for() {
    let leaves = "setp.lt.u32 %p2, %r2, 32; @%p2 ret; bar.sync 0;";
    assert_eq!(right(leaves, 64).run().unwrap().barriers, 1);
    // Nor are threads that the block does not have.
    assert_eq!(right("bar.sync 0; bar.sync 0;", 40).run().unwrap().barriers, 2);
    right(leaves, 40);
    let end = "setp.lt.u32 %p2, %r2, 32;\n@%p2 bra END;\nbar.sync 0;\nmov.u32 %r5, 1;\nEND:";
    right(end, 64);
    // Who goes around it, and on.
    wrong(
        &format!("{end} mov.u32 %r6, 1;"),
        64,
        ReportKind::Barrier,
        "bar.sync",
        "waits at a barrier that 32 threads of the block cannot reach: lanes 0-31 of warp 0 left the kernel at LINE(ret;) \
         (a GPU waits for the others only, but what is behind a barrier is for those that were there)",
    );
    // But where their number is spelled out.
    let report = wrong(
        "setp.lt.u32 %p2, %r2, 32;\n@%p2 ret;\nbar.sync 0, 64;",
        64,
        ReportKind::Barrier,
        "bar.sync",
        "waits at a barrier that 32 threads of the block cannot reach: lanes 0-31 of warp 0 left the kernel at LINE(@%p2 ret)",
    );
    assert_eq!((report.warp, report.lanes), (1, u32::MAX));
}

#[test]
fn threads_of_a_warp_that_never_reach_the_barrier() {
    const BUT: &str =
        " (a GPU waits for the others only, but by PTX the lanes of a warp must come together)";
    let report = wrong(
        "@!%p1 ret; bar.sync 0;",
        64,
        ReportKind::Barrier,
        "bar.sync",
        &format!(
            "waits at a barrier that 32 threads of the block cannot reach: lanes 16-31 of warp 0 left the kernel at \
             LINE(@!%p1 ret){BUT}"
        ),
    );
    assert_eq!((report.warp, report.lanes), (0, 0xffff));
    // A barrier under a guard is one in a branch.
    wrong(
        "setp.lt.u32 %p2, %r2, 63;\n@%p2 bar.sync 0;\nret;",
        64,
        ReportKind::Barrier,
        "bar.sync",
        &format!(
            "waits at a barrier that 1 thread of the block cannot reach: lane 31 of warp 1 left the kernel at LINE(ret;){BUT}"
        ),
    );
    right("bar.sync 0; @!%p1 ret;", 64);
    // The form that need not be reached by a warp as a whole.
    assert_eq!(right("@!%p1 ret; barrier.sync 0;", 64).run().unwrap().barriers, 1);
}

#[test]
fn threads_that_are_missed_in_a_shuffle_and_at_a_barrier() {
    let body = "@!%p1 ret;
        shfl.sync.up.b32 %r5, %r2, 1, 0, -1;
        bar.sync 0;";
    let report = wrong(
        body,
        64,
        ReportKind::Shuffle,
        "shfl.sync",
        "names lanes 16-31 in its mask 0xffffffff, which left the kernel before, and they miss the barrier at \
         LINE(bar.sync 0) as well: a GPU lets the others pass, without what these should do",
    );
    assert_eq!((report.warp, report.lanes), (0, 0xffff));
    let named = body.replace("-1;", "0xffff;").replace("bar.sync 0;", "barrier.sync 0;");
    right(&named, 64);
    right(&body.replace("bar.sync 0;", ""), 64);
}

/// Every warp-wide instruction, with a mask in `MASK`.
const TOGETHER: [&str; 9] = [
    "shfl.sync.bfly.b32 %r5, %r2, 1, 31, MASK;",
    "shfl.sync.idx.b32 %r5|%p5, %r2, 3, 4127, MASK;",
    "vote.sync.any.pred %p5, %p1, MASK;",
    "vote.sync.all.pred %p5, %p1, MASK;",
    "vote.sync.ballot.b32 %r5, %p1, MASK;",
    "redux.sync.add.u32 %r5, %r2, MASK;",
    "redux.sync.or.b32 %r5, %r2, MASK;",
    "bar.warp.sync MASK;",
    "vote.sync.uni.pred %p5, %p1, MASK;",
];

/// Runs `body` with each of them in the place of `OP`, and a mask.
fn each(body: &str, mask: &str, mut visit: impl FnMut(String, &str)) {
    for instruction in TOGETHER {
        let op = instruction.replace("MASK", mask);
        visit(body.replace("OP", &op), op.split(' ').next().unwrap());
    }
}

/// Whatever the instruction, this mask is reported, of these lanes.
fn refused(body: &str, mask: &str, threads: u32, lanes: u32, message: &str) {
    each(body, mask, |body, at| {
        let report = wrong(&body, threads, ReportKind::Shuffle, at, message);
        assert_eq!(report.lanes, lanes, "{report}");
    });
}

fn allowed(body: &str, mask: &str, threads: u32) {
    each(body, mask, |body, _| drop(right(&body, threads)));
}

#[test]
fn a_mask_must_name_the_lane_itself() {
    let message = "executes with mask 0x0000fffe, which does not name lane 0";
    refused("@%p1 OP", "0xfffe", 32, 1, message);
    allowed("@%p1 OP", "0xffff", 32);
}

#[test]
fn a_mask_may_name_lanes_that_are_not_there() {
    // That the block does not have, or that have left, all or some of them.
    allowed("OP", "-1", 20);
    allowed("OP", "0xfffff", 20);
    allowed("@!%p1 ret; OP", "-1", 32);
    allowed("@!%p1 ret; OP", "0xffff", 32);
    allowed("@!%p1 ret; selp.b32 %r7, -1, 0xffff, %p1; OP", "%r7", 32);
    // Those that wait learn of it when others leave.
    let body = "
        @!%p1 bra OTHERS;
        OP
        ret;
        OTHERS:
        setp.lt.u32 %p2, %r2, 24;
        @%p2 ret;";
    allowed(body, "-1", 32);
    // But not when the rest waits elsewhere.
    let message = "waits for lanes that its mask names, while lanes 24-31 wait at LINE(bar.sync 0)";
    refused(&format!("{body}\nbar.sync 0;"), "-1", 32, 0xffff, message);
}

/// They have no vote, and nothing is added for them; a shuffle may not read them.
#[test]
fn lanes_that_are_not_there_give_nothing() {
    for leaves in ["@!%p1 ret;", ""] {
        let body = format!(
            "mov.u32 %r7, 1; setp.eq.u32 %p2, %r7, 1; setp.ne.u32 %p3, %r7, 1; {leaves}
            vote.sync.ballot.b32 %r5, %p2, -1;
            redux.sync.add.u32 %r6, %r7, -1;
            vote.sync.all.pred %p5, %p2, -1; selp.u32 %r8, 1, 0, %p5;
            vote.sync.any.pred %p5, %p3, -1; selp.u32 %r9, 1, 0, %p5;
            vote.sync.uni.pred %p5, %p2, -1; selp.u32 %r10, 1, 0, %p5;
            st.global.u32 [%rd4], %r5; st.global.u32 [%rd4+64], %r6; st.global.u32 [%rd4+128], %r8;
            st.global.u32 [%rd4+192], %r9; st.global.u32 [%rd4+256], %r10;"
        );
        let bench = right(&body, 16);
        let words = bench.words::<80>();
        for (part, wanted) in words.chunks(16).zip([0xffff, 16, 1, 0, 1]) {
            assert_eq!(part, [wanted; 16], "{body}");
        }
    }
    let read = "shfl.sync.down.b32 %r5, %r2, 1, 31, -1;";
    let message =
        "names lane 16 in its mask 0xffffffff, which left the kernel before, and reads its value";
    wrong(&format!("@!%p1 ret; {read}"), 32, ReportKind::Shuffle, "shfl.sync", message);
    let message =
        "names lane 20 in its mask 0xffffffff, which the block does not have, and reads its value";
    wrong(read, 20, ReportKind::Shuffle, "shfl.sync", message);
}

/// What a warp has written is there for its other lanes after a barrier that names those which have
/// left.
#[test]
fn barriers_of_a_warp_order_those_that_are_there() {
    let body = "@%p1 ret;
        mad.lo.u32 %r5, %r2, 4, %r3; st.shared.u32 [%r5], %r2;
        bar.warp.sync -1;
        xor.b32 %r6, %r2, 1; mad.lo.u32 %r6, %r6, 4, %r3; ld.shared.u32 %r7, [%r6];
        bar.warp.sync 0xffff0001;
        st.shared.u32 [%r5], %r7;";
    right(body, 64);
    for barrier in ["bar.warp.sync -1;", "bar.warp.sync 0xffff0001;"] {
        let without = body.replace(barrier, "");
        assert_eq!(bench(&without, 64).run().unwrap_err().kind, ReportKind::Race, "{barrier}");
    }
}

#[test]
fn a_mask_must_not_name_lanes_whose_guard_does_not_hold() {
    let message = "names lanes 16-31 in its mask 0xffffffff, which skips it";
    refused("@%p1 OP", "-1", 32, 0xffff, message);
    let skip = "names lane 15 in its mask 0x0000ffff, which skips it";
    refused("setp.lt.u32 %p1, %r2, 15; @%p1 OP", "0xffff", 32, 0x7fff, skip);
}

#[test]
fn lanes_that_name_each_other_must_have_the_same_mask() {
    let message = "executes with mask 0xffffffff, and lane 16 at the same time with 0xffff0000";
    refused("selp.b32 %r7, -1, 0xffff0000, %p1; OP", "%r7", 32, 1, message);
    allowed("selp.b32 %r7, 0xffff, 0xffff0000, %p1; OP", "%r7", 32);
}

#[test]
fn lanes_that_wait_for_each_other_at_different_places() {
    let body = "
        @%p1 bra LOW;
        bar.sync 0;
        bra JOIN;
        LOW:
        OP
        JOIN:";
    let message = "waits for lanes that its mask names, while lanes 16-31 wait at LINE(bar.sync 0)";
    refused(body, "-1", 32, 0xffff, message);
    let twins = "
        @%p1 bra LOW;
        OP
        bra JOIN;
        LOW:
        OP
        JOIN:";
    let shuffles = |body: &str, mask: &str| {
        each(body, mask, |body, at| {
            let bench = bench(&body, 32);
            let report = bench.run().unwrap_err();
            assert_eq!(report.kind, ReportKind::Shuffle, "{report}");
            assert!(bench.line(report.line).contains(at));
            assert!(report.message.starts_with("waits for lanes that its mask names, while lanes"));
        });
    };
    shuffles(twins, "-1");
    // Where they are together each half may do as it likes, and then both.
    let own = "selp.b32 %r7, 0xffff, 0xffff0000, %p1;";
    allowed(&format!("{own} {twins} bar.warp.sync -1; bar.sync 0;"), "%r7", 32);
}

#[test]
fn a_shuffle_must_not_read_a_lane_that_takes_no_part() {
    let body = "@%p1 shfl.sync.idx.b32 %r5, %r2, LANE, 31, 0xffff;";
    wrong(
        &body.replace("LANE", "20"),
        32,
        ReportKind::Shuffle,
        "shfl.sync",
        "reads a value of lane 20, which does not take part",
    );
    right(&body.replace("LANE", "15"), 32);
    // Out of its segment it reads itself.
    right("@%p1 shfl.sync.down.b32 %r5|%p5, %r2, 8, 4127, 0xffff;", 32);
}

/// What `__syncthreads_count`, `_and` and `_or` give: of all threads of the block, some of whose
/// warps have come by another way.
#[test]
fn barriers_reduce_the_predicates_of_a_block() {
    let body = "
        setp.lt.u32 %p2, %r2, LIMIT;
        bar.red.popc.u32 %r5, 0, %p2;
        bar.red.and.pred %p3, 0, %p2;
        bar.red.or.pred %p4, 0, !%p2;
        selp.u32 %r6, 100, 0, %p3;
        selp.u32 %r7, 1000, 0, %p4;
        add.u32 %r5, %r5, %r6;
        add.u32 %r5, %r5, %r7;
        st.global.u32 [%rd4], %r5;";
    for (limit, wanted) in [(0, 1000), (1, 1001), (33, 1033), (69, 1069), (70, 170), (99, 170)] {
        let found = right(&body.replace("LIMIT", &limit.to_string()), 70);
        assert_eq!(found.words::<70>(), [wanted; 70], "{limit}");
    }
    // Lanes of a warp reach the barrier one after the other, and get the same.
    let body = "
        mov.u32 %r5, 7;
        @!%p1 bra SECOND;
        add.u32 %r6, %r2, 1;
        SECOND:
        barrier.red.popc.u32 %r5, 1, 70, %p1;
        st.global.u32 [%rd4], %r5;";
    assert_eq!(right(body, 70).words::<70>(), [38; 70]);
}
