//! Every shipped kernel with data that fits it: one launch, and a check of the results.
//!
//! The data is the same in every run and on every device. Sizes are odd and leave idle threads in
//! the last block; coefficients are near one, so that a lost carry shows. The program `probe` runs
//! these kernels for profilers, and `tests/suite/probes.rs` makes sure that every shipped kernel is
//! among them and that every planted mistake shows.

mod copies;
mod fused;
mod logarithms;
mod long;
mod pieces;
mod plan;
mod recurrences;
mod selective;

use half::{bf16, f16};
use linrec::device::{Device, Exponential, Function, Job, Storage, Way, dispatch};
use linrec::kernels::{self, ElementType, KernelChoice, Pass, PipeConfig, Ptx, WideConfig};
use linrec::simt::Counters;
use linrec::{Direction, Error};

use logarithms::OfLogarithms;
use plan::Plan;

pub struct Probe {
    /// The path of the PTX under `kernels/ptx/`, without the extension.
    pub module: &'static str,
    /// The name of the kernel in C++.
    pub entry: String,
    /// The name of the kernel in the PTX.
    pub symbol: String,
    ptx: Ptx,
}

/// The outcome of a launch that the device accepted.
pub struct Ran {
    /// The emulator's counters; `None` on a GPU.
    pub counters: Option<Counters>,
    /// The first wrong result, as a sentence.
    pub verdict: Result<(), String>,
}

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

/// Returns the kernels with this name, which may be the name of a whole PTX.
pub fn named(name: &str) -> Vec<Probe> {
    all().into_iter().filter(|probe| probe.name() == name || probe.module == name).collect()
}

