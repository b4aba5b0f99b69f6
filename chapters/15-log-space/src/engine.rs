//! Log space as an engine.

use linrec::contract::Domain;
use linrec::{Engine, Error, Gradients, Options, Outputs, validate};
use ndarray::{Array1, ArrayBase, ArrayView1, ArrayView2, Axis, Ix2, RawData};

use crate::{Order, Real, SignedLog, segments, two_sums};

/// The recurrence of real numbers by prefix sums of signed logarithms.
///
/// The sums restart at every zero and, with a reach, wherever `Σ |ln c|` would exceed it. The state
/// passes from segment to segment as a logarithm. The engine is for `f32` and `f64` only, not for
/// complex numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct LogSpace {
    name: String,
    order: Order,
    reach: f64,
}

impl LogSpace {
    /// Makes an engine with as few sums as possible: cut at zeros only.
    pub fn whole() -> Self {
        LogSpace { name: "log space".to_owned(), order: Order::Tree, reach: f64::INFINITY }
    }

    /// Makes an engine whose sums are over segments in which `Σ |ln c|` stays within `reach`.
    pub fn restarting(reach: f64) -> Self {
        LogSpace { name: format!("log space, reach {reach}"), order: Order::Tree, reach }
    }

    /// Sets the order of the prefix sums; the name mentions [`Order::InOrder`].
    pub fn with_order(self, order: Order) -> Self {
        let name = match order {
            Order::Tree => self.name,
            Order::InOrder => format!("{}, in order", self.name),
        };
        LogSpace { name, order, ..self }
    }

    /// Returns the order of the prefix sums.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Returns the largest `Σ |ln c|` before the sums restart.
    pub fn reach(&self) -> f64 {
        self.reach
    }

    /// Returns a domain with every case of real numbers: any length and any coefficients, including
    /// zeros. The precision depends on the data, so the engine computes its own
    /// [`ErrorBound`](linrec::contract::ErrorBound), see [`bound`](crate::bound).
    pub fn domain() -> Domain {
        Domain::default()
    }

    // ANCHOR: sequence
    /// One sequence, in log space, with one output for every pair of an input and a coefficient.
    pub fn sequence<T: Real>(
        &self,
        inputs: &[SignedLog<T>],
        coeffs: &[SignedLog<T>],
        initial: SignedLog<T>,
    ) -> Vec<SignedLog<T>> {
        let len = inputs.len().min(coeffs.len());
        let mut outputs = Vec::with_capacity(len);
        let mut state = initial;
        for segment in segments(&coeffs[..len], self.reach) {
            // The first coefficient of a segment may be zero, so it stays out of the sums.
            let mut coeffs = coeffs[segment.clone()].to_vec();
            let carry = coeffs[0].times(state);
            coeffs[0] = SignedLog::positive(T::zero()); // ln 1
            outputs.extend(two_sums(self.order, &inputs[segment], &coeffs, carry));
            state = outputs.last().copied().unwrap_or(state);
        }
        outputs
    }
    // ANCHOR_END: sequence
}

impl<T: Real> Engine<T> for LogSpace {
    fn name(&self) -> &str {
        &self.name
    }

    fn forward(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Outputs<T>, Error> {
        let shape = validate::forward(&inputs, &coeffs, options)?;
        let mut outputs = validate::allocate("forward", shape)?;
        let mut final_state = validate::initial_states("forward", options, shape.0)?;
        let (inputs, coeffs) = (walking(inputs, options), walking(coeffs, options));
        let mut walked = walking(outputs.view_mut(), options);
        for i in 0..shape.0 {
            let x: Vec<_> = inputs.row(i).iter().map(|&x| SignedLog::of(x)).collect();
            let c = coeff_logs(coeffs.row(i), options);
            let y = self.sequence(&x, &c, SignedLog::of(final_state[i]));
            walked.row_mut(i).iter_mut().zip(&y).for_each(|(to, y)| *to = y.value());
            final_state[i] = y.last().map_or(final_state[i], |y| y.value());
        }
        Ok(Outputs { outputs, final_state })
    }

    // ANCHOR: backward
    fn backward(
        &self,
        d_outputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        outputs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Gradients<T>, Error> {
        let shape @ (num_seqs, seq_len) =
            validate::backward(&d_outputs, &coeffs, &outputs, options)?;
        let mut d_inputs = validate::allocate("backward", shape)?;
        let mut d_coeffs = validate::allocate("backward", shape)?;
        let mut d_initial = Array1::zeros(num_seqs);
        let [dy, c, y] = [d_outputs, coeffs, outputs].map(|array| walking(array, options));
        let mut dx = walking(d_inputs.view_mut(), options);
        let mut dc = walking(d_coeffs.view_mut(), options);
        for i in 0..num_seqs {
            // δ^(x)_l = δ^(x)_{l+1} c_{l+1} + δ^(y)_l, from the last step to the first. The
            // coefficients exist already: the logarithms move by one place.
            let logs = coeff_logs(c.row(i), options);
            let back: Vec<_> = dy.row(i).iter().rev().map(|&d| SignedLog::of(d)).collect();
            let zero = SignedLog::of(T::zero());
            let next: Vec<_> = std::iter::once(zero).chain(logs.iter().rev().copied()).collect();
            let delta = self.sequence(&back, &next, zero);

            let initial = options.initial.as_ref().map_or(T::zero(), |initial| initial[i]);
            let plain = |l: usize| if options.log_coeffs { logs[l].value() } else { c[[i, l]] };
            for (l, delta) in delta.iter().rev().map(|delta| delta.value()).enumerate() {
                dx[[i, l]] = delta;
                // δ^(c)_l = y_{l-1} δ^(x)_l, and for ln c it is c_l times as large.
                let previous = if l == 0 { initial } else { y[[i, l - 1]] };
                let d_coeff = previous * delta;
                dc[[i, l]] = if options.log_coeffs { d_coeff * plain(l) } else { d_coeff };
            }
            if seq_len > 0 {
                d_initial[i] = plain(0) * dx[[i, 0]];
            }
        }
        Ok(Gradients { d_inputs, d_coeffs, d_initial })
    }
    // ANCHOR_END: backward
}

/// Turns an array `[num_seqs, seq_len]` so that each row is in the order of the recurrence.
fn walking<S: RawData, T>(mut array: ArrayBase<S, Ix2>, options: &Options<T>) -> ArrayBase<S, Ix2> {
    if options.direction == linrec::Direction::Reverse {
        array.invert_axis(Axis(1));
    }
    array
}

/// Returns the coefficients of a row in log space, for either form in which they were given.
pub(crate) fn coeff_logs<T: Real>(
    coeffs: ArrayView1<T>,
    options: &Options<T>,
) -> Vec<SignedLog<T>> {
    let pack = |&c: &T| if options.log_coeffs { SignedLog::positive(c) } else { SignedLog::of(c) };
    coeffs.iter().map(pack).collect()
}
