//! Tests of the selective scan on the CPU.
//!
//! Every way to compute the scan is compared with Mamba's own numbers and gradients, with the
//! definition in double precision, and in single precision with the bound that `bounds` derives.
//! The competitors, the errors, strided views and the exponential are tested here too. Random
//! problems come from `problems.rs`.

use ch01_sequential_loop::Loop;
use ch13_mamba::competitors::{Problem, Unfused, by_time, fused, plain};
use ch13_mamba::golden::{self, Given};
use ch13_mamba::{
    Arguments, Mixing, MixingArray, State, bounds, direct, dissection, interleaved, selective_scan,
    selective_scan_backward, selective_scan_by, step, step_by_step,
};
use linrec::contract::Domain;
use linrec::contract::golden::array_distance;
use linrec::cpu::{Cpu, Simd};
use ndarray::{Array, Array1, Array2, Array3, Array4, Dimension};
use num_complex::Complex;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::problems::{KINDS, SHAPES, drawn, gradients_within, random, within};

#[test]
fn mambas_own_numbers_agree() {
    for case in golden::cases().unwrap() {
        for (array, distance) in golden::distances(&Cpu::new(), &case).unwrap() {
            assert!(distance <= 1e-11, "{} {array}: {distance:e}", case.name);
            println!("{} {array}: {distance:e}", case.name);
        }
    }
}

/// Compares everything in single precision with double precision for the same inputs. Returns the
/// largest share of `y`'s bound.
fn is_within_its_bound<S: State<Real = f32>>(
    name: &str,
    narrow: &Given<S>,
    d_y: &Array3<f32>,
) -> f64 {
    let wide = narrow.widen();
    let levels = Domain::tree_levels(d_y.dim().2);
    let exact = direct(&narrow.arguments()).unwrap();
    let bound = bounds::forward(&narrow.arguments(), levels).unwrap();
    let d_last = exact.last_state.mapv(S::narrow);
    let wide_d = (d_y.mapv(f64::from), d_last.mapv(|h| h.widen()));
    let (d, last) = (wide_d.0.view(), Some(wide_d.1.view()));
    let d_exact = selective_scan_backward(&Cpu::new(), &wide.arguments(), d, last).unwrap();
    let (d, last) = (d_y.view(), Some(d_last.view()));
    let d_bound = bounds::backward(&narrow.arguments(), d, last, levels).unwrap();
    let mut share: f64 = 0.0;
    for simd in Simd::ALL {
        let Some(cpu) = Cpu::new().with_simd(simd) else { continue };
        let got = selective_scan(&cpu, &narrow.arguments()).unwrap();
        let label = |array: &str| format!("{simd} {name} {array}");
        share = share.max(within(&label("y"), &got.y, &exact.y, &bound.y));
        within(&label("last state"), &got.last_state, &exact.last_state, &bound.last_state);
        let got = selective_scan_backward(&cpu, &narrow.arguments(), d, last).unwrap();
        gradients_within(&label("backward"), &got, &d_exact, &d_bound);
    }
    // Position by position, in the order of the definition.
    let got = step_by_step(&narrow.arguments()).unwrap();
    let bound = bounds::forward(&narrow.arguments(), 0).unwrap();
    within(&format!("{name} step by step"), &got.y, &exact.y, &bound.y);
    share
}

/// The golden inputs are rounded to `f32`; their exact results come from double precision.
#[test]
fn f32_results_are_within_their_bounds() {
    for case in golden::cases().unwrap() {
        let (narrow, d_y) = (case.given.narrow::<f32>(), case.d_y.mapv(|d| d as f32));
        let share = is_within_its_bound(case.name, &narrow, &d_y);
        // A bound far above every error would prove nothing.
        assert!(share > 0.01, "{}: {share}", case.name);
    }
    let mut rng = StdRng::seed_from_u64(14);
    for shape in SHAPES {
        for (is_full, kind) in [true, false].into_iter().zip([KINDS[0], KINDS[3]]) {
            let mut given = drawn::<f64>(&mut rng, shape, is_full, kind);
            // Negative steps too, and coefficients that vanish.
            given.delta.mapv_inplace(|delta| 1.5 * delta - 0.2);
            given.a.mapv_inplace(|a| if a < -2.5 { 40.0 * a } else { a });
            if !is_full {
                given.a.mapv_inplace(|a| a.max(-3.0));
            }
            let d_y = given.u.mapv(|u| (0.3 - u) as f32);
            is_within_its_bound::<f32>(&format!("{shape:?}"), &given.narrow(), &d_y);
        }
        for (is_full, kind) in [true, false].into_iter().zip([KINDS[2], KINDS[1]]) {
            let given = drawn::<Complex<f64>>(&mut rng, shape, is_full, kind);
            let d_y = given.u.mapv(|u| (0.3 - u) as f32);
            let name = format!("complex {shape:?}");
            is_within_its_bound::<Complex<f32>>(&name, &given.narrow(), &d_y);
        }
    }
}

