//! The field of a race: the arrays, the stopwatch, and the kernels that run on them.
//!
//! A [`Field`] allocates its arrays once for the largest problem, so that every run uses the same
//! memory and every kernel reads the same numbers. A [`Runner`] is a kernel of the library or of a
//! chapter ([`OverBuffers`]), an element-wise roof, or an empty kernel. Everything that a run needs
//! is prepared before its clock starts. The tests at the end of this file run every runner on all
//! devices under test.

use std::sync::Arc;

use linrec::contract::{Case, CoeffKind, InputKind, Layout};
use linrec::device::{
    BackwardOptions, Bench, Buffer, Device, ForwardOptions, Function, OverBuffers, Recurrence,
    Storage, Stream,
};
use linrec::kernels::{KernelChoice, Pass, Program};
use linrec::{Direction, Error};
use rayon::prelude::*;

use crate::median;
use crate::row::{Baseline, Measured, Row};
use crate::turns::in_turns;

const EMPTY: &str = include_str!("empty.ptx");

/// A roof whose loads carry the hint that nobody will need the data again.
const STREAMING: &str = include_str!("streaming.cu");

/// Something that can be measured.
#[derive(Debug, Clone)]
pub enum Runner<S: Storage> {
    /// A kernel of the recurrence: of the library, of a chapter, or the solution of an exercise.
    Kernel(Arc<dyn OverBuffers<Stored = S>>),
    /// The element-wise kernel that reads and writes the same number of bytes.
    Roof(Roof),
    /// An empty kernel, with a block of one warp for each sequence.
    Empty,
    /// An empty kernel, with a single block of one warp.
    Launch,
}

/// A closure that queues a run on a stream.
type Work<'a> = Box<dyn FnOnce(&Stream) -> Result<(), Error> + 'a>;

/// An element-wise kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Roof {
    /// It accesses 16 bytes at a time.
    Vectors,
    /// It accesses 4 bytes at a time.
    Singly,
    /// It accesses 16 bytes at a time with streaming loads (`__ldcs`).
    Streaming,
}

impl<S: Storage> Runner<S> {
    /// Loads or compiles a kernel of the library.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel is not shipped and cannot be compiled, or the device refuses
    /// it.
    pub fn kernel(device: &Device, choice: KernelChoice) -> Result<Runner<S>, Error> {
        Ok(Runner::Kernel(Arc::new(Recurrence::new(device, choice)?)))
    }

    /// Returns the name in records: `roof`, `empty`, `wide:2x128`.
    pub fn name(&self) -> String {
        match self {
            Runner::Kernel(kernel) => kernel.name(),
            Runner::Roof(Roof::Vectors) => String::from("roof"),
            Runner::Roof(Roof::Singly) => String::from("roof:4-bytes"),
            Runner::Roof(Roof::Streaming) => String::from("roof:streaming"),
            Runner::Empty => String::from("empty"),
            Runner::Launch => String::from("launch"),
        }
    }
}

/// Arrays for problems up to a fixed number of elements, their kernels, and a stopwatch.
pub struct Field<S> {
    bench: Bench,
    stream: Stream,
    /// The inputs, the coefficients, and the outputs for a backward pass.
    read: [Buffer<S>; 3],
    written: [Buffer<S>; 2],
    roofs: Vec<(Roof, [Function; 2])>,
    empty: Function,
}

impl<S: Storage> Field<S> {
    /// Allocates arrays of `elements` elements, with coefficients in [0, 1).
    ///
    /// # Errors
    ///
    /// Returns an error if the device does not have enough memory, or a kernel cannot be loaded.
    pub fn new(device: &Device, elements: usize) -> Result<Field<S>, Error> {
        let drawn = draw::<S>(elements.min(1 << 22));
        let fresh = |name| device.allocate_named::<S>(name, elements);
        let mut read = [fresh("inputs")?, fresh("coeffs")?, fresh("outputs")?];
        for (buffer, values) in read.iter_mut().zip([&drawn[0], &drawn[1], &drawn[0]]) {
            for start in (0..elements).step_by(values.len().max(1)) {
                let end = elements.min(start + values.len());
                buffer.slice(start..end)?.upload(&values[..end - start])?;
            }
        }
        Ok(Field {
            bench: Bench::new(device)?,
            stream: device.stream(),
            read,
            written: [fresh("d_inputs")?, fresh("d_coeffs")?],
            roofs: roofs(device)?,
            empty: device.module(EMPTY)?.function("empty")?,
        })
    }

    /// Returns the element-wise kernels that could be loaded; the first one is the roof.
    pub fn roofs(&self) -> impl Iterator<Item = Roof> {
        self.roofs.iter().map(|&(roof, _)| roof)
    }

