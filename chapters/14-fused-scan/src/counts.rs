//! The memory accesses and instructions of a kernel, counted by the emulator.

use std::collections::BTreeSet;

use linrec::Error;
use linrec::device::Device;
use linrec::simt::{Class, Counters, Event, Trace, What};

use crate::ladder::{Arrays, INPUTS, Kernel, Rung};
use crate::problem::{Problem, STATES};

/// The accesses of a launch to one array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfArray {
    /// The name of the array.
    pub name: &'static str,
    /// The size of the array in bytes.
    pub bytes: usize,
    /// The number of bytes requested; bytes that several lanes of a request share count once.
    pub asked: usize,
    /// The number of different bytes among them.
    pub touched: usize,
}

/// The work of a launch, for each output and for each state of it.
#[derive(Debug, Clone)]
pub struct Counted {
    /// The accesses to all inputs and to the outputs.
    pub arrays: Vec<OfArray>,
    /// The emulator's counters.
    pub counters: Counters,
    outputs: usize,
}

fn lanes(event: &Event) -> impl Iterator<Item = usize> {
    let lanes = event.lanes;
    (0..32).filter(move |lane| lanes >> lane & 1 > 0)
}

/// Returns the words of global memory that an event accesses, each once, and true for a write.
// ANCHOR: words
fn words(event: &Event) -> Option<(BTreeSet<u64>, bool)> {
    let of = |first: u64, bytes: u64| (first / 4)..(first + bytes).div_ceil(4);
    match &event.what {
        What::Copy(copy) => {
            let all = lanes(event).flat_map(|lane| of(copy.from[lane], copy.read[lane].into()));
            Some((all.collect(), false))
        }
        What::Load(at) | What::Store(at) if !at.shared => {
            let bytes = u64::from(at.bytes) * at.values.len() as u64;
            let all = lanes(event).flat_map(|lane| of(at.addresses[lane], bytes));
            Some((all.collect(), matches!(event.what, What::Store(_))))
        }
        _ => None,
    }
}
// ANCHOR_END: words

impl Counted {
    /// Runs a rung over a problem on the emulator and counts its work.
    ///
    /// # Errors
    ///
    /// Returns an error if the device fails.
    pub fn of(rung: Rung, problem: &Problem) -> Result<Counted, Error> {
        let device = Device::simt();
        let kernel = Kernel::new(&device, rung)?;
        let arrays = Arrays::in_one_piece(&device, problem)?;
        let mut out = device.allocate_named("out", problem.sizes.elements())?;
        let mut trace = Trace::new(1 << 20);
        let launched = kernel.launch(&arrays, &mut out, Some(&mut trace))?;
        if trace.left_out > 0 {
            let message = format!("{} events more than a trace holds", trace.left_out);
            return Err(Error::Device { device: device.label().to_owned(), message });
        }
        let counters = launched.counters().cloned().unwrap_or_default();
        Ok(Counted {
            arrays: by_array(&trace, problem),
            counters,
            outputs: problem.sizes.elements(),
        })
    }

    /// Returns the number of bytes requested for each output.
    pub fn bytes(&self) -> f64 {
        let all: usize = self.arrays.iter().map(|array| array.asked).sum();
        all as f64 / self.outputs as f64
    }

    /// Returns the number of bytes that must move for each output: every byte once.
    pub fn bytes_once(&self) -> f64 {
        let all: usize = self.arrays.iter().map(|array| array.bytes).sum();
        all as f64 / self.outputs as f64
    }

    fn per_state(&self, of_warps: u64) -> f64 {
        32.0 * of_warps as f64 / (self.outputs * STATES) as f64
    }

    /// Returns the number of instructions for each state of each output.
    pub fn instructions(&self) -> f64 {
        self.per_state(self.counters.instructions)
    }

    /// Returns the number of instructions of one class for each state of each output.
    pub fn class(&self, class: Class) -> f64 {
        self.per_state(self.counters.class(class))
    }

    /// Returns the number of passes over the banks of shared memory for each state of each output.
    pub fn shared(&self) -> f64 {
        self.per_state(self.counters.sites.iter().map(|site| site.wavefronts).sum())
    }
}

/// Splits a trace by array; the inputs are in one piece of memory.
fn by_array(trace: &Trace, problem: &Problem) -> Vec<OfArray> {
    let Problem { u, delta, z, b, c, a, d, .. } = problem;
    let sizes = [u, delta, z, b, c, a, d].map(|array| array.len() as u64);
    let names = INPUTS.into_iter().zip(sizes).chain([("out", problem.sizes.elements() as u64)]);
    let mut asked: [Vec<u64>; 2] = Default::default();
    for (words, writes) in trace.events.iter().filter_map(words) {
        asked[usize::from(writes)].extend(words);
    }
    asked.iter_mut().for_each(|words| words.sort_unstable());
    // Reads begin at the first word of u, and writes at the first word of the outputs.
    let mut begin = asked[0].first().copied().unwrap_or(0);
    names
        .map(|(name, len)| {
            let which = &asked[usize::from(name == "out")];
            if name == "out" {
                begin = which.first().copied().unwrap_or(0);
            }
            let from = which.partition_point(|&word| word < begin);
            let mine = &which[from..which.partition_point(|&word| word < begin + len)];
            begin += len;
            let again = mine.windows(2).filter(|pair| pair[0] == pair[1]).count();
            OfArray {
                name,
                bytes: 4 * len as usize,
                asked: 4 * mine.len(),
                touched: 4 * (mine.len() - again),
            }
        })
        .collect()
}
