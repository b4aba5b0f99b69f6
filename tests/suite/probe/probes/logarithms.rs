//! The kernels for coefficients given as logarithms: they work element by element, with an error of
//! a rounding or two.

use linrec::device::{Function, Job, Storage};
use linrec::{Element, Error};

use super::Ran;
use super::numbers::numbers;

/// The number of threads in a block: the grid has several blocks, and the last is not full.
const THREADS: u32 = 128;
const LEN: usize = 1000;

/// One of these kernels, by its name without the element type.
pub struct OfLogarithms<'a> {
    /// The kernel for the element type of the job.
    pub kernel: &'a Function,
    /// The name: `coeffs_from_logs`, and so on.
    pub base: &'a str,
}

impl Job for OfLogarithms<'_> {
    type Output = Result<Ran, Error>;

    fn run<S: Storage>(self) -> Result<Ran, Error> {
        let device = self.kernel.device();
        let wide = |seed| numbers::<S::Accum>(seed, LEN, 0.0, 2.0);
        let (a, b) = (wide(1), wide(3));
        let stored: Vec<S> = a.iter().map(|&number| S::narrow(number)).collect();
        let (on_device, logs) = ([device.upload(&a)?, device.upload(&b)?], device.upload(&stored)?);
        let (mut to_wide, mut to_stored) =
            (device.allocate::<S::Accum>(LEN)?, device.allocate::<S>(LEN)?);
        to_wide.poison()?;
        to_stored.poison()?;

        let launch = self.kernel.launch((LEN as u32).div_ceil(THREADS), THREADS);
        let launch = match self.base {
            "coeffs_from_logs" | "widened" => launch.arg(&logs).arg(&mut to_wide),
            "narrowed" => launch.arg(&on_device[0]).arg(&mut to_stored),
            _ => launch.arg(&on_device[0]).arg(&on_device[1]).arg(&mut to_stored),
        };
        let launched = launch.arg(LEN as i64).run(&device.stream())?;
        device.synchronize()?;

        let (to_wide, to_stored) = (to_wide.download()?, to_stored.download()?);
        let mut verdict = Ok(());
        for i in 0..LEN {
            let (got, expected) = match self.base {
                "coeffs_from_logs" => (to_wide[i], Element::exp(stored[i].widen())),
                "widened" => (to_wide[i], stored[i].widen()),
                "narrowed" => (to_stored[i].widen(), stored[i].widen()),
                _ => (to_stored[i].widen(), a[i] * Element::conj(b[i])),
            };
            let error = (got - expected).modulus();
            let roundings = 8.0 * <S::Accum as Element>::UNIT_ROUNDOFF + S::NARROWING.unit_roundoff;
            let bound = roundings * expected.modulus() + S::NARROWING.smallest;
            // In this form, NaN fails.
            let within = error <= bound;
            if !within && verdict.is_ok() {
                verdict = Err(format!("number {i} is {got} instead of {expected}"));
            }
        }
        Ok(Ran { counters: launched.counters().cloned(), verdict })
    }
}
