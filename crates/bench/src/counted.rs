//! Counts a kernel's work on the emulator, in place of its time on a GPU.
//!
//! An emulated device has no speed, but its counters are exact: instructions, bytes of the memory
//! sectors touched, requests, shuffles, passes over banks of shared memory, and barriers. Divided
//! by the number of elements they can be compared between kernels. `tour tune` prints these counts
//! where there is no GPU. The tests at the end of this file derive the counts of two kernels by
//! hand.

use std::path::Path;

use lesson::Table;
use lesson::output::println;
use linrec::device::{
    BackwardOptions, Buffer, Device, ForwardOptions, Job, Recurrence, Storage, dispatch, nvrtc,
};
use linrec::kernels::{ElementType, KernelChoice, Pass};
use linrec::simt::{Access, Class, Counters};
use linrec::{Error, kernels};

use crate::{judge, write};

/// Sequence lengths that an emulator can compute in seconds.
pub const LENGTHS: [usize; 5] = [16, 64, 256, 1024, 4096];

/// The number of sequences of each length.
pub const NUM_SEQS: usize = 32;

/// The counts of a launch, divided by the number of elements of its problem.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerElement {
    /// Instructions of all lanes: an instruction of a warp counts 32 times.
    pub instructions: f64,
    /// Bytes of the sectors that loads touched.
    pub loaded: f64,
    /// Bytes of the sectors that stores touched.
    pub stored: f64,
    /// Requests to global memory, per 32 elements.
    pub requests: f64,
    /// Shuffles, per 32 elements.
    pub shuffles: f64,
    /// Passes over the banks of shared memory, per 32 elements.
    pub shared: f64,
    /// Barriers, per 1000 elements.
    pub barriers: f64,
}

impl PerElement {
    /// Divides the counts of a launch by the number of elements of its problem.
    pub fn new(counters: &Counters, elements: usize) -> PerElement {
        let each = |count: u64| count as f64 / elements as f64;
        let sum = |accesses: &[Access], of: fn(&Counters, Access) -> u64| {
            accesses.iter().map(|&access| of(counters, access)).sum::<u64>()
        };
        let loads = [Access::GlobalLoad, Access::CopyAsync];
        let all = [Access::GlobalLoad, Access::CopyAsync, Access::GlobalStore];
        let wavefronts = counters.sites.iter().map(|site| site.wavefronts).sum();
        PerElement {
            instructions: 32.0 * each(counters.instructions),
            loaded: 32.0 * each(sum(&loads, Counters::sectors)),
            stored: 32.0 * each(counters.sectors(Access::GlobalStore)),
            requests: 32.0 * each(sum(&all, Counters::requests)),
            shuffles: 32.0 * each(counters.class(Class::Shuffle)),
            shared: 32.0 * each(wavefronts),
            barriers: 1000.0 * each(counters.barriers),
        }
    }

    /// The names of the columns.
    pub const HEADER: [&str; 7] = [
        "instructions",
        "bytes loaded",
        "bytes stored",
        "requests / 32",
        "shuffles / 32",
        "shared / 32",
        "barriers / 1000",
    ];

    /// The cells of a table.
    pub fn cells(&self) -> [String; 7] {
        let PerElement { instructions, loaded, stored, requests, shuffles, shared, barriers } =
            self;
        [instructions, loaded, stored, requests, shuffles, shared, barriers]
            .map(|number| format!("{number:.1}"))
    }
}

/// Runs a kernel on the emulator over `num_seqs` sequences and counts its work per element.
///
/// # Errors
///
/// Same as [`counters`].
pub fn count<S: Storage>(
    choice: KernelChoice,
    pass: Pass,
    shape: (usize, usize),
) -> Result<PerElement, Error> {
    Ok(PerElement::new(&counters::<S>(choice, pass, shape)?, shape.0 * shape.1))
}

/// Runs a kernel on the emulator over `num_seqs` sequences and returns the counters.
///
/// # Errors
///
/// Returns an error if the kernel is not available, or the emulator finds a mistake in it.
pub fn counters<S: Storage>(
    choice: KernelChoice,
    pass: Pass,
    shape @ (num_seqs, seq_len): (usize, usize),
) -> Result<Counters, Error> {
    let device = Device::simt();
    let recurrence = Recurrence::<S>::new(&device, choice)?;
    let elements = num_seqs * seq_len;
    let zeros = || -> Result<Buffer<S>, Error> {
        let mut buffer = device.allocate(elements)?;
        buffer.zero()?;
        Ok(buffer)
    };
    let (a, b, c, mut d, mut e) = (zeros()?, zeros()?, zeros()?, zeros()?, zeros()?);
    let launched = match pass {
        Pass::Forward => {
            recurrence.forward_into(&a, &b, &mut d, shape, ForwardOptions::default())?
        }
        Pass::Backward => {
            let options = BackwardOptions::default();
            recurrence.backward_into(&a, &b, &c, &mut d, &mut e, shape, options)?
        }
    };
    Ok(launched.counters().cloned().unwrap_or_default())
}

