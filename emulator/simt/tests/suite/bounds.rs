//! The bounds of a launch: instructions, bytes of the host, and the time until it is cancelled.
//!
//! Most of these kernels would take all of the host's memory or run for hours if a bound were not
//! kept. Each test runs a kernel above a bound, which must end with a report, and a kernel just
//! below it, which must run. Bounds of single kernels are also in `cases/reports.ptx` and
//! `cases/calls.ptx`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use simt::{Launch, Memory, Module, Report, ReportKind, Trace};

use crate::kernel::{AROUND, Bench, source};

const MIB: u64 = 1 << 20;

/// Runs all blocks, together or one by one, with `bytes` of the host, which must be too few for
/// `what`.
fn needs_more(mut bench: Bench, bytes: u64, together: bool, what: &str) -> Report {
    bench.setup.host_bytes = bytes;
    let found = if together { bench.run_together() } else { bench.run() };
    let report = found.unwrap_err();
    assert_eq!(report.kind, ReportKind::HostBytes, "{report}");
    assert_eq!(report.kernel, "k");
    let words = [what, &format!("the launch's bound is {bytes} bytes, of which it uses ")];
    assert!(words.iter().all(|words| report.message.contains(words)), "{report}");
    report
}

/// An array of half a megabyte for each of 1024 threads.
#[test]
fn local_arrays() {
    let body = ".local .align 16 .b8 big[500000]; st.local.u32 [big], %r1;";
    needs_more(Bench::new(body).threads(1024), 256 * MIB, false, "local and shared memory");
    needs_more(Bench::new(body).threads(1024).blocks(16), Launch::HOST_BYTES, true, "local");
    let mut bench = Bench::new(body);
    bench.setup.host_bytes = 17 * MIB;
    bench.run().unwrap();
}

/// 227 KB of shared memory for each of 8192 blocks at the same time, each byte with its shadow.
#[test]
fn shared_memory_of_resident_blocks() {
    let bench = || {
        let body = "cvt.u16.u32 %h5, 1; st.shared.u8 [s], %h5; ld.shared.u8 %h6, [s];";
        let mut bench = Bench::new(body).blocks(8192).threads(1);
        bench.setup.dynamic_shared = 220 << 10;
        bench.setup.instructions = u64::MAX;
        bench
    };
    needs_more(bench(), 256 * MIB, true, "local and shared memory");
    needs_more(bench(), Launch::HOST_BYTES, true, "local and shared memory");
    // One by one they take turns in the same place.
    let mut few = bench();
    (few.setup.host_bytes, few.setup.grid) = (32 * MIB, [100, 1, 1]);
    few.run().unwrap();
}

/// Each of 8192 warps knows how far the others have come, and publishes it. Clocks that warps share
/// are allocated once.
#[test]
fn clocks_of_many_warps() {
    let clocks = "the order of accesses by warps that run together";
    let bench = || {
        let mut bench = Bench::new("membar.gl; st.volatile.global.u32 [%rd1], 1;");
        (bench.setup.grid, bench.setup.block) = ([256, 1, 1], [1024, 1, 1]);
        bench
    };
    let others = 256 * bench().with(|launch, _| Ok(launch.range_bytes())).unwrap();
    let report = needs_more(bench(), others + MIB, true, clocks);
    assert!(report.line > 0 && report.lanes > 0, "{report}");
    // A word for each warp of each clock would be 256 MB.
    let mut enough = bench();
    enough.setup.host_bytes = others + 16 * MIB;
    enough.run_together().unwrap();
}

/// A thread writes one word after the other, and the emulator remembers all of them.
#[test]
fn words_that_blocks_share() {
    let body =
        "AGAIN: add.u64 %rd5, %rd5, 4; and.b64 %rd5, %rd5, 1048572; add.u64 %rd6, %rd2, %rd5;
        st.volatile.global.u32 [%rd6], 1; bra AGAIN;";
    let module = Module::parse(&source(body)).unwrap();
    let memory = Memory::new(1 << 30);
    let large = memory.allocate("large", MIB).unwrap();
    memory.fill(large, MIB, 0).unwrap();
    let arguments = [large.to_le_bytes(); 2].concat();
    let kernel = module.kernel("k").unwrap();
    let launch = Launch { host_bytes: 20 * MIB, ..Launch::new(kernel, [1; 3], [1; 3], &arguments) };
    let report = launch.prepare(&memory).unwrap().run_together(0..1, None).unwrap_err();
    assert_eq!(report.kind, ReportKind::HostBytes, "{report}");
    assert!(report.message.contains("the order of accesses"), "{report}");
    assert!(report.line > 0 && report.lanes == 1, "{report}");
}

