//! The arrays of a measurement, the stopwatch, and what is run on them.

use std::fmt::Debug;
use std::sync::Arc;

use linrec::contract::{Case, CoeffKind, InputKind, Layout};
use linrec::device::{
    BackwardOptions, Bench, Buffer, Device, ForwardOptions, Function, Recurrence, Storage, Stream,
};
use linrec::kernels::{KernelChoice, Pass, Program};
use linrec::{Direction, Error};

use crate::median;
use crate::row::{Beside, Measured, Row};
use crate::turns::in_turns;

/// A kernel with nothing in it.
const EMPTY: &str = include_str!("empty.ptx");

/// The roof with loads that say that nobody will need the data again.
const STREAMING: &str = include_str!("streaming.cu");

/// What is measured.
#[derive(Debug, Clone)]
pub enum Runner<S> {
    /// A kernel of the recurrence.
    Kernel(Box<Recurrence<S>>),
    /// The element-wise kernel that reads and writes as many bytes, 16 at a time.
    Roof(Roof),
    /// A kernel that does nothing, with one block of a warp for each sequence.
    Empty,
    /// A kernel that does nothing, with a single block of a warp.
    Launch,
    /// A forward pass that is none of the library's.
    Other(Arc<dyn Forward<S>>),
}

/// A forward pass that is none of the library's: a step on the way to one, the solution of an
/// exercise.
pub trait Forward<S>: Debug + Send + Sync {
    /// Its name in records.
    fn name(&self) -> String;

    /// Queues it over arrays `[num_seqs, seq_len]`.
    ///
    /// # Errors
    ///
    /// If it does not take them, or the device fails.
    fn queue(
        &self,
        inputs: &Buffer<S>,
        coeffs: &Buffer<S>,
        outputs: &mut Buffer<S>,
        shape: (usize, usize),
        stream: &Stream,
    ) -> Result<(), Error>;
}

/// What queues a run on a stream.
type Work<'a> = Box<dyn FnOnce(&Stream) -> Result<(), Error> + 'a>;

/// Which element-wise kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Roof {
    /// 16 bytes at a time.
    Vectors,
    /// 4 bytes at a time.
    Singly,
    /// 16 bytes at a time, with streaming loads (`__ldcs`).
    Streaming,
}

impl<S: Storage> Runner<S> {
    /// A kernel of the library.
    ///
    /// # Errors
    ///
    /// If it can be neither had nor compiled, or the device refuses it.
    pub fn kernel(device: &Device, choice: KernelChoice) -> Result<Runner<S>, Error> {
        Ok(Runner::Kernel(Box::new(Recurrence::new(device, choice)?)))
    }

    /// Its name in records: `roof`, `empty`, `wide:2x128`.
    pub fn name(&self) -> String {
        match self {
            Runner::Kernel(recurrence) => recurrence.choice().to_string(),
            Runner::Roof(Roof::Vectors) => String::from("roof"),
            Runner::Roof(Roof::Singly) => String::from("roof:4-bytes"),
            Runner::Roof(Roof::Streaming) => String::from("roof:streaming"),
            Runner::Empty => String::from("empty"),
            Runner::Launch => String::from("launch"),
            Runner::Other(other) => other.name(),
        }
    }
}

/// Arrays for problems of up to so many elements, what runs on them, and a stopwatch.
pub struct Field<S> {
    bench: Bench,
    stream: Stream,
    /// Inputs, coefficients, and outputs for a backward pass.
    read: [Buffer<S>; 3],
    written: [Buffer<S>; 2],
    roofs: Vec<(Roof, [Function; 2])>,
    empty: Function,
}

impl<S: Storage> Field<S> {
    /// Arrays of `elements` elements, with coefficients in [0, 1).
    ///
    /// # Errors
    ///
    /// If the device has not enough memory, or a kernel cannot be loaded.
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

    /// The element-wise kernels that could be loaded; the first of them is the roof.
    pub fn roofs(&self) -> impl Iterator<Item = Roof> {
        self.roofs.iter().map(|&(roof, _)| roof)
    }

    /// The milliseconds of one run over the first `num_seqs * seq_len` elements of the arrays.
    ///
    /// # Errors
    ///
    /// If the device refuses or fails.
    pub fn time_ms(
        &mut self,
        runner: &Runner<S>,
        pass: Pass,
        shape: (usize, usize),
    ) -> Result<f64, Error> {
        let work = self.work(runner, pass, shape)?;
        self.bench.time_ms(work)
    }

    /// Everybody in turns, so many times, each run after the caches have been overwritten. The
    /// first is the roof.
    ///
    /// # Errors
    ///
    /// If the device refuses or fails.
    pub fn race(
        &mut self,
        measured: &Measured,
        runners: &[Runner<S>],
        runs: usize,
        beside: Beside,
    ) -> Result<Vec<Row>, Error> {
        let names: Vec<String> = runners.iter().map(Runner::name).collect();
        let time = |place: usize| self.time_ms(&runners[place], measured.pass, measured.shape);
        let times = in_turns(runners.len(), runs, time)?;
        Ok(measured.rows(&names, &times, beside))
    }

