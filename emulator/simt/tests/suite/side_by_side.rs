//! Launches that run side by side: what they see of each other's memory, and what orders it.

use crate::kernel::{Bench, module, source};
use simt::{Counters, Kernel, Launch, Memory, Prepared, Report, ReportKind};

/// Launch 0 writes 42 to its own buffer and then raises a flag there; launch 1, whose `b` is that
/// buffer, waits for the flag and copies what it finds. A word of `a` holds the number of the
/// launch.
fn message(raise: &str, wait: &str) -> String {
    source(&format!(
        "ld.global.u32 %r5, [%rd1];
        setp.ne.u32 %p1, %r5, 0;
        setp.ne.u32 %p3, %r2, 0;
        @%p3 bra END;
        @%p1 bra SECOND;
        st.global.u32 [%rd2], 42;
        {raise}
        bra END;
        SECOND:
        {wait}
        setp.eq.u32 %p2, %r6, 0;
        @%p2 bra SECOND;
        ld.global.u32 %r7, [%rd2];
        st.global.u32 [%rd1+8], %r7;
        END:"
    ))
}

/// Both launches, in this order, over a mailbox that holds zeros; and what the second one copied.
fn exchange(source: &str, order: [usize; 2]) -> Result<(Vec<Counters>, u32), Report> {
    let module = module(source);
    let memory = Memory::new(1 << 20);
    let mailbox = memory.allocate("mailbox", 256).unwrap();
    memory.fill(mailbox, 256, 0).unwrap();
    let own = [0_u32, 1].map(|number| {
        let own = memory.allocate("own", 16).unwrap();
        memory.write(own, &[number.to_le_bytes(); 4].concat()).unwrap();
        own
    });
    let arguments = order.map(|number| [own[number].to_le_bytes(), mailbox.to_le_bytes()].concat());
    let kernel = module.kernel("k").unwrap();
    let prepared: Vec<_> = arguments
        .iter()
        .map(|bytes| Launch::new(kernel, [1; 3], [32, 1, 1], bytes).prepare(&memory).unwrap())
        .collect();
    let counters = Prepared::run_side_by_side(&prepared)?;
    let mut copied = [0; 4];
    memory.read(own[1] + 8, &mut copied).unwrap();
    Ok((counters, u32::from_le_bytes(copied)))
}

const RELEASE: &str = "st.release.sys.global.u32 [%rd2+128], 1;";
const ACQUIRE: &str = "ld.acquire.sys.global.u32 %r6, [%rd2+128];";
const RAISE: &str = "st.relaxed.sys.global.u32 [%rd2+128], 1;";

#[test]
fn a_launch_waits_for_what_the_other_writes() {
    for order in [[0, 1], [1, 0]] {
        let (counters, copied) = exchange(&message(RELEASE, ACQUIRE), order).unwrap();
        assert_eq!((counters.len(), copied), (2, 42), "{order:?}");
        assert!(counters.iter().all(|counters| counters.blocks == 1 && counters.instructions > 9));
    }
}

#[test]
fn accesses_of_two_launches_that_nothing_orders_are_a_race() {
    for order in [[0, 1], [1, 0]] {
        let report = exchange(&message(RAISE, ACQUIRE), order).unwrap_err();
        assert_eq!(report.kind, ReportKind::Race);
        let (first, second) = (order[0], order[1]);
        let sentence = report.to_string();
        assert!(sentence.starts_with(&format!("k of launch {second} at PTX line")), "{sentence}");
        let words = format!(
            "buffer `mailbox` (256 bytes), which warp 0 of block 0 of launch {first} writes"
        );
        assert!(sentence.contains(&words), "{sentence}");
    }
}

#[test]
fn launches_that_wait_for_nothing_make_no_progress() {
    let report = exchange(&message("", ACQUIRE), [0, 1]).unwrap_err();
    assert_eq!(report.kind, ReportKind::NoProgress);
    assert!(report.to_string().contains("of launch 1"), "{report}");
    assert!(report.message.contains("1 block waits for what none of them does"), "{report}");
}

/// Races between blocks of one launch are found as if the launch ran alone.
#[test]
fn races_within_a_launch_name_the_launch() {
    let bench = Bench::new("st.global.u32 [%rd2], %r1;").blocks(2);
    let arguments = bench.arguments();
    let launch = || {
        let launch = Launch::new(bench.kernel(), bench.setup.grid, bench.setup.block, &arguments);
        launch.prepare(&bench.memory).unwrap()
    };
    let alone = Prepared::run_side_by_side(&[launch()]).unwrap_err();
    assert_eq!((alone.kind, &*alone.kernel), (ReportKind::Race, "k of launch 0"));
    assert!(alone.message.contains("of block 0 writes"), "{alone}");
    let two = Prepared::run_side_by_side(&[launch(), launch()]).unwrap_err();
    assert_eq!(two.kind, ReportKind::Race);
}

#[test]
fn launches_that_differ_are_refused() {
    let bench = Bench::new("").blocks(2);
    let other = Bench::new("").blocks(2);
    let arguments = bench.arguments();
    let launch = |kernel: &'_ Kernel, memory: &'_ Memory, grid| -> Vec<u8> {
        let mine = Launch::new(bench.kernel(), [2, 1, 1], [32, 1, 1], &arguments);
        let mine = mine.prepare(&bench.memory).unwrap();
        let theirs = Launch::new(kernel, grid, [32, 1, 1], &arguments).prepare(memory).unwrap();
        let report = Prepared::run_side_by_side(&[mine, theirs]).unwrap_err();
        assert_eq!(report.kind, ReportKind::Launch);
        report.message.into_bytes()
    };
    let told = [
        launch(other.kernel(), &bench.memory, [2, 1, 1]),
        launch(bench.kernel(), &other.memory, [2, 1, 1]),
        launch(bench.kernel(), &bench.memory, [3, 1, 1]),
    ];
    for message in told {
        let message = String::from_utf8(message).unwrap();
        let begin = "cannot run side by side with a launch of another";
        assert!(message.starts_with(begin), "{message}");
    }
    assert_eq!(Prepared::run_side_by_side(&[]).unwrap().len(), 0);
    let many = Launch::new(bench.kernel(), [4097, 1, 1], [32, 1, 1], &arguments);
    let many = || many.prepare(&bench.memory).unwrap();
    let report = Prepared::run_side_by_side(&[many(), many()]).unwrap_err();
    assert!(report.message.contains("8194 warps side by side: 8192 at most"), "{report}");
}