#[test]
fn all_ways_agree_in_all_shapes() {
    let mut rng = StdRng::seed_from_u64(6);
    for shape in SHAPES {
        for is_full in [true, false] {
            let given = random(&mut rng, shape, is_full);
            let arguments = given.arguments();
            let exact = direct(&arguments).unwrap();
            let got = selective_scan(&Cpu::new(), &arguments).unwrap();
            assert!(array_distance(&got.y, &exact.y) <= 1e-12, "{shape:?}");
            assert!(array_distance(&got.last_state, &exact.last_state) <= 1e-12, "{shape:?}");
            // Step by step, a channel has the same bits as the loop.
            let narrow = given.narrow::<f32>();
            let by_loop = selective_scan_by(&Loop, &narrow.arguments()).unwrap();
            assert_eq!(step_by_step(&narrow.arguments()).unwrap(), by_loop, "{shape:?}");
            if !is_full {
                let y = dissection::scan(&arguments).unwrap();
                assert!(array_distance(&y, &exact.y) <= 1e-12, "{shape:?}");
            }
            let d_y = exact.y.view();
            let d = selective_scan_backward(&Cpu::new(), &arguments, d_y, None).unwrap();
            assert_eq!(d.d_b.view().shape(), given.b.view().shape());
            assert!(d.d_u.iter().chain(&d.d_delta).all(|d| d.is_finite()), "{shape:?}");
        }
    }
}

