//! The selective scan on the CPU: within the bounds of the oracles for devices, with the same bits
//! for all instruction sets, threads, strides and chunks.
//!
//! The oracles count one rounding for the multiply-add of a state, and the CPU has two. The second
//! one is covered: they also count four units for an exponential, whose error is below two here.
//! A sum over the states is taken in order ([`Problem::additions`]).

use linrec::Error;
use linrec::cpu::{
    Coupling, CouplingView, Cpu, ScanDerivatives, ScanReal, ScanResults, ScanViews, ScanViewsMut,
    Simd,
};
use ndarray::{Array, Array1, Array2, Array3, Array4, Dimension, IntoDimension, s};

use crate::scan_gradients::oracle::{Gradients as Expected, gradients};
use crate::selective_scan::given::{Options, draw};
use crate::selective_scan::reference::{self, Bounded, Problem, Sizes};
use crate::selective_scan::sizes;

/// A scan's arrays of one type.
#[derive(Clone)]
struct Arrays<T> {
    u: Array3<T>,
    delta: Array3<T>,
    a: Array2<T>,
    b: Coupling<Array4<T>, Array2<T>>,
    c: Coupling<Array4<T>, Array2<T>>,
    d: Option<Array1<T>>,
    z: Option<Array3<T>>,
    delta_bias: Option<Array1<T>>,
    softplus: bool,
    initial: Option<Array3<T>>,
    restarts: Option<Array2<u8>>,
}

fn array<T: ScanReal, D: IntoDimension>(shape: D, numbers: &[f64]) -> Array<T, D::Dim> {
    let numbers = numbers.iter().map(|&number| T::from_real(number)).collect();
    Array::from_shape_vec(shape.into_dimension(), numbers).unwrap()
}

fn view<T>(coupling: &Coupling<Array4<T>, Array2<T>>) -> CouplingView<'_, T> {
    match coupling {
        Coupling::Varying(array) => Coupling::Varying(array.view()),
        Coupling::Constant(array) => Coupling::Constant(array.view()),
    }
}

impl<T: ScanReal> Arrays<T> {
    fn of(problem: &Problem) -> Self {
        let Sizes { batch, channels, groups, states, len } = problem.sizes;
        let coupling = |coupling: &reference::Coupling| match coupling.varies {
            true => Coupling::Varying(array((batch, groups, states, len), &coupling.values)),
            false => Coupling::Constant(array((channels, states), &coupling.values)),
        };
        let (rows, all_states) = ((batch, channels, len), (batch, channels, states));
        let restarts = problem.restarts.as_ref();
        Arrays {
            u: array(rows, &problem.u),
            delta: array(rows, &problem.delta),
            a: array((channels, states), &problem.a),
            b: coupling(&problem.b),
            c: coupling(&problem.c),
            d: problem.d.as_ref().map(|d| array(channels, d)),
            z: problem.z.as_ref().map(|z| array(rows, z)),
            delta_bias: problem.bias.as_ref().map(|bias| array(channels, bias)),
            softplus: problem.softplus,
            initial: problem.initial.as_ref().map(|initial| array(all_states, initial)),
            restarts: restarts
                .map(|all| Array2::from_shape_vec((batch, len), all.clone()).unwrap()),
        }
    }

    fn views(&self) -> ScanViews<'_, T> {
        ScanViews {
            u: self.u.view(),
            delta: self.delta.view(),
            a: self.a.view(),
            b: view(&self.b),
            c: view(&self.c),
            d: self.d.as_ref().map(|array| array.view()),
            z: self.z.as_ref().map(|array| array.view()),
            delta_bias: self.delta_bias.as_ref().map(|array| array.view()),
            softplus: self.softplus,
            initial: self.initial.as_ref().map(|array| array.view()),
            restarts: self.restarts.as_ref().map(|array| array.view()),
        }
    }
}

fn nans<T: ScanReal, D: IntoDimension>(shape: D) -> Array<T, D::Dim> {
    Array::from_elem(shape.into_dimension(), linrec::Element::nan())
}

