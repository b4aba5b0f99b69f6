//! The shared memory that CUDA reserves in each block, where tiles of several warps meet.

use simt::{Launch, Memory, ReportKind};

use crate::kernel::module;
use crate::unpacked;

/// As NVRTC compiles it from NVIDIA's headers, with and without optimisation.
const SOURCES: [&[u8]; 2] = [
    include_bytes!("../data/tiles_of_two_warps-12.0.ptx.gz"),
    include_bytes!("../data/tiles_of_two_warps-12.0-unoptimised.ptx.gz"),
];

/// The sums that a kernel computes of 512 values in two blocks, in both ways to run it.
fn sums(source: &str, dynamic_shared: u32) -> Result<Vec<i32>, simt::Report> {
    let module = module(source);
    let kernel = module.kernel("sums_of_tiles").unwrap();
    let memory = Memory::new(1 << 20);
    let values: Vec<u8> = (0..512_i32).flat_map(|i| (i * i % 1009 - 500).to_le_bytes()).collect();
    let given = memory.allocate("values", 4 * 512).unwrap();
    memory.write(given, &values).unwrap();
    let sums = memory.allocate("sums", 4 * 8).unwrap();
    let arguments = [given.to_le_bytes(), sums.to_le_bytes()].concat();
    let launch =
        Launch { dynamic_shared, ..Launch::new(kernel, [2, 1, 1], [256, 1, 1], &arguments) };
    launch.prepare(&memory).unwrap().run(0..2)?;
    launch.prepare(&memory).unwrap().run_together(0..2, None)?;
    let mut found = [0; 32];
    memory.read(sums, &mut found).unwrap();
    Ok(found.chunks(4).map(|sum| i32::from_le_bytes(sum.try_into().unwrap())).collect())
}

#[test]
fn tiles_of_two_warps_meet() {
    let wanted: Vec<i32> =
        (0..8).map(|tile| (64 * tile..64 * tile + 64).map(|i| i * i % 1009 - 500).sum()).collect();
    for source in SOURCES.map(unpacked) {
        // Also behind dynamic shared memory, whose size is no multiple of anything.
        for dynamic_shared in [0, 1027] {
            assert_eq!(sums(&source, dynamic_shared).as_ref(), Ok(&wanted));
        }
    }
}

/// Tiles of 64 to 512 threads that meet, sum up, scan, vote and shuffle.
#[test]
fn larger_tiles_do_what_they_say() {
    let source = unpacked(include_bytes!("../data/tiles-12.0.ptx.gz"));
    let module = module(&source);
    let memory = Memory::new(1 << 20);
    let values: Vec<i32> = (0..1024).map(|i| i * i % 149 - 50).collect();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let given = memory.allocate("values", 4 * 1024).unwrap();
    memory.write(given, &bytes).unwrap();
    let out = memory.allocate("out", 64 * 1024).unwrap();
    let arguments = [given.to_le_bytes(), out.to_le_bytes()].concat();
    let launch = Launch::new(module.kernel("tiles").unwrap(), [2, 1, 1], [512, 1, 1], &arguments);
    launch.prepare(&memory).unwrap().run(0..2).unwrap_or_else(|report| panic!("{report}"));
    let mut found = vec![0; 64 * 1024];
    memory.read(out, &mut found).unwrap();
    let mut found = found.chunks(4).map(|number| i32::from_le_bytes(number.try_into().unwrap()));
    for thread in 0..1024 {
        for size in [64, 128, 256, 512] {
            let (tile, rank) = (&values[thread / size * size..][..size], thread % size);
            let around: i32 =
                (0..3).map(|round| tile[(rank + 33 * (round + 1)) % size] + round as i32).sum();
            let votes = i32::from(tile.contains(&7)) + 2 * i32::from(tile.iter().all(|v| *v < 100));
            let wanted =
                [around, tile.iter().sum(), tile[..=rank].iter().sum(), votes + 4 * tile[size - 1]];
            let found = [(); 4].map(|()| found.next().unwrap());
            assert_eq!(found, wanted, "thread {thread}, tile of {size}");
        }
    }
}

/// The warps of a tile hand over values by a release and an acquire.
#[test]
fn without_a_release_or_an_acquire_they_race() {
    let [source, _] = SOURCES.map(unpacked);
    for (from, to) in [
        ("atom.or.acq_rel.cta.b32", "atom.or.relaxed.cta.b32"),
        ("atom.or.acq_rel.cta.b32", "atom.or.acquire.cta.b32"),
        ("ld.acquire.cta.u32", "ld.relaxed.cta.u32"),
    ] {
        assert!(source.contains(from));
        let report = sums(&source.replace(from, to), 0).unwrap_err();
        assert_eq!(report.kind, ReportKind::Race, "{from} as {to}: {report}");
    }
}