/// Runs `tour tune` without a GPU: prints that there is none, checks the shipped configurations,
/// and counts their work.
///
/// # Errors
///
/// Returns an error if a file cannot be written, or no configuration of the kernel is available.
pub fn run(
    kernel: &str,
    element: ElementType,
    lengths: &[usize],
    num_seqs: Option<usize>,
    out: &Path,
) -> lesson::Result<bool> {
    let lengths = if lengths.is_empty() { &LENGTHS[..] } else { lengths };
    let num_seqs = num_seqs.unwrap_or(NUM_SEQS);
    println!(
        "There is no GPU here, and an emulator cannot predict the time of a GPU. It counts instead, for {num_seqs} \
         sequences and per element: the instructions of every lane, and the bytes of the 32-byte sectors that \
         loads and stores touch."
    );
    let compiler = nvrtc::Nvrtc::find().is_ok();
    let mut choices = KernelChoice::candidates(kernel, element);
    if !compiler {
        let all = choices.len();
        choices = KernelChoice::shipped(element).filter(|c| c.name() == kernel).collect();
        println!(
            "{} of {all} configurations are shipped; the others need NVRTC, which is not here.",
            choices.len()
        );
    }
    if choices.is_empty() {
        let shipped = kernels::ElementType::ALL
            .into_iter()
            .filter(|&other| KernelChoice::shipped(other).any(|choice| choice.name() == kernel));
        let names: Vec<String> = shipped.map(|element| element.to_string()).collect();
        return Err(format!(
            "nothing of {kernel} is shipped for {element}, only for {}; `tour doctor` says how to get NVRTC",
            names.join(", ")
        )
        .into());
    }
    dispatch(element, Count { kernel, choices, lengths, num_seqs, out })
}

struct Count<'a> {
    kernel: &'a str,
    choices: Vec<KernelChoice>,
    lengths: &'a [usize],
    num_seqs: usize,
    out: &'a Path,
}

impl Job for Count<'_> {
    type Output = lesson::Result<bool>;

    fn run<S: Storage>(self) -> lesson::Result<bool> {
        let Count { kernel, choices, lengths, num_seqs, out } = self;
        let mut worst = 0.0_f64;
        let progress = lesson::progress(choices.len(), "checking errors");
        let mut right = Vec::new();
        for choice in choices {
            let error = judge::worst::<S>(&Device::simt(), choice)?;
            progress.inc(1);
            if error > 1.0 {
                println!("{choice}: WRONG: its largest error is {error:.3} times its bound");
            } else {
                right.push(choice);
            }
            worst = worst.max(error);
        }
        progress.finish_and_clear();
        println!("The largest error is {worst:.2} of its bound.");
        let header = ["length", "configuration"].into_iter().chain(PerElement::HEADER);
        let header: Vec<&str> = header.collect();
        let progress = lesson::progress(2 * lengths.len() * right.len(), "counting");
        for pass in Pass::ALL {
            let mut table = Table::new(header.clone());
            for &seq_len in lengths {
                for &choice in &right {
                    progress.inc(1);
                    if choice.takes(S::ELEMENT, seq_len as u64) {
                        let counted = count::<S>(choice, pass, (num_seqs, seq_len))?;
                        let names = [seq_len.to_string(), choice.to_string()];
                        table.row(names.into_iter().chain(counted.cells()));
                    }
                }
            }
            println!("\n{kernel} of {}, {}:\n\n{}", S::ELEMENT, pass.name(), table.to_text());
            let name = format!("counted-{kernel}-{}-{}.csv", S::ELEMENT, pass.name());
            write(&out.join(name), &table.to_csv())?;
        }
        progress.finish_and_clear();
        Ok(worst <= 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_loaded_once_and_in_few_requests() {
        let wide: KernelChoice = "wide:2x128".parse().unwrap();
        let pipe: KernelChoice = "pipe:8x64:0".parse().unwrap();
        let [wide, pipe] =
            [wide, pipe].map(|choice| count::<f32>(choice, Pass::Forward, (8, 4096)).unwrap());
        // Two arrays of 4 bytes, with each sector loaded once, and a quarter of a request for each
        // of three arrays.
        assert_eq!((wide.loaded, wide.stored), (8.0, 4.0));
        assert_eq!(wide.requests, 0.75);
        // Eight steps per thread: every request touches a sector for every lane.
        assert_eq!((pipe.loaded, pipe.stored), (64.0, 32.0));
        assert_eq!(pipe.requests, 3.0);
        // `wide` makes fewer requests but not fewer instructions, because whole vectors and their
        // borders need some.
        assert!(wide.shuffles > 0.0 && pipe.shuffles > 0.0);
    }

    #[test]
    fn a_small_count_writes_its_tables() {
        let folder = tempfile::tempdir().unwrap();
        let element = ElementType::F32;
        assert!(run("ref", element, &[5], Some(3), folder.path()).unwrap());
        let csv =
            std::fs::read_to_string(folder.path().join("counted-ref-f32-forward.csv")).unwrap();
        assert!(csv.contains("5,ref:64,"), "{csv}");
    }
}
