//! Compares a GPU with the emulator word by word, for every shipped kernel; any NaN equals any NaN.
//!
//! If the environment variable `LINREC_RECORD` names a folder, the test writes `bits.csv` there;
//! `LINREC_DRIVER` and `LINREC_DATE` give the driver and the day in it. The other tests of this
//! file make sure that the comparison itself would notice a difference, and that it covers every
//! kind of case.

use std::fmt;
use std::path::Path;

use crate::device::gpus;
use half::{bf16, f16};
use linrec::contract::{self, Case, CoeffKind, Domain, InputKind, Layout};
use linrec::device::{Device, KernelEngine, Storage, driver};
use linrec::kernels::{ElementType, KernelChoice};
use linrec::{Direction, Engine, Error, Gradients, Outputs};
use num_complex::Complex;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;

/// The number of cases from the contract's table, and the number of cases with other shapes.
const FROM_TABLE: usize = 300;
const OTHERS: usize = 240;

#[test]
#[ignore = "needs a GPU"]
fn gpus_give_the_bits_of_the_emulator() {
    let mut rows = Vec::new();
    for gpu in &gpus() {
        let cases = cases();
        rows.extend(compare_all::<f32>(gpu, &cases).unwrap());
        rows.extend(compare_all::<f64>(gpu, &cases).unwrap());
        rows.extend(compare_all::<bf16>(gpu, &cases).unwrap());
        rows.extend(compare_all::<f16>(gpu, &cases).unwrap());
        rows.extend(compare_all::<Complex<f32>>(gpu, &cases).unwrap());
        rows.extend(compare_all::<Complex<f64>>(gpu, &cases).unwrap());
    }
    for row in &rows {
        println!("{row}");
    }
    if let Some(folder) = std::env::var_os("LINREC_RECORD") {
        write(&rows, Path::new(&folder)).unwrap();
    }
    let first = rows.iter().find_map(|row| row.first.as_ref());
    assert!(first.is_none(), "{}", first.unwrap());
}

#[test]
fn every_kind_of_coefficients_is_drawn_often_enough() {
    let cases = cases();
    assert_eq!(cases.len(), FROM_TABLE + OTHERS);
    for kind in CoeffKind::ALL {
        for direction in [Direction::Forward, Direction::Reverse] {
            let drawn = |case: &&Case| case.coeffs == kind && case.direction == direction;
            let count = cases.iter().filter(drawn).count();
            assert!(count >= 10, "{kind:?}, {direction:?}: {count} cases");
        }
    }
}

#[test]
fn every_kernel_takes_many_cases() {
    let cases = cases();
    for choice in KernelChoice::shipped(ElementType::F32) {
        let engine = KernelEngine::<f32>::new(&Device::simt(), choice).unwrap();
        let taken = taken(&engine.domain(), &cases);
        let many = taken.iter().filter(|case| case.num_seqs > 17).count();
        assert!(taken.len() >= 200 && many >= 20, "{} for {choice}", taken.len());
    }
}

#[test]
fn a_single_bit_is_noticed_and_nan_is_nan() {
    let mut row = Row::new::<f32>("cuda:0", "NVIDIA", "ref", "forward", Direction::Forward);
    let case = &cases()[0];
    let quiet = f32::from_bits(0x7fc0_0001);
    row.add(case, "outputs", &[1.0, -0.0, f32::NAN], &[1.0, -0.0, quiet]);
    assert_eq!((row.words, row.different), (3, 0));
    row.add(case, "outputs", &[0.0_f32], &[-0.0]);
    row.add(case, "outputs", &[1.0, f32::NAN], &[1.0 + f32::EPSILON, 1.0]);
    assert_eq!((row.words, row.different), (6, 3));
    let first = row.first.unwrap();
    assert!(first.contains("word 0 of outputs is 0x80000000 (-0)"), "{first}");
    assert!(first.contains("0x0 (0) on the emulator"), "{first}");
}