/// Sparse pages, registers, copies and traces count as well.
#[test]
fn everything_else_that_grows() {
    let far = "mul.wide.u32 %rd5, %r1, 16384; add.u64 %rd5, %rd5, %rd2; st.global.u32 [%rd5], %r1;";
    let module = Module::parse(&source(far)).unwrap();
    let memory = Memory::new(1 << 40);
    let large = memory.allocate("large", 1 << 32).unwrap();
    let arguments = [large.to_le_bytes(); 2].concat();
    let kernel = module.kernel("k").unwrap();
    let launch = |host_bytes| Launch {
        host_bytes,
        ..Launch::new(kernel, [64, 1, 1], [32, 1, 1], &arguments)
    };
    let report = launch(16 * MIB).prepare(&memory).unwrap().run(0..64).unwrap_err();
    assert_eq!(report.kind, ReportKind::HostBytes);
    assert!(report.message.contains("32768 more bytes of the host for a page"), "{report}");
    // The pages that were touched are there now, and count no more.
    let report = launch(16 * MIB).prepare(&memory).unwrap().run(0..64).unwrap_err();
    assert!(report.block[0] > 20, "{report}");

    let list = launch(7).prepare(&memory).unwrap_err();
    assert_eq!(list.kind, ReportKind::HostBytes, "{list}");
    assert!(list.message.contains("the list of buffers"), "{list}");

    // All of them are needed at the same time.
    let each = |instruction: fn(u32) -> String| (0..20_000).map(instruction).collect::<String>();
    let registers = each(|i| format!("mov.u64 %big{i}, 1;\n"))
        + &each(|i| format!("add.u64 %big0, %big0, %big{i};\n"));
    let bench = || Bench::new(&format!(".reg .b64 %big<20000>;\n{registers}"));
    needs_more(bench().threads(1024), 128 * MIB, false, "registers");
    bench().run().unwrap();

    let mut bench = Bench::new("AGAIN: ld.global.u32 %r5, [%rd3]; bra AGAIN;");
    (bench.setup.host_bytes, bench.setup.instructions) = (4 * MIB, u64::MAX);
    let mut trace = Trace::new(usize::MAX);
    let report = bench.with(|launch, _| launch.run_traced(0..1, &mut trace)).unwrap_err();
    assert_eq!(report.kind, ReportKind::HostBytes);
    assert!(report.message.contains("for a trace") && trace.events.len() > 1000, "{report}");
    assert_eq!(bench.line(report.line), "AGAIN: ld.global.u32 %r5, [%rd3]; bra AGAIN;");
}

/// Memory that a range gives back is free for the next range.
#[test]
fn ranges_one_after_the_other_take_no_more_than_one() {
    let bench = Bench::new("st.shared.u32 [s], 1; cp.async.ca.shared.global [s+64], [%rd1], 4;");
    let mut bench = bench.blocks(1000).threads(1);
    let bytes = bench.with(|launch, _| Ok(launch.range_bytes())).unwrap();
    bench.setup.host_bytes = bytes + 4096;
    bench.run().unwrap();
    bench
        .with(|launch, blocks| (0..blocks).try_for_each(|i| launch.run(i..i + 1).map(drop)))
        .unwrap();
    needs_more(bench, bytes - 1, false, "registers");
}

/// All blocks have one budget, whatever the ranges are.
#[test]
fn instructions_of_all_blocks() {
    let mut bench = Bench::new("").blocks(100);
    bench.setup.instructions = 100 * AROUND;
    assert_eq!(bench.run().unwrap().instructions, 100 * AROUND);
    let by_range = |bench: &Bench| {
        bench.with(|launch, _| (0..100).try_for_each(|i| launch.run(i..i + 1).map(drop)))
    };
    by_range(&bench).unwrap();
    bench.run_together().unwrap();
    bench.setup.instructions -= 1;
    for found in [bench.run().map(drop), by_range(&bench), bench.run_together().map(drop)] {
        let report = found.unwrap_err();
        assert_eq!(report.kind, ReportKind::Instructions);
        assert_eq!(
            (report.block, report.lanes, bench.line(report.line)),
            ([99, 0, 0], u32::MAX, "ret;")
        );
        assert!(report.message.contains("bound of 1199 instructions"), "{report}");
    }
    bench.setup.instructions = 0;
    assert_eq!(bench.run().unwrap_err().kind, ReportKind::Instructions);
}

