//! The kernel's bits, from its own order of operations on the host, and the contract.

use ch05_ref_kernel::fused::fused;
use linrec::contract::{self, Domain, Report};
use linrec::device::{Device, KernelEngine, Storage};
use linrec::kernels::Pass;
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::reference::{self, Rounding};
use linrec::{Element, Engine, Options};
use ndarray::Array2;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::layout::shares;
use crate::levels::scan_tile;
use crate::stages::CHOICE;

/// The longest sequence of the contract's table that runs here; the tests run them all.
const MAX_LEN: usize = 257;

/// Compares bit by bit, and holds the kernel to the contract.
pub fn bits(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("bits", "Bit by bit")?;
    let shape @ (num_seqs, seq_len) = lesson.size((100, 1000), (13_200, 1000));
    lesson.say(&format!(
        "{num_seqs} sequences of {seq_len}, coefficients in [0.9, 1). `scan_tile` are the three levels in Rust, in the \
         kernel's order; `fused` is the loop that has the bits of chapter 5's kernel.",
    ));
    let header = ["element", "outputs", "unlike scan_tile", "unlike fused", "error / bound"];
    let mut table = Table::new(header);
    let singles = compare::<f32>(device, shape, &mut table)?;
    let doubles = compare::<f64>(device, shape, &mut table)?;
    lesson.table("bits.csv", Kind::Computed, &table)?;
    let unlike = singles.unlike_levels + doubles.unlike_levels;
    lesson.check("words that differ from scan_tile", unlike as f64, 0.0);
    lesson.check("largest error / bound", singles.worst.max(doubles.worst), 1.0);
    let outputs = (num_seqs * seq_len) as f64;
    let share = 100.0 * singles.unlike_fused as f64 / outputs;
    lesson.value("unlike_fused", format!("{share:.0} %"), Kind::Computed);
    lesson.value("mean_tile", format!("{:.2e}", singles.means[0]), Kind::Computed);
    lesson.value("mean_fused", format!("{:.2e}", singles.means[1]), Kind::Computed);
    if !device.is_simt() {
        let unlike = singles.unlike_emulator + doubles.unlike_emulator;
        lesson.check("words that differ between GPU and emulator", unlike as f64, 0.0);
    }

    lesson.say(&format!("The contract, up to {MAX_LEN} steps here:"));
    let mut table = Table::new(["element", "cases", "error / bound", "failed"]);
    let reports = [contract_of::<f32>(device)?, contract_of::<f64>(device)?];
    for report in &reports {
        table.row([
            report.element.to_owned(),
            report.cases.to_string(),
            format!("{:.2}", report.worst),
            report.failures.len().to_string(),
        ]);
    }
    lesson.table("contract.csv", Kind::Computed, &table)?;
    let failed: usize = reports.iter().map(|report| report.failures.len()).sum();
    lesson.check("the contract, cases that failed", failed as f64, 0.0);
    Ok(())
}

/// How many outputs of the kernel are unlike the others'.
struct Unlike {
    unlike_levels: usize,
    unlike_fused: usize,
    unlike_emulator: usize,
    /// The kernel's largest error, in units of its bound.
    worst: f64,
    /// The mean error of the kernel, and of the loop.
    means: [f64; 2],
}

fn compare<T: Element + Storage<Accum = T>>(
    device: &Device,
    shape @ (_, seq_len): (usize, usize),
    table: &mut Table,
) -> lesson::Result<Unlike> {
    let mut rng = StdRng::seed_from_u64(61);
    let mut draw = |low: f64, high: f64| {
        Array2::from_shape_simple_fn(shape, || T::from_real(rng.random_range(low..high)))
    };
    let (inputs, coeffs) = (draw(-1.0, 1.0), draw(0.9, 1.0));
    let (x, c, options) = (inputs.view(), coeffs.view(), Options::default());
    let run = |device: &Device| KernelEngine::<T>::new(device, CHOICE)?.forward(x, c, &options);
    let kernel = run(device)?.outputs;

    let threads = CHOICE.geometry(T::ELEMENT, Pass::Forward, 1, seq_len as u64).threads as usize;
    let shares = shares(seq_len, threads);
    let rows = inputs.rows().into_iter().zip(coeffs.rows());
    let levels = rows.flat_map(|(x, c)| scan_tile(&x.to_vec(), &c.to_vec(), T::zero(), &shares, 4));
    let once = fused(x, c, &options)?.outputs;
    let exact = reference::forward(x, c, &options)?.outputs;
    let rounding = Rounding { levels: Domain::tree_levels(seq_len), exp_ulps: 0.0 };
    let bound = reference::forward_bound(x, c, &options, rounding)?.outputs;
    let errors = |outputs: &Array2<T>| -> Vec<f64> {
        let pairs = outputs.iter().zip(&exact);
        pairs.map(|(y, exact)| (Element::widen(*y) - *exact).modulus()).collect()
    };
    let mean = |outputs: &Array2<T>| errors(outputs).iter().sum::<f64>() / outputs.len() as f64;
    let of_bound = errors(&kernel).into_iter().zip(&bound).map(|(error, bound)| error / bound);
    let unlike = |outputs: &mut dyn Iterator<Item = T>| {
        kernel.iter().zip(outputs).filter(|(a, b)| **a != *b).count()
    };
    let found = Unlike {
        unlike_levels: unlike(&mut levels.into_iter()),
        unlike_fused: unlike(&mut once.iter().copied()),
        unlike_emulator: unlike(&mut run(&Device::simt())?.outputs.iter().copied()),
        worst: of_bound.fold(0.0, f64::max),
        means: [&kernel, &once].map(mean),
    };
    table.row([
        T::NAME.to_owned(),
        kernel.len().to_string(),
        found.unlike_levels.to_string(),
        found.unlike_fused.to_string(),
        format!("{:.3}", found.worst),
    ]);
    Ok(found)
}

fn contract_of<T: Element + Storage<Accum = T>>(device: &Device) -> lesson::Result<Report> {
    let engine = KernelEngine::<T>::new(device, CHOICE)?;
    let domain = Domain { max_len: MAX_LEN, ..engine.domain() };
    Ok(contract::run::<T>(&engine, &domain))
}
