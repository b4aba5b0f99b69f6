//! Checks that a configuration is right before its speed is measured.

use linrec::contract::{Case, CoeffKind, InputKind, Layout, Stored};
use linrec::device::{Device, KernelEngine, Storage};
use linrec::kernels::KernelChoice;
use linrec::reference::{self, Rounding};
use linrec::{Direction, Element, Engine, Error};
use ndarray::{Array, Dimension};

/// Returns the largest error over a few problems, forward and backward and in both directions, in
/// units of the bound that is derived for each result. A value up to 1 is right; NaN counts as
/// infinite.
///
/// The lengths depend on the configuration. If the kernel supports several tiles, they are just
/// past one tile and just past three, so that a lost carry shows; otherwise a full tile and a
/// shorter one.
///
/// # Errors
///
/// Returns an error if the kernel is not available or fails.
// ANCHOR: judge
pub fn worst<S: Storage>(device: &Device, choice: KernelChoice) -> Result<f64, Error> {
    let engine = KernelEngine::<S>::new(device, choice)?;
    let mut worst = 0.0_f64;
    let multiple = choice.multiple_of(S::ELEMENT) as usize;
    for seq_len in lengths(choice.max_len(S::ELEMENT), engine.domain().tile, multiple) {
        for (direction, coeffs) in
            [(Direction::Forward, CoeffKind::NearOne), (Direction::Reverse, CoeffKind::Signed)]
        {
            let case = Case {
                num_seqs: 17,
                seq_len,
                direction,
                initial: true,
                coeffs,
                log_coeffs: false,
                inputs: InputKind::Dense,
                layout: Layout::Standard,
            };
            worst = worst.max(error_of::<S>(&engine, &case)?);
        }
    }
    Ok(worst)
}
// ANCHOR_END: judge

/// The longest sequences of a one-tile kernel that are checked; a kernel that supports longer ones
/// has several tiles.
const LONGEST: u64 = 40_000;

fn lengths(most: Option<u64>, tile: usize, multiple: usize) -> Vec<usize> {
    if let Some(most) = most.filter(|&most| most <= LONGEST) {
        // A kernel of one tile: a full tile and a partial one.
        let most = most as usize;
        return vec![most, most.saturating_sub(multiple).max(multiple)];
    }
    // The reference kernel's tile is a single step.
    let tile = tile.clamp(1, LONGEST as usize);
    [tile + 1, 3 * tile + 5].map(|len| len.next_multiple_of(multiple)).to_vec()
}

fn error_of<S: Storage>(engine: &KernelEngine<S>, case: &Case) -> Result<f64, Error> {
    let stored = Stored::<S::Accum>::as_in::<S>();
    let data = case.data::<S::Accum>();
    let (x, c) = (stored.array(data.inputs.clone()), stored.array(data.coeffs().to_owned()));
    let rounding = Rounding { levels: (engine.domain().levels)(case.seq_len), exp_ulps: 0.0 };

    let exact = reference::forward(x.view(), c.view(), &data.options)?;
    let bound = reference::forward_bound(x.view(), c.view(), &data.options, rounding)?;
    let got = engine.forward(x.view(), c.view(), &data.options)?;
    let exactly = Stored::exactly();
    let mut worst = compare(&stored, &got.outputs, &exact.outputs, &bound.outputs);
    let state = compare(&exactly, &got.final_state, &exact.final_state, &bound.final_state);
    worst = worst.max(state);

    // The backward pass receives the reference's outputs so that it is checked separately.
    let y = stored.array(exact.outputs.mapv(<S::Accum as Element>::narrow));
    let d_y = stored.array(data.d_outputs.clone());
    let arrays = (d_y.view(), c.view(), y.view());
    let exact = reference::backward(arrays.0, arrays.1, arrays.2, &data.options)?;
    let bound = reference::backward_bound(arrays.0, arrays.1, arrays.2, &data.options, rounding)?;
    let got = engine.backward(arrays.0, arrays.1, arrays.2, &data.options)?;
    for error in [
        compare(&stored, &got.d_inputs, &exact.d_inputs, &bound.d_inputs),
        compare(&stored, &got.d_coeffs, &exact.d_coeffs, &bound.d_coeffs),
        compare(&exactly, &got.d_initial, &exact.d_initial, &bound.d_initial),
    ] {
        worst = worst.max(error);
    }
    Ok(worst)
}

fn compare<T: Element, D: Dimension>(
    stored: &Stored<T>,
    got: &Array<T, D>,
    exact: &Array<T::Wide, D>,
    bound: &Array<f64, D>,
) -> f64 {
    let mut worst = 0.0_f64;
    for ((&got, &exact), &bound) in got.iter().zip(exact).zip(bound) {
        let error = (got.widen() - exact).modulus();
        let bound = stored.bound(exact.modulus(), bound);
        let part = if error <= bound && error == 0.0 { 0.0 } else { error / bound };
        worst = worst.max(if part.is_nan() { f64::INFINITY } else { part });
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::bf16;

    #[test]
    fn shipped_kernels_are_right() {
        let device = Device::simt();
        let mut judged = 0;
        for choice in KernelChoice::shipped(linrec::kernels::ElementType::F32) {
            let worst = worst::<f32>(&device, choice).unwrap();
            assert!(worst > 0.0 && worst <= 1.0, "{choice}: {worst}");
            judged += 1;
        }
        assert!(judged > 3);
        for choice in KernelChoice::shipped(linrec::kernels::ElementType::Bf16) {
            let worst = worst::<bf16>(&device, choice).unwrap();
            assert!(worst > 0.5 && worst <= 1.0, "{choice}: {worst}");
        }
    }

    #[test]
    fn a_kernel_that_loses_its_carry_is_wrong() {
        // The stage that stops at the warp is wrong with two warps, and it has no backward pass.
        let wrong = Array::from_vec(vec![1.0_f32, 2.0]);
        let exact = Array::from_vec(vec![1.0_f64, 2.5]);
        let bound = Array::from_vec(vec![1e-6, 1e-6]);
        assert!(compare(&Stored::exactly(), &wrong, &exact, &bound) > 1e5);
        let nan = Array::from_vec(vec![f32::NAN, 2.5]);
        assert_eq!(compare(&Stored::exactly(), &nan, &exact, &bound), f64::INFINITY);
    }
}
