//! Races in shared memory: two threads, one place, at least one write, and no barrier between them.

use simt::ReportKind;

use crate::kernel::Bench;

/// Runs with two warps and expects a race at `at`, of which the other side stands where `other`
/// does.
pub fn races(body: &str, at: &str, other: &str, message: &str) {
    let bench = Bench::new(body).threads(64);
    let line = bench.line_of(other);
    let message = format!("{message} at PTX line {line}: no barrier lies between the two");
    let found = bench.run();
    bench.reports(found, ReportKind::Race, at, &message);
}

pub fn fine(body: &str) -> Bench {
    let bench = Bench::new(body).threads(64);
    bench.run().unwrap_or_else(|report| panic!("{report}\n{body}"));
    bench
}

/// Every thread writes its word and reads that of the thread 32 further.
pub const EXCHANGE: &str = "
    st.shared.u32 [%r4], %r2;
    BARRIER
    xor.b32 %r5, %r4, 128;
    ld.shared.u32 %r6, [%r5];
    st.global.u32 [%rd4], %r6;
";

#[test]
fn read_after_write() {
    // Warp 0 reads first: nothing is there yet. Warp 1 reads what warp 0 wrote.
    let body = EXCHANGE
        .replace("BARRIER", "setp.lt.u32 %p1, %r2, 32;")
        .replace("ld.shared", "@!%p1 ld.shared");
    races(
        &body,
        "ld.shared",
        "st.shared",
        "reads 4 bytes at offset 0 of shared memory, which lane 0 of warp 0 writes",
    );
    let bench = fine(&EXCHANGE.replace("BARRIER", "bar.sync 0;"));
    assert_eq!(bench.words::<64>(), std::array::from_fn(|i| i as u32 ^ 32));
}

#[test]
fn write_after_read() {
    // Only warp 1 writes, over what warp 0 has read.
    let body = "
        setp.ge.u32 %p1, %r2, 32;
        st.shared.u32 [%r4], %r2;
        bar.sync 0;
        ld.shared.u32 %r5, [%r4];
        BARRIER
        xor.b32 %r6, %r4, 128;
        @%p1 st.shared.b32 [%r6], %r2;
    ";
    races(
        &body.replace("BARRIER", ""),
        "st.shared.b32",
        "ld.shared",
        "writes 4 bytes at offset 0 of shared memory, which lane 0 of warp 0 reads",
    );
    fine(&body.replace("BARRIER", "bar.sync 0;"));
}

#[test]
fn write_after_write() {
    let body = "
        and.b32 %r5, %r4, 124;
        st.shared.u32 [%r5], %r2;
        BARRIER
        setp.ge.u32 %p1, %r2, 32;
        @%p1 st.shared.b32 [%r5], %r2;
    ";
    races(
        &body.replace("BARRIER", ""),
        "st.shared.u32",
        "st.shared.u32",
        "writes 4 bytes at offset 0 of shared memory, which lane 0 of warp 0 writes",
    );
    let one_at_a_time = body.replace("st.shared.u32", "@%p2 st.shared.u32");
    fine(&format!("setp.lt.u32 %p2, %r2, 32; {}", one_at_a_time.replace("BARRIER", "bar.sync 0;")));
}

/// The barrier of the step before does not count for this one.
#[test]
fn a_barrier_is_needed_in_every_round() {
    let body = "
        mov.u32 %r7, 0;
        st.shared.u32 [%r4], %r2;
        AGAIN:
        bar.sync 0;
        xor.b32 %r5, %r4, 128;
        ld.shared.u32 %r6, [%r5];
        SECOND
        st.shared.b32 [%r4], %r6;
        add.u32 %r7, %r7, 1;
        setp.lt.u32 %p1, %r7, 3;
        @%p1 bra AGAIN;
    ";
    races(
        &body.replace("SECOND", ""),
        "ld.shared",
        "st.shared.b32",
        "reads 4 bytes at offset 0 of shared memory, which lane 0 of warp 0 writes",
    );
    fine(&body.replace("SECOND", "bar.sync 0;"));
}

#[test]
fn a_thread_may_do_what_it_likes_with_its_own() {
    fine(
        "st.shared.u32 [%r4], %r2; ld.shared.u32 %r5, [%r4]; st.shared.u32 [%r4], %r5; ld.shared.u16 %r6, [%r4+2];",
    );
}

#[test]
fn reads_do_not_race() {
    fine(
        "st.shared.u32 [%r4], %r2; bar.sync 0; ld.shared.u32 %r5, [s]; ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [s+16];",
    );
}

/// Lanes of one instruction that write one value to one place leave no doubt; different values do.
#[test]
fn the_same_value_from_all_lanes() {
    let body = "mov.u32 %r5, VALUE; setp.lt.u32 %p1, %r2, 32; @%p1 st.shared.u32 [s], %r5;";
    fine(&body.replace("VALUE", "7"));
    races(
        &body.replace("VALUE", "%tid.x"),
        "st.shared",
        "st.shared",
        "writes 4 bytes at offset 0 of shared memory, which lane 0 of warp 0 writes",
    );
}

/// Neighbours in one word do not touch each other's bytes.
#[test]
fn bytes_beside_each_other_are_apart() {
    let bench = fine(
        "mov.u32 %r5, s;
        add.u32 %r6, %r5, %r2;
        st.shared.u8 [%r6], %r2;
        bar.sync 0;
        mad.lo.u32 %r6, %r2, 2, 1024;
        cvt.u16.u32 %h5, %r2;
        st.shared.u16 [%r6], %h5;
        bar.sync 0;
        xor.b32 %r6, %r2, 63;
        ld.shared.u8 %r7, [%r6];
        mad.lo.u32 %r6, %r6, 2, 1024;
        ld.shared.u16 %r8, [%r6];
        mad.lo.u32 %r7, %r7, 1000, %r8;
        st.global.u32 [%rd4], %r7;",
    );
    assert_eq!(bench.words::<64>(), std::array::from_fn(|i| 1001 * (63 - i as u32)));
    races(
        "and.b32 %r6, %r2, 62; cvt.u16.u32 %h5, %r2; st.shared.u8 [%r6], %h5;",
        "st.shared",
        "st.shared",
        "writes 1 byte at offset 0 of shared memory, which lane 0 of warp 0 writes",
    );
}

/// Atomic and volatile accesses do not race with each other, but with plain ones.
#[test]
fn synchronising_accesses() {
    let body = "
        st.shared.u32 [%r4], %r2;
        bar.sync 0;
        FIRST
        SECOND
    ";
    let both = |first: &str, second: &str| body.replace("FIRST", first).replace("SECOND", second);
    let atomic = "atom.shared.add.u32 %r5, [s], 1;";
    let red = "red.shared.max.u32 [s], %r2;";
    let volatile = "ld.volatile.shared.u32 %r6, [s];";
    fine(&both(atomic, red));
    fine(&both(atomic, volatile));
    fine(&both(red, "st.volatile.shared.u32 [s], %r2;"));
    races(
        &both(atomic, "ld.shared.u32 %r6, [s];"),
        "ld.shared",
        "atom.shared",
        "reads 4 bytes at offset 0 of shared memory, which lane 31 of warp 0 writes",
    );
    races(
        &both("ld.shared.u32 %r6, [s];", atomic),
        "atom.shared",
        "ld.shared",
        "updates 4 bytes at offset 0 of shared memory, which lane 31 of warp 0 reads",
    );
}
