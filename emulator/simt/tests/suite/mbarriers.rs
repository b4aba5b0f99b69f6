//! `mbarrier`: phases and arrivals, what they order, and each wrong use with its sentence.

use simt::{Report, ReportKind};

use crate::kernel::Bench;

/// Every opcode, with its operands: of phase 0 of an mbarrier for one arrival.
fn forms() -> Vec<(String, &'static str)> {
    let mut all = Vec::new();
    for space in ["shared", "shared::cta"] {
        all.push((format!("mbarrier.init.{space}.b64"), "[s], 1"));
        all.push((format!("mbarrier.inval.{space}.b64"), "[s]"));
        for order in ["", ".release.cta"] {
            all.push((format!("mbarrier.arrive{order}.{space}.b64"), "%rd10, [s]"));
        }
        for wait in ["test_wait", "try_wait"] {
            for order in ["", ".acquire.cta"] {
                all.push((format!("mbarrier.{wait}{order}.{space}.b64"), "%p5, [s], %rd10"));
                all.push((format!("mbarrier.{wait}.parity{order}.{space}.b64"), "%p5, [s], 0"));
            }
        }
    }
    all
}

pub fn opcodes() -> impl Iterator<Item = String> {
    forms().into_iter().map(|(opcode, _)| opcode)
}

/// Blocks of so many threads; `%p1` holds in the first warp, `%p2` in each warp's first lane.
fn bench(body: &str, threads: u32) -> Bench {
    Bench::new(&format!(
        "setp.lt.u32 %p1, %r2, 32; and.b32 %r20, %r2, 31; setp.eq.u32 %p2, %r20, 0;\n{body}"
    ))
    .threads(threads)
}

/// An mbarrier `[s]` that the first thread initialises, then `body`. `s+16` and on are data.
fn with(count: u32, body: &str, threads: u32) -> Bench {
    let init = format!(
        "setp.eq.u32 %p3, %r2, 0;
        @%p3 mbarrier.init.shared.b64 [s], {count};
        bar.sync 0;
        {body}"
    );
    bench(&init, threads)
}

fn right(bench: &Bench) {
    let counters = bench.run().unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(bench.gone_through(false), Ok(counters));
    let counters = bench.run_together().unwrap_or_else(|report| panic!("together: {report}"));
    assert_eq!(bench.gone_through(true), Ok(counters));
}

/// Expects a mistake at `at`; `LINE(text)` in the message stands for the line of that text.
fn wrong(bench: &Bench, kind: ReportKind, at: &str, message: &str) -> Report {
    let mut wanted = String::new();
    for (i, part) in message.split("LINE(").enumerate() {
        match part.split_once(')').filter(|_| i > 0) {
            None => wanted += part,
            Some((text, after)) => wanted += &format!("PTX line {}{after}", bench.line_of(text)),
        }
    }
    let report = bench.reports(bench.run(), kind, at, &wanted);
    assert_eq!(bench.gone_through(false).as_ref(), Err(&report));
    report
}

/// A wait of the lanes that come here, for phase parity `parity`.
fn wait(parity: &str) -> String {
    format!("WAIT: mbarrier.test_wait.parity.shared.b64 %p5, [s], {parity};\n@!%p5 bra WAIT;")
}

#[test]
fn every_form_does_what_it_says() {
    for (opcode, operands) in forms() {
        let arrive = "mbarrier.arrive.shared.b64 %rd10, [s];";
        let body = match opcode.split('.').nth(1).unwrap() {
            "init" => format!("@%p2 {opcode} {operands}; bar.warp.sync -1; @%p2 {arrive}"),
            operation => {
                let test = match operation {
                    "inval" => format!("@%p2 {opcode} {operands}; @%p2 st.shared.u32 [s], 7;"),
                    "arrive" => format!("@%p2 {opcode} {operands};"),
                    // Before the arrival it does not hold, and behind it it does.
                    _ => format!(
                        "mov.b64 %rd10, 1;
                        {opcode} {operands};
                        @%p5 trap;
                        bar.warp.sync -1;
                        @%p2 {arrive}
                        {opcode} {operands};
                        @!%p5 trap;"
                    ),
                };
                format!("@%p2 mbarrier.init.shared.b64 [s], 1; bar.warp.sync -1; {test}")
            }
        };
        right(&bench(&body, 32));
    }
    // For how long it may wait is a hint.
    right(&with(1, "mbarrier.try_wait.parity.shared.b64 %p5, [s], 1, 100; @!%p5 trap;", 32));
}