/// Returns the cases of the comparison: some from the contract's table, and some with other shapes.
/// They are the same in every run.
fn cases() -> Vec<Case> {
    let mut random = StdRng::seed_from_u64(2026);
    let mut cases = contract::cases(64);
    cases.retain(|case| case.num_seqs > 0 && (1..=4093).contains(&case.seq_len));
    cases.shuffle(&mut random);
    cases.truncate(FROM_TABLE);
    for number in 0..OTHERS {
        let num_seqs = random.random_range(1..=300);
        // Mostly short enough for the kernels that take only short sequences.
        let most = [16, 16, 128, 4093][number % 4];
        let coeffs = CoeffKind::ALL[random.random_range(0..CoeffKind::ALL.len())];
        cases.push(Case {
            num_seqs,
            seq_len: random.random_range(1..=most.min(200_000 / num_seqs)),
            direction: [Direction::Forward, Direction::Reverse][random.random_range(0..2)],
            initial: random.random_range(0..2) == 1,
            coeffs,
            log_coeffs: coeffs.has_log() && random.random(),
            inputs: [InputKind::Dense, InputKind::Sparse][random.random_range(0..2)],
            layout: Layout::Standard,
        });
    }
    cases
}

/// Returns the cases that a kernel takes, at lengths that it takes. Growing numbers are allowed,
/// since they overflow alike on both sides.
fn taken(domain: &Domain, cases: &[Case]) -> Vec<Case> {
    let domain = Domain { growing: true, ..domain.clone() };
    cases.iter().filter_map(|case| domain.fitted(case)).collect()
}

/// The comparison of one pass of one element type in one direction.
struct Row {
    device: String,
    machine: String,
    kernel: String,
    element: &'static str,
    pass: &'static str,
    direction: Direction,
    cases: usize,
    words: usize,
    different: usize,
    /// The first difference, as a sentence.
    first: Option<String>,
}

impl Row {
    fn new<S: Storage>(
        device: &str,
        machine: &str,
        kernel: &str,
        pass: &'static str,
        direction: Direction,
    ) -> Row {
        let [device, machine, kernel] = [device, machine, kernel].map(str::to_owned);
        let (element, cases, words, different, first) = (S::ELEMENT.rust_name(), 0, 0, 0, None);
        Row { device, machine, kernel, element, pass, direction, cases, words, different, first }
    }