/// Outputs, last states and checkpoints.
struct Computed<T> {
    out: Array3<T>,
    last: Array3<T>,
    checkpoints: Array4<T>,
}

impl<T: ScanReal> Computed<T> {
    fn of(cpu: &Cpu, inputs: &ScanViews<T>) -> Result<Self, Error> {
        let ((batch, channels, len), states) = (inputs.u.dim(), inputs.a.ncols());
        let tiles = len.div_ceil(Cpu::CHECKPOINT_STEPS);
        let mut here = Computed {
            out: nans((batch, channels, len)),
            last: nans((batch, channels, states)),
            checkpoints: nans((batch, tiles, channels, states)),
        };
        let results = ScanResults {
            out: here.out.view_mut(),
            last: Some(here.last.view_mut()),
            checkpoints: Some(here.checkpoints.view_mut()),
        };
        cpu.selective_scan(inputs, results)?;
        Ok(here)
    }

    fn bits(&self) -> Vec<u64> {
        bits(&self.out).into_iter().chain(bits(&self.last)).chain(bits(&self.checkpoints)).collect()
    }
}

fn bits<T: ScanReal, D: Dimension>(array: &Array<T, D>) -> Vec<u64> {
    array.iter().map(|number| number.to_f64().unwrap().to_bits()).collect()
}

/// Compares numbers with an oracle's. Its bounds are for `f32`, and its own error is that of `f64`.
fn judge<T: ScanReal>(got: impl IntoIterator<Item = T>, wanted: &[(f64, f64)], what: &str) {
    let is_double = size_of::<T>() == 8;
    let scale = if is_double { 2.0 * 2f64.powi(-29) } else { 1.001 };
    let got: Vec<f64> = got.into_iter().map(|number| number.to_f64().unwrap()).collect();
    assert_eq!(got.len(), wanted.len(), "{what}");
    for (index, (&got, &(value, bound))) in got.iter().zip(wanted).enumerate() {
        let error = (got - value).abs();
        assert!(error <= scale * bound, "{what} {index}: {got}, not {value} ± {bound:e}");
    }
}

fn pairs(all: &[Bounded]) -> Vec<(f64, f64)> {
    all.iter().map(|number| (number.value, number.bound)).collect()
}

fn check_forward<T: ScanReal>(sizes: Sizes, options: Options) -> Result<(), Error> {
    let problem = Problem { additions: Some(sizes.states + 1), ..draw::<f32>(sizes, options) };
    let (expected, what) = (problem.results(), format!("{} {sizes:?} {options:?}", T::NAME));
    let computed = Computed::<T>::of(&Cpu::new(), &Arrays::of(&problem).views())?;
    judge(computed.out, &pairs(&expected.out), &format!("{what} output"));
    judge(computed.last, &pairs(&expected.last), &format!("{what} last state"));
    // The oracle's checkpoints are every 8 steps.
    let per_tile = sizes.channels * sizes.states;
    let tiles = sizes.len.div_ceil(8);
    let checkpoints: Vec<_> = (0..sizes.batch)
        .flat_map(|batch| (0..tiles).step_by(8).map(move |tile| batch * tiles + tile))
        .flat_map(|tile| pairs(&expected.checkpoints[tile * per_tile..][..per_tile]))
        .collect();
    judge(computed.checkpoints, &checkpoints, &format!("{what} checkpoint"));
    Ok(())
}

