//! Lanes of one warp that go different ways: what they compute, where they meet, and that they wait
//! for each other.

use simt::Access;

use crate::kernel::{AROUND, Bench};

/// Runs it and returns what every lane of a warp stored at `[%rd4]`, and the counters.
fn lanes(body: &str) -> ([u32; 32], simt::Counters) {
    let bench = Bench::new(body);
    let counters = bench.run().unwrap_or_else(|report| panic!("{report}\n{body}"));
    (bench.words(), counters)
}

/// Four leaves of two nested branches; all lanes store together.
#[test]
fn nested_branches_meet_where_the_code_joins() {
    let (words, counters) = lanes(
        "and.b32 %r5, %r2, 1;
        and.b32 %r6, %r2, 2;
        setp.eq.u32 %p1, %r5, 0;
        setp.eq.u32 %p2, %r6, 0;
        @%p1 bra EVEN;
        @%p2 bra ONE;
        mov.u32 %r7, 300;
        bra ODD_END;
        ONE:
        mov.u32 %r7, 100;
        ODD_END:
        add.u32 %r7, %r7, 1;
        bra END;
        EVEN:
        @%p2 bra ZERO;
        mov.u32 %r7, 200;
        bra END;
        ZERO:
        mov.u32 %r7, 0;
        END:
        activemask.b32 %r8;
        not.b32 %r8, %r8;
        add.u32 %r7, %r7, %r8;
        st.global.u32 [%rd4], %r7;",
    );
    assert_eq!(words, std::array::from_fn(|i| [0, 101, 200, 301][i % 4]));
    assert_eq!(counters.divergent_branches, 3);
    assert_eq!(counters.requests(Access::GlobalStore), 1);
    // Four before, the branch, the odd lanes' six and the even lanes' four (a side of a branch does
    // not execute the other), and four together again.
    assert_eq!(counters.instructions, AROUND + 4 + 1 + (6 + 4) + 4);
    let odd = 8 + 8 + 8 + 8 + 16 + 16;
    let even = 8 + 8 + 8 + 8;
    assert_eq!(counters.thread_instructions, 32 * (AROUND + 4 + 4) + 16 + odd + even);
}

/// Lane `i` goes round `i` times in the inner loop and twice in the outer one.
#[test]
fn loops_with_a_trip_count_for_each_lane() {
    let (words, counters) = lanes(
        "mov.u32 %r5, 0;
        mov.u32 %r7, 0;
        OUTER:
        mov.u32 %r6, 0;
        INNER:
        setp.ge.u32 %p1, %r6, %r2;
        @%p1 bra DONE;
        add.u32 %r6, %r6, 1;
        add.u32 %r5, %r5, %r6;
        bra INNER;
        DONE:
        add.u32 %r7, %r7, 1;
        setp.lt.u32 %p2, %r7, 2;
        @%p2 bra OUTER;
        st.global.u32 [%rd4], %r5;",
    );
    assert_eq!(words, std::array::from_fn(|i| (i * (i + 1)) as u32));
    assert_eq!(counters.requests(Access::GlobalStore), 1);
    // In each of two rounds, every test but the last lets one lane go and the others stay.
    assert_eq!(counters.divergent_branches, 2 * 31);
    assert_eq!(counters.instructions, AROUND + 2 + 2 * (1 + 32 * 2 + 31 * 3 + 3) + 1);
}

/// Lanes leave one after the other; the others go on.
#[test]
fn lanes_that_return_early() {
    let (words, counters) = lanes(
        "st.global.u32 [%rd4], 0;
        mov.u32 %r5, 0;
        AGAIN:
        setp.eq.u32 %p1, %r5, %r2;
        @%p1 ret;
        add.u32 %r5, %r5, 1;
        st.global.u32 [%rd4], %r5;
        bra AGAIN;",
    );
    assert_eq!(words, std::array::from_fn(|i| i as u32));
    assert_eq!(counters.sites[1].requests, 31);
    assert_eq!(counters.sites[1].bytes, 4 * 31 * 32 / 2);
}

/// Two halves shuffle, vote and reduce in two branches, each with its own mask.
#[test]
fn parts_of_a_warp_work_together_in_different_branches() {
    let (words, _) = lanes(
        "setp.lt.u32 %p1, %r2, 16;
        @%p1 bra LOW;
        shfl.sync.up.b32 %r5, %r2, 1, 4096, 0xffff0000;
        redux.sync.max.u32 %r6, %r2, 0xffff0000;
        bra END;
        LOW:
        shfl.sync.down.b32 %r5, %r2, 2, 4127, 0xffff;
        redux.sync.add.u32 %r6, %r2, 0xffff;
        END:
        mad.lo.u32 %r5, %r5, 1000, %r6;
        st.global.u32 [%rd4], %r5;",
    );
    let wanted = |i: u32| match i {
        0..14 => 1000 * (i + 2) + 120,
        14..17 => 1000 * i + if i < 16 { 120 } else { 31 },
        _ => 1000 * (i - 1) + 31,
    };
    assert_eq!(words, std::array::from_fn(|i| wanted(i as u32)));
}

