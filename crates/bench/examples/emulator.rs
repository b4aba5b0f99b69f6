//! Measures the emulator on the library's kernels: time, instructions and peak memory. Run it with
//! `cargo run --release -p bench --example emulator -- pipe`.
//!
//! The peak is the peak of the whole process (Linux), so each case needs its own run. Apart from
//! the times and the peaks, the output is the same in every run; equal counters show that equal
//! work was measured.

use std::time::Instant;

use linrec::kernels;
use linrec::simt::{Counters, Launch, Memory, Module};

/// The number of elements of the sequence, unless the second argument sets another number.
const LEN: usize = 2_096_000;
/// The host memory that the emulator may use, in bytes. It exceeds a launch's default, because the
/// memory in use before the launch counts as well.
const HOST_BYTES: u64 = 1 << 34;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().unwrap_or_default();
    let len = arguments.next().map_or(LEN, |len| len.parse().expect("a number of elements"));
    let known = ROWS.iter().find(|rows| rows.case == case);
    match (&case[..], known) {
        (_, Some(kernel)) => rows(len, kernel),
        ("look-back", _) => look_back(len),
        ("once", _) => once(len),
        _ => match case.strip_prefix("waves-").and_then(|blocks| blocks.parse().ok()) {
            Some(blocks) => waves(len, blocks),
            None => println!(
                "ref, tile, pipe, rows, wide, look-back, once or waves-BLOCKS, and the number of elements"
            ),
        },
    }
}

/// A sequence of `len` elements in global memory.
struct Bench {
    memory: Memory,
    inputs: u64,
    coeffs: u64,
    outputs: u64,
    len: usize,
}

impl Bench {
    fn new(len: usize) -> Bench {
        let memory = Memory::new(1 << 34);
        let array = |name| memory.allocate(name, 4 * len as u64).expect("enough memory");
        let (inputs, coeffs, outputs) = (array("inputs"), array("coeffs"), array("outputs"));
        let mut state = 7_u32;
        let mut number = |middle: f32, spread: f32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (middle + spread * ((state >> 8) as f32 / (1 << 24) as f32 - 0.5)).to_le_bytes()
        };
        // Writes small pieces so that the host's copy does not count.
        for first in (0..len).step_by(1 << 12) {
            let count = (len - first).min(1 << 12);
            for (buffer, middle, spread) in [(inputs, 0.0, 1.0), (coeffs, 0.95, 0.1)] {
                let bytes: Vec<u8> = (0..count).flat_map(|_| number(middle, spread)).collect();
                memory.write(buffer + 4 * first as u64, &bytes).expect("the array is allocated");
            }
        }
        Bench { memory, inputs, coeffs, outputs, len }
    }

    fn zeros(&self, name: &str, bytes: usize) -> u64 {
        let buffer = self.memory.allocate(name, bytes as u64).expect("enough memory");
        self.memory.fill(buffer, bytes as u64, 0).expect("the array is allocated");
        buffer
    }

    fn run(
        &self,
        (name, entry): (&str, &str),
        (blocks, threads): (u32, u32),
        dynamic_shared: u32,
        arguments: &[u64],
    ) {
        let ptx = kernels::shipped().find_map(|(shipped, ptx)| (shipped == name).then_some(ptx));
        let module = Module::parse(ptx.expect("a shipped module").text()).expect("valid PTX");
        let kernel = module.kernels().find(|kernel| kernel.name().contains(entry));
        let kernel = kernel.expect("the kernel is in the module");
        let mut bytes: Vec<u8> = arguments.iter().flat_map(|value| value.to_le_bytes()).collect();
        bytes.truncate(kernel.param_bytes() as usize);
        let mut launch = Launch::new(kernel, [blocks, 1, 1], [threads, 1, 1], &bytes);
        launch.dynamic_shared = dynamic_shared;
        launch.host_bytes = HOST_BYTES;
        let before = peak();
        let launch = launch.prepare(&self.memory).expect("a valid launch");
        let start = Instant::now();
        let all = 0..blocks.into();
        let together = kernel.communicates();
        let found = if together { launch.run_together(all, None) } else { launch.run(all) };
        let seconds = start.elapsed().as_secs_f64();
        self.print(name, seconds, before, &found.unwrap_or_else(|report| panic!("{report}")));
    }

    fn print(&self, name: &str, seconds: f64, before: u64, counters: &Counters) {
        let mut bytes = vec![0; 4 * self.len];
        let peak = peak();
        self.memory.read(self.outputs, &mut bytes).expect("the array is allocated");
        let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let Counters { instructions, thread_instructions, barriers, blocks, .. } = counters;
        println!(
            "{name}: {} elements in {blocks} blocks, {seconds:.3} s, {:.1} million a second, {} MB at most, {before} \
             before the launch; {instructions} instructions, of threads {thread_instructions}, {barriers} barriers, \
             outputs {:016x}",
            self.len,
            self.len as f64 / seconds / 1e6,
            peak,
            bytes.iter().fold(0xcbf2_9ce4_8422_2325, hash),
        );
    }
}

