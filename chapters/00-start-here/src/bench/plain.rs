//! The plain loop: what one writes first, and the measure of what the engine adds.

/// `y_l = y_{l-1} * c_l + x_l`, one step after the other.
pub fn forward(inputs: &[f32], coeffs: &[f32], outputs: &mut [f32]) {
    let mut state = 0.0;
    for ((&input, &coeff), output) in inputs.iter().zip(coeffs).zip(outputs) {
        state = state * coeff + input;
        *output = state;
    }
}

/// The gradients of inputs and coefficients, one step after the other from the end.
pub fn backward(
    d_outputs: &[f32],
    coeffs: &[f32],
    outputs: &[f32],
    d_inputs: &mut [f32],
    d_coeffs: &mut [f32],
) {
    let given = d_outputs.iter().zip(coeffs).rev();
    let previous = outputs.iter().rev().skip(1).chain([&0.0]);
    let results = d_inputs.iter_mut().zip(d_coeffs);
    let mut carry = 0.0;
    for (((&d_output, &coeff), &previous), (d_input, d_coeff)) in
        given.zip(previous).zip(results.rev())
    {
        let delta = carry + d_output;
        *d_input = delta;
        *d_coeff = delta * previous;
        carry = delta * coeff;
    }
}