/// The even lanes come to the shuffle first, and wait there for the others, who take a longer way.
#[test]
fn lanes_wait_at_a_shuffle_for_those_that_it_names() {
    let (words, counters) = lanes(
        "mov.u32 %r5, %r2;
        and.b32 %r6, %r2, 1;
        setp.eq.u32 %p1, %r6, 0;
        @%p1 bra TOGETHER;
        bra LATER;
        TOGETHER:
        shfl.sync.bfly.b32 %r7, %r5, 1, 31, -1;
        st.global.u32 [%rd4], %r7;
        ret;
        LATER:
        mul.lo.u32 %r5, %r5, 10;
        bra TOGETHER;",
    );
    assert_eq!(
        words,
        std::array::from_fn(|i| if i % 2 == 0 { 10 * (i as u32 + 1) } else { i as u32 - 1 })
    );
    assert_eq!(counters.class(simt::Class::Shuffle), 1);
    assert_eq!(counters.requests(Access::GlobalStore), 1);
}

/// Lane 0 spins until lane 31 of its own warp has raised a flag, in a place behind the loop.
#[test]
fn lanes_that_spin_on_a_lane_of_their_warp_go_on() {
    for (reader, writer) in [(0, 31), (31, 0)] {
        let (words, _) = lanes(&format!(
            "setp.eq.u32 %p1, %r2, {writer};
            setp.ne.u32 %p2, %r2, {reader};
            mov.u32 %r6, 5;
            st.global.u32 [%rd4], 0;
            @%p1 st.volatile.shared.u32 [s], 0;
            bar.warp.sync -1;
            @%p2 bra OTHERS;
            AGAIN:
            ld.volatile.shared.u32 %r6, [s];
            setp.eq.u32 %p3, %r6, 0;
            @%p3 bra AGAIN;
            bra END;
            OTHERS:
            @%p1 st.volatile.shared.u32 [s], 77;
            END:
            st.global.u32 [%rd4], %r6;"
        ));
        assert_eq!(words, std::array::from_fn(|i| if i == reader { 77 } else { 5 }));
    }
}

/// A warp spins on what another one of its block stores, whichever runs first.
#[test]
fn warps_that_spin_on_each_other_go_on() {
    let bench = Bench::new(
        "st.volatile.shared.u32 [%r4], 0;
        bar.sync 0;
        shr.u32 %r5, %r2, 5;
        setp.eq.u32 %p1, %r5, 3;
        mov.u32 %r7, 1;
        @%p1 bra RAISE;
        AGAIN:
        ld.volatile.shared.u32 %r7, [%r4+128];
        setp.eq.u32 %p2, %r7, 0;
        @%p2 bra AGAIN;
        add.u32 %r7, %r7, 1;
        RAISE:
        st.volatile.shared.u32 [%r4], %r7;
        st.global.u32 [%rd4], %r7;",
    )
    .threads(128);
    bench.run().unwrap();
    assert_eq!(bench.words::<128>(), std::array::from_fn(|i| 4 - i as u32 / 32));
}

/// Every lane takes a lock in turn: each must get on while the others spin.
#[test]
fn a_lock_passes_through_all_lanes() {
    let bench = Bench::new(
        "setp.eq.u32 %p1, %r2, 0;
        @%p1 st.shared.v2.u32 [s], {%r2, %r2};
        bar.sync 0;
        AGAIN:
        atom.shared.cas.b32 %r5, [s], 0, 1;
        setp.ne.u32 %p2, %r5, 0;
        @%p2 bra AGAIN;
        ld.volatile.shared.u32 %r6, [s+4];
        add.u32 %r6, %r6, 1;
        st.volatile.shared.u32 [s+4], %r6;
        membar.cta;
        atom.shared.exch.b32 %r5, [s], 0;
        st.global.u32 [%rd4], %r6;",
    )
    .threads(64);
    bench.run().unwrap();
    let mut turns = bench.words::<64>();
    turns.sort_unstable();
    assert_eq!(turns, std::array::from_fn(|i| i as u32 + 1));
}
