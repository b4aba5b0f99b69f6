//! Measures the emulator on the library's kernels: time, instructions and peak memory. Run it with
//! `cargo run --release -p bench --example emulator -- pipe`.
//!
//! The peak is the peak of the whole process (Linux), so each case needs its own run. Apart from
//! the times and the peaks, the output is the same in every run; equal counters show that equal
//! work was measured. One thread computes, as in the emulator's own example `speed`. Blocks
//! that share a sequence take tiles of the library's choice, which are smaller for short ones.

use std::time::Instant;

use linrec::Direction;
use linrec::kernels::{self, ElementType, KernelChoice, Pass, Ptx};
use linrec::simt::{Counters, Launch, Memory, Module};

/// The number of elements of the sequence, unless the second argument sets another number.
const LEN: usize = 2_096_000;
/// The host memory that the emulator may use, in bytes. It exceeds a launch's default, because the
/// memory in use before the launch counts as well.
const HOST_BYTES: u64 = 1 << 34;

/// The cases of the library's kernels, with the length of the longest rows that each receives.
const CASES: [(&str, &str, usize); 7] = [
    ("ref", "ref:64", 1 << 10),
    ("tile", "tile:4x256:0", 1 << 10),
    ("pipe", "pipe:8x64:0", 1 << 16),
    ("rows", "rows:16x2x32", 1 << 7),
    ("wide", "wide:2x128", 1 << 16),
    ("waves", "waves:4x288", usize::MAX),
    ("once", "once:4x512", usize::MAX),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().unwrap_or_default();
    let len = arguments.next().map_or(LEN, |len| len.parse().expect("a number of elements"));
    let (name, blocks) = case.split_once('-').unwrap_or((&case, ""));
    match CASES.into_iter().find(|&(case, ..)| case == name) {
        Some((_, choice, row)) => one(len, choice, row, blocks.parse().unwrap_or(u32::MAX)),
        None if case == "look-back" => look_back(len),
        None => println!(
            "ref, tile, pipe, rows, wide, look-back, once or waves-BLOCKS, and the number of elements"
        ),
    }
}

/// Runs a kernel of the library over rows of `row` elements, with at most `most` blocks.
fn one(len: usize, choice: &str, row: usize, most: u32) {
    const ELEMENT: ElementType = ElementType::F32;
    let choice: KernelChoice = choice.parse().expect("a kernel of the library");
    let row = len.min(row);
    let (rows, bench) = (len / row, Bench::new(len / row * row));
    let geometry = choice.geometry(ELEMENT, Pass::Forward, rows as u64, row as u64);
    let mut arguments =
        vec![bench.inputs, bench.coeffs, bench.outputs, 0, 0, rows as u64, row as u64];
    if let Some(shared_out) = geometry.shared_out {
        let workspace = bench.zeros("workspace", shared_out.workspace_bytes as usize);
        // Blocks take the tiles in the order in which they start, if there is one for each.
        let deal = u64::from(shared_out.one_tile);
        arguments.extend([u64::from(shared_out.tile_vectors), workspace, deal]);
    }
    let ptx = kernels::shipped_as(&choice.program(ELEMENT)).expect("a shipped module");
    let entry = choice.entry(ELEMENT, Pass::Forward, Direction::Forward);
    let blocks = u32::try_from(geometry.blocks).expect("a grid").min(most);
    let grid = (blocks, geometry.threads);
    bench.run(&choice.to_string(), (ptx, &entry), grid, geometry.shared_bytes, &arguments);
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
    let ptx = kernels::shipped().find(|(name, _)| *name == "look_back").expect("it is shipped").1;
    bench.run("look_back", (ptx, "look_back"), (blocks as u32, 32), 0, &arguments);
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

    /// Runs the kernel with this name in C++. Arguments that are missing are zero.
    fn run(
        &self,
        name: &str,
        (ptx, entry): (Ptx, &str),
        (blocks, threads): (u32, u32),
        dynamic_shared: u32,
        arguments: &[u64],
    ) {
        let symbol = ptx.entries().find_map(|(cpp, symbol)| (cpp == entry).then_some(symbol));
        let module = Module::parse(ptx.text()).expect("valid PTX");
        let kernel = module.kernel(symbol.unwrap_or(entry)).expect("the kernel is in the module");
        let mut bytes: Vec<u8> = arguments.iter().flat_map(|value| value.to_le_bytes()).collect();
        bytes.resize(kernel.param_bytes() as usize, 0);
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

fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024 / 1_000_000
}
