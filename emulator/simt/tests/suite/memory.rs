//! Global memory as host and kernels see it, and the ways to run a launch.
//!
//! Blocks one by one, together, traced, and ranges on several threads must leave the same memory
//! and count the same. Traces are checked event by event against a kernel whose values are known,
//! and buffers are sparse, so that elements beyond 2^31 can be tried. Wrong accesses of kernels are
//! in `cases/reports.ptx`, and the bounds of what a launch may allocate in `bounds`.

use simt::{Counters, Launch, Memory, MemoryError, Report, ReportKind, Trace, What};

use crate::kernel::{BYTES, Bench};

const GIB: u64 = 1 << 30;

/// Two buffers with more than 2^31 elements. The lanes touch a few elements far apart.
#[test]
fn buffers_beyond_two_to_the_31_elements() {
    let far = GIB / 4 + 3;
    let bench = Bench::new(&format!(
        "mul.wide.u32 %rd5, %r2, {far};
        shl.b64 %rd5, %rd5, 2;
        add.u64 %rd6, %rd5, %rd1;
        add.u64 %rd7, %rd5, %rd2;
        ld.global.u32 %r5, [%rd6];
        add.u32 %r5, %r5, 1000;
        st.global.u32 [%rd7], %r5;"
    ));
    // 33 GiB each, and 64 pages of 64 KiB at most.
    let memory = Memory::with_resident_limit(100 * GIB, 64 << 16);
    let a = memory.allocate("large inputs", 33 * GIB).unwrap();
    let b = memory.allocate("large outputs", 33 * GIB).unwrap();
    assert_eq!(memory.used(), 66 * GIB);
    let place = |lane: u32| 4 * far * u64::from(lane);
    assert!(place(31) / 4 > 1 << 32);
    for lane in 0..32 {
        memory.write(a + place(lane), &lane.to_le_bytes()).unwrap();
    }
    let arguments = [a.to_le_bytes(), b.to_le_bytes()].concat();
    let launch = Launch::new(bench.kernel(), [1; 3], [32, 1, 1], &arguments);
    let counters = launch.prepare(&memory).unwrap().run(0..1).unwrap();
    assert_eq!(counters.sites[0].sectors, 32);
    for lane in 0..32 {
        // Beside it nothing was written.
        let mut bytes = [9; 12];
        let start = place(lane).saturating_sub(4);
        memory.read(b + start, &mut bytes).unwrap();
        let mut wanted = [0; 12];
        let at = (place(lane) - start) as usize;
        wanted[at..at + 4].copy_from_slice(&(1000 + lane).to_le_bytes());
        assert_eq!(bytes, wanted, "lane {lane}");
    }
    // Only the upper bits of its index distinguish this element from one that was written.
    memory.forget(a + place(31), 4).unwrap();
    let report = launch.prepare(&memory).unwrap().run(0..1).unwrap_err();
    assert_eq!((report.kind, report.lanes), (ReportKind::Uninitialized, 1 << 31));
    let message = format!(
        "reads 4 bytes at offset {} of buffer `large inputs` ({} bytes), which nothing has written",
        place(31),
        33 * GIB
    );
    assert_eq!(report.message, message);
}

#[test]
fn wrong_uses_by_the_host_are_errors() {
    let memory = Memory::new(1000);
    assert_eq!(memory.capacity(), 1000);
    let a = memory.allocate("a", 600).unwrap();
    assert_eq!(a % 256, 0);
    let error = memory.allocate("b", 401).unwrap_err();
    assert_eq!(error, MemoryError::OutOfMemory { asked: 401, free: 400 });
    let message = format!(
        "8 bytes at address {:#x} are not in one buffer: offset 596 of buffer `a` (600 bytes)",
        a + 596
    );
    assert_eq!(memory.read(a + 596, &mut [0; 8]).unwrap_err().to_string(), message);
    assert_eq!(memory.write(a + 596, &[0; 8]).unwrap_err().to_string(), message);
    assert_eq!(memory.fill(a + 596, 8, 1).unwrap_err().to_string(), message);
    assert_eq!(memory.forget(a + 596, 8).unwrap_err().to_string(), message);
    memory.fill(a + 596, 4, 1).unwrap();
    assert!(memory.free(a + 4).is_err());
    memory.free(a).unwrap();
    assert!(memory.free(a).is_err());
    let b = memory.allocate("b", 1000).unwrap();
    assert_ne!(a, b, "a pointer to what was freed must not lead to what came after");
}