#[test]
fn results_are_within_their_bounds() -> Result<(), Error> {
    let slow = Options { restarts: false, slow: true, ..Options::ALL };
    for len in [0, 1, 7, 63, 64, 65, 200] {
        check_forward::<f32>(sizes(2, 3, 1, 16, len), Options::ALL)?;
        check_forward::<f32>(sizes(1, 17, 1, 5, len), slow)?;
        check_forward::<f64>(sizes(1, 3, 1, 16, len), slow)?;
    }
    for (channels, groups, states) in [(1, 1, 1), (33, 1, 8), (6, 2, 17), (66, 2, 40), (4, 4, 256)]
    {
        check_forward::<f32>(sizes(2, channels, groups, states, 70), Options::ALL)?;
    }
    for constant in [[true, false], [false, true], [true, true]] {
        check_forward::<f32>(sizes(2, 18, 1, 9, 70), Options { constant, ..Options::ALL })?;
    }
    for options in [
        Options { d: false, ..Options::ALL },
        Options { z: false, ..slow },
        Options { bias: false, ..Options::ALL },
        Options { softplus: false, ..slow },
        Options { initial: false, ..Options::ALL },
        Options::NOTHING,
    ] {
        check_forward::<f32>(sizes(2, 18, 2, 9, 70), options)?;
        check_forward::<f64>(sizes(2, 18, 2, 9, 70), options)?;
    }
    Ok(())
}

/// All gradients, which begin as NaN.
struct Gradients<T> {
    all: Arrays<T>,
}

impl<T: ScanReal> Gradients<T> {
    fn of(cpu: &Cpu, inputs: &ScanViews<T>, d_out: &Array3<T>, d_last: &Option<Array3<T>>) -> Self {
        let forward = Computed::of(cpu, inputs).unwrap();
        let ((batch, channels, _), states) = (inputs.u.dim(), inputs.a.ncols());
        let coupling = |coupling: CouplingView<T>| match coupling {
            Coupling::Varying(array) => Coupling::Varying(nans(array.dim())),
            Coupling::Constant(array) => Coupling::Constant(nans(array.dim())),
        };
        let mut all = Arrays {
            u: nans(inputs.u.dim()),
            delta: nans(inputs.u.dim()),
            a: nans(inputs.a.dim()),
            b: coupling(inputs.b),
            c: coupling(inputs.c),
            d: Some(nans(channels)),
            z: inputs.z.map(|z| nans(z.dim())),
            delta_bias: Some(nans(channels)),
            softplus: false,
            initial: Some(nans((batch, channels, states))),
            restarts: None,
        };
        let given = ScanDerivatives {
            d_out: d_out.view(),
            d_last: d_last.as_ref().map(|array| array.view()),
            checkpoints: forward.checkpoints.view(),
        };
        fn mutable<T>(
            coupling: &mut Coupling<Array4<T>, Array2<T>>,
        ) -> linrec::cpu::CouplingViewMut<'_, T> {
            match coupling {
                Coupling::Varying(array) => Coupling::Varying(array.view_mut()),
                Coupling::Constant(array) => Coupling::Constant(array.view_mut()),
            }
        }
        let gradients = ScanViewsMut {
            u: all.u.view_mut(),
            delta: all.delta.view_mut(),
            a: all.a.view_mut(),
            b: mutable(&mut all.b),
            c: mutable(&mut all.c),
            d: all.d.as_mut().map(|d| d.view_mut()),
            z: all.z.as_mut().map(|z| z.view_mut()),
            delta_bias: all.delta_bias.as_mut().map(|bias| bias.view_mut()),
            initial: all.initial.as_mut().map(|initial| initial.view_mut()),
        };
        cpu.selective_scan_backward(inputs, &given, gradients).unwrap();
        Gradients { all }
    }

    /// Returns the gradients in the oracle's order.
    fn named(&self) -> Vec<(&'static str, Vec<T>)> {
        let numbers = |coupling: &Coupling<Array4<T>, Array2<T>>| match coupling {
            Coupling::Varying(array) => array.iter().copied().collect(),
            Coupling::Constant(array) => array.iter().copied().collect::<Vec<_>>(),
        };
        let all = &self.all;
        fn given<T: Copy, D: Dimension>(array: &Option<Array<T, D>>) -> Vec<T> {
            array.iter().flatten().copied().collect()
        }
        vec![
            ("u", all.u.iter().copied().collect()),
            ("delta", all.delta.iter().copied().collect()),
            ("z", given(&all.z)),
            ("A", all.a.iter().copied().collect()),
            ("B", numbers(&all.b)),
            ("C", numbers(&all.c)),
            ("D", given(&all.d)),
            ("delta_bias", given(&all.delta_bias)),
            ("initial", given(&all.initial)),
        ]
    }

    fn bits(&self) -> Vec<u64> {
        let all = self.named().into_iter().flat_map(|(_, numbers)| numbers);
        all.map(|number| number.to_f64().unwrap().to_bits()).collect()
    }
}

