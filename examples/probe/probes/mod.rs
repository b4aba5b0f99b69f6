//! Every shipped kernel with data that fits it: one launch, and whether the results are right.
//!
//! The data is the same in every run and on every device. Sizes are odd and leave the last block with
//! threads that have nothing to do; coefficients are near one, so that a lost carry shows.

mod copies;
mod numbers;
mod recurrences;

use half::{bf16, f16};
use linrec::device::{Device, Function, Storage};
use linrec::kernels::{self, Config, ElementType, KernelChoice, Ptx};
use linrec::simt::Counters;
use linrec::{Direction, Error};
use num_complex::Complex;

use recurrences::Plan;

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
            "linrec_ref_fwd" => {
                self.recurrence(&kernel, &Plan::reference(self.is_reverse()), false)
            }
            "linrec_ref_bwd" => self.recurrence(&kernel, &Plan::reference(self.is_reverse()), true),
            "linrec_tile_fwd" | "linrec_pipe_fwd" => {
                self.recurrence(&kernel, &self.per_sequence()?, false)
            }
            "linrec_tile_bwd" | "linrec_pipe_bwd" => {
                self.recurrence(&kernel, &self.per_sequence()?, true)
            }
            "linrec_strides" | "linrec_ahead" => {
                recurrences::forward::<f32>(&kernel, &self.exercise()?)
            }
            "block_scan" => {
                recurrences::forward::<f32>(&kernel, &Plan::block_scan(self.is_reverse()))
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

    fn recurrence(&self, kernel: &Function, plan: &Plan, backward: bool) -> Result<Ran, Error> {
        fn pass<S: Storage>(kernel: &Function, plan: &Plan, backward: bool) -> Result<Ran, Error> {
            match backward {
                false => recurrences::forward::<S>(kernel, plan),
                true => recurrences::backward::<S>(kernel, plan),
            }
        }
        match self.element()? {
            ElementType::F32 => pass::<f32>(kernel, plan, backward),
            ElementType::F64 => pass::<f64>(kernel, plan, backward),
            ElementType::Bf16 => pass::<bf16>(kernel, plan, backward),
            ElementType::F16 => pass::<f16>(kernel, plan, backward),
            ElementType::ComplexF32 => pass::<Complex<f32>>(kernel, plan, backward),
            ElementType::ComplexF64 => pass::<Complex<f64>>(kernel, plan, backward),
        }
    }

    fn element(&self) -> Result<ElementType, Error> {
        let name = self.arguments().first().copied().unwrap_or_default();
        let named = ElementType::ALL.into_iter().find(|element| element.cuda_name() == name);
        named.ok_or_else(|| self.unknown())
    }

    /// For the kernels of one block per sequence: `f32` forward, all others in reverse.
    fn per_sequence(&self) -> Result<Plan, Error> {
        let numbers: Vec<u32> =
            self.arguments().iter().skip(1).filter_map(|number| number.parse().ok()).collect();
        let &[max_elems_per_thread, max_threads_per_block, memcode, algocode] = &numbers[..] else {
            return Err(self.unknown());
        };
        let config = Config { max_elems_per_thread, max_threads_per_block, memcode, algocode };
        let choice = match self.base().starts_with("linrec_tile") {
            true => KernelChoice::Tile(config),
            false => KernelChoice::Pipe(config),
        };
        let element = self.element()?;
        let direction = match element {
            ElementType::F32 => Direction::Forward,
            _ => Direction::Reverse,
        };
        Ok(Plan::per_sequence(choice, element, direction))
    }

    /// For those of exercises/ that are launched as the pipe kernel is and have a name of their own.
    fn exercise(&self) -> Result<Plan, Error> {
        let numbers: Vec<u32> =
            self.arguments().iter().filter_map(|number| number.parse().ok()).collect();
        let &[max_elems_per_thread, max_threads_per_block, ref free @ ..] = &numbers[..] else {
            return Err(self.unknown());
        };
        let config = Config { max_elems_per_thread, max_threads_per_block, ..Config::default() };
        let plan =
            Plan::per_sequence(KernelChoice::Pipe(config), ElementType::F32, Direction::Reverse);
        // Two tiles of floats, and after every 32 of them so many words.
        let tile = max_elems_per_thread * max_threads_per_block;
        let words = free.first().map_or(0, |free| 2 * (tile + tile / 32 * free));
        Ok(plan.with_shared(4 * words))
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

    fn is_reverse(&self) -> bool {
        self.arguments().last() == Some(&"true")
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