#[test]
fn freed_and_forgotten_memory() {
    let bench = Bench::new("ld.global.u32 %r5, [%rd3];");
    bench.run().unwrap();
    bench.memory.forget(bench.a + 8, 4).unwrap();
    let message =
        "reads 4 bytes at offset 8 of buffer `inputs` (4096 bytes), which nothing has written";
    let found = bench.run();
    assert_eq!(bench.reports(found, ReportKind::Uninitialized, "ld.global", message).lanes, 4);
    bench.memory.fill(bench.a, BYTES, 0).unwrap();
    bench.run().unwrap();
    bench.memory.free(bench.a).unwrap();
    let message = "reads 4 bytes at offset 0 of buffer `inputs`, which has been freed";
    bench.reports(bench.run(), ReportKind::OutOfBounds, "ld.global", message);
}

#[test]
fn more_memory_than_the_host_has() {
    let bench = Bench::new(
        "mul.wide.u32 %rd5, %r1, 1000000; add.u64 %rd5, %rd5, %rd2; st.global.u32 [%rd5], %r1;",
    );
    let memory = Memory::with_resident_limit(1 << 40, 20 << 14);
    let a = memory.allocate("inputs", 64).unwrap();
    let b = memory.allocate("large", 1 << 32).unwrap();
    let arguments = [a.to_le_bytes(), b.to_le_bytes()].concat();
    let report = bench.launch(&arguments).prepare(&memory).unwrap().run(0..1).unwrap_err();
    assert_eq!(report.kind, ReportKind::OutOfMemory);
    let message = "touches a page of buffer `large` (4294967296 bytes) for which the emulated device has no memory left";
    assert_eq!(report.message, message);
}

/// Each block reverses its words through shared memory, and halves of its warps go different ways.
fn turning() -> Bench {
    Bench::new(
        "ld.global.u32 %r5, [%rd3];
        st.shared.u32 [%r4], %r5;
        bar.sync 0;
        xor.b32 %r6, %r4, 252;
        ld.shared.u32 %r5, [%r6];
        and.b32 %r7, %r5, 1;
        setp.eq.u32 %p1, %r7, 0;
        @%p1 bra EVEN;
        mul.lo.u32 %r5, %r5, 3;
        EVEN:
        shfl.sync.bfly.b32 %r5, %r5, 1, 31, -1;
        st.global.u32 [%rd4], %r5;",
    )
    .threads(64)
    .blocks(16)
}

fn turned() -> [u32; 1024] {
    std::array::from_fn(|i| {
        let value = (i ^ 63 ^ 1) as u32;
        if value.is_multiple_of(2) { value } else { 3 * value }
    })
}

type Way = fn(&Bench) -> Result<Counters, Report>;

#[test]
fn all_ways_to_run_leave_the_same_memory_and_counters() {
    let ways: [(&str, Way); 5] = [
        ("one by one", Bench::run),
        ("together", Bench::run_together),
        ("traced", |bench| {
            bench.with(|launch, blocks| launch.run_traced(0..blocks, &mut Trace::new(10)))
        }),
        ("together and traced", |bench| {
            let mut trace = Trace::new(10);
            bench.with(|launch, blocks| launch.run_together(0..blocks, Some(&mut trace)))
        }),
        ("on several threads", |bench| {
            bench.with(|launch, blocks| {
                let step = blocks / 4;
                let part = |i| move || launch.run(i * step..(i + 1) * step);
                std::thread::scope(|scope| {
                    let parts: Vec<_> = (0..4).rev().map(|i| scope.spawn(part(i))).collect();
                    let mut sum = Counters::default();
                    for part in parts {
                        sum += &part.join().unwrap()?;
                    }
                    Ok(sum)
                })
            })
        }),
    ];
    let wanted = turning().run().unwrap();
    assert_eq!((wanted.divergent_branches, wanted.blocks), (32, 16));
    for (name, way) in ways {
        let bench = turning();
        let counters = way(&bench).unwrap_or_else(|report| panic!("{name}: {report}"));
        assert_eq!(bench.words::<1024>(), turned(), "{name}");
        assert_eq!(counters, wanted, "{name}");
    }
}

