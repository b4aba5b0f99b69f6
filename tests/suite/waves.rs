//! Kernels whose blocks share a sequence: right, and with the same bits for every number of blocks.

use crate::emulator::engine::SharedOut;
use crate::emulator::{Argument, Shipped, allocate, download, upload};
use linrec::simt::{Memory, ReportKind};

/// The PTX.
const WAVES: &str = "waves-4x288-f32";
const ONCE_NAME: &str = "once-4x512-f32";
/// The entries, forward and in reverse.
const FORWARD: [&str; 2] = [
    "linrec_waves_fwd<float, 4, 288, 5, 1, false, false>",
    "linrec_waves_fwd<float, 4, 288, 5, 1, false, true>",
];
const BACKWARD: [&str; 2] = [
    "linrec_waves_bwd<float, 3, 288, 5, 1, false, false>",
    "linrec_waves_bwd<float, 3, 288, 5, 1, false, true>",
];
const ONCE: [&str; 2] =
    ["linrec_once_fwd<float, 4, 512, false, false>", "linrec_once_fwd<float, 4, 512, false, true>"];
const ONCE_BACKWARD: [&str; 2] =
    ["linrec_once_bwd<float, 4, 512, false, false>", "linrec_once_bwd<float, 4, 512, false, true>"];
/// Threads of a block that compute. The waves have one more warp, which carries the state.
const THREADS: u32 = 288;
const ONCE_THREADS: u32 = 512;
/// Bytes of dynamic shared memory, forward and backward: the ring has room for 5 + 1 tiles of two arrays, and backward
/// for 1 + 1 of a third one.
const SHARED_BYTES: [u32; 2] = [12 * 4 * THREADS * 16, 14 * 3 * THREADS * 16];

/// How long the tiles are.
#[derive(Debug, Clone, Copy)]
enum Tiles {
    /// A warp's.
    Short,
    /// As long as the threads of the waves have room for.
    Full,
}

impl Tiles {
    /// In 16-byte vectors: whole warps.
    fn vectors(self, entries: [&str; 2]) -> usize {
        let lane = if entries == BACKWARD { 3 } else { 4 };
        match self {
            Tiles::Short => 32 * lane,
            Tiles::Full => THREADS as usize * lane,
        }
    }
}

/// Numbers that differ, around `middle`.
fn numbers(count: usize, middle: f32, spread: f32) -> Vec<f32> {
    let mut state = 7_u32;
    let number = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        middle + spread * ((state >> 8) as f32 / (1 << 24) as f32 - 0.5)
    };
    std::iter::repeat_with(number).take(count).collect()
}

/// What a kernel is run on: rows that begin `skew` elements behind a multiple of 16 bytes, and the first of which
/// may be all NaN.
#[derive(Debug, Clone, Copy)]
struct Case {
    num_seqs: usize,
    seq_len: usize,
    tiles: Tiles,
    skew: u64,
    reverse: bool,
    poisoned: bool,
}

impl Case {
    /// The bits of all results of two launches in a row, which have to be the same.
    fn bits(&self, name: &str, entries: [&str; 2], blocks: Option<u32>) -> Vec<u32> {
        let Case { num_seqs, seq_len, tiles, skew, reverse, poisoned } = *self;
        let (memory, len) = (Memory::new(1 << 30), num_seqs * seq_len);
        let behind = |place: Argument| match place {
            Argument::Long(address) => Argument::Long(address + 4 * skew),
            place => place,
        };
        let array = |name, middle, spread| {
            let mut values = numbers(len + skew as usize, middle, spread);
            if poisoned {
                values[..seq_len + skew as usize].fill(f32::NAN);
            }
            behind(upload(&memory, name, &values))
        };
        let result = |name| behind(allocate(&memory, name, len + skew as usize));
        let is_backward = entries == BACKWARD || entries == ONCE_BACKWARD;
        let mut arguments = vec![array("inputs", 0.0, 1.0), array("coeffs", 0.95, 0.1)];
        let mut results = vec![(result("results"), len)];
        let state = allocate(&memory, "state", num_seqs);
        if is_backward {
            results.push((result("d_coeffs"), len));
            arguments.push(array("outputs", 0.0, 1.0));
        } else {
            arguments.push(results[0].0);
        }
        arguments.push(upload(&memory, "initial", &numbers(num_seqs, 0.0, 10.0)));
        if is_backward {
            arguments.extend(results.iter().map(|(place, _)| *place));
        }
        arguments.push(state);
        results.push((state, num_seqs));
        arguments.extend([num_seqs, seq_len].map(|number| Argument::Long(number as u64)));
        let tile_vectors = tiles.vectors(entries);
        let shared_out = SharedOut { blocks, tile_vectors };
        arguments.extend(shared_out.arguments(&memory, (num_seqs, seq_len)));

        let tiles = (num_seqs * shared_out.tiles(seq_len)) as u32;
        let (blocks, threads) = match blocks {
            Some(most) => (most.min(tiles), (THREADS + 32, SHARED_BYTES[usize::from(is_backward)])),
            None => (tiles, (ONCE_THREADS, 0)),
        };
        let shipped = Shipped::new(name, entries[usize::from(reverse)]);
        let launch = || {
            let ran = shipped.run_shared(&memory, blocks, threads, &arguments, 0..blocks.into());
            ran.unwrap_or_else(|report| panic!("{self:?}, {blocks} blocks: {report}"));
            let values = results.iter().flat_map(|(place, len)| download(&memory, *place, *len));
            values.map(f32::to_bits).collect::<Vec<_>>()
        };
        let first = launch();
        assert_eq!(first, launch(), "{self:?}, {blocks} blocks: the second launch");
        first
    }
}

