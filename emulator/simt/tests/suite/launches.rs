//! Launches that cannot be, each with its sentence, and the largest that can.

use simt::{Launch, Memory, Module, Report, ReportKind};

/// A kernel with 12 bytes of arguments in 16 and 1024 bytes of shared memory; declarations of the
/// module, and a directive of the kernel.
fn module(directive: &str, declarations: &str) -> Module {
    let source = format!(
        "
        .version 8.0
        .target sm_80
        .address_size 64
        {declarations}
        .visible .entry k(.param .u32 n, .param .u64 a)
        {directive}
        {{
            .reg .b32 %r<2>;
            .shared .align 4 .b8 s[1024];
            mov.u32 %r1, s;
            ret;
        }}"
    );
    Module::parse(&source).and_then(Module::complete).unwrap_or_else(|error| panic!("{error}"))
}

const EXTERN: &str = ".extern .shared .align 16 .b8 d[];";

/// Prepares a launch of a grid of blocks, with dynamic shared memory, and runs its last block.
fn launch(
    module: &Module,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
) -> Result<(), Report> {
    let kernel = module.kernel("k").unwrap();
    let memory = Memory::new(1 << 20);
    let launch = Launch { dynamic_shared, ..Launch::new(kernel, grid, block, &[0; 16]) };
    let blocks = launch.blocks();
    let prepared = launch.prepare(&memory)?;
    assert_eq!(prepared.run(blocks - 1..blocks)?.blocks, 1);
    Ok(())
}

fn refused(found: Result<(), Report>, message: &str) {
    let report = found.unwrap_err();
    assert_eq!(report.kind, ReportKind::Launch);
    assert_eq!(report.message, message);
    assert_eq!(report.to_string(), format!("k: {message}"));
}

/// Extents whose product does not fit.
#[test]
fn grids_that_overflow() {
    let module = module("", "");
    let kernel = module.kernel("k").unwrap();
    let memory = Memory::new(1 << 20);
    let largest = [u32::MAX; 3];
    let launch = Launch::new(kernel, largest, [32, 1, 1], &[0; 16]);
    assert_eq!(launch.blocks(), u64::MAX);
    assert_eq!(launch.prepare(&memory).unwrap_err().kind, ReportKind::Launch);
    let launch = Launch::new(kernel, [i32::MAX as u32, 65_535, 65_535], largest, &[0; 16]);
    assert_eq!(launch.blocks(), i32::MAX as u64 * 65_535 * 65_535);
    assert_eq!(launch.prepare(&memory).unwrap_err().kind, ReportKind::Launch);
}

#[test]
fn arguments() {
    let module = module("", "");
    let kernel = module.kernel("k").unwrap();
    let memory = Memory::new(1 << 20);
    for given in [0, 12, 15, 16, 17] {
        let bytes = vec![0; given];
        let found = Launch::new(kernel, [1; 3], [32, 1, 1], &bytes).prepare(&memory);
        match given {
            16 => drop(found.unwrap()),
            _ => {
                let message = format!("takes 16 bytes of arguments, not {given}");
                refused(found.map(drop), &message);
            }
        }
    }
}

#[test]
fn threads_of_a_block() {
    let any = module("", "");
    for block in [[0, 1, 1], [32, 0, 1], [1025, 1, 1], [32, 33, 1], [1, 1, 65], [u32::MAX; 3]] {
        let [x, y, z] = block;
        let message = format!(
            "cannot run blocks of {x} x {y} x {z} threads: 1 to 1024 in all, at most 64 along z"
        );
        refused(launch(&any, [1; 3], block, 0), &message);
    }
    for block in [[1024, 1, 1], [1, 1024, 1], [4, 4, 64], [1, 1, 1]] {
        launch(&any, [1; 3], block, 0).unwrap();
    }
    let few = module(".maxntid 96, 1, 1", "");
    let message = "cannot run blocks of 97 x 1 x 1 threads: 1 to 96 in all, at most 64 along z";
    refused(launch(&few, [1; 3], [97, 1, 1], 0), message);
    launch(&few, [1; 3], [96, 1, 1], 0).unwrap();
    launch(&few, [1; 3], [32, 1, 1], 0).unwrap();
    let these = module(".reqntid 64, 2, 1", "");
    let message = "needs blocks of 64 x 2 x 1 threads, not 128 x 1 x 1";
    refused(launch(&these, [1; 3], [128, 1, 1], 0), message);
    launch(&these, [1; 3], [64, 2, 1], 0).unwrap();
}

