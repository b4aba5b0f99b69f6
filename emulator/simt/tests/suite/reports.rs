//! What a single thread can do wrong: each mistake in its sentence, and the same without the
//! mistake.

use simt::{Report, ReportKind};

use crate::kernel::{BYTES, Bench};

/// Runs a body that makes a mistake in the instruction that contains `at`.
fn wrong(body: &str, kind: ReportKind, at: &str, message: &str) -> Report {
    let bench = Bench::new(body);
    let found = bench.run();
    bench.reports(found, kind, at, message)
}

fn right(body: &str) {
    Bench::new(body).run().unwrap_or_else(|report| panic!("{report}\n{body}"));
}

#[test]
fn past_the_end_of_a_buffer() {
    right("ld.global.u32 %r5, [%rd1+4092];");
    let report = wrong(
        "ld.global.u32 %r5, [%rd1+4096];",
        ReportKind::OutOfBounds,
        "ld.global",
        "reads 4 bytes at 0 bytes past the end of buffer `inputs` (4096 bytes)",
    );
    assert_eq!(report.lanes, u32::MAX);
    wrong(
        "st.global.v4.u32 [%rd2+4096], {%r1, %r1, %r1, %r1};",
        ReportKind::OutOfBounds,
        "st.global",
        "writes 16 bytes at 0 bytes past the end of buffer `outputs` (4096 bytes)",
    );
    // Far past the end it is still that buffer.
    wrong(
        "mov.u64 %rd5, 0x1000000000; add.u64 %rd5, %rd5, %rd1; ld.global.u32 %r5, [%rd5];",
        ReportKind::OutOfBounds,
        "ld.global",
        "reads 4 bytes at 68719472640 bytes past the end of buffer `inputs` (4096 bytes)",
    );
}

#[test]
fn only_the_lanes_that_are_outside_are_named() {
    let report = wrong(
        "mad.wide.u32 %rd5, %r2, 4, %rd1; ld.global.u32 %r5, [%rd5+4080];",
        ReportKind::OutOfBounds,
        "ld.global",
        "reads 4 bytes at 0 bytes past the end of buffer `inputs` (4096 bytes)",
    );
    assert_eq!(report.lanes, 0xffff_fff0);
    let shown = report.to_string();
    assert!(shown.ends_with(", block 0, warp 0, lanes 4-31: reads 4 bytes at 0 bytes past the end of buffer `inputs` (4096 bytes)"), "{shown}");
    assert!(shown.starts_with(&format!("k at PTX line {}, ", report.line)), "{shown}");
}

#[test]
fn before_the_beginning_of_a_buffer() {
    wrong(
        "ld.global.u32 %r5, [%rd1+-4];",
        ReportKind::OutOfBounds,
        "ld.global",
        "reads 4 bytes at 4 bytes before the beginning of buffer `inputs` (4096 bytes)",
    );
    wrong(
        "atom.global.add.u32 %r5, [%rd2+-8], 1;",
        ReportKind::OutOfBounds,
        "atom.global",
        "updates 4 bytes at 8 bytes before the beginning of buffer `outputs` (4096 bytes)",
    );
}

#[test]
fn null_wild_and_freed_pointers() {
    let null = "mov.u64 %rd5, 0; ld.global.u32 %r5, [%rd5];";
    wrong(null, ReportKind::OutOfBounds, "ld.global", "reads 4 bytes at a null pointer");
    wrong(
        "mov.u64 %rd5, 0x7fff0000000000; ld.global.u32 %r5, [%rd5];",
        ReportKind::OutOfBounds,
        "ld.global",
        "reads 4 bytes at address 0x7fff0000000000, near no buffer",
    );
    let bench = Bench::new("ld.global.u32 %r5, [%rd1];");
    bench.memory.free(bench.a).unwrap();
    let message = "reads 4 bytes at offset 0 of buffer `inputs`, which has been freed";
    let found = bench.run();
    bench.reports(found, ReportKind::OutOfBounds, "ld.global", message);
}

#[test]
fn past_the_end_of_shared_and_local_memory() {
    right("mov.u32 %r5, 4080; st.shared.v4.u32 [%r5], {%r3, %r3, %r3, %r3};");
    wrong(
        "mov.u32 %r5, 4096; st.shared.u32 [%r5], %r1;",
        ReportKind::OutOfBounds,
        "st.shared",
        "writes 4 bytes at offset 4096 of shared memory, of which the block has 4096 bytes",
    );
    let report = wrong(
        "mul.lo.u32 %r5, %r2, 256; st.shared.u32 [%r5], %r2;",
        ReportKind::OutOfBounds,
        "st.shared",
        "writes 4 bytes at offset 4096 of shared memory, of which the block has 4096 bytes",
    );
    assert_eq!(report.lanes, 0xffff_0000);
    right("st.local.u32 [l+60], %r1; ld.local.u32 %r5, [l+60];");
    wrong(
        "mov.u64 %rd5, l; st.local.u32 [%rd5+64], %r1;",
        ReportKind::OutOfBounds,
        "st.local",
        "writes 4 bytes at offset 64 of its local memory, which has 64 bytes",
    );
}

