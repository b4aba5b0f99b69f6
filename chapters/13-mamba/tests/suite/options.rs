//! Tests of the options of Mamba's function (fixed `B` and `C`, complex states) and of initial
//! states, which it does not take.

use ch01_sequential_loop::Loop;
use ch04_gradient::differences::central_differences;
use ch13_mamba::golden::Given;
use ch13_mamba::{
    Mixing, MixingArray, direct, interleaved, selective_scan, selective_scan_backward,
    selective_scan_by, step_by_step,
};
use linrec::contract::golden::array_distance;
use linrec::cpu::Cpu;
use linrec::{Element, Error};
use ndarray::{Array, Array1, Array3, Array4, Axis, Dimension, s};
use num_complex::Complex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::problems::{Drawn, KINDS, drawn};

/// Computes the scan without any recurrence. A state is the sum of what remains of all earlier
/// inputs, `h_l = Σ_k e^(A (Δ_{k+1} + … + Δ_l)) Δ_k B_k u_k`, and a complex state is read together
/// with its conjugate.
fn by_sums<S: Drawn>(given: &Given<S>) -> Array3<f64> {
    let arguments = given.arguments();
    let size = arguments.sizes().unwrap().group_size();
    Array3::from_shape_fn(given.u.dim(), |(i, j, l)| {
        let term = |n: usize| {
            let after = |k: usize| (k..=l).map(|m| given.delta[[i, j, m]]).sum::<f64>();
            let left = |k: usize| given.a[[j, n]].times(after(k)).exponential();
            let written = |k: usize| {
                arguments
                    .b
                    .at([i, j, n, k], size)
                    .times(given.delta[[i, j, k]] * given.u[[i, j, k]])
            };
            let terms = (0..=l).map(|k| left(k + 1) * written(k));
            let state = terms.fold(S::zero(), |sum, term| sum + term);
            let first = given.initial.as_ref().map_or(S::zero(), |first| first[[i, j, n]]);
            // The whole of C h and its conjugate.
            let read = arguments.c.at([i, j, n, l], size) * (state + left(0) * first);
            if S::COUNT == 2.0 { read + Element::conj(read) } else { read }
        };
        let all = (0..given.a.ncols()).map(term).fold(S::zero(), |sum, term| sum + term);
        assert!(all.parts().get(1).is_none_or(|im| *im == 0.0));
        all.real()
    })
}

fn all_ways_agree<S: Drawn>() {
    let mut rng = StdRng::seed_from_u64(31);
    for kind in KINDS {
        for shape in [[2, 6, 3, 2, 19], [1, 3, 1, 4, 40], [1, 2, 2, 1, 1]] {
            let mut given = drawn::<S>(&mut rng, shape, false, kind);
            let initial = drawn::<S>(&mut rng, shape, true, kind).initial;
            given.initial = initial;
            let exact = direct(&given.arguments()).unwrap();
            assert!(array_distance(&by_sums(&given), &exact.y) <= 1e-13, "{kind:?} {shape:?}");

            let mut given = drawn::<S>(&mut rng, shape, true, kind);
            let exact = direct(&given.arguments()).unwrap();
            let got = selective_scan(&Cpu::new(), &given.arguments()).unwrap();
            assert!(array_distance(&got.y, &exact.y) <= 1e-13, "{kind:?} {shape:?}");
            assert!(array_distance(&got.last_state, &exact.last_state) <= 1e-13);
            let steps = step_by_step(&given.arguments()).unwrap();
            assert_eq!(steps, selective_scan_by(&Loop, &given.arguments()).unwrap());

            // The second half goes on from the last states of the first half.
            let at = shape[4] / 2;
            let mut first = given.clone();
            for (half, range) in [(&mut first, 0..at), (&mut given, at..shape[4])] {
                let cut = |array: &Array3<f64>| array.slice(s![.., .., range.clone()]).to_owned();
                let of = |mixing: &MixingArray<S>| match mixing {
                    Mixing::Varying(array) => {
                        array.slice(s![.., .., .., range.clone()]).to_owned().into()
                    }
                    Mixing::Fixed(array) => array.clone().into(),
                };
                (half.u, half.delta) = (cut(&half.u), cut(&half.delta));
                (half.b, half.c) = (of(&half.b), of(&half.c));
                half.z = half.z.as_ref().map(cut);
            }
            let first = selective_scan(&Cpu::new(), &first.arguments()).unwrap();
            given.initial = Some(first.last_state);
            let second = selective_scan(&Cpu::new(), &given.arguments()).unwrap();
            let y = ndarray::concatenate(Axis(2), &[first.y.view(), second.y.view()]).unwrap();
            assert!(array_distance(&y, &exact.y) <= 1e-13);
            assert!(array_distance(&second.last_state, &exact.last_state) <= 1e-13);
        }
    }
}

#[test]
fn real_states_agree_in_all_ways() {
    all_ways_agree::<f64>();
}

