//! The solutions of the page's exercises.

/// Returns the number of bytes that move for each step of a channel with `states` states of `each`
/// bytes: unfused, and fused. `D` and a gate are included; arrays that channels share are not.
// ANCHOR: bytes
pub fn bytes(states: usize, each: usize) -> (usize, usize) {
    // u and delta are read, coefficients and inputs written.
    let expand = 2 + 2 * states;
    // Two arrays are read, one is written.
    let recurrence = 3 * states;
    // The states, u and z are read, the outputs written.
    let contract = states + 3;
    (each * (expand + recurrence + contract), each * 4)
}
// ANCHOR_END: bytes

/// Returns the number of states at which issuing instructions takes as long as moving bytes.
///
/// For each output, memory moves `bytes` at `gb_per_s`, and each state takes `places` of the lanes
/// that a GPU with `sms` multiprocessors of `clock_ghz` issues: 128 in a clock of each.
// ANCHOR: crossing
pub fn crossing(bytes: f64, gb_per_s: f64, places: f64, sms: f64, clock_ghz: f64) -> f64 {
    let (memory_ns, state_ns) = (bytes / gb_per_s, places / (128.0 * sms * clock_ghz));
    memory_ns / state_ns
}
// ANCHOR_END: crossing

/// Returns the decays of a channel with the rates -1, -2, -3 and so on, from a single exponential.
// ANCHOR: powers
pub fn powers<const N: usize>(d: f32) -> [f32; N] {
    let first = (-d).exp();
    let mut decays = [first; N];
    for n in 1..N {
        // A product of the two halves, so that errors do not accumulate.
        decays[n] = decays[(n - 1) / 2] * decays[n / 2];
    }
    decays
}
// ANCHOR_END: powers

/// Returns the gradients of a loss with respect to the inputs and coefficients of a recurrence that
/// begins at zero, from the gradient of the outputs. Of the forward pass it keeps one state for
/// every `every` steps.
// ANCHOR: checkpoints
pub fn gradients(
    inputs: &[f32],
    coeffs: &[f32],
    d_outputs: &[f32],
    every: usize,
) -> (Vec<f32>, Vec<f32>) {
    let every = every.max(1);
    let mut kept = Vec::new();
    let mut state = 0.0_f32;
    for (l, (x, c)) in inputs.iter().zip(coeffs).enumerate() {
        if l % every == 0 {
            kept.push(state);
        }
        state = state.mul_add(*c, *x);
    }
    let (mut d_inputs, mut d_coeffs) = (vec![0.0; inputs.len()], vec![0.0; inputs.len()]);
    let mut carry = 0.0_f32;
    for (chunk, &before) in kept.iter().enumerate().rev() {
        let steps = chunk * every..inputs.len().min((chunk + 1) * every);
        // The states before each step, computed again.
        let mut states = vec![before];
        for l in steps.clone() {
            states.push(states[states.len() - 1].mul_add(coeffs[l], inputs[l]));
        }
        for l in steps.rev() {
            let d_state = carry + d_outputs[l];
            d_inputs[l] = d_state;
            d_coeffs[l] = d_state * states[l - chunk * every];
            carry = d_state * coeffs[l];
        }
    }
    (d_inputs, d_coeffs)
}
// ANCHOR_END: checkpoints

#[cfg(test)]
mod tests {
    use super::*;
    use ch13_mamba::on_device::Traffic;

    #[test]
    fn bytes_match_the_traffic_of_chapter_13() {
        for states in [1, 8, 16, 64] {
            for each in [2, 4] {
                let unfused = Traffic::of_passes(states, true, true, each);
                let unfused = unfused.iter().map(Traffic::all).sum::<usize>();
                assert_eq!(bytes(states, each), (unfused, Traffic::fused(true, each).all()));
            }
        }
        assert_eq!(bytes(16, 4), (404, 16));
    }

    #[test]
    fn memory_and_issue_cross_at_some_number_of_states() {
        // 16 bytes at 16 GB/s take a nanosecond, in which one SM of 1 GHz issues 128 lanes.
        assert_eq!(crossing(16.0, 16.0, 8.0, 1.0, 1.0), 16.0);
    }

    #[test]
    fn powers_of_one_decay_replace_all_exponentials() {
        for d in [0.0_f32, 1e-3, 0.1, 1.0, 5.0] {
            let decays = powers::<16>(d);
            for (n, decay) in decays.into_iter().enumerate() {
                let exact = (-f64::from(d) * (n + 1) as f64).exp();
                // Each of n + 1 factors has its own error, and the errors of n products at most.
                let bound = (2 * n + 2) as f64 * f64::from(f32::EPSILON) * exact + 1e-37;
                assert!((f64::from(decay) - exact).abs() <= bound, "{d}, {n}");
            }
        }
    }

    #[test]
    fn checkpoints_change_no_bit() {
        let draw = |seed: u32, low: f32, high: f32| -> Vec<f32> {
            let random = |i: u32| (i.wrapping_mul(seed) >> 8) as f32 / (1 << 24) as f32;
            (1..101).map(|i| low + (high - low) * random(i)).collect()
        };
        let (x, c, d) = (
            draw(2_654_435_761, -1.0, 1.0),
            draw(2_246_822_519, 0.9, 1.0),
            draw(3_266_489_917, -1.0, 1.0),
        );
        let all = gradients(&x, &c, &d, 1);
        for every in [2, 8, 33, 100, 1000] {
            assert_eq!(gradients(&x, &c, &d, every), all);
        }
        // Compared with finite differences.
        let loss = |c: &[f32]| {
            let mut state = 0.0_f64;
            let mut loss = 0.0;
            for l in 0..x.len() {
                state = state * f64::from(c[l]) + f64::from(x[l]);
                loss += state * f64::from(d[l]);
            }
            loss
        };
        for l in [1, 50, 99] {
            let (mut up, mut down) = (c.clone(), c.clone());
            up[l] += 1e-3;
            down[l] -= 1e-3;
            let slope = (loss(&up) - loss(&down)) / f64::from(up[l] - down[l]);
            assert!((slope - f64::from(all.1[l])).abs() < 1e-3 * (1.0 + slope.abs()), "{l}");
        }
        assert_eq!(gradients(&[], &[], &[], 8), (vec![], vec![]));
    }
}