fn derivatives<T: ScanReal>(problem: &Problem) -> (Array3<T>, Option<Array3<T>>) {
    let Sizes { batch, channels, states, len, .. } = problem.sizes;
    let d_last = problem.d_last.as_ref();
    let d_last = d_last.map(|d_last| array((batch, channels, states), d_last));
    (array((batch, channels, len), &problem.d_out), d_last)
}

fn check_backward<T: ScanReal>(sizes: Sizes, options: Options) {
    let problem = draw::<f32>(sizes, options);
    let expected = gradients(&problem);
    let Expected { u, delta, z, a, b, c, d, bias, initial } = &expected;
    let (d_out, d_last) = derivatives::<T>(&problem);
    let arrays = Arrays::of(&problem);
    let computed = Gradients::of(&Cpu::new(), &arrays.views(), &d_out, &d_last);
    let all = computed.named().into_iter().zip([u, delta, z, a, b, c, d, bias, initial]);
    for ((name, got), expected) in all {
        if name == "z" && problem.z.is_none() {
            continue;
        }
        let what = format!("{} {sizes:?} {options:?} gradient of {name}", T::NAME);
        judge(got, &pairs(expected), &what);
    }
}

#[test]
fn gradients_are_within_their_bounds() {
    let restarts = Options::ALL;
    let slow = Options { restarts: false, slow: true, ..Options::ALL };
    for len in [0, 1, 7, 63, 64, 65, 200] {
        check_backward::<f32>(sizes(2, 3, 1, 16, len), Options::ALL);
        check_backward::<f32>(sizes(1, 17, 1, 5, len), slow);
        check_backward::<f64>(sizes(1, 3, 1, 16, len), restarts);
    }
    for (channels, groups, states) in [(1, 1, 1), (70, 1, 8), (6, 2, 17), (66, 2, 40), (4, 4, 256)]
    {
        check_backward::<f32>(sizes(2, channels, groups, states, 70), restarts);
    }
    for constant in [[true, false], [false, true], [true, true]] {
        check_backward::<f32>(sizes(2, 18, 1, 9, 70), Options { constant, ..restarts });
    }
    for options in [
        Options { d: false, ..Options::ALL },
        Options { z: false, ..slow },
        Options { bias: false, ..restarts },
        Options { softplus: false, ..slow },
        Options { initial: false, ..Options::ALL },
        Options { d_last: false, ..restarts },
        Options::NOTHING,
    ] {
        check_backward::<f32>(sizes(2, 18, 2, 9, 70), options);
        check_backward::<f64>(sizes(2, 18, 2, 9, 70), options);
    }
}