impl Probe {
    /// Returns the name: `ref-f32/linrec_ref_fwd_float_false`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.module, self.symbol)
    }

    /// Returns true for a kernel without a planted mistake.
    pub fn is_correct(&self) -> bool {
        !self.module.starts_with("broken/")
    }

    /// Returns true if the kernel takes gigabytes of a GPU's memory.
    pub fn is_large(&self) -> bool {
        self.module == "broken/row_offset_32_bits"
    }

    /// Returns true if the probe launches one kernel, and if its instructions depend only on its
    /// data and not on the speed of its blocks.
    pub fn is_countable(&self) -> bool {
        // These poll until other blocks have published.
        let asking = ["look_back", "long_chained", "long_decoupled"];
        // These launch several kernels, and all of them are counted.
        let several = [
            "selective_scan_fwd_carries",
            "selective_scan_fwd_plain",
            "selective_scan_bwd",
            "selective_scan_bwd_plain",
            "selective_scan_bwd_plain_ends",
            "selective_scan_bwd_sums",
        ];
        let base = self.base();
        let several_ranks = base.starts_with("linrec_piece_") || base == "long_mailbox";
        !several_ranks
            && !asking.contains(&base)
            && !several.contains(&base)
            && !self.is_shared_out()
    }

    /// Returns true if blocks share sequences.
    fn is_shared_out(&self) -> bool {
        KernelChoice::of_entry(&self.entry).is_some_and(|(choice, element, pass)| {
            choice.geometry(element, pass, 1, 1).shared_out.is_some()
        })
    }

    /// Launches the kernel once, and compares the results with the reference.
    ///
    /// # Errors
    ///
    /// If the device fails or the emulator finds a mistake.
    pub fn run(&self, device: &Device) -> Result<Ran, Error> {
        let kernel = device.module(self.ptx.text())?.function(&self.entry)?;
        if self.is_large() {
            return recurrences::last_rows(&kernel);
        }
        if let Some((choice, element, pass)) = KernelChoice::of_entry(&self.entry) {
            let plan = Plan::of(choice, element, pass, self.direction_of(choice, element, pass));
            return dispatch(element, OfRecurrence { kernel: &kernel, plan: &plan, pass });
        }
        match self.base() {
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
            "long_chained" | "long_decoupled" => long::communicating(&kernel),
            "long_mailbox" => long::mailbox(&kernel),
            "linrec_piece_fwd" | "linrec_piece_previous" => self.pieces(device, Way::Mailboxes),
            "linrec_piece_bwd" if self.arguments().last() == Some(&"true") => {
                self.pieces(device, Way::Mailboxes)
            }
            base if base.starts_with("linrec_piece_") => self.pieces(device, Way::TailFirst),
            "long_reduce" => long::reduce(&kernel),
            "long_scan" => long::scan(&kernel),
            "long_apply" => long::apply(&kernel),
            "elementwise_fwd" => copies::elementwise_forward(&kernel, self.floats_per_pack()),
            "elementwise_bwd" => copies::elementwise_backward(&kernel, self.floats_per_pack()),
            "copy_coalesced" => copies::coalesced(&kernel, self.floats_per_pack()),
            "copy_shifted" => copies::shifted(&kernel),
            "copy_strided" => copies::strided(&kernel),
            "copy_rows" => copies::rows(&kernel),
            "copy_broadcast" => copies::broadcast(&kernel),
            base @ ("coeffs_from_logs" | "d_logs_from_d_coeffs" | "widened" | "narrowed") => {
                dispatch(self.element()?, OfLogarithms { kernel: &kernel, base })
            }
            base @ ("expand_fwd" | "expand_bwd" | "contract_fwd" | "contract_bwd"
            | "sum_over_channels" | "sum_over_positions") => {
                match self.arguments().first().copied() {
                    Some("float") => selective::run::<f32>(&kernel, base),
                    Some("double") => selective::run::<f64>(&kernel, base),
                    _ => Err(self.unknown()),
                }
            }
            "fused_block_scan" => fused::rung(&kernel, 128, 1),
            "fused_lane" => fused::rung(&kernel, 64, 64),
            "fused_quad" => fused::rung(&kernel, 128, 64),
            "selective_scan_fwd_carries" => {
                let exact = self.arguments().first().copied();
                fused::forward::<f32>(device, exponential(exact), 15, 3)
            }
            base if base.starts_with("selective_scan_") => {
                match self.arguments().first().copied() {
                    Some("float") => self.fused::<f32>(device),
                    Some("bf16") => self.fused::<bf16>(device),
                    Some("f16") => self.fused::<f16>(device),
                    _ => Err(self.unknown()),
                }
            }
            _ => Err(self.unknown()),
        }
    }

    /// Runs a kernel for rows that are cut, by two ranks with a way that uses it.
    fn pieces(&self, device: &Device, way: Way) -> Result<Ran, Error> {
        dispatch(self.of_pieces()?, OfPieces { device, way })
    }

    /// Returns the type of the elements of a kernel for rows that are cut.
    fn of_pieces(&self) -> Result<ElementType, Error> {
        let first = self.arguments().first().copied();
        let mut all = ElementType::ALL.into_iter();
        all.find(|element| first == Some(element.cuda_name())).ok_or_else(|| self.unknown())
    }

    /// Runs a kernel of the fused selective scan, by a scan with its states and exponential.
    fn fused<S: Storage<Accum = f32>>(&self, device: &Device) -> Result<Ran, Error> {
        use Exponential::{Exact, Fast};
        match (self.base(), &self.arguments()[1..]) {
            ("selective_scan_fwd", ["2", "false", "false"]) => {
                fused::forward::<S>(device, Fast, 7, 1)
            }
            ("selective_scan_fwd", ["4", "false", exact]) => {
                fused::forward::<S>(device, exponential(Some(exact)), 15, 1)
            }
            ("selective_scan_fwd", ["4", "true", exact]) => {
                fused::forward::<S>(device, exponential(Some(exact)), 33, 1)
            }
            ("selective_scan_fwd_plain", [per_lane, aligned, wanted, _]) => {
                let states = if *per_lane == "2" { 8 } else { 16 };
                let len = if *aligned == "true" { 104 } else { 99 };
                fused::plain_forward::<S>(device, states, len, wanted)
            }
            ("selective_scan_bwd", ["1", exact]) => {
                fused::backward::<S>(device, exponential(Some(exact)), 7)
            }
            ("selective_scan_bwd", ["2", exact]) => {
                fused::backward::<S>(device, exponential(Some(exact)), 15)
            }
            (
                "selective_scan_bwd_plain" | "selective_scan_bwd_plain_ends",
                [per_lane, aligned, exact],
            ) => {
                let states = if *per_lane == "1" { 8 } else { 16 };
                let len = if *aligned == "true" { 520 } else { 515 };
                fused::plain_backward::<S>(device, exponential(Some(exact)), states, len)
            }
            ("selective_scan_bwd_sums", []) => fused::backward::<S>(device, Exact, 33),
            _ => Err(self.unknown()),
        }
    }

    /// Returns the direction in which to launch a kernel of the library. If it is an argument,
    /// `f32` goes forward, and all other types and rows of whole vectors in reverse.
    fn direction_of(&self, choice: KernelChoice, element: ElementType, pass: Pass) -> Direction {
        if choice.takes_direction() {
            direction(element != ElementType::F32 || choice.multiple_of(element) > 1)
        } else {
            direction(self.entry == choice.entry(element, pass, Direction::Reverse))
        }
    }

    /// Plans a kernel of exercises/ that is launched like the pipe kernel under a different name.
    fn exercise(&self) -> Result<Plan, Error> {
        let numbers: Vec<u32> =
            self.arguments().iter().filter_map(|number| number.parse().ok()).collect();
        let &[max_elems_per_thread, max_threads_per_block, ref free @ ..] = &numbers[..] else {
            return Err(self.unknown());
        };
        let usual = PipeConfig::DEFAULT;
        let config = PipeConfig { max_elems_per_thread, max_threads_per_block, ..usual };
        let choice = KernelChoice::Pipe(config);
        let plan = Plan::of(choice, ElementType::F32, Pass::Forward, Direction::Reverse);
        // Two tiles of floats, and `free` bank words after every 32 of them.
        let tile = max_elems_per_thread * max_threads_per_block;
        let words = free.first().map_or(0, |free| 2 * (tile + tile / 32 * free));
        Ok(plan.with_shared(4 * words))
    }

    /// Plans a kernel of ladder/, which is launched like the wide kernel for rows of whole vectors,
    /// and only forward.
    fn step_of_the_ladder(&self) -> Result<Plan, Error> {
        let numbers: Vec<u32> =
            self.arguments().iter().filter_map(|number| number.parse().ok()).collect();
        let (vectors, threads, ahead) = match numbers[..] {
            [threads] => (1, threads, 0),
            [vectors, threads] => (vectors, threads, 0),
            [vectors, threads, ahead] => (vectors, threads, ahead),
            _ => return Err(self.unknown()),
        };
        let choice = KernelChoice::Wide(WideConfig { vectors, threads, ahead, whole: true });
        let plan = Plan::of(choice, ElementType::F32, Pass::Forward, Direction::Forward);
        Ok(match self.base() {
            "ladder_persistent" => plan.forward_only().with_blocks(2),
            // An addition, so its results only have to be written.
            "ladder_walk" => plan.forward_only().without_judge(),
            _ => plan.forward_only(),
        })
    }

    /// Returns the name without the template's arguments.
    fn base(&self) -> &str {
        self.entry.split('<').next().unwrap_or_default()
    }

    /// Returns the template's arguments: `complex<float>`, `false`.
    fn arguments(&self) -> Vec<&str> {
        let inner = self.entry.split_once('<').and_then(|(_, rest)| rest.strip_suffix('>'));
        inner.map_or(Vec::new(), |inner| inner.split(", ").collect())
    }

    /// Returns the direction of a kernel whose last argument it is.
    fn direction(&self) -> Direction {
        direction(self.arguments().last() == Some(&"true"))
    }

    /// Returns the element type of a kernel whose only argument it is.
    fn element(&self) -> Result<ElementType, Error> {
        let known = |element: &ElementType| self.arguments() == [element.cuda_name()];
        ElementType::ALL.into_iter().find(known).ok_or_else(|| self.unknown())
    }

    fn floats_per_pack(&self) -> usize {
        match self.arguments().first().copied() {
            Some("float2" | "double") => 2,
            Some("float4") => 4,
            _ => 1,
        }
    }

    fn unknown(&self) -> Error {
        let what = format!("`{}`: add it to tests/suite/probe/probes/mod.rs", self.entry);
        Error::Unsupported { engine: "probe".to_owned(), what }
    }
}