#[test]
fn generic_addresses_lead_to_the_same_reports() {
    let generic =
        |instruction: &str| format!("mov.u64 %rd5, s; cvta.shared.u64 %rd5, %rd5; {instruction}");
    right(&generic("st.u32 [%rd5+12], %r1;").replace("st.u32", "@%p0 st.u32"));
    wrong(
        &generic("ld.u32 %r5, [%rd5+4096];"),
        ReportKind::OutOfBounds,
        "ld.u32",
        "reads 4 bytes at offset 4096 of shared memory, of which the block has 4096 bytes",
    );
    wrong(
        "ld.u32 %r5, [%rd1+4096];",
        ReportKind::OutOfBounds,
        "ld.u32",
        "reads 4 bytes at 0 bytes past the end of buffer `inputs` (4096 bytes)",
    );
}

#[test]
fn addresses_that_are_no_multiple_of_the_size() {
    right("ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd1+16];");
    let report = wrong(
        "ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd3];",
        ReportKind::Misaligned,
        "ld.global",
        "reads 16 bytes at offset 4 of buffer `inputs` (4096 bytes), which is no multiple of 16",
    );
    assert_eq!(report.lanes, 0xeeee_eeee);
    wrong(
        "st.shared.u64 [%r4], %rd1;",
        ReportKind::Misaligned,
        "st.shared",
        "writes 8 bytes at offset 4 of shared memory, which is no multiple of 8",
    );
    wrong(
        "st.local.u16 [l+3], %h1;",
        ReportKind::Misaligned,
        "st.local",
        "writes 2 bytes at offset 3 of local memory, which is no multiple of 2",
    );
    wrong(
        "atom.global.add.u64 %rd5, [%rd1+4], 1;",
        ReportKind::Misaligned,
        "atom.global",
        "updates 8 bytes at offset 4 of buffer `inputs` (4096 bytes), which is no multiple of 8",
    );
    wrong(
        "cp.async.cg.shared.global [%r4], [%rd1], 16;",
        ReportKind::Misaligned,
        "cp.async",
        "copies 16 bytes at offset 4 of shared memory, which is no multiple of 16",
    );
}

#[test]
fn what_nothing_has_written() {
    let report = wrong(
        "ld.global.u32 %r5, [%rd4];",
        ReportKind::Uninitialized,
        "ld.global",
        "reads 4 bytes at offset 0 of buffer `outputs` (4096 bytes), which nothing has written",
    );
    assert_eq!(report.lanes, 1);
    right("st.global.u32 [%rd4], %r1; ld.global.u32 %r5, [%rd4];");
    // A part of what is read is enough.
    wrong(
        "mad.wide.u32 %rd4, %r1, 12, %rd4; st.global.u32 [%rd4], %r1; ld.global.v2.u32 {%r5, %r6}, [%rd4];",
        ReportKind::Uninitialized,
        "ld.global",
        "reads 8 bytes at offset 0 of buffer `outputs` (4096 bytes), which nothing has written",
    );
    wrong(
        "st.global.u8 [%rd4], %r1; ld.global.u16 %r5, [%rd4];",
        ReportKind::Uninitialized,
        "ld.global",
        "reads 2 bytes at offset 0 of buffer `outputs` (4096 bytes), which nothing has written",
    );
    wrong(
        "ld.shared.u32 %r5, [%r4]; st.global.u32 [%rd4], %r5;",
        ReportKind::Uninitialized,
        "ld.shared",
        "reads 4 bytes at offset 0 of shared memory, which nothing has written",
    );
    right("st.shared.u32 [%r4], %r1; ld.shared.u32 %r5, [%r4];");
    wrong(
        "red.global.add.u32 [%rd4], 1;",
        ReportKind::Uninitialized,
        "red.global",
        "updates 4 bytes at offset 0 of buffer `outputs` (4096 bytes), which nothing has written",
    );
    wrong(
        "atom.shared.exch.b32 %r5, [%r4], 1;",
        ReportKind::Uninitialized,
        "atom.shared",
        "updates 4 bytes at offset 0 of shared memory, which nothing has written",
    );
}

#[test]
fn what_the_host_makes_forgotten_is_never_written_again() {
    let bench = Bench::new("ld.global.u32 %r5, [%rd3];");
    bench.run().unwrap();
    bench.memory.forget(bench.a + 8, 4).unwrap();
    let message =
        "reads 4 bytes at offset 8 of buffer `inputs` (4096 bytes), which nothing has written";
    let found = bench.run();
    assert_eq!(bench.reports(found, ReportKind::Uninitialized, "ld.global", message).lanes, 4);
    bench.memory.fill(bench.a, BYTES, 0).unwrap();
    bench.run().unwrap();
}

