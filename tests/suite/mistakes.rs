//! The contract must be able to fail: it catches engines with one planted mistake each.

use linrec::contract::{self, Domain};
use linrec::{Element, Engine, Error, Gradients, Options, Outputs, validate};
use ndarray::{Array1, ArrayView2};
use num_complex::Complex;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mistake {
    Nothing,
    /// The carry from one tile of 64 elements to the next is lost.
    LostCarry,
    /// The carry from one tile to the next goes through a narrower type.
    NarrowCarry,
    IgnoredInitial,
    IgnoredDirection,
    /// The last element of a row is not written if the length is odd.
    MissingTail,
    /// The state of one row becomes the initial state of the next.
    LeakBetweenRows,
    /// An exact zero coefficient does not reset the state.
    EpsilonInsteadOfZero,
    InitialAsFinalState,
    /// The gradient of logarithms uses the shifted coefficients, as in the post's repository.
    ShiftedLogGradient,
    MissingConjugate,
    /// The gradient of a coefficient uses the output at its own place instead of the one before.
    UnshiftedOutputs,
    /// Strides are ignored: the elements of a row count as consecutive in memory.
    IgnoredStrides,
    /// Shapes that do not match are cut to their common part.
    UncheckedShapes,
}

struct Mistaken(Mistake);

impl Mistaken {
    fn coeff<T: Element>(&self, coeffs: ArrayView2<T>, row: usize, l: usize, log: bool) -> T {
        let ignored = self.0 == Mistake::IgnoredStrides;
        let coeff = match coeffs.as_slice_memory_order() {
            Some(memory) if ignored && memory.len() == coeffs.len() => {
                memory[row * coeffs.ncols() + l]
            }
            _ => coeffs[[row, l]],
        };
        let coeff = if log { coeff.exp() } else { coeff };
        match self.0 {
            Mistake::EpsilonInsteadOfZero if coeff.is_zero() => T::from_real(1e-6),
            _ => coeff,
        }
    }

    fn initial<T: Element>(&self, options: &Options<T>, row: usize) -> T {
        match &options.initial {
            Some(initial) if self.0 != Mistake::IgnoredInitial => initial[row],
            _ => T::zero(),
        }
    }

    fn position<T>(&self, options: &Options<T>, step: usize, seq_len: usize) -> usize {
        match self.0 {
            Mistake::IgnoredDirection => step,
            _ => options.direction.position(step, seq_len),
        }
    }

    fn carry<T: Element>(&self, state: T, step: usize) -> T {
        match self.0 {
            Mistake::LostCarry if step.is_multiple_of(64) => T::zero(),
            Mistake::NarrowCarry if step.is_multiple_of(64) => {
                // The error of rounding to f16.
                state * T::from_real(1.0 + 1.0 / 4096.0)
            }
            _ => state,
        }
    }
}

impl<T: Element> Engine<T> for Mistaken {
    fn name(&self) -> &str {
        "mistaken"
    }

