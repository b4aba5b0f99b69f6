//! The arrays of a measurement, the stopwatch, and what is run on them.

use linrec::contract::{Case, CoeffKind, InputKind, Layout};
use linrec::device::{
    BackwardOptions, Bench, Buffer, Device, ForwardOptions, Function, Recurrence, Storage, Stream,
};
use linrec::kernels::{KernelChoice, Pass, Program};
use linrec::{Direction, Error};

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
    /// The same with a single block.
    Launch,
}

/// Which element-wise kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Roof {
    /// 16 bytes at a time.
    Words,
    /// 4 bytes at a time.
    Singly,
    /// 16 bytes at a time, with streaming loads (`__ldcs`).
    Streaming,
}

impl<S: Storage> Runner<S> {
    /// Its name in records: `roof`, `empty`, `wide:2x128`.
    pub fn name(&self) -> String {
        match self {
            Runner::Kernel(recurrence) => recurrence.choice().spec(),
            Runner::Roof(Roof::Words) => String::from("roof"),
            Runner::Roof(Roof::Singly) => String::from("roof:4-bytes"),
            Runner::Roof(Roof::Streaming) => String::from("roof:streaming"),
            Runner::Empty => String::from("empty"),
            Runner::Launch => String::from("launch"),
        }
    }
}

/// Arrays for problems of up to so many elements, and a stopwatch.
pub struct Field<S> {
    bench: Bench,
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
    // ANCHOR: time
    pub fn time_ms(
        &mut self,
        runner: &Runner<S>,
        pass: Pass,
        (num_seqs, seq_len): (usize, usize),
    ) -> Result<f64, Error> {
        let elements = num_seqs * seq_len;
        match runner {
            Runner::Kernel(recurrence) => {
                let [a, b, c] = [0, 1, 2].map(|i| self.read[i].slice(..elements));
                let [d, e] = [0, 1].map(|i| self.written[i].slice(..elements));
                let (a, b, c, mut d, mut e) = (a?, b?, c?, d?, e?);
                let shape = (num_seqs, seq_len);
                self.bench.time_ms(|_| match pass {
                    Pass::Forward => {
                        let options = ForwardOptions::default();
                        recurrence.forward_into(&a, &b, &mut d, shape, options).map(drop)
                    }
                    Pass::Backward => {
                        let options = BackwardOptions::default();
                        recurrence
                            .backward_into(&a, &b, &c, &mut d, &mut e, shape, options)
                            .map(drop)
                    }
                })
            }
            Runner::Roof(roof) => self.roof_ms(*roof, pass, elements),
            Runner::Empty => self.empty_ms(num_seqs),
            Runner::Launch => self.empty_ms(1),
        }
    }
    // ANCHOR_END: time

    /// The same for a forward pass by whatever `run` queues: it is given inputs, coefficients, outputs and the
    /// stream.
    ///
    /// # Errors
    ///
    /// Those of `run`, or if the device fails.
    pub fn forward_ms(
        &mut self,
        elements: usize,
        run: impl FnOnce(&Buffer<S>, &Buffer<S>, &mut Buffer<S>, &Stream) -> Result<(), Error>,
    ) -> Result<f64, Error> {
        let [x, c] = [0, 1].map(|i| self.read[i].slice(..elements));
        let (x, c, mut y) = (x?, c?, self.written[0].slice(..elements)?);
        self.bench.time_ms(|stream| run(&x, &c, &mut y, stream))
    }

    fn roof_ms(&mut self, roof: Roof, pass: Pass, elements: usize) -> Result<f64, Error> {
        let bytes = elements * size_of::<S>();
        let pack = if roof == Roof::Singly { 4 } else { 16 };
        // Arrays that do not end with a whole word are measured without their last bytes.
        let packs = (bytes / pack).max(1);
        let Field { read: [a, b, c], written: [d, e], roofs, bench, .. } = self;
        let Some((_, functions)) = roofs.iter().find(|(other, _)| *other == roof) else {
            return Ok(f64::NAN);
        };
        let blocks = u32::try_from(packs.div_ceil(256)).unwrap_or(u32::MAX);
        let launch = match pass {
            Pass::Forward => functions[0].launch(blocks, 256).arg(&*a).arg(&*b).arg(d),
            Pass::Backward => {
                functions[1].launch(blocks, 256).arg(&*a).arg(&*b).arg(&*c).arg(d).arg(e)
            }
        };
        let launch = launch.arg(packs as i64);
        bench.time_ms(|stream| launch.run(stream).map(drop))
    }

    fn empty_ms(&mut self, blocks: usize) -> Result<f64, Error> {
        let blocks = u32::try_from(blocks.max(1)).unwrap_or(u32::MAX);
        let launch = self.empty.launch(blocks, 32);
        self.bench.time_ms(|stream| launch.run(stream).map(drop))
    }
}

/// How often a problem is run: where a run takes some microseconds, five times as often, since there the
/// times of launches vary.
pub fn runs_of(runs: usize, bytes: usize) -> usize {
    if bytes < 200_000_000 { 5 * runs } else { runs }
}

/// The bytes that a pass over arrays of so many elements has to read and write.
pub fn bytes(pass: Pass, elements: usize, element_bytes: usize) -> usize {
    pass.arrays() * elements * element_bytes
}

/// Why a kernel cannot be launched; `None` if it can.
///
/// # Errors
///
/// If the device fails.
// ANCHOR: refused
pub fn refused<S: Storage>(
    recurrence: &Recurrence<S>,
    pass: Pass,
    (num_seqs, seq_len): (usize, usize),
) -> Result<Option<String>, Error> {
    let function = recurrence.function(pass, Direction::Forward)?;
    let choice: KernelChoice = recurrence.choice();
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
    Ok((fits == Some(0)).then(|| String::from("a multiprocessor has no room for a block")))
}
// ANCHOR_END: refused

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
        for (roof, pack) in [(Roof::Words, "float4"), (Roof::Singly, "float")] {
            let function = |pass| module.function(&format!("elementwise_{pass}<{pack}>"));
            roofs.push((roof, [function("fwd")?, function("bwd")?]));
        }
    }
    // This one is not shipped, and nothing depends on it.
    let streaming = Program::new("chapters/09-tuning/src/streaming.cu", STREAMING);
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
            assert_eq!(field.roofs().next(), Some(Roof::Words));
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
    fn what_does_not_fit_is_refused_with_the_numbers() {
        let device = Device::simt();
        let choice =
            KernelChoice::Pipe(linrec::kernels::Config { memcode: 2, ..Default::default() });
        let recurrence = Recurrence::<f32>::new(&device, choice).unwrap();
        for pass in Pass::ALL {
            assert_eq!(refused(&recurrence, pass, (3, 4096)).unwrap(), None);
        }
    }

    #[test]
    fn short_problems_run_more_often() {
        assert_eq!(runs_of(9, bytes(Pass::Forward, 13_200 * 16, 4)), 45);
        assert_eq!(runs_of(9, bytes(Pass::Forward, 13_200 * 4096, 4)), 9);
        assert_eq!(bytes(Pass::Backward, 1000, 8), 40_000);
    }
}