/// What other opcodes of the family need is said.
#[test]
fn what_is_not_there_says_why() {
    for (opcode, reason) in [
        ("mbarrier.init.b64 [%rd1], 1", "only the form with `.shared` is supported"),
        ("mbarrier.arrive.shared::cluster.b64 _, [s]", "there are no clusters of blocks"),
        (
            "mbarrier.complete_tx.shared.b64 [s], 16",
            "counted by the copies themselves: `cp.async.bulk` with `mbarrier::complete_tx::bytes`",
        ),
    ] {
        let source = crate::kernel::source(&format!("{opcode};"));
        let error = simt::Module::parse(&source).and_then(simt::Module::complete).unwrap_err();
        assert!(error.message.ends_with(reason), "{error}");
    }
}

#[test]
fn phases_follow_arrivals() {
    // Each lane of a warp arrives, three times round, with an mbarrier for 32.
    let body = "
        mbarrier.test_wait.parity.shared.b64 %p5, [s], 1;
        @!%p5 trap;
        mbarrier.arrive.shared.b64 %rd10, [s];
        mbarrier.test_wait.shared.b64 %p5, [s], %rd10;
        @!%p5 trap;
        mbarrier.test_wait.parity.shared.b64 %p5, [s], 1;
        @%p5 trap;
        mbarrier.arrive.shared.b64 %rd11, [s];
        mbarrier.test_wait.shared.b64 %p5, [s], %rd10;
        @!%p5 bra OLD;
        trap;
        OLD:";
    // A state of two phases ago is none that can be tested.
    let report = wrong(
        &with(32, body, 32),
        ReportKind::Barrier,
        "test_wait.shared.b64 %p5, [s], %rd10",
        "waits for the mbarrier at offset 0 of shared memory with a parity that is neither 0 nor 1, or a state that is \
         not of this phase or the one before",
    );
    assert_eq!(report.lanes, 1);
    // Arrivals by count; with the last one the phase is over for all.
    let counted = "
        @!%p2 bra DONE;
        mbarrier.arrive.shared.b64 _, [s], 3;
        mbarrier.test_wait.parity.shared.b64 %p5, [s], 0;
        @%p5 trap;
        mbarrier.arrive.shared.b64 _, [s], 2;
        mbarrier.test_wait.parity.shared.b64 %p5, [s], 0;
        @!%p5 trap;
        DONE:";
    right(&with(5, counted, 32));
    for (count, times) in [("0", "0 times"), ("6", "6 times")] {
        let body = format!("@%p2 mbarrier.arrive.shared.b64 _, [s], {count};");
        let message = format!(
            "arrives at the mbarrier at offset 0 of shared memory {times}, and its phase takes 1 to 5"
        );
        wrong(&with(5, &body, 32), ReportKind::Barrier, "mbarrier.arrive", &message);
    }
}

/// Warp 1 hands data to warp 0, each of its lanes what it has written, through its first lane.
/// `WARP` orders the lanes of warp 1 before that.
const HAND_OVER: &str = "
    @%p1 bra READER;
    sub.u32 %r21, %r4, 128;
    add.u32 %r21, %r21, %r3;
    st.shared.u32 [%r21+16], %r2;
    WARP
    @%p2 mbarrier.arrive.shared.b64 %rd10, [s];
    bra DONE;
    READER:
    PARITY
    xor.b32 %r22, %r4, 124;
    add.u32 %r22, %r22, %r3;
    ld.shared.u32 %r23, [%r22+16];
    st.global.u32 [%rd4], %r23;
    DONE:";

fn hand_over(warp: &str, parity: &str) -> Bench {
    with(1, &HAND_OVER.replace("WARP", warp).replace("PARITY", &wait(parity)), 64)
}

#[test]
fn what_was_done_before_an_arrival_has_been_seen_behind_it() {
    let bench = hand_over("bar.warp.sync -1;", "0");
    right(&bench);
    assert_eq!(bench.words::<32>(), std::array::from_fn(|i| 63 - i as u32));
}

