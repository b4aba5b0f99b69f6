//! The shared memory that CUDA keeps for itself in each block, where tiles of several warps meet.

use simt::{Launch, Memory, Module, ReportKind};

use crate::kernel::Bench;

/// As NVRTC compiles it from NVIDIA's headers, with and without optimisation.
const SOURCES: [&str; 2] = [
    include_str!("../data/tiles_of_two_warps-12.0.ptx"),
    include_str!("../data/tiles_of_two_warps-12.0-unoptimised.ptx"),
];

/// The other code is run, and this is no mistake of the kernel's that something else would hide.
#[test]
fn tiles_of_two_warps_are_told_to_be_beyond_the_emulator() {
    for source in SOURCES {
        let module = Module::parse(source).and_then(Module::complete).unwrap();
        let kernel = module.kernel("sums_of_tiles").unwrap();
        let memory = Memory::new(1 << 20);
        let given = memory.allocate("values", 4 * 512).unwrap();
        memory.write(given, &[0; 4 * 512]).unwrap();
        let sums = memory.allocate("sums", 4 * 8).unwrap();
        let arguments = [given.to_le_bytes(), sums.to_le_bytes()].concat();
        let launch = Launch::new(kernel, [2, 1, 1], [256, 1, 1], &arguments);
        // Also behind dynamic shared memory, whose size is no multiple of anything.
        for dynamic_shared in [0, 1027] {
            let launch = Launch { dynamic_shared, ..launch };
            let report = launch.prepare(&memory).unwrap().run_together(0..2, None).unwrap_err();
            assert_eq!(report.kind, ReportKind::OutOfBounds);
            let said = report.to_string();
            assert!(said.ends_with("for tiles of several warps, is not emulated"), "{said}");
        }
    }
}

/// A warp for each tile needs no memory.
#[test]
fn who_only_asks_where_it_lies_is_run() {
    let bench = Bench::new("mov.u32 %r5, %reserved_smem_offset_1;\nst.global.u32 [%rd2], %r5;");
    bench.threads(1).run().unwrap();
}
