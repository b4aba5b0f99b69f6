//! The emulator reuses the registers and shared memory of blocks that have run. Later blocks must
//! find nothing in them.

use simt::{Counters, Report, ReportKind};

use crate::kernel::Bench;

/// Writes words of shared memory, reads a word in all lanes, passes barriers, and leaves without
/// waiting for a copy.
const LEAVES: &str = "st.shared.u32 [s], 1; ld.shared.u32 %r5, [s]; bar.sync 0; bar.warp.sync 1;
    cp.async.ca.shared.global [s+16], [%rd1], 16;";

type Way = fn(&Bench) -> Result<Counters, Report>;

/// The ways to run a launch's blocks.
const WAYS: [Way; 3] = [Bench::run, Bench::run_together, |bench| {
    bench.with(|launch, blocks| (0..blocks).map(|i| launch.run(i..i + 1)).last().unwrap())
}];

/// A second bench, on the memory of the first.
fn after(first: &mut Bench, body: &str) -> Bench {
    let mut second = Bench::new(body);
    // Buffers have the same addresses.
    std::mem::swap(&mut first.memory, &mut second.memory);
    second
}

#[test]
fn a_later_block_reads_nothing_of_an_earlier_block() {
    let others = "mov.u32 %r20, %ctaid.x; setp.ne.u32 %p1, %r20, 0;";
    for at in [0, 16] {
        let read = format!("ld.shared.u32 %r6, [s+{at}];");
        let bench = Bench::new(&format!(
            "{others} @%p1 bra READ; {LEAVES} ret; READ:\n{read}\nst.global.u32 [%rd4], %r6;"
        ));
        let bench = bench.threads(1).blocks(3);
        for way in WAYS {
            let message =
                format!("reads 4 bytes at offset {at} of shared memory, which nothing has written");
            bench.reports(way(&bench), ReportKind::Uninitialized, &read, &message);
        }
    }
}

#[test]
fn a_later_launch_reads_nothing_of_an_earlier_launch() {
    for (dynamic_shared, read) in [
        (0, "ld.shared.u32 %r5, [s]; st.global.u32 [%rd4], %r5;"),
        // More memory than the earlier one has, and cells of another size.
        (
            0,
            "cvt.u16.u32 %h5, 1; st.shared.u8 [s], %h5; ld.shared.u8 %h6, [s+1]; st.global.u8 [%rd4], %h6;",
        ),
        (
            100_000,
            "st.shared.u32 [s+40000], 1; ld.shared.u32 %r5, [s+16]; st.global.u32 [%rd4], %r5;",
        ),
        (0, "atom.shared.add.u32 %r5, [s], 1;"),
    ] {
        for way in WAYS {
            let mut first = Bench::new(LEAVES).threads(1).blocks(3);
            way(&first).unwrap();
            let mut second = after(&mut first, read);
            second.setup.dynamic_shared = dynamic_shared;
            let report = way(&second).unwrap_err();
            assert_eq!(report.kind, ReportKind::Uninitialized, "{report}");
        }
    }
}

/// Accesses of a block do not race with those of a later block, and a launch that is repeated has
/// the same counters or the same report.
#[test]
fn every_launch_is_like_the_first() {
    let write = "st.shared.u32 [%r3], %r2; cp.async.ca.shared.global [s+256], [%rd1], 16; cp.async.wait_all;";
    let bodies = [
        LEAVES,
        write,
        "add.u32 %r5, %r3, %r4; st.shared.u32 [%r5], %r2; st.local.u32 [l], 1; ld.local.u32 %r6, [l];",
        // A race between lanes, and one between warps.
        "st.shared.u32 [s], %r2;",
        "add.u32 %r5, %r3, %r4; st.shared.u32 [%r5], 1; ld.shared.u32 %r6, [s+4];",
    ];
    let mut benches = bodies.map(|body| Bench::new(body).blocks(2).threads(64));
    for way in WAYS {
        let first = benches.each_ref().map(|bench| way(bench).map_err(|report| report.to_string()));
        for turn in 0..3 {
            for i in 0..benches.len() {
                // All on one memory.
                let (before, rest) = benches.split_at_mut(i);
                if let (Some(last), Some(bench)) = (before.last_mut(), rest.first_mut()) {
                    std::mem::swap(&mut last.memory, &mut bench.memory);
                }
                let found = way(&benches[i]).map_err(|report| report.to_string());
                assert_eq!(found, first[i], "turn {turn}: {}", bodies[i]);
            }
        }
    }
}
