//! Launches by hand the library's kernels whose blocks share a sequence, on the emulator: in grids
//! of any number of blocks, and with short tiles.

use linrec::device::{Buffer, Device, Function};
use linrec::kernels::{self, ElementType, KernelChoice, OnceConfig, Pass, WavesConfig};
use linrec::simt::{Counters, Trace};
use linrec::{Direction, Error};

use crate::kernel::counted;

/// The number of words of the workspace before the messages, and of each message.
const WORDS: [usize; 2] = [4, 4];

/// The number of waves between a tile's message and its outputs.
pub const AHEAD: usize = WavesConfig::DEFAULT.ahead as usize;

/// The number of steps of the shortest tile, as many as a warp holds.
pub const SHORT: usize = 512;

/// The number of tiles in a group.
pub const GROUP: usize = 128;

/// One of the two kernels.
#[derive(Debug, Clone)]
pub struct SharedOut {
    device: Device,
    function: Function,
    way: Way,
    /// The number of steps of a tile.
    steps: usize,
}

/// The two kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `linrec_waves.cu`, with at most this many blocks.
    Waves(u32),
    /// `linrec_once.cu`: a block for each tile, of which this many run at a time.
    Once(u64),
}

impl Way {
    /// Returns the library's kernel as it is shipped.
    fn choice(self) -> KernelChoice {
        match self {
            Way::Waves(_) => WavesConfig::DEFAULT.into(),
            Way::Once(_) => OnceConfig::DEFAULT.into(),
        }
    }
}

impl SharedOut {
    /// Loads one of the two kernels, with tiles of `steps` steps: a multiple of [`SHORT`] up to
    /// 4608.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Device`] if it is not shipped.
    pub fn new(way: Way, steps: usize) -> Result<SharedOut, Error> {
        // Names with a slash belong to kernels that are only studied.
        SharedOut::find(|name| !name.contains('/'), way, steps)
    }

    /// Loads the kernel of another PTX in place of this one.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Device`] if it is not shipped.
    pub fn load(name: &str, way: Way, steps: usize) -> Result<SharedOut, Error> {
        SharedOut::find(|shipped| shipped == name, way, steps)
    }

    fn find(is_it: impl Fn(&str) -> bool, way: Way, steps: usize) -> Result<SharedOut, Error> {
        let entry = way.choice().entry(ElementType::F32, Pass::Forward, Direction::Forward);
        let device = Device::simt();
        let mut all = kernels::shipped().filter(|(name, _)| is_it(name));
        let Some((_, ptx)) = all.find(|(_, ptx)| ptx.symbol(&entry).is_some()) else {
            let message = format!("{entry} is not shipped");
            return Err(Error::Device { device: device.label().to_owned(), message });
        };
        let function = device.module(ptx.text())?.function(&entry)?;
        Ok(SharedOut { device, function, way, steps })
    }

    /// Returns the kernel's number of tiles for a sequence. It allows for 3 steps of misalignment,
    /// although the sequences here begin at a multiple of 16 bytes.
    pub fn tiles(&self, seq_len: usize) -> usize {
        (seq_len + 3).div_ceil(self.steps)
    }

    /// Computes one sequence. Returns its outputs and the counters.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Kernel`] if the emulator finds a mistake.
    pub fn compute(
        &self,
        inputs: &[f32],
        coeffs: &[f32],
        trace: Option<&mut Trace>,
    ) -> Result<(Vec<f32>, Counters), Error> {
        let tiles = self.tiles(inputs.len()) as u64;
        match self.way {
            Way::Waves(most) => {
                let blocks = tiles.min(most.into());
                self.run(inputs, coeffs, trace, (blocks, std::slice::from_ref(&(0..blocks))))
            }
            Way::Once(at_a_time) => {
                let ranges = (0..tiles).step_by(at_a_time.max(1) as usize);
                let ranges: Vec<_> =
                    ranges.map(|first| first..tiles.min(first.saturating_add(at_a_time))).collect();
                self.run(inputs, coeffs, trace, (tiles, &ranges))
            }
        }
    }

    /// Launches the kernel without its last block, for which the others wait without end.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Kernel`] with the emulator's report.
    pub fn without_the_last(&self, inputs: &[f32], coeffs: &[f32]) -> Result<(), Error> {
        let tiles = self.tiles(inputs.len()) as u64;
        let blocks = match self.way {
            Way::Waves(most) => tiles.min(most.into()),
            Way::Once(_) => tiles,
        };
        let some = 0..blocks.saturating_sub(1);
        self.run(inputs, coeffs, None, (blocks, &[some])).map(drop)
    }

    /// Runs ranges of a grid's blocks, one range after the other.
    fn run(
        &self,
        inputs: &[f32],
        coeffs: &[f32],
        mut trace: Option<&mut Trace>,
        (blocks, ranges): (u64, &[std::ops::Range<u64>]),
    ) -> Result<(Vec<f32>, Counters), Error> {
        let upload = |name, values: &[f32]| -> Result<Buffer<f32>, Error> {
            let mut buffer = self.device.allocate_named(name, values.len())?;
            buffer.upload(values)?;
            Ok(buffer)
        };
        let (x, c) = (upload("inputs", inputs)?, upload("coeffs", coeffs)?);
        let mut y = self.device.allocate_named::<f32>("outputs", inputs.len())?;
        y.poison()?;
        let messages = self.tiles(inputs.len()).next_multiple_of(GROUP);
        let words = WORDS[0] + WORDS[1] * messages;
        let mut workspace = self.device.allocate_named::<u32>("workspace", words)?;
        workspace.zero()?;
        let len = inputs.len() as u64;
        let geometry = self.way.choice().geometry(ElementType::F32, Pass::Forward, 1, len);
        let none = None::<&Buffer<f32>>;
        let mut launched = Vec::new();
        for range in ranges {
            let launch =
                self.function.launch(blocks as u32, geometry.threads).shared(geometry.shared_bytes);
            let launch = launch.arg(&x).arg(&c).arg(&mut y).arg(none).arg(none);
            let launch = launch.arg(1_i64).arg(inputs.len() as i64).arg(self.steps as i32 / 4);
            let mut launch = launch.arg(&mut workspace).blocks(range.clone());
            launch = match self.way {
                Way::Once(_) => launch.arg(1_i32),
                // No messages from or to another device.
                Way::Waves(_) => launch.without_mail(),
            };
            if let Some(trace) = trace.as_deref_mut() {
                launch = launch.traced(trace);
            }
            launched.push(launch.run(&self.device.stream())?);
        }
        Ok((y.download()?, counted(&launched)))
    }
}
