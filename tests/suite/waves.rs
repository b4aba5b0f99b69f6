//! Tests of kernels whose blocks share a sequence: the same bits for every number of blocks, in
//! every launch and on every device.
//!
//! A case runs a kernel twice with one workspace, whose second launch must find nothing of the
//! first. Shapes include more tiles than a group of notices, rows that begin at any address, and
//! rows of NaN, which must not leak into the next. The ignored tests run a thousand launches, and
//! more than 2^31 elements, on a GPU.

use linrec::Direction;
use linrec::Error;
use linrec::device::{Buffer, Device, Launch, Recurrence, under_test};
use linrec::kernels::{ElementType, KernelChoice, OnceConfig, Pass, WavesConfig};
use linrec::simt::ReportKind;

const F32: ElementType = ElementType::F32;
const WAVES: KernelChoice = KernelChoice::Waves(WavesConfig::DEFAULT);
const ONCE: KernelChoice = KernelChoice::Once(OnceConfig::DEFAULT);
const NONE: Option<&Buffer<f32>> = None;

#[derive(Debug, Clone, Copy)]
enum Tiles {
    /// One warp long.
    Short,
    /// As long as the waves' threads have registers for.
    Full,
}

impl Tiles {
    /// Returns the number of 16-byte vectors: whole warps.
    fn vectors(self, choice: KernelChoice, pass: Pass) -> usize {
        let waves = WavesConfig::DEFAULT;
        let lane =
            if choice == WAVES { waves.vectors_of(pass) } else { OnceConfig::DEFAULT.vectors };
        let threads = match self {
            Tiles::Short => 32,
            Tiles::Full => waves.threads,
        };
        (threads * lane) as usize
    }
}

/// A problem with rows `skew` elements after a multiple of 16 bytes, the first possibly NaN.
#[derive(Debug, Clone, Copy)]
struct Case {
    num_seqs: usize,
    seq_len: usize,
    tiles: Tiles,
    skew: usize,
    reverse: bool,
    poisoned: bool,
}

const PLAIN: Case = Case {
    num_seqs: 1,
    seq_len: 9000,
    tiles: Tiles::Short,
    skew: 0,
    reverse: false,
    poisoned: false,
};

fn numbers(count: usize, middle: f32, spread: f32) -> Vec<f32> {
    let mut state = 7_u32;
    let number = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        middle + spread * ((state >> 8) as f32 / (1 << 24) as f32 - 0.5)
    };
    std::iter::repeat_with(number).take(count).collect()
}

impl Case {
    fn elements(&self) -> usize {
        self.num_seqs * self.seq_len
    }

    /// Uploads an array that begins `skew` elements after the beginning of its memory.
    fn array(&self, device: &Device, middle: f32, spread: f32) -> Buffer<f32> {
        let mut values = numbers(self.elements() + self.skew, middle, spread);
        if self.poisoned {
            values[..self.seq_len + self.skew].fill(f32::NAN);
        }
        device.upload(&values).unwrap().slice(self.skew..).unwrap()
    }

    fn result(&self, device: &Device) -> Buffer<f32> {
        let mut result = device.allocate(self.elements() + self.skew).unwrap();
        result.poison().unwrap();
        result.slice(self.skew..).unwrap()
    }