    /// Returns the milliseconds of one run over the first `num_seqs * seq_len` elements of the
    /// arrays.
    ///
    /// # Errors
    ///
    /// Returns an error if the device refuses or fails.
    pub fn time_ms(
        &mut self,
        runner: &Runner<S>,
        pass: Pass,
        shape: (usize, usize),
    ) -> Result<f64, Error> {
        let work = self.work(runner, pass, shape)?;
        self.bench.time_ms(work)
    }

    /// Measures all runners in turn, `runs` times each, and overwrites the caches before each run.
    /// The first runner must be the roof.
    ///
    /// # Errors
    ///
    /// Returns an error if the device refuses or fails.
    pub fn race(
        &mut self,
        measured: &Measured,
        runners: &[Runner<S>],
        runs: usize,
        baseline: Baseline,
    ) -> Result<Vec<Row>, Error> {
        let names: Vec<String> = runners.iter().map(Runner::name).collect();
        let time = |place: usize| self.time_ms(&runners[place], measured.pass, measured.shape);
        let times = in_turns(runners.len(), runs, time)?;
        Ok(measured.rows(&names, &times, baseline))
    }

    /// Runs once over the first `num_seqs * seq_len` elements of the arrays, without the clock.
    ///
    /// # Errors
    ///
    /// Returns an error if the device refuses or fails.
    pub fn run(
        &mut self,
        runner: &Runner<S>,
        pass: Pass,
        shape: (usize, usize),
    ) -> Result<(), Error> {
        self.work(runner, pass, shape)?(&self.stream)?;
        self.stream.synchronize()
    }

    /// Downloads the outputs of the last forward pass over problems of this shape.
    ///
    /// # Errors
    ///
    /// Returns an error if the device fails.
    pub fn outputs(&self, shape: (usize, usize)) -> Result<Vec<S>, Error> {
        self.written[0].slice(..shape.0 * shape.1)?.download()
    }

    /// Overwrites the outputs of the last forward pass with zeros.
    ///
    /// # Errors
    ///
    /// Returns an error if the device fails.
    pub fn forget(&mut self) -> Result<(), Error> {
        self.written[0].zero()
    }

    /// Prepares a run and returns the closure that queues it. All preparation happens here, outside
    /// the measured time.
    fn work<'a>(
        &self,
        runner: &'a Runner<S>,
        pass: Pass,
        shape @ (num_seqs, seq_len): (usize, usize),
    ) -> Result<Work<'a>, Error> {
        let elements = num_seqs * seq_len;
        let [a, b, c] = [0, 1, 2].map(|i| self.read[i].slice(..elements));
        let [d, e] = [0, 1].map(|i| self.written[i].slice(..elements));
        let (a, b, c, mut d, mut e) = (a?, b?, c?, d?, e?);
        Ok(match (runner, pass) {
            (Runner::Kernel(kernel), Pass::Forward) => Box::new(move |stream| {
                let options = ForwardOptions { stream: Some(stream), ..Default::default() };
                kernel.forward_into(&a, &b, &mut d, shape.into(), options)
            }),
            (Runner::Kernel(kernel), Pass::Backward) => Box::new(move |stream| {
                let options = BackwardOptions { stream: Some(stream), ..Default::default() };
                kernel.backward_into(&a, &b, &c, &mut d, &mut e, shape.into(), options)
            }),
            (Runner::Roof(roof), _) => {
                let function = self.roof(*roof, pass)?;
                let pack = if *roof == Roof::Singly { 4 } else { 16 };
                // The last bytes of arrays that do not end with a whole vector are left out.
                let packs = (elements * size_of::<S>() / pack).max(1);
                let blocks = u32::try_from(packs.div_ceil(256)).unwrap_or(u32::MAX);
                Box::new(move |stream| {
                    let launch = function.launch(blocks, 256).arg(&a).arg(&b);
                    let launch = match pass {
                        Pass::Forward => launch.arg(&mut d),
                        Pass::Backward => launch.arg(&c).arg(&mut d).arg(&mut e),
                    };
                    launch.arg(packs as i64).run(stream).map(drop)
                })
            }
            (Runner::Empty, _) => self.nothing(num_seqs),
            (Runner::Launch, _) => self.nothing(1),
        })
    }

    fn roof(&self, roof: Roof, pass: Pass) -> Result<Function, Error> {
        let found = self.roofs.iter().find(|(other, _)| *other == roof);
        let functions = found.map(|(_, functions)| functions);
        let function =
            functions.map(|functions| functions[usize::from(pass == Pass::Backward)].clone());
        function.ok_or_else(|| Error::Unsupported {
            engine: Runner::<S>::Roof(roof).name(),
            what: String::from("this device: it could not be compiled"),
        })
    }

    fn nothing<'a>(&self, blocks: usize) -> Work<'a> {
        let blocks = u32::try_from(blocks.max(1)).unwrap_or(u32::MAX);
        let empty = self.empty.clone();
        Box::new(move |stream| empty.launch(blocks, 32).run(stream).map(drop))
    }
}

