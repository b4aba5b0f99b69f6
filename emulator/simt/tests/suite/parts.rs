//! Barriers at which a part of the block meets: what they order, who waits, and each wrong use with
//! its sentence.

use simt::ReportKind;

use crate::kernel::Bench;

/// Runs a body in every way there is, all of which come to the same, and returns the bench.
fn right(body: &str, threads: u32) -> Bench {
    let bench = Bench::new(body).threads(threads);
    let counters = bench.run().unwrap_or_else(|report| panic!("{report}\n{body}"));
    for together in [false, true] {
        let through = bench.gone_through(together).unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(through, counters, "{body}");
    }
    let other = Bench::new(body).threads(threads);
    assert_eq!(other.run_together().unwrap_or_else(|report| panic!("{report}")), counters);
    assert_eq!(other.words::<256>(), bench.words::<256>());
    bench
}

fn wrong(body: &str, threads: u32, kind: ReportKind, at: &str, message: &str) {
    let bench = Bench::new(body).threads(threads);
    let message = match message.split_once("LINE(") {
        None => message.to_string(),
        Some((before, rest)) => {
            let (text, after) = rest.split_once(')').unwrap();
            format!("{before}PTX line {}{after}", bench.line_of(text))
        }
    };
    bench.reports(bench.run(), kind, at, &message);
}

/// All of `b` is written, so that it can be compared.
const CLEAR: &str = "mul.lo.u32 %r30, %r2, 4; cvt.u64.u32 %rd30, %r30; add.u64 %rd30, %rd2, %rd30;
    mov.u32 %r31, 0; L_CLEAR: st.global.u32 [%rd30], %r31; add.u32 %r30, %r30, THREADS4;
    add.u64 %rd30, %rd30, THREADS4; setp.lt.u32 %p19, %r30, 1024; @%p19 bra L_CLEAR; bar.sync 0;";

fn clear(threads: u32) -> String {
    CLEAR.replace("THREADS4", &(4 * threads).to_string())
}

/// Warp 0 makes four rows of numbers in one buffer, warp 1 takes them: `full` and `empty` by turns.
const RING: &str = "
    setp.ge.u32 %p1, %r2, 32;
    and.b32 %r5, %r2, 31; mad.lo.u32 %r6, %r5, 4, %r3;
    mov.u32 %r7, 0;
    @%p1 bra CONSUMER;
    PRODUCER:
    bar.sync 2, 64; // empty
    mad.lo.u32 %r8, %r7, 100, %r5;
    st.shared.u32 [%r6], %r8;
    bar.arrive 1, 64; // full
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p2, %r7, 4;
    @%p2 bra PRODUCER;
    bra END;
    CONSUMER:
    bar.arrive 2, 64; // first
    TAKE:
    bar.sync 1, 64; // wait
    xor.b32 %r9, %r5, 31; mad.lo.u32 %r9, %r9, 4, %r3;
    ld.shared.u32 %r10, [%r9];
    mad.lo.u32 %r11, %r7, 32, %r5; mul.wide.u32 %rd5, %r11, 4; add.u64 %rd5, %rd2, %rd5;
    st.global.u32 [%rd5], %r10;
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p2, %r7, 4;
    @%p2 bar.arrive 2, 64; // again
    @%p2 bra TAKE;
    END:";

#[test]
fn who_arrives_hands_over_and_who_waits_gets_it() {
    let bench = right(&format!("{}{RING}", clear(64)), 64);
    let wanted: Vec<u32> = (0..128).map(|i| i / 32 * 100 + (31 - i % 32)).collect();
    assert_eq!(bench.words::<128>()[..], wanted[..]);
    assert_eq!(bench.run().unwrap().barriers, 1 + 8);
    // Not to wait for what is full is a mistake, and so is to give away what is still going to be
    // read.
    let report =
        Bench::new(&RING.replace("bar.sync 1, 64; // wait", "")).threads(64).run().unwrap_err();
    assert_eq!(report.kind, ReportKind::Uninitialized, "{report}");
    let early = RING.replace("@%p2 bar.arrive 2, 64; // again", "");
    let early = early.replace("bar.sync 1, 64; // wait", "bar.sync 1, 64; bar.arrive 2, 64;");
    let report = Bench::new(&early).threads(64).run().unwrap_err();
    assert_eq!(report.kind, ReportKind::Race, "{report}");
    // So is to go on writing behind one's own arrival.
    let behind =
        RING.replace("bar.arrive 1, 64; // full", "bar.arrive 1, 64; st.shared.u32 [%r6], 7;");
    let report = Bench::new(&behind).threads(64).run().unwrap_err();
    assert_eq!(report.kind, ReportKind::Race, "{report}");
}

