//! Every shipped kernel with data that fits it: one launch, and whether the results are right.
//!
//! The data is the same in every run and on every device. Sizes are odd and leave the last block with
//! threads that have nothing to do; coefficients are near one, so that a lost carry shows.

mod copies;
mod numbers;
mod plan;
mod recurrences;

use half::{bf16, f16};
use linrec::device::{Device, Function, Storage};
use linrec::kernels::{self, Config, ElementType, KernelChoice, Pass, Ptx, RowsConfig, WideConfig};
use linrec::simt::Counters;
use linrec::{Direction, Error};
use num_complex::Complex;

use plan::Plan;

/// One kernel of one shipped PTX.
pub struct Probe {
    /// The PTX's path under `kernels/ptx/`, without the ending.
    pub module: &'static str,
    /// The kernel as C++ writes it.
    pub entry: String,
    /// The kernel's name in the PTX.
    pub symbol: String,
    ptx: Ptx,
}

/// What came of a launch that the device took.
pub struct Ran {
    /// What the emulator counted; `None` on a GPU.
    pub counters: Option<Counters>,
    /// The first result that is wrong, as a sentence.
    pub verdict: Result<(), String>,
}

/// Every kernel that is shipped.
pub fn all() -> Vec<Probe> {
    let of_module = |(module, ptx): (&'static str, Ptx)| {
        let probe = |(entry, symbol): (&str, &str)| Probe {
            module,
            entry: entry.to_owned(),
            symbol: symbol.to_owned(),
            ptx: ptx.clone(),
        };
        ptx.entries().map(probe).collect::<Vec<_>>()
    };
    kernels::shipped().flat_map(of_module).collect()
}

/// The kernels of that name, which may be a whole PTX's.
pub fn named(name: &str) -> Vec<Probe> {
    all().into_iter().filter(|probe| probe.name() == name || probe.module == name).collect()
}