/// A kernel whose blocks have separate rows and run one after the other.
struct Rows {
    case: &'static str,
    name: &'static str,
    entry: &'static str,
    /// The length of the longest rows that the kernel receives, in elements.
    row: usize,
    rows: usize,
    threads: u32,
}

const ROWS: [Rows; 5] = [
    Rows {
        case: "ref",
        name: "ref-f32",
        entry: "linrec_ref_fwd_float_false",
        row: 1 << 10,
        rows: 64,
        threads: 64,
    },
    Rows {
        case: "tile",
        name: "tile-4x256-0-f32",
        entry: "linrec_tile_fwd",
        row: 1 << 10,
        rows: 1,
        threads: 256,
    },
    Rows {
        case: "pipe",
        name: "pipe-8x64-0-f32",
        entry: "linrec_pipe_fwd",
        row: 1 << 16,
        rows: 1,
        threads: 64,
    },
    Rows {
        case: "rows",
        name: "rows-16x2x32-f32",
        entry: "linrec_rows_fwd_float_16_2_32_false",
        row: 1 << 7,
        rows: 2,
        threads: 32,
    },
    Rows {
        case: "wide",
        name: "wide-2x128-f32",
        entry: "linrec_wide_fwd",
        row: 1 << 16,
        rows: 1,
        threads: 128,
    },
];

fn rows(len: usize, kernel: &Rows) {
    let row = len.min(kernel.row);
    let (rows, bench) = (len / row, Bench::new(len / row * row));
    let arguments = [bench.inputs, bench.coeffs, bench.outputs, 0, 0, rows as u64, row as u64, 0];
    let blocks = rows.div_ceil(kernel.rows) as u32;
    bench.run((kernel.name, kernel.entry), (blocks, kernel.threads), 0, &arguments);
}

/// Runs a kernel whose blocks of 256 elements each wait for the previous block.
fn look_back(len: usize) {
    let bench = Bench::new(len);
    let blocks = len.div_ceil(256);
    let [next, published] =
        [("next_tile", 1), ("published", blocks)].map(|(name, count)| bench.zeros(name, 4 * count));
    let states = bench.memory.allocate("states", 4 * blocks as u64).expect("enough memory");
    let Bench { inputs, coeffs, outputs, .. } = bench;
    let arguments = [inputs, coeffs, outputs, 0, 0, len as u64, next, published, states];
    bench.run(("look_back", "look_back"), (blocks as u32, 32), 0, &arguments);
}

/// Returns the arguments of the kernels that divide one row among blocks, and the number of tiles.
/// A tile has `vectors` vectors.
fn shared_out(bench: &Bench, vectors: usize) -> ([u64; 9], usize) {
    let tiles = (bench.len + 3).div_ceil(4 * vectors);
    let workspace = bench.zeros("workspace", 16 + 16 * tiles.next_multiple_of(128));
    let Bench { inputs, coeffs, outputs, len, .. } = *bench;
    let numbers = [1, len as u64, vectors as u64, workspace];
    let mut arguments = [inputs, coeffs, outputs, 0, 0, 0, 0, 0, 0];
    arguments[5..].copy_from_slice(&numbers);
    (arguments, tiles)
}

/// Runs the kernel with four vectors in each of 288 threads, a separate warp that carries the
/// state, and a ring of six tiles of both arrays.
fn waves(len: usize, blocks: u32) {
    const THREADS: u32 = 288;
    let bench = Bench::new(len);
    let (arguments, tiles) = shared_out(&bench, 4 * THREADS as usize);
    let blocks = blocks.min(tiles as u32);
    // No messages from or to another device.
    let arguments = [&arguments[..], &[0, 0, 0]].concat();
    let entry = ("waves-4x288-f32", "linrec_waves_fwd_float_4_288_5_1_false_false");
    bench.run(entry, (blocks, THREADS + 32), 12 * 16 * 4 * THREADS, &arguments);
}

/// Runs the kernel with a block for each tile: four vectors in each of 512 threads.
fn once(len: usize) {
    const THREADS: u32 = 512;
    let bench = Bench::new(len);
    let (arguments, tiles) = shared_out(&bench, 4 * THREADS as usize);
    let arguments = [&arguments[..], &[1]].concat();
    let entry = ("once-4x512-f32", "linrec_once_fwd_float_4_512_false_false");
    bench.run(entry, (tiles as u32, THREADS), 0, &arguments);
}

fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024 / 1_000_000
}
