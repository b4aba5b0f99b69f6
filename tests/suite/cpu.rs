//! The CPU engine against the contract, with every set of vector instructions of this machine.
//!
//! The table of cases runs with each set, long rows with several threads, and golden data with
//! their gradients. Further tests assert that the number of threads changes no bit, that infinities
//! stay in their row, that results fill any view and nothing else, and that a random shape and
//! layout holds the contract too.

use linrec::contract::{self, Case, CoeffKind, Domain, InputKind, Layout, Table, golden};
use linrec::cpu::{Cpu, Simd, roof};
use linrec::{Direction, Element, Engine, Options};
use ndarray::{Array2, s};
use num_complex::Complex;
use proptest::prelude::*;

/// Returns one engine per set of vector instructions of this machine, and one that needs none.
fn levels() -> impl Iterator<Item = Cpu> {
    let vectors = Simd::ALL.into_iter().filter_map(|simd| Cpu::new().with_simd(simd));
    vectors.chain([Cpu::new().in_order()])
}

/// The columns copied at a time for strided rows join the table's lengths.
fn domain(max_len: usize) -> Domain {
    Domain { levels: Domain::tree_levels, tile: 256, max_len, ..Domain::default() }
}

/// Runs with three threads on any machine.
fn with_threads<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap().install(run)
}

fn passes<T: Element>() {
    // The longest rows of the table test the vectors no further than shorter rows do.
    let engines = [(Cpu::new(), usize::MAX)];
    for (cpu, max_len) in
        engines.into_iter().chain(levels().map(|cpu| (cpu.single_threaded(), 1000)))
    {
        let report = with_threads(|| contract::run::<T>(&cpu, &domain(max_len).as_asked()));
        println!("{cpu:?}: {report}");
        assert!(report.passed(), "{cpu:?}: {report}");
    }
}

#[test]
fn contract_f32() {
    passes::<f32>();
}

#[test]
fn contract_f64() {
    passes::<f64>();
}

#[test]
fn contract_complex_f32() {
    passes::<Complex<f32>>();
}

#[test]
fn contract_complex_f64() {
    passes::<Complex<f64>>();
}

/// Rows long enough for all threads to share one, with lengths around a whole number of tiles (1
/// MB): with coefficients whose influence fades within a tile, and with others.
#[test]
fn long_rows() {
    fn check<T: Element>() {
        let tile = (1 << 20) / size_of::<T>();
        let shapes = [(1, 4 * tile - 1), (1, 4 * tile), (2, 4 * tile + 1), (1, 5 * tile - 3)];
        // A quick run tests one direction for each shape.
        let quick = Table::asked() == Table::Quick;
        for (place, (num_seqs, seq_len)) in shapes.into_iter().enumerate() {
            let directions = [Direction::Forward, Direction::Reverse];
            let all = directions.into_iter().enumerate();
            for (_, direction) in all.filter(|(number, _)| !quick || place % 2 == *number) {
                for (initial, log_coeffs, coeffs, layout) in [
                    (false, false, CoeffKind::NearOne, Layout::Standard),
                    (true, false, CoeffKind::One, Layout::Backwards),
                    (true, true, CoeffKind::NearOne, Layout::SharedCoeffs),
                ] {
                    let case = Case {
                        num_seqs,
                        seq_len,
                        direction,
                        initial,
                        coeffs,
                        log_coeffs,
                        inputs: InputKind::Dense,
                        layout,
                    };
                    let outcome = contract::check::<T>(&Cpu::new(), &domain(usize::MAX), &case);
                    assert!(outcome.is_ok(), "{case}: {outcome:?}");
                }
            }
        }
    }
    with_threads(|| {
        check::<f32>();
        check::<f64>();
        check::<Complex<f32>>();
        check::<Complex<f64>>();
    });
}

#[test]
fn golden_data() {
    for cpu in levels() {
        for case in golden::real().unwrap() {
            let distance = golden::distance::<f64>(&cpu, &case).unwrap();
            assert!(distance <= 1e-12, "{}: {distance:e}", case.name);
        }
        for case in golden::complex().unwrap() {
            let distance = golden::distance::<Complex<f64>>(&cpu, &case).unwrap();
            assert!(distance <= 1e-12, "{}: {distance:e}", case.name);
        }
    }
}