#[test]
fn parts_of_a_block_meet_at_barriers_of_their_own() {
    // Four warps in two pairs, each of which exchanges values at its own barrier, numbers and
    // counts in registers.
    let body = "
        shr.u32 %r5, %r2, 6; add.u32 %r6, %r5, 3; mov.u32 %r7, 64;
        mad.lo.u32 %r8, %r2, 4, %r3; st.shared.u32 [%r8], %r2;
        bar.sync %r6, %r7;
        xor.b32 %r9, %r2, OTHER; mad.lo.u32 %r9, %r9, 4, %r3; ld.shared.u32 %r10, [%r9];
        st.global.u32 [%rd4], %r10;";
    let with = |other: u32| format!("{}{}", clear(128), body.replace("OTHER", &other.to_string()));
    let words = right(&with(63), 128).words::<128>();
    assert_eq!(words[..], (0..128).map(|i| i ^ 63).collect::<Vec<u32>>()[..]);
    // The other pair is not waited for.
    let report = Bench::new(&with(64)).threads(128).run().unwrap_err();
    assert!(matches!(report.kind, ReportKind::Race | ReportKind::Uninitialized), "{report}");
}

#[test]
fn global_memory_is_handed_over_to_those_who_wait() {
    let body = "
        setp.ge.u32 %p1, %r2, 32; @%p1 bra CONSUMER;
        st.global.u32 [%rd4], %r2; BARRIER
        bra END;
        CONSUMER: bar.sync 4, 64; ld.global.u32 %r5, [%rd4+-128]; st.global.u32 [%rd4+512], %r5;
        END:";
    let whole = |barrier: &str| format!("{}{}", clear(64), body.replace("BARRIER", barrier));
    let bench = right(&whole("bar.arrive 4, 64;"), 64);
    assert_eq!(bench.words::<192>()[160..], (0..32).collect::<Vec<u32>>()[..]);
    // Blocks that run together know whom a barrier tells.
    let other = "setp.lt.u32 %p3, %r2, 0; bar.arrive 4, 64; st.global.u32 [%rd4], %r2;";
    let report = Bench::new(&whole(other)).threads(64).run_together().unwrap_err();
    assert_eq!(report.kind, ReportKind::Race, "{report}");
}

#[test]
fn predicates_of_a_part_are_reduced() {
    let body = "
        setp.lt.u32 %p1, %r2, 40; setp.ge.u32 %p2, %r2, 64; @%p2 bra OTHERS;
        bar.red.popc.u32 %r5, 1, 64, %p1;
        bar.red.and.pred %p3, 1, 64, %p1; barrier.red.or.pred %p4, 1, 64, %p1;
        selp.u32 %r6, 100, 0, %p3; selp.u32 %r7, 1000, 0, %p4;
        add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r7;
        st.global.u32 [%rd4], %r5;
        OTHERS:";
    let words = right(&format!("{}{body}", clear(128)), 128).words::<65>();
    assert_eq!(words[..64], [1040; 64]);
    assert_eq!(words[64], 0);
}

#[test]
fn lanes_of_a_warp_count_when_all_have_come() {
    // From two places, of a form that allows it; the second half of warp 0 comes later.
    let body = "
        setp.ge.u32 %p1, %r2, 64; @%p1 bra END;
        setp.ge.u32 %p1, %r2, 32; @%p1 bra OTHER;
        setp.lt.u32 %p2, %r2, 16; st.shared.u32 [%r3], 5;
        @%p2 bra LOW;
        mov.u32 %r5, 1; barrier.sync 1, 64; bra END;
        LOW: barrier.sync 1, 64; bra END;
        OTHER: barrier.sync 1, 64;
        ld.shared.u32 %r6, [%r3]; st.global.u32 [%rd4], %r6;
        END:";
    assert_eq!(right(&format!("{}{body}", clear(96)), 96).words::<64>()[32..], [5; 32]);
    // Those that have left are not waited for, of a warp that has come.
    let left = "setp.lt.u32 %p1, %r2, 16; setp.ge.or.u32 %p1, %r2, 64, %p1;
        @!%p1 bra STAY; bra GONE; STAY: barrier.sync 1, 64; GONE:";
    right(&format!("{}{left}", clear(96)), 96);
}