#[test]
fn instructions_of_ranges_on_several_cores() {
    let mut bench = Bench::new("AGAIN: bra AGAIN;").blocks(4);
    bench.setup.instructions = 1 << 20;
    let reports = bench.with(|launch, blocks| {
        Ok(std::thread::scope(|scope| {
            let run = |i| scope.spawn(move || launch.run(i..i + 1).unwrap_err());
            let threads: Vec<_> = (0..blocks).map(run).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        }))
    });
    for report in reports.unwrap() {
        assert_eq!(report.kind, ReportKind::Instructions);
    }
}

/// Before it begins, between blocks and within one.
#[test]
fn cancelled() {
    let bench = Bench::new("AGAIN: bra AGAIN;").blocks(2);
    let arguments = bench.arguments();
    let flag = AtomicBool::new(false);
    let launch = Launch {
        cancel: Some(&flag),
        instructions: u64::MAX,
        ..Launch::new(bench.kernel(), bench.setup.grid, bench.setup.block, &arguments)
    };
    for together in [false, true] {
        let prepared = launch.prepare(&bench.memory).unwrap();
        let run = || {
            let found =
                if together { prepared.run_together(0..2, None) } else { prepared.run(0..2) };
            found.unwrap_err()
        };
        // On a busy machine the flag may be set before the first block has begun, or after it was
        // found to turn in a circle.
        let within = (0..1000).find_map(|_| {
            flag.store(false, Relaxed);
            let has_begun = AtomicBool::new(false);
            let report = std::thread::scope(|scope| {
                let running = scope.spawn(|| {
                    has_begun.store(true, Relaxed);
                    run()
                });
                while !has_begun.load(Relaxed) {
                    std::thread::yield_now();
                }
                std::thread::sleep(std::time::Duration::from_millis(2));
                flag.store(true, Relaxed);
                running.join().unwrap()
            });
            (report.kind == ReportKind::Cancelled && report.lanes != 0).then_some(report)
        });
        let report = within.expect("it is cancelled while a block runs");
        assert!(report.line > 0 && report.lanes == u32::MAX, "{report}");
        assert!(report.message.contains(&format!("of the {} instructions", u64::MAX)), "{report}");
        let report = run();
        assert_eq!(report.kind, ReportKind::Cancelled, "{report}");
        assert_eq!(report.lanes == 0, !together, "{report}");
    }
}

/// Declarations are refused or bounded before anything is allocated for them.
#[test]
fn declared_sizes_near_the_ends_of_numbers() {
    let kernel = |parameters: &str, body: &str| {
        let head = ".version 8.0\n.target sm_80\n.address_size 64\n";
        format!("{head}.visible .entry k({parameters})\n{{\n.reg .b32 %r<9>;\n{body}\nret;\n}}")
    };
    for size in ["4294967295", "4294967296", "9223372036854775807", "18446744073709551615"] {
        for (parameters, body) in [
            (format!(".param .align 8 .b8 p[{size}]"), String::new()),
            (format!(".param .b64 p[{size}][{size}]"), String::new()),
            (String::new(), format!(".shared .b8 a[{size}]; mov.u32 %r1, a;")),
            (String::new(), format!(".local .b64 a[{size}]; mov.u32 %r1, a;")),
            (String::new(), format!(".local .b8 a[{size}][{size}]; mov.u32 %r1, a;")),
            (String::new(), format!(".shared .align {size} .b8 a[4]; mov.u32 %r1, a;")),
            (String::new(), format!(".reg .b32 %x<{size}>; mov.u32 %x1, 1;")),
            (String::new(), ".reg .b32 %x<1000000000>; mov.u32 %x1, 1;".to_string()),
        ] {
            let source = kernel(&parameters, &body);
            assert!(Module::parse(&source).and_then(Module::complete).is_err(), "{source}");
        }
    }
    // Any number of them is declared quickly; each costs what is used of it.
    let many: String = (0..1000).map(|i| format!(".reg .b64 %x{i}y<1048576>;\n")).collect();
    let module = Module::parse(&kernel("", &many)).unwrap();
    let memory = Memory::new(1 << 20);
    let kernel = module.kernel("k").unwrap();
    let launch = Launch { host_bytes: MIB, ..Launch::new(kernel, [1; 3], [1024, 1, 1], &[]) };
    launch.prepare(&memory).unwrap().run(0..1).unwrap();
}