    /// One run over the first `num_seqs * seq_len` elements of the arrays, without the clock.
    ///
    /// # Errors
    ///
    /// If the device refuses or fails.
    pub fn run(
        &mut self,
        runner: &Runner<S>,
        pass: Pass,
        shape: (usize, usize),
    ) -> Result<(), Error> {
        self.work(runner, pass, shape)?(&self.stream)?;
        self.stream.synchronize()
    }

    /// What the last forward pass over problems of this shape left.
    ///
    /// # Errors
    ///
    /// If the device fails.
    pub fn outputs(&self, shape: (usize, usize)) -> Result<Vec<S>, Error> {
        self.written[0].slice(..shape.0 * shape.1)?.download()
    }

    /// Overwrites what a forward pass left.
    ///
    /// # Errors
    ///
    /// If the device fails.
    pub fn forget(&mut self) -> Result<(), Error> {
        self.written[0].zero()
    }

    /// What queues a run: all that is to be found out before is found out here, beside the clock.
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
            (Runner::Kernel(recurrence), Pass::Forward) => Box::new(move |_| {
                let options = ForwardOptions::default();
                recurrence.forward_into(&a, &b, &mut d, shape, options).map(drop)
            }),
            (Runner::Kernel(recurrence), Pass::Backward) => Box::new(move |_| {
                let options = BackwardOptions::default();
                recurrence.backward_into(&a, &b, &c, &mut d, &mut e, shape, options).map(drop)
            }),
            (Runner::Roof(roof), _) => {
                let function = self.roof(*roof, pass)?;
                let pack = if *roof == Roof::Singly { 4 } else { 16 };
                // Arrays that do not end with a whole vector are measured without their last bytes.
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
            (Runner::Other(other), Pass::Forward) => {
                Box::new(move |stream| other.queue(&a, &b, &mut d, shape, stream))
            }
            (Runner::Other(other), Pass::Backward) => {
                let what = String::from("backward: it goes forward only");
                return Err(Error::Unsupported { engine: other.name(), what });
            }
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

/// The median milliseconds of a kernel and of the roof over one problem, in turns.
///
/// # Errors
///
/// If the device has not enough memory, refuses or fails.
pub fn beside_roof<S: Storage>(
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

/// Why a kernel cannot be launched; `None` if it can.
///
/// # Errors
///
/// If the device fails.
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
    Ok((fits == Some(0)).then(|| String::from("an SM has no room for a block")))
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
    // This one is not shipped, and nothing depends on it.
    let streaming = Program::new("crates/bench/src/streaming.cu", STREAMING);
    if let Ok(module) = device.program(&streaming) {
        let functions = [module.function("streaming_fwd")?, module.function("streaming_bwd")?];
        roofs.push((Roof::Streaming, functions));
    }
    Ok(roofs)
}

/// Inputs and coefficients.
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
mod tests {
    use super::*;
    use half::bf16;

    #[test]
    fn everything_runs_on_a_small_field() {
        for device in linrec::device::under_test() {
            let mut field = Field::<f32>::new(&device, 40 * 100).unwrap();
            assert_eq!(field.roofs().next(), Some(Roof::Vectors));
            let pipe = Recurrence::new(&device, KernelChoice::Pipe(Default::default())).unwrap();
            let mut runners = vec![Runner::Kernel(Box::new(pipe)), Runner::Empty, Runner::Launch];
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
    fn a_kernel_beside_the_roof_has_two_times() {
        for device in linrec::device::under_test() {
            let pipe = KernelChoice::Pipe(Default::default());
            let [ours, theirs] =
                beside_roof::<f32>(&device, pipe, Pass::Backward, (64, 64), 3).unwrap();
            assert!(ours >= 0.0 && theirs >= 0.0);
        }
    }

    /// What is none of the library's: it writes twice the inputs.
    #[derive(Debug)]
    struct Twice;

    impl Forward<f32> for Twice {
        fn name(&self) -> String {
            String::from("twice")
        }

        fn queue(
            &self,
            inputs: &Buffer<f32>,
            _: &Buffer<f32>,
            outputs: &mut Buffer<f32>,
            _: (usize, usize),
            _: &Stream,
        ) -> Result<(), Error> {
            let twice: Vec<f32> = inputs.download()?.iter().map(|x| 2.0 * x).collect();
            outputs.upload(&twice)
        }
    }

    #[test]
    fn other_kernels_run_forward_and_leave_their_outputs() {
        let mut field = Field::<f32>::new(&Device::simt(), 100).unwrap();
        let twice = Runner::Other(Arc::new(Twice));
        field.run(&twice, Pass::Forward, (4, 20)).unwrap();
        assert!(field.outputs((4, 20)).unwrap().iter().any(|&y| y != 0.0));
        field.forget().unwrap();
        assert_eq!(field.outputs((4, 20)).unwrap(), [0.0; 80]);
        let error = field.run(&twice, Pass::Backward, (4, 20)).unwrap_err().to_string();
        assert!(error.contains("twice") && error.contains("backward"), "{error}");
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_numbers() {
        let device = Device::simt();
        let choice = "pipe:8x64:2".parse::<KernelChoice>().unwrap();
        let recurrence = Recurrence::<f32>::new(&device, choice).unwrap();
        for pass in Pass::ALL {
            assert_eq!(refused(&recurrence, pass, (3, 4096)).unwrap(), None);
        }
    }
}