#[test]
fn what_the_arriving_lane_has_not_seen_is_not_handed_over() {
    // Lane 0 arrives, and lane 31's place is read first.
    wrong(
        &hand_over("", "0"),
        ReportKind::Race,
        "ld.shared.u32",
        "reads 4 bytes at offset 140 of shared memory, which lane 31 of warp 1 writes at LINE(st.shared.u32 [%r21): no \
         barrier lies between the two",
    );
    // Each lane hands over its own: then no barrier of the warp is needed.
    let all = HAND_OVER.replace("WARP", "").replace("@%p2 mbarrier", "mbarrier");
    right(&with(32, &all.replace("PARITY", &wait("0")), 64));
}

#[test]
fn the_wrong_parity_does_not_wait() {
    wrong(
        &hand_over("bar.warp.sync -1;", "1"),
        ReportKind::Uninitialized,
        "ld.shared.u32",
        "reads 4 bytes at offset 140 of shared memory, which nothing has written",
    );
}

/// A wait of one lane counts for the others when they meet it, and not before.
#[test]
fn one_lane_may_wait_for_all() {
    let one = format!("@!%p2 bra JOIN;\n{}\nJOIN:\nMEET", wait("0"));
    let body = |meet: &str| {
        let parity = one.replace("MEET", meet);
        HAND_OVER.replace("WARP", "bar.warp.sync -1;").replace("PARITY", &parity)
    };
    right(&with(1, &body("bar.warp.sync -1;"), 64));
    let report = with(1, &body(""), 64).run().unwrap_err();
    assert!(matches!(report.kind, ReportKind::Race | ReportKind::Uninitialized), "{report}");
}

/// What several warps have read may be overwritten by whom they have told so, and by nobody else.
#[test]
fn places_are_given_back() {
    let body = "
        @%p1 bra WRITER;
        ld.shared.u32 %r21, [s+16];
        bar.warp.sync -1;
        @%p2 mbarrier.arrive.shared.b64 %rd10, [s];
        bra DONE;
        WRITER:
        WAIT
        @%p2 st.shared.u32 [s+16], 7;
        DONE:";
    let readers = |warps: u32, count: u32| {
        let fill = "@%p3 st.shared.u32 [s+16], 5; bar.sync 0;";
        with(count, &format!("{fill}{}", body.replace("WAIT", &wait("0"))), 32 + 32 * warps)
    };
    right(&readers(1, 1));
    right(&readers(3, 3));
    right(&readers(31, 31));
    // One that is not waited for: the count is too small.
    let report = readers(3, 2).run().unwrap_err();
    assert_eq!(report.kind, ReportKind::Race, "{report}");
    assert!(report.message.contains("lane 31 of warp 3 reads at"), "{report}");
}

/// Two places by turns, as in a kernel that reads ahead: many rounds, and the reader is slower.
#[test]
fn a_ring_of_two_places() {
    let body = |late: &str| {
        format!(
            "
        @%p3 mbarrier.init.shared.b64 [s+8], 1;
        @%p3 mbarrier.init.shared.b64 [s+16], 1;
        @%p3 mbarrier.init.shared.b64 [s+24], 1;
        @%p3 mbarrier.init.shared.b64 [s+32], 1;
        bar.sync 0;
        mov.u32 %r30, 0;
        mov.u32 %r31, 0;
        @%p1 bra WRITER;
        READ:
        and.b32 %r32, %r30, 1;
        shr.u32 %r33, %r30, 1;
        and.b32 %r33, %r33, 1;
        shl.b32 %r34, %r32, 3;
        add.u32 %r34, %r34, %r3;
        FULL: mbarrier.test_wait.parity.shared.b64 %p5, [%r34+8], %r33;
        @!%p5 bra FULL;
        shl.b32 %r35, %r32, 7;
        add.u32 %r35, %r35, %r4;
        add.u32 %r35, %r35, %r3;
        ld.shared.u32 %r36, [%r35-0];
        add.u32 %r31, %r31, %r36;
        bar.warp.sync -1;
        @%p2 mbarrier.arrive.shared.b64 %rd10, [%r34+24];
        add.u32 %r30, %r30, 1;
        setp.lt.u32 %p6, %r30, 50;
        @%p6 bra READ;
        st.global.u32 [%rd4], %r31;
        bra DONE;
        WRITER:
        and.b32 %r32, %r30, 1;
        shr.u32 %r33, %r30, 1;
        {late}
        and.b32 %r33, %r33, 1;
        shl.b32 %r34, %r32, 3;
        add.u32 %r34, %r34, %r3;
        EMPTY: mbarrier.test_wait.parity.shared.b64 %p5, [%r34+24], %r33;
        @!%p5 bra EMPTY;
        shl.b32 %r35, %r32, 7;
        add.u32 %r35, %r35, %r4;
        add.u32 %r35, %r35, %r3;
        mul.lo.u32 %r36, %r30, %r2;
        st.shared.u32 [%r35+128], %r36;
        bar.warp.sync -1;
        @%p2 mbarrier.arrive.shared.b64 %rd10, [%r34+8];
        add.u32 %r30, %r30, 1;
        setp.lt.u32 %p6, %r30, 50;
        @%p6 bra WRITER;
        DONE:"
        )
        .replace("[%r35-0]", "[%r35]")
    };
    let turned = |late: &str| with(1, &body(late), 64);
    let bench = turned("xor.b32 %r33, %r33, 1;");
    right(&bench);
    let words = bench.words::<64>();
    assert_eq!(words[32..], std::array::from_fn::<u32, 32, _>(|i| 1225 * i as u32));
    // Without the turn the writer waits for what the reader gives back later.
    let report = turned("").run().unwrap_err();
    assert_eq!(report.kind, ReportKind::NoProgress, "{report}");
}

