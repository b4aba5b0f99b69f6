//! Chapter 3's tests, in one program so that it is linked once.

mod contract {
    //! The matrix form must pass the test contract and reproduce the golden data.

    use ch03_matrix_form::Matrix;
    use linrec::contract::{self, Case, CoeffKind, Domain, InputKind, Layout, Table, golden};
    use linrec::{Direction, Element, Engine, Error, Options};
    use ndarray::Array2;
    use num_complex::Complex;

    fn passes<T: Element>(domain: Domain) {
        let report = contract::run::<T>(&Matrix, &domain);
        assert!(report.passed(), "{report}");
        println!("{report}");
    }

    #[test]
    fn f32_passes() {
        passes::<f32>(Matrix::domain().as_asked());
    }

    #[test]
    fn f64_passes() {
        passes::<f64>(Matrix::domain().as_asked());
    }

    #[test]
    fn complex_f32_passes() {
        passes::<Complex<f32>>(Matrix::domain().as_asked());
    }

    #[test]
    fn complex_f64_passes() {
        passes::<Complex<f64>>(Matrix::domain().as_asked());
    }

    #[test]
    fn beyond_the_table() {
        let drawn = Domain { table: Table::Drawn(100), ..Matrix::domain() };
        passes::<f32>(drawn.clone());
        passes::<Complex<f64>>(drawn);
    }

    #[test]
    fn the_longest_sequences_pass() {
        let domain = Domain { tile: Matrix::MAX_LEN, ..Matrix::domain() };
        for seq_len in [Matrix::MAX_LEN - 1, Matrix::MAX_LEN] {
            for direction in [Direction::Forward, Direction::Reverse] {
                for coeffs in [CoeffKind::NearOne, CoeffKind::Growing] {
                    let (inputs, layout) = (InputKind::Dense, Layout::Standard);
                    let (num_seqs, initial, log_coeffs) = (1, true, false);
                    let case = Case {
                        num_seqs,
                        seq_len,
                        direction,
                        initial,
                        coeffs,
                        log_coeffs,
                        inputs,
                        layout,
                    };
                    let error = contract::check::<f32>(&Matrix, &domain, &case);
                    assert!(error.is_ok(), "{case}: {error:?}");
                }
            }
        }
    }

    #[test]
    fn longer_sequences_are_refused() {
        let ones = Array2::<f32>::ones((1, Matrix::MAX_LEN + 1));
        let error = Matrix.forward(ones.view(), ones.view(), &Options::default()).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }));
        assert_eq!(error.to_string(), "matrix does not support length 2049: its limit is 2048");
        let backward = Matrix.backward(ones.view(), ones.view(), ones.view(), &Options::default());
        assert_eq!(backward.unwrap_err(), error);
    }

    #[test]
    fn golden_data_agree() {
        for case in golden::real().unwrap() {
            let distance = golden::distance::<f64>(&Matrix, &case).unwrap();
            assert!(distance <= 1e-12, "{}: {distance:e}", case.name);
        }
        for case in golden::complex().unwrap() {
            let distance = golden::distance::<Complex<f64>>(&Matrix, &case).unwrap();
            assert!(distance <= 1e-12, "{}: {distance:e}", case.name);
        }
    }
}
mod convolution {
    //! The convolution must agree with the recurrence, within the bound of the Fourier transform.

    use approx::assert_abs_diff_eq;
    use ch03_matrix_form::convolution::{Convolution, convolve, error_bound, kernel};
    use ch03_matrix_form::mixing::{mix, mixing_matrix, rank_one_block};
    use linrec::reference::{self, Rounding};
    use linrec::{Element, Error, Options};
    use ndarray::{Array1, Array2, array, s};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};
    use realfft::FftNum;

    const LOOP: Rounding = Rounding { levels: 0, exp_ulps: 0.0 };

    fn stays_within_its_bound<R: FftNum + Element<Wide = f64>>() {
        let mut rng = StdRng::seed_from_u64(3);
        for seq_len in [0, 1, 2, 3, 31, 32, 33, 1000, 4093] {
            let coeffs = array![0.0, 0.5, 0.9, -0.9, 0.999, 1.0, -1.0].mapv(R::from_real);
            let shape = (coeffs.len(), seq_len);
            let inputs =
                Array2::from_shape_simple_fn(shape, || R::from_real(rng.random_range(-1.0..1.0)));
            let spread = Array2::from_shape_fn(shape, |(seq, _)| coeffs[seq]);
            let (plain, x) = (Options::default(), inputs.view());
            let exact = reference::forward(x, spread.view(), &plain).unwrap().outputs;
            let widened = (x.mapv(R::widen), spread.mapv(R::widen));
            let wide_options = Options::default();
            let reference_error =
                reference::forward_bound(widened.0.view(), widened.1.view(), &wide_options, LOOP)
                    .unwrap()
                    .outputs;
            let got = convolve(x, coeffs.view()).unwrap();
            for ((seq, l), y) in got.indexed_iter() {
                let bound = error_bound(x.row(seq), coeffs[seq]) + reference_error[[seq, l]];
                let error = (y.widen() - exact[[seq, l]]).abs();
                assert!(
                    error <= bound,
                    "{} [{seq}, {l}] of {seq_len}: {error:e} > {bound:e}",
                    R::NAME
                );
            }
        }
    }

    #[test]
    fn f32_stays_within_its_bound() {
        stays_within_its_bound::<f32>();
    }

    #[test]
    fn f64_stays_within_its_bound() {
        stays_within_its_bound::<f64>();
    }

    #[test]
    fn wrong_shapes_and_infinities_are_errors() {
        let inputs = Array2::<f64>::ones((2, 3));
        let error = convolve(inputs.view(), array![1.0].view()).unwrap_err();
        assert!(matches!(error, Error::ShapeMismatch { .. }), "{error}");
        let short = Convolution::padded(4).apply(array![1.0, 2.0].view(), 0.5).unwrap_err();
        assert!(matches!(short, Error::ShapeMismatch { .. }), "{short}");
        let infinite = Convolution::padded(2).apply(array![1.0, f64::INFINITY].view(), 0.5);
        let error = infinite.unwrap_err().to_string();
        assert_eq!(error, "convolution does not support values that are not finite");
        let square = mixing_matrix(array![1.0, 2.0].view()).unwrap();
        assert!(mix(square.view(), array![1.0].view()).is_err());
        assert!(rank_one_block(square.slice(s![..1, ..]), 1).is_err());
        assert_eq!(rank_one_block(square.view(), 9).unwrap().dim(), (0, 2));
    }

    #[test]
    fn a_shared_coefficient_makes_the_matrix_toeplitz() {
        let matrix = mixing_matrix(Array1::from_elem(50, 0.9_f32).view()).unwrap();
        let kernel = kernel(0.9_f32, 50);
        for ((k, l), &entry) in matrix.indexed_iter() {
            assert_eq!(entry, if l >= k { kernel[l - k] } else { 0.0 });
        }
    }

    #[test]
    fn a_circular_convolution_wraps_around() {
        let inputs = array![0.0, 0.0, 0.0, 1.0];
        let circular = Convolution::circular(4).apply(inputs.view(), 0.5).unwrap();
        let expected = array![0.5, 0.25, 0.125, 1.0];
        assert_abs_diff_eq!(circular, expected, epsilon = 1e-15);
    }
}