/// A guard that does not hold, and a lane that a branch leads around it, do nothing wrong.
#[test]
fn lanes_that_do_not_execute_it_do_nothing_wrong() {
    right("setp.gt.u32 %p1, %r2, 31; mov.u64 %rd5, 1; @%p1 ld.global.u32 %r5, [%rd5];");
    right("mov.u64 %rd5, 1; bra OVER; st.global.u32 [%rd5], %r1; OVER:");
    let report = wrong(
        "setp.eq.u32 %p1, %r2, 7; mov.u64 %rd5, 0; @%p1 ld.global.u32 %r5, [%rd5];",
        ReportKind::OutOfBounds,
        "ld.global",
        "reads 4 bytes at a null pointer",
    );
    assert_eq!(report.lanes, 1 << 7);
}

#[test]
fn endless_loops_and_traps() {
    let mut bench = Bench::new("AGAIN: bra AGAIN;");
    bench.instructions = 1000;
    let found = bench.run();
    bench.reports(
        found,
        ReportKind::Instructions,
        "bra",
        "is over the launch's bound of 1000 instructions, all of which are used up",
    );
    let mut bench = Bench::new("");
    bench.instructions = crate::kernel::AROUND;
    bench.run().unwrap();
    bench.instructions -= 1;
    assert_eq!(bench.run().unwrap_err().kind, ReportKind::Instructions);

    let report =
        wrong("setp.eq.u32 %p1, %r2, 5; @%p1 trap;", ReportKind::Trap, "trap", "executes trap");
    assert_eq!(report.lanes, 1 << 5);
    right("setp.eq.u32 %p1, %r2, 99; @%p1 trap;");
}

/// At the last address there is, whose bytes end where no number is left.
#[test]
fn addresses_at_the_end() {
    for (setup, access) in [
        ("mov.u64 %rd5, -4;", "ld.global.u32 %r5, [%rd5];"),
        ("mov.u64 %rd5, -4;", "st.global.u32 [%rd5], %r1;"),
        ("mov.u64 %rd5, -1;", "ld.u8 %r5, [%rd5];"),
        ("mov.u64 %rd5, -16;", "ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%rd5];"),
        ("mov.u64 %rd5, -4;", "st.shared.u32 [%rd5], %r1;"),
        ("mov.u64 %rd5, -8;", "st.local.u64 [%rd5], %rd1;"),
        ("mov.u64 %rd5, -4;", "atom.global.add.u32 %r5, [%rd5], 1;"),
        ("mov.u64 %rd5, -4;", "atom.shared.add.u32 %r5, [%rd5], 1;"),
        ("mov.u64 %rd5, -16;", "cp.async.cg.shared.global [s], [%rd5], 16;"),
    ] {
        for bench in [
            Bench::new(&format!("{setup} {access}")),
            Bench::new(&format!(
                "and.b32 %r9, %r2, 1; cvt.u64.u32 %rd6, %r9; mul.lo.u64 %rd6, %rd6, 16; {setup}
             sub.u64 %rd5, %rd5, %rd6; {access}"
            )),
        ] {
            for found in [bench.run(), bench.run_together()] {
                assert_eq!(found.unwrap_err().kind, ReportKind::OutOfBounds, "{access}");
            }
        }
    }
}

#[test]
fn more_memory_than_the_host_has() {
    use simt::{Launch, Memory};
    let bench = Bench::new(
        "mul.wide.u32 %rd5, %r1, 1000000; add.u64 %rd5, %rd5, %rd2; st.global.u32 [%rd5], %r1;",
    );
    let memory = Memory::with_resident_limit(1 << 40, 20 << 14);
    let a = memory.allocate("inputs", 64).unwrap();
    let b = memory.allocate("large", 1 << 32).unwrap();
    let arguments = [a.to_le_bytes(), b.to_le_bytes()].concat();
    let launch = Launch::new(bench.kernel(), [1; 3], [32, 1, 1], &arguments);
    let report = launch.prepare(&memory).unwrap().run(0..1).unwrap_err();
    assert_eq!(report.kind, ReportKind::OutOfMemory);
    let message = "touches a page of buffer `large` (4294967296 bytes) for which the emulated device has no memory left";
    assert_eq!(report.message, message);
}

/// A report names the file and line that `.loc` gave, and the block in three dimensions.
#[test]
fn reports_name_the_source_and_the_block() {
    let source = crate::kernel::source(
        ".loc 1 12 5
        ld.global.u32 %r5, [%rd1];
        .loc 1 34 5
        mov.u32 %r6, %ctaid.y;
        setp.eq.u32 %p1, %r6, 2;
        mov.u64 %rd5, 0;
        @%p1 ld.global.u32 %r5, [%rd5];",
    );
    let mut bench = Bench::of(&format!("{source}\n.file 1 \"pipe.cu\"\n"));
    bench.grid = [2, 3, 1];
    let report = bench.run().unwrap_err();
    assert_eq!(report.block, [0, 2, 0]);
    assert_eq!(report.source.as_ref().map(|(file, line)| (&**file, *line)), Some(("pipe.cu", 34)));
    let line = report.line;
    let shown = format!(
        "k at pipe.cu:34 (PTX line {line}), block (0, 2, 0), warp 0, lanes 0-31: reads 4 bytes at a null pointer"
    );
    assert_eq!(report.to_string(), shown);
}