#[test]
fn counts_are_of_whole_warps() {
    for (threads, count) in [(0, "0 threads"), (40, "40 threads"), (33, "33 threads")] {
        let tail = format!(
            "at barrier 1 for {count}: warps are counted, so that it is a multiple of 32, and not 0"
        );
        let sync = format!("bar.sync 1, {threads};");
        wrong(&sync, 64, ReportKind::Barrier, &sync, &format!("waits {tail}"));
        let arrive = format!("bar.arrive 1, {threads};");
        wrong(&arrive, 64, ReportKind::Barrier, &arrive, &format!("arrives {tail}"));
    }
    // All threads of the block are what they are.
    right(&format!("{} bar.sync 1, 40;", clear(40)), 40);
    let body = "setp.lt.u32 %p1, %r2, 32; @%p1 bra FIRST; bar.sync 1, 64; bra END; FIRST: bar.sync 1, 96; END:";
    let body = body.replace("; ", ";\n");
    wrong(
        &body,
        128,
        ReportKind::Barrier,
        "bar.sync 1, 64",
        "waits at barrier 1 for 64 threads, at which warp 0 came for 96 at LINE(bar.sync 1, 96)",
    );
}

#[test]
fn numbers_are_those_of_a_warp() {
    let message = "names barrier 16: there are those from 0 to 15";
    wrong("mov.u32 %r5, 16; bar.sync %r5, 32;", 64, ReportKind::Barrier, "bar.sync", message);
    let message = "gives 0 as the number of a barrier, and lane 1 of the same warp gives 1";
    wrong("bar.sync %r2, 32;", 16, ReportKind::Barrier, "bar.sync", message);
    let message = "gives 0 as threads of a barrier, and lane 1 of the same warp gives 1";
    wrong("bar.arrive 3, %r2;", 16, ReportKind::Barrier, "bar.arrive", message);
    let twice = "setp.lt.u32 %p1, %r2, 16;\n@%p1 barrier.arrive 1, 64;\n@%p1 barrier.arrive 1, 64; // again\n";
    let message = "arrives at barrier 1, where lanes 0-15 came before and count only with the other lanes of the warp, \
                   which have not come";
    wrong(twice, 64, ReportKind::Barrier, "// again", message);
}

#[test]
fn who_waits_in_vain_says_who_else_waits_and_where() {
    let body = "
        setp.lt.u32 %p1, %r2, 32; @%p1 bra FIRST;
        setp.lt.u32 %p1, %r2, 64; @%p1 bra SECOND;
        setp.ge.u32 %p1, %r2, 96; @%p1 ret;
        bar.sync 2, 64; // third
        bra END;
        FIRST:
        bar.sync 1, 96;
        bra END;
        SECOND:
        bar.sync 1, 96;
        END:";
    let bench = Bench::new(body).threads(128);
    let message = format!(
        "waits at barrier 1 for 96 threads, of which 64 have come, and no thread of the block goes on: warp 1 waits there, at \
         PTX line {}; warp 2 waits at barrier 2 for 64 threads, of which 32 have come, at PTX line {}; 1 warp left the kernel",
        bench.line_of("SECOND:") + 1,
        bench.line_of("// third"),
    );
    let report = bench.reports(bench.run(), ReportKind::Barrier, "bar.sync 1, 96;", &message);
    assert_eq!((report.warp, report.lanes), (0, u32::MAX));
    // Others wait for all threads of the block.
    let body = "setp.lt.u32 %p1, %r2, 32;\n@%p1 bra FIRST;\nbar.sync 0;\nbra END;\nFIRST:\nbar.sync 1, 64;\nEND:";
    let bench = Bench::new(body).threads(96);
    let line = bench.line_of("bar.sync 0;");
    let message = format!(
        "waits at barrier 1 for 64 threads, of which 32 have come, and no thread of the block goes on: warp 1 waits at barrier 0 \
         for all threads of the block, at PTX line {line}; warp 2 waits at barrier 0 for all threads of the block, at PTX line \
         {line}"
    );
    bench.reports(bench.run(), ReportKind::Barrier, "bar.sync 1, 64;", &message);
}