/// A race between blocks of different ranges is found as well, by the range that comes second.
#[test]
fn ranges_are_parts_of_one_launch() {
    let bench = Bench::new("st.global.u32 [%rd2], %r2;").threads(1).blocks(4);
    let found = bench.with(|launch, _| {
        launch.run(2..3)?;
        launch.run(0..1)
    });
    let message = "writes 4 bytes at offset 0 of buffer `outputs` (4096 bytes), which block 2 writes in the same \
                   launch: nothing orders the two";
    bench.reports(found, ReportKind::Race, "st.global", message);
    // Two launches may write the same.
    bench.with(|launch, _| launch.run(2..3)).unwrap();
    bench.with(|launch, _| launch.run(0..1)).unwrap();
}

#[test]
fn a_trace_has_the_values_of_the_lanes() {
    let bench = turning();
    let mut trace = Trace::new(1000);
    bench.with(|launch, _| launch.run_traced(3..4, &mut trace)).unwrap();
    // Two warps, one after the other as far as the barrier: three events each, and three after it.
    assert_eq!((trace.events.len(), trace.left_out), (12, 0));
    let warps: Vec<u32> = trace.events.iter().map(|event| event.warp).collect();
    assert_eq!(warps, [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1]);
    let opcodes = ["ld.global", "st.shared", "bar", "ld.shared", "shfl", "st.global"];
    let (block, words) = (3, turned());
    for (event, i) in trace.events.iter().zip([0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]) {
        assert_eq!((event.block, event.lanes), (block, u32::MAX));
        assert!(bench.line(event.line).starts_with(opcodes[i]), "{event:?}");
        let first = 64 * block + 32 * u64::from(event.warp);
        let global = |base: u64| std::array::from_fn(|lane| base + 4 * (first + lane as u64));
        match (&event.what, i) {
            (What::Load(at), 0) => {
                assert_eq!((at.shared, at.bytes, at.addresses), (false, 4, global(bench.a)));
                assert_eq!(at.values, [std::array::from_fn(|lane| first + lane as u64)]);
            }
            (What::Store(at), 1) => {
                let offset = |lane| 4 * (u64::from(32 * event.warp) + lane as u64);
                assert_eq!((at.shared, at.addresses), (true, std::array::from_fn(offset)));
            }
            (What::Barrier, 2) => {}
            (What::Load(at), 3) => {
                let value = |lane| (first + lane as u64) ^ 63;
                assert_eq!((at.shared, &at.values[..]), (true, &[std::array::from_fn(value)][..]));
            }
            (What::Shuffle { mode, before, after, sources }, 4) => {
                assert_eq!(*mode, "bfly");
                assert_eq!(after[..], words[first as usize..first as usize + 32]);
                assert_eq!(*before, std::array::from_fn(|lane| after[lane ^ 1]));
                assert_eq!(*sources, std::array::from_fn(|lane| lane as u8 ^ 1));
            }
            (What::Store(at), 5) => {
                let value = |lane| u64::from(words[first as usize + lane]);
                assert_eq!((at.shared, at.addresses), (false, global(bench.b)));
                assert_eq!(at.values, [std::array::from_fn(value)]);
            }
            (what, i) => panic!("event {i} is {what:?}"),
        }
    }
}

#[test]
fn a_trace_ends_at_its_limit_and_the_launch_does_not() {
    let bench = turning();
    let mut trace = Trace::new(5);
    bench.with(|launch, blocks| launch.run_traced(0..blocks, &mut trace)).unwrap();
    assert_eq!((trace.events.len(), trace.left_out), (5, 16 * 12 - 5));
    assert_eq!(bench.words::<1024>(), turned());
    assert_eq!(BYTES, 4 * 1024);
}