struct OfRecurrence<'a> {
    kernel: &'a Function,
    plan: &'a Plan,
    pass: Pass,
}

impl Job for OfRecurrence<'_> {
    type Output = Result<Ran, Error>;

    fn run<S: Storage>(self) -> Result<Ran, Error> {
        match self.pass {
            Pass::Forward => recurrences::forward::<S>(self.kernel, self.plan),
            Pass::Backward => recurrences::backward::<S>(self.kernel, self.plan),
        }
    }
}

struct OfPieces<'a> {
    device: &'a Device,
    way: Way,
}

impl Job for OfPieces<'_> {
    type Output = Result<Ran, Error>;

    fn run<S: Storage>(self) -> Result<Ran, Error> {
        pieces::both_passes::<S>(self.device, self.way)
    }
}

fn direction(reverse: bool) -> Direction {
    if reverse { Direction::Reverse } else { Direction::Forward }
}

/// Returns the exponential that this argument selects.
fn exponential(exact: Option<&str>) -> Exponential {
    if exact == Some("true") { Exponential::Exact } else { Exponential::Fast }
}

/// Numbers that are the same in every run, without a pattern that could hide a mistake.
mod numbers {
    use linrec::Element;

    /// Returns a number in [0, 1) by its index in the sequence `seed` (the generator splitmix64).
    pub fn unit(seed: u64, index: usize) -> f64 {
        let mut z = (seed << 40).wrapping_add(index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z >> 40) as f64 / (1u64 << 24) as f64
    }

    /// Returns `len` numbers of sizes between `low` and `high`; complex ones have any angle.
    pub fn numbers<T: Element>(seed: u64, len: usize, low: f64, high: f64) -> Vec<T> {
        let number = |index| {
            let angle = std::f64::consts::TAU * unit(seed + 1, index);
            T::from_polar(low + (high - low) * unit(seed, index), angle)
        };
        (0..len).map(number).collect()
    }

    /// Returns `len` numbers between 0.5 and 1.5.
    pub fn floats(seed: u64, len: usize) -> Vec<f32> {
        numbers(seed, len, 0.5, 1.5)
    }
}