const PLAIN: Case = Case {
    num_seqs: 1,
    seq_len: 9000,
    tiles: Tiles::Short,
    skew: 0,
    reverse: false,
    poisoned: false,
};

#[test]
fn every_number_of_blocks_gives_the_same_bits() {
    let cases = [
        PLAIN,
        // More than a group of 128 tiles.
        Case { seq_len: 70_001, skew: 1, reverse: true, ..PLAIN },
        Case { num_seqs: 3, seq_len: 5001, skew: 3, ..PLAIN },
        Case { num_seqs: 2, seq_len: 12_000, tiles: Tiles::Full, ..PLAIN },
    ];
    for case in cases {
        let forward = case.bits(WAVES, FORWARD, Some(1));
        let backward = case.bits(WAVES, BACKWARD, Some(1));
        for blocks in [2, 7, 140] {
            assert_eq!(case.bits(WAVES, FORWARD, Some(blocks)), forward, "{case:?}, {blocks}");
            assert_eq!(case.bits(WAVES, BACKWARD, Some(blocks)), backward, "{case:?}, {blocks}");
        }
        assert_eq!(case.bits(ONCE_NAME, ONCE, None), forward, "{case:?}, one tile for each block");
        // Its lanes have four vectors and those of the waves three, so that the bits of the two are not the same.
        case.bits(ONCE_NAME, ONCE_BACKWARD, None);
    }
}

#[test]
fn nothing_gets_from_one_row_into_the_next() {
    let case = Case { num_seqs: 3, seq_len: 2500, ..PLAIN };
    let poisoned = Case { poisoned: true, ..case };
    for (name, entries, blocks, results) in [
        (WAVES, FORWARD, Some(4), 1),
        (WAVES, BACKWARD, Some(4), 2),
        (ONCE_NAME, ONCE, None, 1),
        (ONCE_NAME, ONCE_BACKWARD, None, 2),
    ] {
        let (clean, bits) =
            (case.bits(name, entries, blocks), poisoned.bits(name, entries, blocks));
        let len = case.num_seqs * case.seq_len;
        for result in 0..results {
            let rows = |of: &[u32]| of[result * len..][case.seq_len..len].to_vec();
            assert_eq!(rows(&clean), rows(&bits), "{name}");
        }
        assert_eq!(clean[results * len + 1..], bits[results * len + 1..], "{name}: states");
    }
}

#[test]
fn a_block_that_is_not_there_is_noticed() {
    let memory = Memory::new(1 << 30);
    let values = upload(&memory, "values", &numbers(9000, 0.5, 0.5));
    let shared_out = SharedOut { blocks: Some(4), tile_vectors: Tiles::Short.vectors(FORWARD) };
    let mut arguments = vec![values, values, allocate(&memory, "outputs", 9000)];
    arguments.extend([0, 0, 1, 9000].map(Argument::Long));
    arguments.extend(shared_out.arguments(&memory, (1, 9000)));
    let threads = (THREADS + 32, SHARED_BYTES[0]);
    let ran = Shipped::new(WAVES, FORWARD[0]).run_shared(&memory, 4, threads, &arguments, 0..3);
    let report = ran.expect_err("three blocks of four");
    assert_eq!(report.kind, ReportKind::NoProgress, "{report}");
}