/// Returns the median milliseconds of a kernel and of the roof, which take turns over one problem.
///
/// # Errors
///
/// Returns an error if the device does not have enough memory, refuses or fails.
pub fn against_roof<S: Storage>(
    device: &Device,
    choice: KernelChoice,
    pass: Pass,
    shape @ (num_seqs, seq_len): (usize, usize),
    runs: usize,
) -> Result<[f64; 2], Error> {
    let mut field = Field::<S>::new(device, num_seqs * seq_len)?;
    let runners = [Runner::kernel(device, choice)?, Runner::Roof(Roof::Vectors)];
    let times = in_turns(runners.len(), runs, |place| field.time_ms(&runners[place], pass, shape))?;
    Ok([0, 1].map(|place| median(times[place].iter().copied())))
}

/// The kernels that a device has loaded, and the others with the reasons.
pub(crate) type Loaded<S> = (Vec<Recurrence<S>>, Vec<(KernelChoice, Error)>);

/// Loads or compiles kernels of the library in parallel. `message` is shown meanwhile.
pub(crate) fn load<S: Storage>(
    device: &Device,
    choices: Vec<KernelChoice>,
    message: &str,
) -> Loaded<S> {
    let progress = lesson::progress(choices.len(), message);
    let all: Vec<_> = choices
        .par_iter()
        .map(|&choice| {
            let recurrence = Recurrence::new(device, choice);
            progress.inc(1);
            recurrence.map_err(|error| (choice, error))
        })
        .collect();
    progress.finish_and_clear();
    let (mut loaded, mut refused) = (Vec::new(), Vec::new());
    for one in all {
        match one {
            Ok(recurrence) => loaded.push(recurrence),
            Err(refusal) => refused.push(refusal),
        }
    }
    (loaded, refused)
}

/// Returns the reason why a kernel cannot be launched, or `None` if it can.
///
/// # Errors
///
/// Returns an error if the device fails.
pub fn refused<S: Storage>(
    recurrence: &Recurrence<S>,
    pass: Pass,
    shape @ (num_seqs, seq_len): (usize, usize),
) -> Result<Option<String>, Error> {
    let function = recurrence.function(pass, Direction::Forward)?;
    let choice = recurrence.kernel(pass, shape, true)?;
    let geometry = choice.geometry(S::ELEMENT, pass, num_seqs as u64, seq_len as u64);
    let limits = recurrence.device().attributes();
    let own = function.attributes().shared_bytes;
    let shared = u64::from(own) + u64::from(geometry.shared_bytes);
    if shared > u64::from(limits.shared_bytes_opt_in) {
        let most = limits.shared_bytes_opt_in;
        return Ok(Some(format!("{shared} bytes of shared memory for a block; there are {most}")));
    }
    let threads = function.attributes().max_threads_per_block;
    if geometry.threads > threads {
        let registers = function.attributes().registers.unwrap_or(0);
        let wanted = geometry.threads;
        return Ok(Some(format!(
            "{wanted} threads of {registers} registers; a block takes {threads} of them"
        )));
    }
    let fits = function.occupancy(geometry.threads, geometry.shared_bytes)?;
    Ok((fits == Some(0)).then(|| String::from("no block fits on an SM")))
}

fn roofs(device: &Device) -> Result<Vec<(Roof, [Function; 2])>, Error> {
    let elementwise = linrec::kernels::program("elementwise.cu").map(|program| {
        program.with_entries([
            "elementwise_fwd<float>",
            "elementwise_fwd<float4>",
            "elementwise_bwd<float>",
            "elementwise_bwd<float4>",
        ])
    });
    let mut roofs = Vec::new();
    if let Some(program) = elementwise {
        let module = device.program(&program)?;
        for (roof, pack) in [(Roof::Vectors, "float4"), (Roof::Singly, "float")] {
            let function = |pass| module.function(&format!("elementwise_{pass}<{pack}>"));
            roofs.push((roof, [function("fwd")?, function("bwd")?]));
        }
    }
    // This roof is not shipped and is optional.
    let streaming = Program::new("crates/bench/src/streaming.cu", STREAMING);
    if let Ok(module) = device.program(&streaming) {
        let functions = [module.function("streaming_fwd")?, module.function("streaming_bwd")?];
        roofs.push((Roof::Streaming, functions));
    }
    Ok(roofs)
}