/// Makes a batch of the given shape with coefficients near one.
fn batch(num_seqs: usize, seq_len: usize) -> [Array2<f32>; 3] {
    let array = |seed: usize, from: f32| {
        Array2::from_shape_fn((num_seqs, seq_len), |(row, l)| {
            let hash = ((row * 7919 + l) * 2 + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            from + (1.0 - from) * (hash as f32 / (1 << 24) as f32)
        })
    };
    [array(0, -1.0), array(1, 0.98), array(2, -1.0)]
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    for (num_seqs, seq_len) in [(1, 1_300_000), (3, 1_100_000), (70, 3000), (2000, 33)] {
        let [inputs, coeffs, d_outputs] = batch(num_seqs, seq_len);
        for direction in [Direction::Forward, Direction::Reverse] {
            let options = Options { direction, ..Options::default() };
            let run = |cpu: &Cpu| {
                let y = cpu.forward(inputs.view(), coeffs.view(), &options).unwrap();
                let outputs = y.outputs.view();
                let d = cpu.backward(d_outputs.view(), coeffs.view(), outputs, &options).unwrap();
                (y, d)
            };
            let alone = run(&Cpu::new().single_threaded());
            let last = direction.position(seq_len - 1, seq_len);
            assert_eq!(alone.0.final_state, alone.0.outputs.column(last));
            for _ in 0..3 {
                assert!(run(&Cpu::new()) == alone, "{num_seqs} x {seq_len}, {direction:?}");
                assert!(with_threads(|| run(&Cpu::new())) == alone);
            }
        }
    }
}

/// The multiply-add of the engine that takes steps in order.
fn step<T: Element>(state: T, coeff: T, input: T) -> T {
    #[cfg(target_arch = "x86_64")]
    let fused = std::is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    let fused = cfg!(target_arch = "aarch64");
    if fused { state.mul_add(coeff, input) } else { state * coeff + input }
}

/// Products of coefficients overflow and underflow here; states do not.
#[test]
fn in_order_has_the_bits_of_a_loop() {
    fn check<T: Element>(shape: (usize, usize), large: f64) {
        let small = 1.0 / large;
        let coeff = |(row, l): (usize, usize)| match (row + l) % 6 {
            0 | 1 => T::from_polar(large, 0.3),
            2 | 4 => T::from_polar(small, 0.1 * l as f64),
            3 => T::from_real(-0.99),
            _ => T::from_real(small * small.sqrt()),
        };
        let coeffs = Array2::from_shape_fn(shape, coeff);
        // From 0, and then small enough to survive two large coefficients.
        let inputs = Array2::from_shape_fn(shape, |(row, l)| match (row + l) % 6 {
            0 | 1 => T::zero(),
            _ => T::from_polar(small * small.sqrt(), l as f64),
        });
        for direction in [Direction::Forward, Direction::Reverse] {
            let options = Options { direction, ..Options::default() };
            let at = |step| direction.position(step, shape.1);
            let (mut outputs, mut d_inputs) = (inputs.clone(), inputs.clone());
            let mut d_coeffs = inputs.clone();
            for row in 0..shape.0 {
                let mut state = T::zero();
                for l in (0..shape.1).map(at) {
                    state = step(state, coeffs[[row, l]], inputs[[row, l]]);
                    outputs[[row, l]] = state;
                }
                let mut flow = T::zero();
                for i in (0..shape.1).rev() {
                    let l = at(i);
                    let d_input = inputs[[row, l]] + flow;
                    let before = if i > 0 { outputs[[row, at(i - 1)]] } else { T::zero() };
                    flow = coeffs[[row, l]].conj() * d_input;
                    d_inputs[[row, l]] = d_input;
                    d_coeffs[[row, l]] = d_input * before.conj();
                }
            }
            assert!(outputs.iter().all(|y| y.modulus().is_finite()), "{direction:?}");
            for cpu in [Cpu::new(), Cpu::new().single_threaded(), Cpu::new().streaming_beyond(0)] {
                let cpu = cpu.in_order();
                let (y, d) = with_threads(|| {
                    let y = cpu.forward(inputs.view(), coeffs.view(), &options).unwrap();
                    let saved = y.outputs.view();
                    let d = cpu.backward(inputs.view(), coeffs.view(), saved, &options).unwrap();
                    (y, d)
                });
                let what = format!("{}, {shape:?}, {direction:?}, {cpu:?}", T::NAME);
                assert!(y.outputs == outputs, "outputs: {what}");
                assert!(d.d_inputs == d_inputs, "gradient of the inputs: {what}");
                assert!(d.d_coeffs == d_coeffs, "gradient of the coefficients: {what}");
            }
        }
    }
    for shape in [(1, 1), (3, 17), (5, 300), (300, 5), (2, 1_050_000)] {
        check::<f32>(shape, 1e20);
    }
    for shape in [(3, 17), (70, 1000)] {
        check::<f64>(shape, 1e160);
        check::<Complex<f32>>(shape, 1e20);
        check::<Complex<f64>>(shape, 1e160);
    }
}

#[test]
fn infinities_stay_in_their_row() {
    for cpu in levels() {
        for seq_len in [1, 3, 15, 16, 17, 40] {
            let [mut inputs, mut coeffs, d_outputs] = batch(5, seq_len);
            inputs.row_mut(1).fill(f32::INFINITY);
            coeffs.row_mut(1).fill(f32::NAN);
            inputs.row_mut(3).fill(f32::NAN);
            coeffs.row_mut(3).fill(f32::INFINITY);
            for direction in [Direction::Forward, Direction::Reverse] {
                let options = Options { direction, ..Options::default() };
                let y = cpu.forward(inputs.view(), coeffs.view(), &options).unwrap();
                let outputs = y.outputs.view();
                let d = cpu.backward(d_outputs.view(), coeffs.view(), outputs, &options).unwrap();
                for row in [0, 2, 4] {
                    for array in [&y.outputs, &d.d_inputs, &d.d_coeffs] {
                        assert!(array.row(row).iter().all(|value| value.is_finite()));
                    }
                    assert!(y.final_state[row].is_finite() && d.d_initial[row].is_finite());
                }
            }
        }
    }
}

/// Results go into a view of a larger array of NaN, whose other elements stay unchanged.
#[test]
fn every_element_is_written_and_no_other() {
    for (num_seqs, seq_len) in [(1, 1), (3, 17), (20, 300), (40, 2000)] {
        let [inputs, coeffs, d_outputs] = batch(num_seqs, seq_len);
        let options = Options::default();
        let expected = Cpu::new().forward(inputs.view(), coeffs.view(), &options).unwrap();
        let outputs = expected.outputs.view();
        let d = Cpu::new().backward(d_outputs.view(), coeffs.view(), outputs, &options).unwrap();
        let poisoned = || Array2::from_elem((2 * num_seqs + 1, 2 * seq_len + 2), f32::NAN);
        for windows in [
            s![..num_seqs, 1..=seq_len],
            s![..2 * num_seqs;2, 2..;2],
            s![1..=num_seqs;-1, 1..=seq_len;-1],
        ] {
            let mut arrays = [poisoned(), poisoned(), poisoned()];
            let [y, d_inputs, d_coeffs] = &mut arrays;
            Cpu::new()
                .forward_into(inputs.view(), coeffs.view(), &options, y.slice_mut(windows))
                .unwrap();
            Cpu::new()
                .backward_into(
                    d_outputs.view(),
                    coeffs.view(),
                    outputs,
                    &options,
                    d_inputs.slice_mut(windows),
                    d_coeffs.slice_mut(windows),
                )
                .unwrap();
            for (array, expected) in
                arrays.iter_mut().zip([&outputs, &d.d_inputs.view(), &d.d_coeffs.view()])
            {
                assert_eq!(array.slice(windows), expected);
                array.slice_mut(windows).fill(f32::NAN);
                assert!(array.iter().all(|value| value.is_nan()));
            }
        }
    }
}

#[test]
fn the_roof_adds_and_multiplies() {
    let [a, b, c] = batch(1, 70_001).map(|array| array.into_raw_vec_and_offset().0);
    for cpu in levels().flat_map(|cpu| [cpu.clone(), cpu.single_threaded()]) {
        let (mut sums, mut products) = (vec![f32::NAN; a.len()], vec![f32::NAN; a.len()]);
        roof::forward(&cpu, &a, &b, &mut sums);
        assert!((0..a.len()).all(|i| sums[i] == a[i] + b[i]));
        sums.fill(f32::NAN);
        roof::backward(&cpu, [&a, &b, &c], &mut sums, &mut products);
        assert!((0..a.len()).all(|i| sums[i] == a[i] + b[i] && products[i] == b[i] * c[i]));
    }
}

#[test]
fn wrong_result_shapes_are_errors() {
    let ones = Array2::<f32>::ones((3, 4));
    let mut wide = Array2::<f32>::ones((3, 5));
    let error = Cpu::new()
        .forward_into(ones.view(), ones.view(), &Options::default(), wide.view_mut())
        .unwrap_err();
    assert_eq!(error.to_string(), "shape mismatch in forward: inputs [3, 4], outputs [3, 5]");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_shape_and_layout(
        num_seqs in 0_usize..40,
        seq_len in 0_usize..700,
        reverse in any::<bool>(),
        initial in any::<bool>(),
        coeffs in proptest::sample::select(CoeffKind::ALL.to_vec()),
        log_coeffs in any::<bool>(),
        layout in proptest::sample::select(vec![
            Layout::Standard, Layout::Columns, Layout::Backwards, Layout::EverySecond, Layout::SharedCoeffs,
        ]),
        level in 0_usize..3,
    ) {
        let direction = if reverse { Direction::Reverse } else { Direction::Forward };
        let log_coeffs = log_coeffs && coeffs.has_log();
        let inputs = InputKind::Dense;
        let case = Case { num_seqs, seq_len, direction, initial, coeffs, log_coeffs, inputs, layout };
        let levels: Vec<_> = levels().collect();
        let cpu = &levels[level % levels.len()];
        let outcomes = [
            contract::check::<f32>(cpu, &domain(usize::MAX), &case),
            contract::check::<f64>(cpu, &domain(usize::MAX), &case),
            contract::check::<Complex<f32>>(cpu, &domain(usize::MAX), &case),
            contract::check::<Complex<f64>>(cpu, &domain(usize::MAX), &case),
        ];
        for outcome in outcomes {
            prop_assert!(outcome.is_ok(), "{cpu:?}, {case}: {outcome:?}");
        }
    }
}
