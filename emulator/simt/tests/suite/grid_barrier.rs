//! The barrier of a grid of `cooperative_groups`, as NVRTC compiles it from NVIDIA's headers.

use simt::{Counters, Kernel, Launch, Memory, Prepared, Report, ReportKind, Stepper, Trace};

use crate::kernel::{HEAD, module};

const SOURCES: [&str; 2] =
    [include_str!("../data/grid_barrier-12.0.ptx"), include_str!("../data/grid_barrier-13.2.ptx")];

/// The bytes of two buffers' addresses and a number, cut to what the kernel takes.
fn arguments(kernel: &Kernel, values: u64, out: u64, number: u32) -> Vec<u8> {
    let mut bytes = [values.to_le_bytes(), out.to_le_bytes()].concat();
    bytes.extend(number.to_le_bytes());
    bytes.truncate(kernel.param_bytes() as usize);
    bytes
}

fn buffers(memory: &Memory, threads: u32) -> [u64; 2] {
    ["values", "out"].map(|name| memory.allocate(name, u64::from(4 * threads)).unwrap())
}

fn words(memory: &Memory, address: u64, count: u32) -> Vec<u32> {
    let mut bytes = vec![0; 4 * count as usize];
    memory.read(address, &mut bytes).unwrap();
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn together(launch: &Prepared<'_>) -> Result<Counters, Report> {
    launch.run_together(0..launch.launch().blocks(), None)
}

#[test]
fn all_blocks_have_come_before_one_goes_on() {
    for source in SOURCES {
        let module = module(source);
        let kernel = module.kernel("rounds").unwrap();
        assert!(kernel.communicates());
        for (grid, block) in
            [([1, 1, 1], [1, 1, 1]), ([5, 1, 1], [40, 1, 1]), ([3, 4, 1], [8, 9, 1])]
        {
            let threads: u32 = grid.iter().chain(&block).product();
            for rounds in [1, 4] {
                let memory = Memory::new(1 << 20);
                let [values, out] = buffers(&memory, threads);
                let arguments = arguments(kernel, values, out, rounds);
                let launch = Launch::new(kernel, grid, block, &arguments);
                let wanted: Vec<u32> =
                    (0..threads).map(|i| (i + 33) % threads + rounds - 1).collect();
                // An odd number of barriers leaves nothing for the next launch.
                for _ in 0..2 {
                    let counters = together(&launch.prepare(&memory).unwrap());
                    let counters = counters.unwrap_or_else(|report| panic!("{report}"));
                    assert_eq!(words(&memory, out, threads), wanted);
                    let prepared = launch.prepare(&memory).unwrap();
                    let mut trace = Trace::new(1 << 12);
                    let blocks = 0..launch.blocks();
                    assert_eq!(prepared.run_together(blocks, Some(&mut trace)), Ok(counters));
                    assert_eq!(words(&memory, out, threads), wanted);
                }
                let stepper = Stepper::new(launch, memory, true).unwrap();
                assert!(stepper.result().is_ok(), "{:?}", stepper.result());
                assert_eq!(words(stepper.memory(), out, threads), wanted);
            }
        }
    }
}

#[test]
fn its_halves_are_a_barrier_together() {
    let module = module(SOURCES[1]);
    let kernel = module.kernel("halves").unwrap();
    let memory = Memory::new(1 << 20);
    let [values, out] = buffers(&memory, 4 * 64);
    let arguments = arguments(kernel, values, out, 0);
    let launch = Launch::new(kernel, [4, 1, 1], [64, 1, 1], &arguments);
    together(&launch.prepare(&memory).unwrap()).unwrap();
    let wanted: Vec<u32> = (0..256).map(|i| (i + 33) % 256 + 1).collect();
    assert_eq!(words(&memory, out, 256), wanted);
}

#[test]
fn a_launch_that_is_not_cooperative_has_none() {
    for source in SOURCES {
        let module = module(source);
        let kernel = module.kernel("rounds").unwrap();
        let memory = Memory::new(1 << 20);
        let [values, out] = buffers(&memory, 64);
        let arguments = arguments(kernel, values, out, 1);
        let launch = Launch::new(kernel, [2, 1, 1], [32, 1, 1], &arguments);
        let report = launch.prepare(&memory).unwrap().run(0..2).unwrap_err();
        assert_eq!(report.kind, ReportKind::Trap);
        assert_eq!(
            report.message,
            "executes trap: it is not launched together, and a barrier of the grid (`grid.sync()`) is for cooperative \
             launches (`cudaLaunchCooperativeKernel`), which `Prepared::run_together` is here"
        );
        // A trap of another kernel is but a trap.
        let other = crate::kernel::module(&format!("{HEAD}.entry k() {{ trap; }}"));
        let launch = Launch::new(other.kernel("k").unwrap(), [1; 3], [1; 3], &[]);
        let report = launch.prepare(&memory).unwrap().run(0..1).unwrap_err();
        assert_eq!(report.message, "executes trap");
    }
}

/// The report has the number of blocks that have come. The next launch finds nothing of it.
#[test]
fn a_block_that_does_not_come_is_reported() {
    for source in SOURCES {
        let module = module(source);
        let kernel = module.kernel("skips").unwrap();
        let memory = Memory::new(1 << 20);
        let [values, out] = buffers(&memory, 4 * 32);
        for (who, come) in [(0, Some(3)), (2, Some(3)), (77, None), (3, Some(3)), (77, None)] {
            let arguments = arguments(kernel, values, out, who);
            let launch = Launch::new(kernel, [4, 1, 1], [32, 1, 1], &arguments);
            match (together(&launch.prepare(&memory).unwrap()), come) {
                (Ok(_), None) => {}
                (Err(report), Some(come)) => {
                    assert_eq!(report.kind, ReportKind::NoProgress);
                    assert_eq!(
                        report.message,
                        format!(
                            "makes no progress: {come} blocks wait for what none of them does; at the barrier of the grid \
                             (`grid.sync()`) are {come} of its 4 blocks"
                        )
                    );
                }
                (found, _) => panic!("block {who}: {found:?}"),
            }
        }
        // So does a part of the grid.
        let arguments = arguments(kernel, values, out, 77);
        let launch = Launch::new(kernel, [4, 1, 1], [32, 1, 1], &arguments);
        let report = launch.prepare(&memory).unwrap().run_together(1..3, None).unwrap_err();
        assert!(report.message.ends_with("are 2 of its 4 blocks"), "{report}");
    }
}

#[test]
fn a_grid_that_does_not_fit_is_refused() {
    let module = module(SOURCES[0]);
    let kernel = module.kernel("rounds").unwrap();
    let memory = Memory::new(1 << 20);
    let arguments = arguments(kernel, 0, 0, 1);
    let launch = Launch::new(kernel, [5000, 1, 1], [64, 1, 1], &arguments);
    let report = together(&launch.prepare(&memory).unwrap()).unwrap_err();
    assert_eq!(report.kind, ReportKind::Launch);
    assert_eq!(
        report.message,
        "cannot run 10000 warps together: 8192 at most, and a grid with a barrier (`grid.sync()`) has no parts (a GPU refuses \
         one that does not fit with `cudaErrorCooperativeLaunchTooLarge`)"
    );
}

/// Each launch has its own barrier.
#[test]
fn launches_beside_each_other_do_not_wait_for_each_other() {
    let module = module(SOURCES[0]);
    let kernel = module.kernel("skips").unwrap();
    let memory = Memory::new(1 << 20);
    let all = [buffers(&memory, 96), buffers(&memory, 96)];
    let run = |who: [u32; 2]| {
        let [a, b] = [0, 1].map(|i| arguments(kernel, all[i][0], all[i][1], who[i]));
        let launches = [&a, &b].map(|arguments| {
            Launch::new(kernel, [3, 1, 1], [32, 1, 1], arguments).prepare(&memory).unwrap()
        });
        Prepared::run_side_by_side(&launches)
    };
    assert!(run([9, 9]).is_ok());
    let report = run([9, 1]).unwrap_err();
    assert_eq!(report.kernel, "skips of launch 1");
    assert!(report.message.ends_with("are 2 of its 3 blocks"), "{report}");
}

/// The other words of the environment are 0, cooperative or not.
#[test]
fn other_words_of_the_environment_are_zero() {
    let reads: String = (0..32)
        .filter(|i| ![1, 2].contains(i))
        .map(|i| format!("mov.u32 %r2, %envreg{i}; or.b32 %r1, %r1, %r2;\n"))
        .collect();
    let source = format!(
        ".version 8.0 .target sm_80 .address_size 64
        .entry k(.param .u64 out) {{
            .reg .b32 %r<9>; .reg .b64 %rd<3>;
            mov.u32 %r1, 0; {reads}
            mov.u32 %r3, %envreg1; mov.u32 %r4, %envreg2;
            ld.param.u64 %rd1, [out];
            st.global.u32 [%rd1], %r1; st.global.u32 [%rd1+4], %r3; st.global.u32 [%rd1+8], %r4;
        }}"
    );
    let module = module(&source);
    let memory = Memory::new(1 << 20);
    let out = memory.allocate("out", 12).unwrap();
    let arguments = out.to_le_bytes();
    let launch = Launch::new(module.kernel("k").unwrap(), [1; 3], [1; 3], &arguments);
    launch.prepare(&memory).unwrap().run(0..1).unwrap();
    assert_eq!(words(&memory, out, 3), [0; 3]);
    together(&launch.prepare(&memory).unwrap()).unwrap();
    let [rest, high, low] = words(&memory, out, 3)[..] else { panic!() };
    assert_eq!(rest, 0);
    // The address of eight bytes that belong to the grid.
    let workspace = u64::from(high) << 32 | u64::from(low);
    assert_eq!(words(&memory, workspace, 2), [8, 0]);
}