#[test]
fn a_wait_in_vain_ends_with_who_waits_where() {
    // Two arrivals are missing, warp 2 waits at a barrier, and warp 3 has left.
    let body = format!(
        "setp.ge.u32 %p6, %r2, 96;
        @%p6 ret;
        setp.ge.u32 %p6, %r2, 64;
        @%p6 bra MEET;
        @%p2 mbarrier.arrive.shared.b64 %rd10, [s];
        {}
        bra DONE;
        MEET: bar.sync 1;
        DONE:",
        wait("0")
    );
    let bench = with(4, &body, 128);
    wrong(
        &bench,
        ReportKind::NoProgress,
        "test_wait",
        "waits in vain for the mbarrier at offset 0 of shared memory: it is in phase 0, of parity 0, with 2 of 4 \
         arrivals, and no thread of the block does anything but wait: warp 1 for that at offset 0 at LINE(WAIT:); warp 2 \
         waits at the barrier at LINE(MEET:); 1 warp left the kernel",
    );
    let together = bench.run_together().unwrap_err();
    assert_eq!(together.kind, ReportKind::NoProgress, "{together}");
    // The other parity is over before it begins, and the last thread's arrivals are enough.
    right(&with(4, &body.replace("bar.sync 1;", "").replace("], 0;", "], 1;"), 128));
}

/// Lanes that wait for another lane of their own warp let it go on, whichever comes first in the
/// code.
#[test]
fn lanes_wait_for_lanes_of_their_warp() {
    for (first, second) in [("%p2", "!%p2"), ("!%p2", "%p2")] {
        let arrive = "mbarrier.arrive.shared.b64 %rd10, [s];";
        let wait = wait("0");
        let (taken, other) =
            if first == "%p2" { (arrive, wait.as_str()) } else { (wait.as_str(), arrive) };
        let body = format!("@{second} bra OTHER;\n{taken}\nbra DONE;\nOTHER:\n{other}\nDONE:");
        right(&with(1, &body, 32));
    }
}

#[test]
fn an_mbarrier_is_initialised_once_and_seen_by_all() {
    wrong(
        &bench("mbarrier.arrive.shared.b64 %rd10, [s];", 32),
        ReportKind::Uninitialized,
        "mbarrier.arrive",
        "arrives at the mbarrier at offset 0 of shared memory, where none has been initialised",
    );
    let none = "mbarrier.init.shared.b64 [s+8], 1; mbarrier.inval.shared.b64 [s+8]; WAIT";
    wrong(
        &bench(&none.replace("mbarrier.i", "@%p2 mbarrier.i").replace("WAIT", &wait("1")), 32),
        ReportKind::Uninitialized,
        "mbarrier.test_wait",
        "waits for the mbarrier at offset 0 of shared memory, where none has been initialised",
    );
    // No barrier of the block behind it.
    wrong(
        &bench(
            "@%p1 bra SET; mbarrier.arrive.shared.b64 %rd10, [s]; ret; SET: @%p2 mbarrier.init.shared.b64 [s], 9;",
            64,
        ),
        ReportKind::Race,
        "mbarrier.arrive",
        "arrives at the mbarrier at offset 0 of shared memory, which lane 0 of warp 0 writes at LINE(SET:): no barrier \
         lies between the two",
    );
    wrong(
        &with(1, "@%p3 mbarrier.init.shared.b64 [s], 1; // again", 64),
        ReportKind::Barrier,
        "// again",
        "initialises an mbarrier at offset 0 of shared memory, where the mbarrier is that lane 0 of warp 0 initialised at \
         LINE(mbarrier.init)",
    );
    for count in ["0", "1048576", "-1"] {
        let report = bench(&format!("@%p2 mbarrier.init.shared.b64 [s], {count};"), 32).run();
        let report = report.unwrap_err();
        let shown = count.parse::<i64>().unwrap() as u32;
        assert_eq!(
            report.message,
            format!(
                "initialises an mbarrier for {shown} arrivals: at least 1 and at most 1048575 are possible"
            )
        );
    }
    right(&bench("@%p2 mbarrier.init.shared.b64 [s], 1048575;", 32));
}