impl Probe {
    /// The name: `linrec_ref-f32/linrec_ref_fwd_float_false`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.module, self.symbol)
    }

    /// Whether it is one without a planted mistake.
    pub fn is_correct(&self) -> bool {
        !self.module.starts_with("broken/")
    }

    /// Whether it takes gigabytes of a GPU's memory.
    pub fn is_large(&self) -> bool {
        self.module == "broken/row_offset_32_bits"
    }

    /// Whether what it executes depends on its data alone, and not on how fast its blocks run.
    pub fn is_countable(&self) -> bool {
        // It asks again and again until its neighbour has published.
        self.base() != "look_back"
    }

    /// Launches it once, and compares the results with the reference.
    ///
    /// # Errors
    ///
    /// The device's own; what the emulator finds is one of them.
    pub fn run(&self, device: &Device) -> Result<Ran, Error> {
        let kernel = device.module(self.ptx.text())?.function(&self.entry)?;
        match self.base() {
            "linrec_ref_fwd" if self.is_large() => recurrences::last_rows(&kernel),
            "linrec_ref_fwd" | "linrec_tile_fwd" | "linrec_pipe_fwd" | "linrec_rows_fwd"
            | "linrec_wide_fwd" => self.recurrence(&kernel, Pass::Forward),
            "linrec_ref_bwd" | "linrec_tile_bwd" | "linrec_pipe_bwd" | "linrec_rows_bwd"
            | "linrec_wide_bwd" => self.recurrence(&kernel, Pass::Backward),
            "linrec_strides" | "linrec_ahead" => {
                recurrences::forward::<f32>(&kernel, &self.exercise()?)
            }
            base if base.starts_with("ladder_") => {
                recurrences::forward::<f32>(&kernel, &self.step_of_the_ladder()?)
            }
            "block_scan" => {
                recurrences::forward::<f32>(&kernel, &Plan::block_scan(self.direction()))
            }
            "look_back" => recurrences::look_back(&kernel),
            "elementwise_fwd" => copies::elementwise_forward(&kernel, self.floats_per_pack()),
            "elementwise_bwd" => copies::elementwise_backward(&kernel, self.floats_per_pack()),
            "copy_coalesced" => copies::coalesced(&kernel, self.floats_per_pack()),
            "copy_shifted" => copies::shifted(&kernel),
            "copy_strided" => copies::strided(&kernel),
            "copy_rows" => copies::rows(&kernel),
            "copy_broadcast" => copies::broadcast(&kernel),
            _ => Err(self.unknown()),
        }
    }

    fn recurrence(&self, kernel: &Function, pass: Pass) -> Result<Ran, Error> {
        fn run<S: Storage>(kernel: &Function, plan: &Plan, pass: Pass) -> Result<Ran, Error> {
            match pass {
                Pass::Forward => recurrences::forward::<S>(kernel, plan),
                Pass::Backward => recurrences::backward::<S>(kernel, plan),
            }
        }
        let element = self.element()?;
        let (choice, direction) = self.choice(element)?;
        let plan = Plan::of(choice, element, pass, direction);
        match element {
            ElementType::F32 => run::<f32>(kernel, &plan, pass),
            ElementType::F64 => run::<f64>(kernel, &plan, pass),
            ElementType::Bf16 => run::<bf16>(kernel, &plan, pass),
            ElementType::F16 => run::<f16>(kernel, &plan, pass),
            ElementType::ComplexF32 => run::<Complex<f32>>(kernel, &plan, pass),
            ElementType::ComplexF64 => run::<Complex<f64>>(kernel, &plan, pass),
        }
    }

    fn element(&self) -> Result<ElementType, Error> {
        let name = self.arguments().first().copied().unwrap_or_default();
        let named = ElementType::ALL.into_iter().find(|element| element.cuda_name() == name);
        named.ok_or_else(|| self.unknown())
    }

    /// Which of the library's kernels it is, and the direction to launch it in. Where that is an argument, `f32`
    /// goes forward and all others in reverse, as do rows of whole words in a block of their own.
    fn choice(&self, element: ElementType) -> Result<(KernelChoice, Direction), Error> {
        let numbers: Vec<u32> = self
            .arguments()
            .into_iter()
            .skip(1)
            .filter_map(|argument| match argument {
                "false" => Some(0),
                "true" => Some(1),
                number => number.parse().ok(),
            })
            .collect();
        let kind = self.base().split('_').nth(1).unwrap_or_default();
        let by_element = direction(element != ElementType::F32);
        Ok(match (kind, &numbers[..]) {
            ("ref", &[reverse]) => (KernelChoice::Ref { threads: 64 }, direction(reverse == 1)),
            ("tile" | "pipe", &[elems, threads, memcode, algocode]) => {
                let config = Config {
                    max_elems_per_thread: elems,
                    max_threads_per_block: threads,
                    memcode,
                    algocode,
                };
                let is_tile = kind == "tile";
                let choice =
                    if is_tile { KernelChoice::Tile(config) } else { KernelChoice::Pipe(config) };
                (choice, by_element)
            }
            ("rows", &[lanes, words, threads, reverse, whole]) => {
                let config = RowsConfig { lanes, words, threads, whole: whole == 1 };
                (KernelChoice::Rows(config), direction(reverse == 1))
            }
            ("wide", &[words, threads, ahead, whole]) => {
                let config = WideConfig { words, threads, ahead, whole: whole == 1 };
                let reverse = config.whole || by_element == Direction::Reverse;
                (KernelChoice::Wide(config), direction(reverse))
            }
            _ => return Err(self.unknown()),
        })
    }

    /// For those of exercises/ that are launched as the pipe kernel is and have a name of their own.
    fn exercise(&self) -> Result<Plan, Error> {
        let numbers: Vec<u32> =
            self.arguments().iter().filter_map(|number| number.parse().ok()).collect();
        let &[max_elems_per_thread, max_threads_per_block, ref free @ ..] = &numbers[..] else {
            return Err(self.unknown());
        };
        let config = Config { max_elems_per_thread, max_threads_per_block, ..Config::default() };
        let choice = KernelChoice::Pipe(config);
        let plan = Plan::of(choice, ElementType::F32, Pass::Forward, Direction::Reverse);
        // Two tiles of floats, and after every 32 of them so many words.
        let tile = max_elems_per_thread * max_threads_per_block;
        let words = free.first().map_or(0, |free| 2 * (tile + tile / 32 * free));
        Ok(plan.with_shared(4 * words))
    }

    /// For those of ladder/, which are launched as the kernel wide is for rows of whole words, and only go forward.
    fn step_of_the_ladder(&self) -> Result<Plan, Error> {
        let numbers: Vec<u32> =
            self.arguments().iter().filter_map(|number| number.parse().ok()).collect();
        let (words, threads, ahead) = match numbers[..] {
            [threads] => (1, threads, 0),
            [words, threads] => (words, threads, 0),
            [words, threads, ahead] => (words, threads, ahead),
            _ => return Err(self.unknown()),
        };
        let choice = KernelChoice::Wide(WideConfig { words, threads, ahead, whole: true });
        let plan = Plan::of(choice, ElementType::F32, Pass::Forward, Direction::Forward);
        Ok(match self.base() {
            "ladder_persistent" => plan.forward_only().with_blocks(2),
            // An addition: it only has to write everything.
            "ladder_walk" => plan.forward_only().without_judge(),
            _ => plan.forward_only(),
        })
    }

    /// The name without the template's arguments.
    fn base(&self) -> &str {
        self.entry.split('<').next().unwrap_or_default()
    }

    /// The template's arguments: `complex<float>`, `false`.
    fn arguments(&self) -> Vec<&str> {
        let inner = self.entry.split_once('<').and_then(|(_, rest)| rest.strip_suffix('>'));
        inner.map_or(Vec::new(), |inner| inner.split(", ").collect())
    }

    /// Of a kernel whose last argument it is.
    fn direction(&self) -> Direction {
        direction(self.arguments().last() == Some(&"true"))
    }

    fn floats_per_pack(&self) -> usize {
        match self.arguments().first().copied() {
            Some("float2" | "double") => 2,
            Some("float4") => 4,
            _ => 1,
        }
    }

    fn unknown(&self) -> Error {
        let what = format!("`{}`: add it to examples/probe/probes/mod.rs", self.entry);
        Error::Unsupported { engine: "probe".to_owned(), what }
    }
}