#[test]
fn blocks_of_a_grid() {
    let module = module("", "");
    let most = i32::MAX as u32;
    for grid in
        [[0, 1, 1], [1, 0, 1], [most + 1, 1, 1], [1, 65_536, 1], [1, 1, 65_536], [most, 3, 1]]
    {
        let [x, y, z] = grid;
        let message = format!(
            "cannot run a grid of {x} x {y} x {z} blocks: at least 1, at most 2147483647 along x, 65535 along y and z, \
             4294967294 in all"
        );
        refused(launch(&module, grid, [1; 3], 0), &message);
    }
    for grid in [[most, 1, 1], [most, 2, 1], [1, 65_535, 1], [3, 1, 65_535]] {
        launch(&module, grid, [1; 3], 0).unwrap();
    }
}

#[test]
fn shared_memory() {
    const MOST: u32 = 227 << 10;
    let module = module("", EXTERN);
    for dynamic in [MOST - 1023, MOST, u32::MAX] {
        let message =
            format!("has 1024 bytes of shared memory and is given {dynamic} more: 232448 at most");
        refused(launch(&module, [1; 3], [32, 1, 1], dynamic), &message);
    }
    launch(&module, [1; 3], [32, 1, 1], MOST - 1024).unwrap();
    launch(&module, [1; 3], [32, 1, 1], 0).unwrap();
}

/// Dynamic shared memory lies behind what the kernel declares, and ends where the launch says.
#[test]
fn dynamic_shared_memory_has_its_size() {
    let source =
        crate::kernel::source("mov.u32 %r5, d; add.u32 %r5, %r5, %r4; st.shared.u32 [%r5], %r2;");
    let source = source.replace(".visible", &format!("{EXTERN}\n.visible"));
    let mut bench = crate::kernel::Bench::of(&source);
    bench.dynamic_shared = 128;
    bench.run().unwrap();
    bench.dynamic_shared = 120;
    let message =
        "writes 4 bytes at offset 4216 of shared memory, of which the block has 4216 bytes";
    let found = bench.run();
    let report = bench.reports(found, ReportKind::OutOfBounds, "st.shared", message);
    assert_eq!(report.lanes, 0xc000_0000);
}

#[test]
fn ranges_of_blocks() {
    let module = module("", "");
    let kernel = module.kernel("k").unwrap();
    let memory = Memory::new(1 << 20);
    let launch = Launch::new(kernel, [100, 200, 1], [64, 1, 1], &[0; 16]);
    let prepared = launch.prepare(&memory).unwrap();
    assert_eq!(prepared.launch().blocks(), 20_000);
    assert_eq!(prepared.run(7..7).unwrap().blocks, 0);
    assert_eq!(prepared.run(19_990..20_000).unwrap().blocks, 10);
    #[expect(clippy::reversed_empty_ranges, reason = "what is refused")]
    for range in [0..20_001, 20_001..20_001, 5..4] {
        let message = format!("has 20000 blocks, not {range:?}");
        refused(prepared.run(range.clone()).map(drop), &message);
        refused(prepared.run_together(range, None).map(drop), &message);
    }
    assert_eq!(prepared.run_together(0..4096, None).unwrap().blocks, 4096);
    let message = "cannot run 8194 warps together: 8192 at most, so run a part of the grid";
    refused(prepared.run_together(0..4097, None).map(drop), message);
}
