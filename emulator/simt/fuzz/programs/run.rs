//! The inputs of a program, and its results on the emulator.

use simt::{Kernel, Launch, Memory, Report, Trace};

use super::frame::{BLOCKS, INPUT_WORDS, THREADS, WORDS};
use crate::parser::Random;

/// The order in which the blocks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// One after the other.
    InOrder,
    /// The last one first.
    Backwards,
    /// In turns.
    Together,
    /// One after the other, with a trace.
    Traced,
}

/// Draws the inputs of all programs of a module: words for each thread, some of them at the edges
/// of formats, and the bytes of the last parameter.
pub fn inputs(seed: u64) -> (Vec<u32>, [u64; 2]) {
    let mut random = Random(seed ^ 0x1d);
    let words = (0..BLOCKS * THREADS * INPUT_WORDS).map(|_| word(&mut random)).collect();
    (words, [(); 2].map(|()| u64::from(word(&mut random)) << 32 | u64::from(word(&mut random))))
}

fn word(random: &mut Random) -> u32 {
    const EDGES: [u32; 20] = [
        0, 1, 2, 31, 32, 0xff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff, 0x00800000,
        0x007fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f7fffff, 0x3c007c00, 0x7bff0400,
        0x3f808000,
    ];
    let drawn = random.draw() as u32;
    match random.below(8) {
        0 => EDGES[random.below(EDGES.len())],
        1 => random.below(64) as u32,
        2 => (random.below(64) as u32).wrapping_neg(),
        // Floats near 1 with either sign, in several formats.
        3 | 4 => drawn & 0x80ff_ffff | 0x3f00_0000,
        5 => drawn & 0x803f_ffff | 0x3fc0_0000,
        6 => drawn & 0x83ff_83ff | 0x3800_3800,
        _ => drawn,
    }
}

/// Runs a program on the emulator, and returns the words that it writes.
///
/// # Errors
///
/// The emulator's report, which shows that the program or the emulator is wrong.
pub fn results(
    kernel: &Kernel,
    (words, last): &(Vec<u32>, [u64; 2]),
    way: Way,
) -> Result<Vec<u32>, Box<Report>> {
    let memory = Memory::new(1 << 20);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let given = memory.allocate("inputs", bytes.len() as u64).expect("the memory is large enough");
    let written = memory.allocate("results", 4 * WORDS as u64).expect("the memory is large enough");
    memory.write(given, &bytes).expect("the buffer is large enough");
    let arguments = [given, written].into_iter().chain(*last).flat_map(|value| value.to_le_bytes());
    let arguments: Vec<u8> = arguments.collect();
    let launch = Launch::new(kernel, [BLOCKS as u32, 1, 1], [THREADS as u32, 1, 1], &arguments);
    let prepared = launch.prepare(&memory)?;
    let blocks = BLOCKS as u64;
    match way {
        Way::InOrder => drop(prepared.run(0..blocks)?),
        Way::Backwards => {
            for block in (0..blocks).rev() {
                prepared.run(block..block + 1)?;
            }
        }
        Way::Together => drop(prepared.run_together(0..blocks, None)?),
        Way::Traced => drop(prepared.run_traced(0..blocks, &mut Trace::new(1000))?),
    }
    let mut bytes = vec![0; 4 * WORDS];
    memory.read(written, &mut bytes).expect("the buffer exists");
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    Ok(bytes.chunks_exact(4).map(word).collect())
}