fn direction(reverse: bool) -> Direction {
    if reverse { Direction::Reverse } else { Direction::Forward }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_kernel_without_a_mistake_is_right() {
        let device = Device::simt();
        let mut count = 0;
        for probe in all().iter().filter(|probe| probe.is_correct()) {
            let ran =
                probe.run(&device).unwrap_or_else(|error| panic!("{}: {error}", probe.name()));
            assert_eq!(ran.verdict, Ok(()), "{}", probe.name());
            assert!(ran.counters.is_some_and(|counters| counters.instructions > 0));
            count += 1;
        }
        assert!(count >= 80, "{count} kernels");
    }

    #[test]
    fn every_mistake_is_reported_or_seen_in_the_results() {
        let device = Device::simt();
        let mut found = BTreeMap::new();
        for probe in all().iter().filter(|probe| !probe.is_correct()) {
            let is_found = match probe.run(&device) {
                Ok(ran) => ran.verdict.is_err(),
                Err(Error::Kernel(_)) => true,
                Err(error) => panic!("{}: {error}", probe.name()),
            };
            *found.entry(probe.module).or_insert(false) |= is_found;
        }
        let missed: Vec<_> = found.iter().filter(|(_, is_found)| !**is_found).collect();
        assert!(missed.is_empty() && found.len() >= 26, "{missed:?} of {}", found.len());
    }
}