    /// Returns the bits of all results of each of `launches` launches in a row, the states last.
    /// `None` for `blocks` means one block for each tile, which takes the next one.
    fn each(
        &self,
        device: &Device,
        (choice, pass): (KernelChoice, Pass),
        blocks: Option<u32>,
        launches: usize,
    ) -> Vec<Vec<u32>> {
        let Case { num_seqs, seq_len, reverse, .. } = *self;
        let direction = if reverse { Direction::Reverse } else { Direction::Forward };
        let recurrence = Recurrence::<f32>::new(device, choice).unwrap();
        let function = recurrence.function(pass, direction).unwrap();
        let geometry = choice.geometry(F32, pass, num_seqs as u64, seq_len as u64);
        let tile_vectors = self.tiles.vectors(choice, pass);
        // A row that begins anywhere may reach into one more vector of four elements.
        let tiles = (seq_len + 3).div_ceil(4 * tile_vectors);
        // Four numbers for all, and four for each tile, in groups of 128.
        let words = 4 + 4 * num_seqs * tiles.next_multiple_of(128);
        let mut workspace = device.zeros::<u32>(words).unwrap();
        let all = (num_seqs * tiles) as u32;
        let grid = blocks.map_or(all, |most| most.min(all));
        let [x, c, y] = [(0.0, 1.0), (0.95, 0.1), (0.0, 1.0)]
            .map(|(middle, spread)| self.array(device, middle, spread));
        let initial = device.upload(&numbers(num_seqs, 0.0, 10.0)).unwrap();
        let mut launch = || -> Result<Vec<u32>, Error> {
            let mut results = [self.result(device), self.result(device)];
            let mut state = device.allocate(num_seqs)?;
            let [one, other] = &mut results;
            let launch = function.launch(grid, geometry.threads).shared(geometry.shared_bytes);
            let launch = match pass {
                Pass::Forward => launch.arg(&x).arg(&c).arg(one).arg(&initial).arg(&mut state),
                Pass::Backward => {
                    let launch = launch.arg(&x).arg(&c).arg(&y).arg(&initial);
                    launch.arg(one).arg(other).arg(&mut state)
                }
            };
            let launch = launch.arg(num_seqs as i64).arg(seq_len as i64);
            let launch = launch.arg(tile_vectors as u32).arg(&mut workspace);
            let launch = match blocks {
                None => launch.arg(1_u32),
                Some(_) => launch.without_mail().cooperative(),
            };
            launch.run(&device.stream())?;
            let count = if pass == Pass::Forward { 1 } else { 2 };
            let mut bits = Vec::new();
            for buffer in results[..count].iter().chain([&state]) {
                bits.extend(buffer.download()?.into_iter().map(f32::to_bits));
            }
            Ok(bits)
        };
        (0..launches)
            .map(|_| {
                launch()
                    .unwrap_or_else(|error| panic!("{self:?}, {choice}, {grid} blocks: {error}"))
            })
            .collect()
    }

    /// Returns the bits of two launches in a row, which must be equal.
    fn bits(&self, device: &Device, kernel: (KernelChoice, Pass), blocks: Option<u32>) -> Vec<u32> {
        let mut both = self.each(device, kernel, blocks, 2);
        assert_eq!(both[0], both[1], "{self:?}, {kernel:?}, {blocks:?}: the second launch");
        both.swap_remove(0)
    }
}

#[test]
fn every_number_of_blocks_and_every_device_gives_the_same_bits() {
    let cases = [
        PLAIN,
        // More than a group of 128 tiles.
        Case { seq_len: 70_001, skew: 1, reverse: true, ..PLAIN },
        Case { num_seqs: 3, seq_len: 5001, skew: 3, ..PLAIN },
        Case { num_seqs: 2, seq_len: 12_000, tiles: Tiles::Full, ..PLAIN },
    ];
    for case in cases {
        let passes = Pass::ALL.map(|pass| case.bits(&Device::simt(), (WAVES, pass), Some(1)));
        let once = Pass::ALL.map(|pass| case.bits(&Device::simt(), (ONCE, pass), None));
        // Forward, the lanes of both kernels have the same number of vectors, so tiles are combined
        // in the same order.
        assert_eq!(once[0], passes[0], "{case:?}, one tile for each block");
        for device in under_test() {
            for (pass, expected) in Pass::ALL.into_iter().zip(&passes) {
                for blocks in [2, 7, if device.is_simt() { 140 } else { 132 }] {
                    let bits = case.bits(&device, (WAVES, pass), Some(blocks));
                    assert_eq!(
                        bits,
                        *expected,
                        "{case:?}, {pass}, {blocks} blocks, {}",
                        device.label()
                    );
                }
            }
            for (pass, expected) in Pass::ALL.into_iter().zip(&once) {
                let bits = case.bits(&device, (ONCE, pass), None);
                assert_eq!(bits, *expected, "{case:?}, {pass}, once, {}", device.label());
            }
        }
    }
}

/// One long row on a GPU: with several numbers of blocks, a thousand times, and as on the emulator.
#[test]
#[ignore = "needs a GPU"]
fn gpus_give_the_bits_a_thousand_times() {
    let case = Case { seq_len: (1 << 20) + 5, skew: 2, tiles: Tiles::Full, ..PLAIN };
    for gpu in &crate::device::gpus() {
        for pass in Pass::ALL {
            let expected = case.bits(&Device::simt(), (WAVES, pass), Some(8));
            for blocks in [1, 2, 3, 7, 33, 66, 131, 132] {
                let bits = case.bits(gpu, (WAVES, pass), Some(blocks));
                assert!(bits == expected, "{pass}, {blocks} blocks");
            }
            let same = |bits: Vec<u32>| bits == expected;
            assert!(case.each(gpu, (WAVES, pass), Some(132), 1000).into_iter().all(same), "{pass}");
            let once = case.bits(&Device::simt(), (ONCE, pass), None);
            let same = |bits: Vec<u32>| bits == once;
            assert!(case.each(gpu, (ONCE, pass), None, 1000).into_iter().all(same), "{pass}, once");
        }
        println!("waves and once: 8 grids, and 1000 launches each, of the emulator's bits");
    }
}

