//! Measures the time and the memory that the emulator takes for a kernel:
//! `cargo run --release -p linrec-simt --example speed -- rows`. The peak of memory is the peak of
//! the process (Linux), so a run measures one case. Equal counters of two runs mean equal work.

use std::time::Instant;

use simt::{Launch, Memory, Module};

const PTX: &str = include_str!("../tests/data/steps-12.0.ptx");
/// The default number of elements of the sequence, without a second argument.
const LEN: usize = 2_096_000;
/// Elements of a row.
const ROW: usize = 1 << 10;
/// Bytes that the emulator may take, more than a launch is given at first: what it took before is
/// measured as well.
const HOST_BYTES: u64 = 1 << 34;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().unwrap_or_default();
    let len = arguments.next().map_or(LEN, |len| len.parse().expect("a number of elements"));
    match &*case {
        "rows" => measure("rows", len / ROW * ROW, (len / ROW, 128)),
        "chain" => measure("chain_of_blocks", len, (len.div_ceil(32), 32)),
        _ => println!("rows or chain, and the number of elements"),
    }
}

/// Runs a kernel of `steps.cu` on `len` elements.
fn measure(name: &str, len: usize, (blocks, threads): (usize, u32)) {
    let memory = Memory::new(HOST_BYTES);
    let array =
        |name, count: usize| memory.allocate(name, 4 * count as u64).expect("there is memory");
    let [inputs, coeffs, outputs] = ["inputs", "coeffs", "outputs"].map(|name| array(name, len));
    let mut state = 7_u32;
    let mut number = |middle: f32, spread: f32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (middle + spread * ((state >> 8) as f32 / (1 << 24) as f32 - 0.5)).to_le_bytes()
    };
    // In pieces, so that the host's copy does not count.
    for first in (0..len).step_by(1 << 12) {
        let count = (len - first).min(1 << 12);
        for (buffer, middle, spread) in [(inputs, 0.0, 1.0), (coeffs, 0.95, 0.1)] {
            let bytes: Vec<u8> = (0..count).flat_map(|_| number(middle, spread)).collect();
            memory.write(buffer + 4 * first as u64, &bytes).expect("it is there");
        }
    }
    let [next, published, states] = [("next", 1), ("published", blocks), ("states", blocks)]
        .map(|(name, count)| array(name, count));
    memory.fill(next, 4, 0).expect("it is there");
    memory.fill(published, 4 * blocks as u64, 0).expect("it is there");

    let module = Module::parse(PTX).expect("it is PTX");
    let kernel = module.kernel(name).expect("it has the kernel");
    let length = if name == "rows" { ROW } else { len } as u64;
    let arguments = [inputs, coeffs, outputs, length, next, published, states];
    let mut bytes: Vec<u8> = arguments.iter().flat_map(|value| value.to_le_bytes()).collect();
    bytes.truncate(kernel.param_bytes() as usize);
    let mut launch = Launch::new(kernel, [blocks as u32, 1, 1], [threads, 1, 1], &bytes);
    launch.host_bytes = HOST_BYTES;
    let before = peak();
    let launch = launch.prepare(&memory).expect("it can be launched");
    let start = Instant::now();
    let all = 0..blocks as u64;
    let together = kernel.communicates();
    let found = if together { launch.run_together(all, None) } else { launch.run(all) };
    let seconds = start.elapsed().as_secs_f64();
    let counters = found.unwrap_or_else(|report| panic!("{report}"));

    let peak = peak();
    let mut bytes = vec![0; 4 * len];
    memory.read(outputs, &mut bytes).expect("it is there");
    let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    println!(
        "{name}: {len} elements in {blocks} blocks, {seconds:.3} s, {:.1} million a second, {peak} MB at most, {before} \
         before the launch; {} instructions, of threads {}, {} barriers, outputs {:016x}",
        len as f64 / seconds / 1e6,
        counters.instructions,
        counters.thread_instructions,
        counters.barriers,
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, hash),
    );
}

/// The most memory that the process has had, in MB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024 / 1_000_000
}