    fn add<'a, T: Words + 'a>(
        &mut self,
        case: &Case,
        array: &str,
        emulator: impl IntoIterator<Item = &'a T>,
        gpu: impl IntoIterator<Item = &'a T>,
    ) {
        let (emulator, gpu) = (words(emulator), words(gpu));
        assert_eq!(emulator.len(), gpu.len(), "{array} of {case}");
        self.words += gpu.len();
        for (index, (emulator, gpu)) in emulator.iter().zip(&gpu).enumerate() {
            if emulator.equals(gpu) {
                continue;
            }
            self.different += 1;
            self.first.get_or_insert_with(|| {
                format!(
                    "{}, {}, {}: word {index} of {array} is {gpu} on {}, and {emulator} on the \
                     emulator, in the case {case}",
                    self.kernel, self.element, self.pass, self.device
                )
            });
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { device, machine, kernel, element, pass, direction, .. } = self;
        write!(f, "{device} ({machine}), {kernel}, {element}, {pass}, {direction:?}: ")?;
        let Row { cases, words, different, .. } = self;
        write!(f, "{cases} cases, {words} words, {different} different")
    }
}

/// Compares every kernel shipped for the type, several at a time: a kernel whose blocks wait for
/// each other keeps only one core busy.
fn compare_all<S: Storage>(gpu: &Device, cases: &[Case]) -> Result<Vec<Row>, Error>
where
    S::Accum: Words,
{
    let choices: Vec<_> = KernelChoice::shipped(S::ELEMENT).collect();
    let rows: Result<Vec<_>, Error> =
        choices.into_par_iter().map(|choice| compare::<S>(gpu, choice, cases)).collect();
    Ok(rows?.into_iter().flatten().collect())
}

fn compare<S: Storage>(
    gpu: &Device,
    choice: KernelChoice,
    cases: &[Case],
) -> Result<Vec<Row>, Error>
where
    S::Accum: Words,
{
    let on_gpu = KernelEngine::<S>::new(gpu, choice)?;
    let emulated = KernelEngine::<S>::new(&Device::simt(), choice)?;
    let cases = taken(&on_gpu.domain(), cases);
    let mut rows = Vec::new();
    for direction in [Direction::Forward, Direction::Reverse] {
        let kernel = choice.to_string();
        let row = |pass| Row::new::<S>(gpu.label(), gpu.name(), &kernel, pass, direction);
        let (mut forward, mut backward) = (row("forward"), row("backward"));
        for case in cases.iter().filter(|case| case.direction == direction) {
            let data = case.data::<S::Accum>();
            let (inputs, coeffs, options) = (data.inputs.view(), data.coeffs(), &data.options);
            let expected = emulated.forward(inputs, coeffs, options)?;
            let Outputs { outputs, final_state } = on_gpu.forward(inputs, coeffs, options)?;
            forward.add(case, "outputs", &expected.outputs, &outputs);
            forward.add(case, "final_state", &expected.final_state, &final_state);
            forward.cases += 1;

            let (d_outputs, outputs) = (data.d_outputs.view(), expected.outputs.view());
            let expected = emulated.backward(d_outputs, coeffs, outputs, options)?;
            let got = on_gpu.backward(d_outputs, coeffs, outputs, options)?;
            let Gradients { d_inputs, d_coeffs, d_initial } = got;
            backward.add(case, "d_inputs", &expected.d_inputs, &d_inputs);
            backward.add(case, "d_coeffs", &expected.d_coeffs, &d_coeffs);
            backward.add(case, "d_initial", &expected.d_initial, &d_initial);
            backward.cases += 1;
        }
        rows.extend([forward, backward]);
    }
    Ok(rows)
}

struct Word {
    bits: u64,
    value: f64,
}

impl Word {
    fn equals(&self, other: &Word) -> bool {
        self.bits == other.bits || (self.value.is_nan() && other.value.is_nan())
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x} ({})", self.bits, self.value)
    }
}

/// A number that consists of words.
trait Words {
    fn append_to(&self, words: &mut Vec<Word>);
}

impl Words for f32 {
    fn append_to(&self, words: &mut Vec<Word>) {
        words.push(Word { bits: self.to_bits().into(), value: (*self).into() });
    }
}

impl Words for f64 {
    fn append_to(&self, words: &mut Vec<Word>) {
        words.push(Word { bits: self.to_bits(), value: *self });
    }
}

impl<R: Words> Words for Complex<R> {
    fn append_to(&self, words: &mut Vec<Word>) {
        self.re.append_to(words);
        self.im.append_to(words);
    }
}

fn words<'a, T: Words + 'a>(numbers: impl IntoIterator<Item = &'a T>) -> Vec<Word> {
    let mut words = Vec::new();
    for number in numbers {
        number.append_to(&mut words);
    }
    words
}

/// Writes the rows as `bits.csv` into `folder`, with machine, driver and date.
fn write(rows: &[Row], folder: &Path) -> std::io::Result<()> {
    let driver = std::env::var("LINREC_DRIVER").unwrap_or_else(|_| match driver() {
        Ok(driver) => format!("CUDA {}.{}", driver.cuda_version.0, driver.cuda_version.1),
        Err(_) => "unknown".to_owned(),
    });
    let date = std::env::var("LINREC_DATE").unwrap_or_else(|_| "unknown".to_owned());
    let mut text = String::from(
        "device,kernel,element,pass,direction,cases,words,different,machine,driver,date\n",
    );
    for row in rows {
        let Row { device, machine, kernel, element, pass, direction, .. } = row;
        let Row { cases, words, different, .. } = row;
        let direction = format!("{direction:?}").to_lowercase();
        text += &format!(
            "{device},{kernel},{element},{pass},{direction},{cases},{words},{different},{machine},\
             {driver},{date}\n"
        );
    }
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("bits.csv"), text)
}