#[test]
fn an_mbarrier_is_no_ordinary_memory() {
    for (access, does) in [
        ("st.shared.u32 [s+4], 1;", "writes 4 bytes at offset 4"),
        ("ld.shared.u64 %rd11, [s];", "reads 8 bytes at offset 0"),
        ("atom.shared.add.u32 %r30, [s], 1;", "updates 4 bytes at offset 0"),
        ("cp.async.ca.shared.global [s], [%rd1], 4;", "copies 4 bytes at offset 0"),
    ] {
        let opcode = access.split(' ').next().unwrap();
        let message = format!(
            "{does} of shared memory, where the mbarrier is that lane 0 of warp 0 initialised at LINE(mbarrier.init)"
        );
        wrong(&with(1, &format!("@%p3 {access}"), 32), ReportKind::Barrier, opcode, &message);
    }
    wrong(
        &with(1, "mbarrier.arrive.shared.b64 %rd10, [s+4];", 32),
        ReportKind::Misaligned,
        "mbarrier.arrive",
        "uses an mbarrier of 8 bytes at offset 4 of shared memory, which is no multiple of 8",
    );
    wrong(
        &with(1, "mbarrier.arrive.shared.b64 %rd10, [s+4096];", 32),
        ReportKind::OutOfBounds,
        "mbarrier.arrive",
        "uses an mbarrier of 8 bytes at offset 4096 of shared memory, of which the block has 4096 bytes",
    );
}

/// Invalidated, its place is ordinary memory; not while others may still use it.
#[test]
fn invalidation_needs_order() {
    let arrive = "mbarrier.arrive.shared.b64 %rd10, [s];";
    let inval = "@%p3 mbarrier.inval.shared.b64 [s];";
    let again = "@%p3 mbarrier.init.shared.b64 [s], 3;";
    right(&with(64, &format!("{arrive} bar.sync 0; {inval} {again}"), 64));
    let body = format!("@!%p1 bra W; {arrive} ret; W: {}", inval.replace("%p3", "%p2"));
    let report = with(99, &body, 64).run().unwrap_err();
    assert_eq!(report.kind, ReportKind::Race, "{report}");
}

/// Blocks that run together know the order in global memory, too.
#[test]
fn global_memory_is_handed_over() {
    let body = |arrive: &str| {
        format!(
            "@%p1 bra READER;
        @%p2 st.global.u32 [%rd2], 77;
        @%p2 {arrive}
        bra DONE;
        READER:
        {}
        ld.volatile.global.u32 %r21, [%rd2+1024];
        ld.global.u32 %r22, [%rd2];
        DONE:",
            wait("0")
        )
    };
    let fill = "@%p3 st.global.u32 [%rd2+1024], 1; bar.sync 0;";
    let arrive = "mbarrier.arrive.shared.b64 %rd10, [s];";
    right(&with(1, &format!("{fill}{}", body(arrive)), 64));
    // Arrived first, written then.
    let swapped = body("").replace("@%p2 st.global.u32 [%rd2], 77;", "");
    let swapped =
        swapped.replace("@%p2 \n", &format!("@%p2 {arrive}\n@%p2 st.global.u32 [%rd2], 77;\n"));
    let report = with(1, &format!("{fill}{swapped}"), 64).run_together().unwrap_err();
    assert!(matches!(report.kind, ReportKind::Race | ReportKind::Uninitialized), "{report}");
}
