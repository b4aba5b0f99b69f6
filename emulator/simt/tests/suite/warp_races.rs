//! Races in shared memory between lanes of one warp: barriers of the warp, and of parts of it.

use simt::ReportKind;

use crate::kernel::Bench;
use crate::races::{EXCHANGE, fine, races};

#[test]
fn lanes_of_one_warp_need_a_barrier_of_the_warp() {
    let body = "
        st.shared.u32 [%r4], %r2;
        BARRIER
        xor.b32 %r5, %r4, 4;
        ld.shared.u32 %r6, [%r5];
        st.global.u32 [%rd4], %r6;
    ";
    races(
        &body.replace("BARRIER", ""),
        "ld.shared",
        "st.shared",
        "reads 4 bytes at offset 4 of shared memory, which lane 1 of warp 0 writes",
    );
    let bench = fine(&body.replace("BARRIER", "bar.warp.sync -1;"));
    assert_eq!(bench.words::<64>(), std::array::from_fn(|i| i as u32 ^ 1));
    fine(&body.replace("BARRIER", "bar.sync 0;"));
    // A shuffle gathers the lanes, and orders no memory.
    races(
        &body.replace("BARRIER", "shfl.sync.idx.b32 %r7, %r2, 0, 31, -1;"),
        "ld.shared",
        "st.shared",
        "reads 4 bytes at offset 4 of shared memory, which lane 1 of warp 0 writes",
    );
}

/// A barrier of one warp orders nothing between warps.
#[test]
fn a_barrier_of_the_warp_is_not_one_of_the_block() {
    let body = EXCHANGE.replace("BARRIER", "bar.warp.sync -1; setp.lt.u32 %p1, %r2, 32;");
    races(
        &body.replace("ld.shared", "@!%p1 ld.shared"),
        "ld.shared",
        "st.shared",
        "reads 4 bytes at offset 0 of shared memory, which lane 0 of warp 0 writes",
    );
}

/// Of lanes that a barrier of a part of the warp does not name, it orders nothing.
#[test]
fn a_barrier_of_half_a_warp_orders_that_half() {
    let body = "
        setp.lt.u32 %p1, %r2, 16;
        st.shared.u32 [%r4], %r2;
        @%p1 bar.warp.sync 0xffff;
        SECOND
        xor.b32 %r5, %r4, DISTANCE;
        @%p1 ld.shared.u32 %r6, [%r5];
    ";
    let bench = |second: &str, distance| {
        Bench::new(&body.replace("SECOND", second).replace("DISTANCE", distance))
    };
    bench("", "4").run().unwrap();
    let alone = bench("", "64");
    let message = format!(
        "reads 4 bytes at offset 64 of shared memory, which lane 16 of warp 0 writes at PTX line {}: no barrier lies \
         between the two",
        alone.line_of("st.shared")
    );
    alone.reports(alone.run(), ReportKind::Race, "ld.shared", &message);
    bench("bar.warp.sync -1;", "64").run().unwrap();
    bench("bar.sync 0;", "64").run().unwrap();
}

/// Two halves pass the same instruction at the same time, each with its own mask.
#[test]
fn halves_beside_each_other() {
    let body = "
        setp.lt.u32 %p1, %r2, 16;
        selp.b32 %r5, 0xffff, 0xffff0000, %p1;
        st.shared.u32 [%r4], %r2;
        bar.warp.sync %r5;
        xor.b32 %r6, %r4, DISTANCE;
        ld.shared.u32 %r7, [%r6];
        st.global.u32 [%rd4], %r7;
    ";
    let bench = Bench::new(&body.replace("DISTANCE", "60"));
    bench.run().unwrap();
    assert_eq!(bench.words::<32>(), std::array::from_fn(|i| i as u32 ^ 15));
    let bench = Bench::new(&body.replace("DISTANCE", "64"));
    assert_eq!(bench.run().unwrap_err().kind, ReportKind::Race);
}

/// Lane 0 tells lane 1, which tells lane 2: what the first has done, the last knows.
#[test]
fn barriers_of_parts_pass_on_what_a_lane_has_seen() {
    let body = "
        setp.eq.u32 %p1, %r2, 0;
        setp.eq.u32 %p2, %r2, 2;
        setp.le.u32 %p3, %r2, 1;
        sub.u32 %r6, %r2, 1;
        setp.le.u32 %p4, %r6, 1;
        @%p1 st.shared.u32 [s], 7;
        FIRST
        SECOND
        @%p2 ld.shared.u32 %r5, [s];
        @%p2 st.global.u32 [%rd2], %r5;
    ";
    let (low, high) = ("@%p3 bar.warp.sync 3;", "@%p4 bar.warp.sync 6;");
    let run = |first: &str, second: &str| {
        let bench = Bench::new(&body.replace("FIRST", first).replace("SECOND", second));
        bench.run().map(|_| bench.words::<1>())
    };
    assert_eq!(run(low, high).unwrap(), [7]);
    for (first, second) in [(low, ""), ("", high), (high, low)] {
        assert_eq!(run(first, second).unwrap_err().kind, ReportKind::Race, "{first} {second}");
    }
}