#[test]
fn complex_states_agree_in_all_ways() {
    all_ways_agree::<Complex<f64>>();
}

/// `B` and `C` in the form of Mamba's function: real numbers, `[batch, groups, states, 2 len]`.
#[test]
fn real_and_imaginary_parts_may_alternate() {
    let parts = Array4::from_shape_fn((2, 1, 3, 8), |(i, _, n, l)| (i * 100 + n * 10 + l) as f32);
    let complex = interleaved(parts.view()).unwrap();
    assert_eq!(complex.dim(), (2, 1, 3, 4));
    assert_eq!(complex[[1, 0, 2, 3]], Complex::new(126.0, 127.0));
}

/// The loss is a random sum over `y` and the last states; the slopes are the definition's.
#[test]
fn gradients_are_the_slopes_of_the_definition() {
    for kind in KINDS {
        slopes::<f64>(kind);
        slopes::<Complex<f64>>(kind);
    }
}

fn slopes<S: Drawn>(kind: [bool; 2]) {
    let mut rng = StdRng::seed_from_u64(9);
    let given = drawn::<S>(&mut rng, [2, 4, 2, 3, 9], true, kind);
    let d_y = Array3::from_shape_simple_fn(given.u.dim(), || rng.random_range(-1.0..1.0));
    let d_last = drawn::<S>(&mut rng, [2, 4, 2, 3, 9], true, kind).initial.unwrap();
    let (dy, dl) = (d_y.view(), Some(d_last.view()));
    let d = selective_scan_backward(&Cpu::new(), &given.arguments(), dy, dl).unwrap();

    let check = |name: &str, at: Vec<f64>, got: Vec<f64>, set: &dyn Fn(&mut Given<S>, &[f64])| {
        let slopes = central_differences(Array1::from(at).view(), 1e-5, |numbers| {
            let mut there = given.clone();
            set(&mut there, numbers.as_slice().unwrap());
            let output = direct(&there.arguments())?;
            let last = output.last_state.iter().zip(&d_last).map(|(h, d)| d.dot(*h)).sum::<f64>();
            Ok::<_, Error>((output.y * &d_y).sum() + last)
        });
        let slopes = slopes.unwrap();
        let worst = slopes.iter().zip(&got).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()));
        let size = got.iter().fold(0.0, |m: f64, d| m.max(d.abs()));
        // The error of a central difference, h²/6 times the third derivative, grows with the
        // function.
        assert!(
            worst < 1e-8 * size.max(1.0) && size > 1e-2 && got.len() == slopes.len(),
            "{} {kind:?} {name}: {worst:e} of {size:e}",
            S::NAME,
        );
    };
    fn put<S: Drawn, D: Dimension>(array: &mut Array<S, D>, numbers: &[f64]) {
        let numbers = numbers.chunks_exact(S::COUNT as usize);
        array.iter_mut().zip(numbers).for_each(|(place, parts)| *place = S::of(parts));
    }
    fn flat<S: Drawn, D: Dimension>(array: &Array<S, D>) -> Vec<f64> {
        array.iter().flat_map(|number| number.parts()).collect()
    }
    fn put_mixing<S: Drawn>(mixing: &mut MixingArray<S>, numbers: &[f64]) {
        match mixing {
            Mixing::Varying(array) => put(array, numbers),
            Mixing::Fixed(array) => put(array, numbers),
        }
    }
    fn flat_mixing<S: Drawn>(mixing: &MixingArray<S>) -> Vec<f64> {
        mixing.as_slice().unwrap().iter().flat_map(|number| number.parts()).collect()
    }
    let (skip, z, bias) = (given.d.as_ref(), given.z.as_ref(), given.delta_bias.as_ref());
    let initial = given.initial.as_ref();
    check("u", flat(&given.u), flat(&d.d_u), &|g, n| put(&mut g.u, n));
    check("delta", flat(&given.delta), flat(&d.d_delta), &|g, n| put(&mut g.delta, n));
    check("A", flat(&given.a), flat(&d.d_a), &|g, n| put(&mut g.a, n));
    check("B", flat_mixing(&given.b), flat_mixing(&d.d_b), &|g, n| put_mixing(&mut g.b, n));
    check("C", flat_mixing(&given.c), flat_mixing(&d.d_c), &|g, n| put_mixing(&mut g.c, n));
    check("D", flat(skip.unwrap()), flat(&d.d_d), &|g, n| put(g.d.as_mut().unwrap(), n));
    check("z", flat(z.unwrap()), flat(&d.d_z), &|g, n| put(g.z.as_mut().unwrap(), n));
    let set = |g: &mut Given<S>, n: &[f64]| put(g.delta_bias.as_mut().unwrap(), n);
    check("delta_bias", flat(bias.unwrap()), flat(&d.d_delta_bias), &set);
    let set = |g: &mut Given<S>, n: &[f64]| put(g.initial.as_mut().unwrap(), n);
    check("initial", flat(initial.unwrap()), flat(&d.d_initial), &set);
}