fn draw<S: Storage>(len: usize) -> [Vec<S>; 2] {
    let case = Case {
        num_seqs: 1,
        seq_len: len,
        direction: Direction::Forward,
        initial: false,
        coeffs: CoeffKind::Gate,
        log_coeffs: false,
        inputs: InputKind::Dense,
        layout: Layout::Standard,
    };
    let data = case.data::<S::Accum>();
    let narrow = |numbers: ndarray::ArrayView2<S::Accum>| {
        numbers.iter().map(|&number| S::narrow(number)).collect()
    };
    [narrow(data.inputs.view()), narrow(data.coeffs())]
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use half::bf16;
    use linrec::device::Shape;

    #[test]
    fn everything_runs_on_a_small_field() {
        for device in linrec::device::under_test() {
            let mut field = Field::<f32>::new(&device, 40 * 100).unwrap();
            assert_eq!(field.roofs().next(), Some(Roof::Vectors));
            let pipe = Recurrence::new(&device, KernelChoice::Pipe(Default::default())).unwrap();
            let mut runners = vec![Runner::Kernel(Arc::new(pipe)), Runner::Empty, Runner::Launch];
            runners.extend(field.roofs().map(Runner::Roof));
            for runner in &runners {
                for pass in Pass::ALL {
                    for shape in [(40, 100), (1, 7), (3, 33)] {
                        let ms = field.time_ms(runner, pass, shape).unwrap();
                        assert!(ms >= 0.0, "{} {pass:?} {shape:?}", runner.name());
                    }
                }
            }
            Field::<bf16>::new(&device, 1000).unwrap();
        }
    }

    #[test]
    fn a_kernel_against_the_roof_has_two_times() {
        for device in linrec::device::under_test() {
            let pipe = KernelChoice::Pipe(Default::default());
            let [ours, theirs] =
                against_roof::<f32>(&device, pipe, Pass::Backward, (64, 64), 3).unwrap();
            assert!(ours >= 0.0 && theirs >= 0.0);
        }
    }

    /// Doubles the inputs of at most `max_len` elements, forward only.
    #[derive(Debug)]
    struct Twice {
        name: &'static str,
        device: Device,
        max_len: usize,
    }

    impl OverBuffers for Twice {
        type Stored = f32;

        fn device(&self) -> &Device {
            &self.device
        }

        fn name(&self) -> String {
            self.name.to_owned()
        }

        fn forward_into(
            &self,
            inputs: &Buffer<f32>,
            _: &Buffer<f32>,
            outputs: &mut Buffer<f32>,
            Shape { num_seqs, seq_len }: Shape,
            _: ForwardOptions<f32>,
        ) -> Result<(), Error> {
            assert_eq!((inputs.len(), outputs.len()), (num_seqs * seq_len, num_seqs * seq_len));
            if seq_len > self.max_len {
                let what = format!("{seq_len} elements");
                return Err(Error::Unsupported { engine: self.name(), what });
            }
            let twice: Vec<f32> = inputs.download()?.iter().map(|x| 2.0 * x).collect();
            outputs.upload(&twice)
        }
    }

    /// A runner on the emulator that is not a kernel of the library.
    pub(crate) fn twice(name: &'static str, max_len: usize) -> Runner<f32> {
        Runner::Kernel(Arc::new(Twice { name, device: Device::simt(), max_len }))
    }

    #[test]
    fn other_kernels_run_forward_and_write_their_outputs() {
        let mut field = Field::<f32>::new(&Device::simt(), 100).unwrap();
        let twice = twice("twice", 100);
        field.run(&twice, Pass::Forward, (4, 20)).unwrap();
        assert!(field.outputs((4, 20)).unwrap().iter().any(|&y| y != 0.0));
        field.forget().unwrap();
        assert_eq!(field.outputs((4, 20)).unwrap(), [0.0; 80]);
        let error = field.run(&twice, Pass::Backward, (4, 20)).unwrap_err().to_string();
        assert!(error.contains("twice") && error.contains("backward"), "{error}");
    }

    #[test]
    fn a_kernel_that_fits_is_not_refused() {
        let device = Device::simt();
        let choice = "pipe:8x64:2".parse::<KernelChoice>().unwrap();
        let recurrence = Recurrence::<f32>::new(&device, choice).unwrap();
        for pass in Pass::ALL {
            assert_eq!(refused(&recurrence, pass, (3, 4096)).unwrap(), None);
        }
    }
}