#[test]
fn rows_do_not_leak_into_the_next() {
    let case = Case { num_seqs: 3, seq_len: 2500, ..PLAIN };
    let poisoned = Case { poisoned: true, ..case };
    for device in under_test() {
        for (choice, blocks) in [(WAVES, Some(4)), (ONCE, None)] {
            for pass in Pass::ALL {
                let results = if pass == Pass::Forward { 1 } else { 2 };
                let kernel = (choice, pass);
                let clean = case.bits(&device, kernel, blocks);
                let bits = poisoned.bits(&device, kernel, blocks);
                let len = case.elements();
                for result in 0..results {
                    let rows = |of: &[u32]| of[result * len..][case.seq_len..len].to_vec();
                    assert_eq!(rows(&clean), rows(&bits), "{kernel:?}");
                }
                assert_eq!(
                    clean[results * len + 1..],
                    bits[results * len + 1..],
                    "{kernel:?}: states"
                );
            }
        }
    }
}

#[test]
fn a_missing_block_is_noticed() {
    let device = Device::simt();
    let recurrence = Recurrence::<f32>::new(&device, WAVES).unwrap();
    let function = recurrence.function(Pass::Forward, Direction::Forward).unwrap();
    let geometry = WAVES.geometry(F32, Pass::Forward, 1, 9000);
    let values = device.upload(&numbers(9000, 0.5, 0.5)).unwrap();
    let mut outputs = device.allocate::<f32>(9000).unwrap();
    let mut workspace = device.zeros::<u32>(4 + 4 * 128).unwrap();
    let launch: Launch = function.launch(4, geometry.threads).shared(geometry.shared_bytes);
    let launch = launch.arg(&values).arg(&values).arg(&mut outputs).arg(NONE).arg(NONE);
    let launch = launch.arg(1_i64).arg(9000_i64).arg(128_u32).arg(&mut workspace);
    let ran = launch.without_mail().cooperative().blocks(0..3).run(&device.stream());
    let Err(Error::Kernel(report)) = ran else { panic!("three blocks of four: {ran:?}") };
    assert_eq!(report.kind, ReportKind::NoProgress, "{report}");
}

/// A row of more elements than 32 bits can count, whose last elements are right.
#[test]
#[ignore = "needs a GPU with 44 GiB"]
fn gpus_give_the_bits_of_2_31_elements_and_some() {
    let seq_len = (1_usize << 31) + 5;
    for gpu in &crate::device::gpus() {
        // All ones, except for one coefficient of 0: the outputs count the steps since then.
        let mut coeffs = vec![1.0_f32; 4096];
        let (x, c) = (gpu.allocate::<f32>(seq_len).unwrap(), gpu.allocate(seq_len).unwrap());
        let ones = vec![1.0_f32; 1 << 24];
        for start in (0..seq_len).step_by(ones.len()) {
            let end = seq_len.min(start + ones.len());
            x.slice(start..end).unwrap().upload(&ones[..end - start]).unwrap();
            c.slice(start..end).unwrap().upload(&ones[..end - start]).unwrap();
        }
        let last = seq_len - 4096;
        coeffs[0] = 0.0;
        c.slice(last..).unwrap().upload(&coeffs).unwrap();
        let mut y = gpu.allocate(seq_len).unwrap();
        let recurrence = Recurrence::<f32>::new(gpu, WAVES).unwrap();
        recurrence.forward_into(&x, &c, &mut y, (1, seq_len), Default::default()).unwrap();
        let counted: Vec<f32> = (1..=4096).map(|steps| steps as f32).collect();
        assert_eq!(y.slice(last..).unwrap().download().unwrap(), counted);
        // Backward, the sum of all later gradients reaches each step down to that coefficient.
        let options = Default::default();
        let (mut dx, mut dc) = (gpu.allocate(seq_len).unwrap(), gpu.allocate(seq_len).unwrap());
        recurrence.backward_into(&x, &c, &y, &mut dx, &mut dc, (1, seq_len), options).unwrap();
        let counted: Vec<f32> = (1..=4096).rev().map(|steps| steps as f32).collect();
        assert_eq!(dx.slice(last..).unwrap().download().unwrap(), counted);
        // Before that coefficient, the sum starts again.
        assert_eq!(dx.slice(last - 3..last).unwrap().download().unwrap(), [3.0, 2.0, 1.0]);
    }
}