#[test]
fn the_dissected_channel_gives_its_row_of_the_output() {
    let case = &golden::cases().unwrap()[0];
    let Given { u, delta, a, b, c, .. } = &case.given;
    let row = |array: &Array3<f64>, j| array.slice(ndarray::s![0, j, ..]).to_owned();
    let of_all = |mixing: &MixingArray<f64>| match mixing {
        Mixing::Varying(array) => array.slice(ndarray::s![0, 0, .., ..]).to_owned(),
        Mixing::Fixed(_) => panic!("it depends on the input"),
    };
    for j in 0..a.nrows() {
        let arrays = ([&row(u, j), &row(delta, j)], [&of_all(b), &of_all(c)]);
        let y = dissection::one_channel(arrays.0, &a.row(j).to_owned(), arrays.1).unwrap();
        assert!(array_distance(&y, &row(&case.output.y, j)) <= 1e-11);
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let given = random(&mut StdRng::seed_from_u64(7), [2, 70, 1, 5, 50], true).narrow::<f32>();
    let arguments = given.arguments();
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let output = selective_scan(&Cpu::new(), &arguments).unwrap();
            let d_y = output.y.view();
            let d = selective_scan_backward(&Cpu::new(), &arguments, d_y, None).unwrap();
            (output, d)
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn arrays_of_any_strides_are_taken() {
    let given = random(&mut StdRng::seed_from_u64(8), [2, 6, 2, 3, 20], true);
    let exact = selective_scan(&Cpu::new(), &given.arguments()).unwrap();
    let turned = Given {
        u: turned(&given.u),
        delta: turned(&given.delta),
        a: turned(&given.a),
        b: turned_mixing(&given.b),
        c: turned_mixing(&given.c),
        initial: given.initial.as_ref().map(turned),
        z: given.z.as_ref().map(turned),
        ..given.clone()
    };
    assert!(turned.u.strides()[2] != 1);
    assert_eq!(selective_scan(&Cpu::new(), &turned.arguments()).unwrap(), exact);
}

/// Returns an array with the same shape and values whose first axis is the fastest in memory.
fn turned<D: Dimension>(array: &Array<f64, D>) -> Array<f64, D> {
    array.t().as_standard_layout().into_owned().reversed_axes()
}

fn turned_mixing(mixing: &MixingArray<f64>) -> MixingArray<f64> {
    match mixing {
        Mixing::Varying(array) => turned(array).into(),
        Mixing::Fixed(array) => turned(array).into(),
    }
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let given = random(&mut StdRng::seed_from_u64(10), [1, 6, 2, 3, 5], true);
    let refused = |change: &dyn Fn(&mut Given<f64>), expected: &str| {
        let mut wrong = given.clone();
        change(&mut wrong);
        let error = selective_scan(&Cpu::new(), &wrong.arguments()).unwrap_err();
        assert_eq!(error.to_string(), format!("shape mismatch in selective scan: {expected}"));
        assert!(
            direct(&wrong.arguments()).is_err() && bounds::forward(&wrong.arguments(), 0).is_err()
        );
    };
    refused(&|g| g.delta = Array3::zeros((1, 6, 4)), "u [1, 6, 5], delta [1, 6, 4]");
    refused(&|g| g.a = Array2::zeros((5, 3)), "u [1, 6, 5], A [5, 3]");
    refused(&|g| g.b = Array4::zeros((1, 4, 3, 5)).into(), "u [1, 6, 5], B [1, 4, 3, 5]");
    refused(&|g| g.b = Array4::zeros((1, 2, 2, 5)).into(), "A [6, 3], B [1, 2, 2, 5]");
    refused(&|g| g.c = Array4::zeros((1, 1, 3, 5)).into(), "B [1, 2, 3, 5], C [1, 1, 3, 5]");
    refused(&|g| g.z = Some(Array3::zeros((2, 6, 5))), "u [1, 6, 5], z [2, 6, 5]");
    refused(&|g| g.d = Some(Array1::zeros(7)), "u [1, 6, 5], D [7]");
    refused(&|g| g.c = Array2::zeros((6, 4)).into(), "A [6, 3], C [6, 4]");
    let expected = "A [6, 3], initial [1, 6, 4]";
    refused(&|g| g.initial = Some(Array3::zeros((1, 6, 4))), expected);
    let (arguments, short) = (given.arguments(), Array3::zeros((1, 6, 4)));
    let error = selective_scan_backward(&Cpu::new(), &arguments, short.view(), None).unwrap_err();
    let expected = "shape mismatch in selective scan backward: u [1, 6, 5], d_y [1, 6, 4]";
    assert_eq!(error.to_string(), expected);
    let error = step(&arguments, 5, &mut Array3::zeros((1, 6, 3))).unwrap_err();
    assert_eq!(error.to_string(), "shape mismatch in step: u [1, 6, 5], position [5]");
    let error = step(&arguments, 0, &mut Array3::zeros((1, 6, 2))).unwrap_err();
    let expected = "shape mismatch in step: last_state [1, 6, 3], states [1, 6, 2]";
    assert_eq!(error.to_string(), expected);
    let error = interleaved(Array4::<f32>::zeros((1, 2, 3, 5)).view()).unwrap_err();
    let expected =
        "selective scan does not support real and imaginary parts in turns along 5 positions";
    assert_eq!(error.to_string(), expected);
}

/// The timed competitors compute the same thing.
#[test]
fn every_timed_competitor_is_within_the_bound() {
    let given = random(&mut StdRng::seed_from_u64(12), [1, 5, 1, 16, 70], false).narrow::<f32>();
    let exact = direct(&given.arguments()).unwrap();
    let bound = bounds::forward(&given.arguments(), Domain::tree_levels(70)).unwrap();
    let problem = Problem::of(&given).unwrap();
    let by_time = |mixing: &MixingArray<f32>| by_time(mixing.as_slice().unwrap(), 70);
    let (b, c) = (by_time(&given.b), by_time(&given.c));
    let mut unfused = Unfused::new(&problem);
    let check = |name: &str, way: &mut dyn FnMut(&mut [f32])| {
        let mut y = Array3::from_elem(given.u.dim(), f32::NAN);
        way(y.as_slice_mut().unwrap());
        within(name, &y, &exact.y, &bound.y);
    };
    check("plain", &mut |y| plain(&problem, y));
    check("fused", &mut |y| fused(&problem, [&b, &c], y));
    check("unfused", &mut |y| unfused.scan(&Cpu::new(), &problem, y).unwrap());
    let several = random(&mut StdRng::seed_from_u64(12), [2, 4, 2, 16, 7], false).narrow::<f32>();
    assert!(Problem::of(&several).is_err());
}

#[test]
fn results_too_large_for_memory_are_an_error() {
    let one = Array3::<f64>::ones((1, 1, 1));
    let (channels, len) = (1 << 20, 1 << 40);
    let (a, b) = (Array2::<f64>::ones((1, 1)), Array4::ones((1, 1, 1, 1)));
    let arguments = Arguments {
        u: one.broadcast((1, channels, len)).unwrap(),
        delta: one.broadcast((1, channels, len)).unwrap(),
        a: a.broadcast((channels, 1)).unwrap(),
        b: b.broadcast((1, 1, 1, len)).unwrap().into(),
        c: b.broadcast((1, 1, 1, len)).unwrap().into(),
        d: None,
        z: None,
        delta_bias: None,
        delta_softplus: false,
        initial: None,
    };
    let errors = [
        selective_scan(&Cpu::new(), &arguments).unwrap_err(),
        selective_scan_backward(&Cpu::new(), &arguments, arguments.u, None).unwrap_err(),
        direct(&arguments).unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().starts_with("out of memory in selective scan: "), "{error}");
    }
}

/// Every 97th float from -104 to 88, and beyond.
#[test]
fn the_exponential_is_within_its_stated_error() {
    let unit = (f32::EPSILON / 2.0) as f64;
    let mut worst: f64 = 0.0;
    for x in (0..(104f32).to_bits()).step_by(97).flat_map(|bits| {
        let x = f32::from_bits(bits);
        [x.min(88.0), -x]
    }) {
        let (got, exact) = (f64::from(x.exponential()), f64::from(x).exp());
        let error = (got - exact).abs();
        if exact < f32::EXP_UNDERFLOW {
            assert!(got == 0.0 || error <= f32::EXP_ROUNDINGS * unit * exact, "e^{x}: {got:e}");
        } else {
            worst = worst.max(error / (unit * exact));
        }
    }
    println!("largest error: {worst} u");
    assert!(worst <= f32::EXP_ROUNDINGS);
    assert_eq!(f32::NEG_INFINITY.exponential(), 0.0);
    assert_eq!(89f32.exponential(), f32::INFINITY);
    assert!(f32::NAN.exponential().is_nan());
    assert_eq!(0f32.exponential(), 1.0);
}