    fn forward(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Outputs<T>, Error> {
        let (num_seqs, seq_len) = match self.0 {
            Mistake::UncheckedShapes => (inputs.nrows(), inputs.ncols().min(coeffs.ncols())),
            _ => validate::forward(&inputs, &coeffs, options)?,
        };
        let mut outputs = validate::allocate("forward", (num_seqs, seq_len))?;
        let mut final_state = Array1::zeros(num_seqs);
        let mut leak = T::zero();
        for row in 0..num_seqs {
            let mut state = self.initial(options, row);
            if self.0 == Mistake::LeakBetweenRows {
                state = state + leak;
            }
            for step in 0..seq_len {
                let l = self.position(options, step, seq_len);
                let coeff = self.coeff(coeffs, row, l, options.log_coeffs);
                state = self.carry(state, step) * coeff + inputs[[row, l]];
                let skip = self.0 == Mistake::MissingTail && l + 1 == seq_len && seq_len % 2 == 1;
                outputs[[row, l]] = if skip { T::nan() } else { state };
            }
            leak = state;
            final_state[row] = match self.0 {
                Mistake::InitialAsFinalState => self.initial(options, row),
                _ => state,
            };
        }
        Ok(Outputs { outputs, final_state })
    }

    fn backward(
        &self,
        d_outputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        outputs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Gradients<T>, Error> {
        let (num_seqs, seq_len) = match self.0 {
            Mistake::UncheckedShapes => d_outputs.dim(),
            _ => validate::backward(&d_outputs, &coeffs, &outputs, options)?,
        };
        let mut gradients = Gradients {
            d_inputs: validate::allocate("backward", (num_seqs, seq_len))?,
            d_coeffs: validate::allocate("backward", (num_seqs, seq_len))?,
            d_initial: Array1::zeros(num_seqs),
        };
        let conj = |value: T| match self.0 {
            Mistake::MissingConjugate => value,
            _ => value.conj(),
        };
        for row in 0..num_seqs {
            let (mut carry, mut later) = (T::zero(), T::zero());
            for step in (0..seq_len).rev() {
                let l = self.position(options, step, seq_len);
                let coeff = self.coeff(coeffs, row, l, options.log_coeffs);
                let delta = self.carry(carry, step) + d_outputs[[row, l]];
                let previous = match step {
                    _ if self.0 == Mistake::UnshiftedOutputs => outputs[[row, l]],
                    0 => self.initial(options, row),
                    _ => outputs[[row, self.position(options, step - 1, seq_len)]],
                };
                let factor = match (options.log_coeffs, self.0) {
                    (false, _) => T::one(),
                    (true, Mistake::ShiftedLogGradient) => later,
                    (true, _) => coeff,
                };
                gradients.d_inputs[[row, l]] = delta;
                gradients.d_coeffs[[row, l]] = delta * conj(previous) * conj(factor);
                carry = delta * conj(coeff);
                later = coeff;
            }
            gradients.d_initial[row] = carry;
        }
        Ok(gradients)
    }
}

fn domain() -> Domain {
    Domain { max_len: 100, ..Domain::default() }.as_asked()
}

fn failures<T: Element>(mistake: Mistake) -> usize {
    contract::run::<T>(&Mistaken(mistake), &domain()).failures.len()
}

/// Returns true if a case of the table fails; the remaining cases do not run then.
fn is_caught<T: Element>(mistake: Mistake) -> bool {
    let (engine, domain) = (Mistaken(mistake), domain());
    domain.cases().iter().any(|case| contract::check::<T>(&engine, &domain, case).is_err())
}

#[test]
fn an_engine_without_mistakes_passes() {
    assert_eq!(failures::<f32>(Mistake::Nothing), 0);
    assert_eq!(failures::<f64>(Mistake::Nothing), 0);
    assert_eq!(failures::<Complex<f32>>(Mistake::Nothing), 0);
    assert_eq!(failures::<Complex<f64>>(Mistake::Nothing), 0);
}

#[test]
fn every_mistake_is_caught() {
    use Mistake::*;
    for mistake in [
        LostCarry,
        NarrowCarry,
        IgnoredInitial,
        IgnoredDirection,
        MissingTail,
        LeakBetweenRows,
        EpsilonInsteadOfZero,
        InitialAsFinalState,
        ShiftedLogGradient,
        UnshiftedOutputs,
        IgnoredStrides,
    ] {
        assert!(is_caught::<f32>(mistake), "{mistake:?} passed in f32");
        assert!(is_caught::<f64>(mistake), "{mistake:?} passed in f64");
    }
    assert!(is_caught::<Complex<f32>>(MissingConjugate));
    // A mistake that no case of the table shows: the contract tests it after them.
    assert_eq!([failures::<f32>(UncheckedShapes), failures::<f64>(UncheckedShapes)], [1, 1]);
}
