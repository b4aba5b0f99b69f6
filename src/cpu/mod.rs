//! The recurrence on a CPU.

use ndarray::{Array1, ArrayView2};

use crate::{Element, Engine, Error, Gradients, Options, Outputs, validate};

/// The engine behind [`forward`](crate::forward) and [`backward`](crate::backward).
#[derive(Debug, Clone, Default)]
pub struct Cpu {}

impl<T: Element> Engine<T> for Cpu {
    fn name(&self) -> &str {
        "cpu"
    }

    fn forward(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Outputs<T>, Error> {
        let (num_seqs, seq_len) = validate::forward(&inputs, &coeffs, options)?;
        let mut outputs = validate::allocate("forward", (num_seqs, seq_len))?;
        let mut final_state = options.initial.clone().unwrap_or_else(|| Array1::zeros(num_seqs));
        for row in 0..num_seqs {
            for step in 0..seq_len {
                let l = options.direction.position(step, seq_len);
                let c = coeffs[[row, l]];
                let c = if options.log_coeffs { c.exp() } else { c };
                final_state[row] = final_state[row] * c + inputs[[row, l]];
                outputs[[row, l]] = final_state[row];
            }
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
        let (num_seqs, seq_len) = validate::backward(&d_outputs, &coeffs, &outputs, options)?;
        let mut d_inputs = validate::allocate("backward", (num_seqs, seq_len))?;
        let mut d_coeffs = validate::allocate("backward", (num_seqs, seq_len))?;
        let mut d_initial = Array1::zeros(num_seqs);
        for row in 0..num_seqs {
            let mut carry = T::zero();
            for step in (0..seq_len).rev() {
                let l = options.direction.position(step, seq_len);
                let c = coeffs[[row, l]];
                let c = if options.log_coeffs { c.exp() } else { c };
                let delta: T = carry + d_outputs[[row, l]];
                let previous = match step {
                    0 => options.initial.as_ref().map_or(T::zero(), |initial| initial[row]),
                    _ => outputs[[row, options.direction.position(step - 1, seq_len)]],
                };
                let d_coeff = delta * previous.conj();
                carry = delta * c.conj();
                d_inputs[[row, l]] = delta;
                d_coeffs[[row, l]] = if options.log_coeffs { d_coeff * c.conj() } else { d_coeff };
            }
            d_initial[row] = carry;
        }
        Ok(Gradients { d_inputs, d_coeffs, d_initial })
    }
}