/// Instruction sets, threads and strides change no bit.
#[test]
fn every_way_has_the_same_bits() -> Result<(), Error> {
    let problem = draw::<f32>(sizes(2, 150, 2, 9, 130), Options::ALL);
    let arrays = Arrays::<f32>::of(&problem);
    let (d_out, d_last) = derivatives(&problem);
    let run = |cpu: &Cpu, views: &ScanViews<f32>| -> Result<(Vec<u64>, Vec<u64>), Error> {
        Ok((Computed::of(cpu, views)?.bits(), Gradients::of(cpu, views, &d_out, &d_last).bits()))
    };
    let expected = run(&Cpu::new(), &arrays.views())?;
    for simd in Simd::ALL.into_iter().filter(|simd| simd.is_available()) {
        let cpu = Cpu::new().with_simd(simd).unwrap().single_threaded();
        assert!(run(&cpu, &arrays.views())? == expected, "{simd}");
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(5).build().unwrap();
    assert!(pool.install(|| run(&Cpu::new(), &arrays.views()))? == expected, "five threads");
    // Time first, and every second element of a longer array.
    let u = arrays.u.clone().permuted_axes([2, 0, 1]).as_standard_layout().into_owned();
    let mut delta = Array3::from_elem((2, 150, 260), f32::NAN);
    delta.slice_mut(s![.., .., ..;-2]).assign(&arrays.delta);
    let views = ScanViews {
        u: u.view().permuted_axes([1, 2, 0]),
        delta: delta.slice(s![.., .., ..;-2]),
        ..arrays.views()
    };
    assert!(run(&Cpu::new(), &views)? == expected, "strides");
    Ok(())
}

/// Returns some steps of a scan.
fn part<'a>(whole: &ScanViews<'a, f32>, steps: std::ops::Range<usize>) -> ScanViews<'a, f32> {
    let mut part = *whole;
    let rows = s![.., .., steps.clone()];
    (part.u, part.delta) = (part.u.slice_move(rows), part.delta.slice_move(rows));
    part.z = part.z.map(|z| z.slice_move(rows));
    part.restarts = part.restarts.map(|all| all.slice_move(s![.., steps]));
    part
}

/// A sequence in two calls, of which the second begins with the last states of the first.
#[test]
fn chunks_have_the_bits_of_the_whole() -> Result<(), Error> {
    let options = Options { slow: true, constant: [true, true], ..Options::ALL };
    let arrays = Arrays::<f32>::of(&draw::<f32>(sizes(2, 18, 1, 9, 150), options));
    let (cpu, whole) = (Cpu::new(), arrays.views());
    let expected = Computed::of(&cpu, &whole)?;
    for cut in [1, 64, 77, 149] {
        let first = Computed::of(&cpu, &part(&whole, 0..cut))?;
        let views = ScanViews { initial: Some(first.last.view()), ..part(&whole, cut..150) };
        let second = Computed::of(&cpu, &views)?;
        let out = ndarray::concatenate![ndarray::Axis(2), first.out, second.out];
        assert!(bits(&out) == bits(&expected.out) && bits(&second.last) == bits(&expected.last));
    }
    Ok(())
}

#[test]
fn arrays_that_do_not_fit_are_errors() {
    let arrays = Arrays::<f32>::of(&draw::<f32>(sizes(2, 6, 2, 3, 5), Options::ALL));
    let views = arrays.views();
    let short = views.u.slice_move(s![.., .., ..4]);
    let message =
        |views: ScanViews<f32>| Computed::of(&Cpu::new(), &views).err().unwrap().to_string();
    let named = "shape mismatch in selective_scan:";
    assert_eq!(
        message(ScanViews { delta: short, ..views }),
        format!("{named} u [2, 6, 5], delta [2, 6, 4]")
    );
    assert_eq!(
        message(ScanViews { z: Some(short), ..views }),
        format!("{named} u [2, 6, 5], z [2, 6, 4]")
    );
    assert_eq!(
        message(ScanViews { a: views.a.slice_move(s![..5, ..]), ..views }),
        format!("{named} expected [6, 3], A [5, 3]")
    );
    let constant = Array2::zeros((3, 6));
    assert_eq!(
        message(ScanViews { c: Coupling::Constant(constant.view()), ..views }),
        format!("{named} expected [6, 3], C [3, 6]")
    );
    let varying = Array4::zeros((2, 4, 3, 5));
    assert_eq!(
        message(ScanViews { b: Coupling::Varying(varying.view()), ..views }),
        "selective scan does not support 6 channels in 4 groups in selective_scan"
    );
    let mut out = nans::<f32, _>((2, 6, 4));
    let results = ScanResults { out: out.view_mut(), last: None, checkpoints: None };
    let error = Cpu::new().selective_scan(&views, results).unwrap_err().to_string();
    assert_eq!(error, format!("{named} expected [2, 6, 5], out [2, 6, 4]"));
}
