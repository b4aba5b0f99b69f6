//! Chapter 1's tests, in one program so that it is linked once.

mod contract {
    //! The loop must pass the test contract and reproduce the golden data.

    use ch01_sequential_loop::Loop;
    use linrec::Element;
    use linrec::contract::{self, Domain, Table, golden};
    use num_complex::Complex;

    fn passes<T: Element>(domain: Domain) {
        let report = contract::run::<T>(&Loop, &domain);
        println!("{report}");
        assert!(report.passed(), "{report}");
    }

    #[test]
    fn single_precision() {
        passes::<f32>(Domain::default().as_asked());
    }

    #[test]
    fn double_precision() {
        passes::<f64>(Domain::default().as_asked());
    }

    #[test]
    fn complex_single_precision() {
        passes::<Complex<f32>>(Domain::default().as_asked());
    }

    #[test]
    fn complex_double_precision() {
        passes::<Complex<f64>>(Domain::default().as_asked());
    }

    #[test]
    fn beyond_the_table() {
        let drawn = Domain { table: Table::Drawn(200), ..Domain::default() };
        passes::<f32>(drawn.clone());
        passes::<Complex<f64>>(drawn);
    }

    #[test]
    fn golden_data() -> Result<(), Box<dyn std::error::Error>> {
        for case in golden::real()? {
            let distance = golden::distance::<f64>(&Loop, &case)?;
            assert!(distance < 1e-12, "{}: {distance:e}", case.name);
        }
        for case in golden::complex()? {
            let distance = golden::distance::<Complex<f64>>(&Loop, &case)?;
            assert!(distance < 1e-12, "{}: {distance:e}", case.name);
        }
        Ok(())
    }
}
mod special_cases {
    //! The special cases, the exercises, and the property that all of them rely on.

    use approx::assert_abs_diff_eq;
    use ch01_sequential_loop::exercises::{
        coeff_of_half_life, discounted_returns, polynomial, undo,
    };
    use ch01_sequential_loop::side_by_side::side_by_side;
    use ch01_sequential_loop::special_cases::{
        exponential_average, gated_average, restart, running_mean,
    };
    use ch01_sequential_loop::{linrec, linrec_into};
    use ndarray::{Array1, ArrayView1, array};
    use proptest::prelude::*;

    fn pairs() -> impl Strategy<Value = (Vec<f32>, Vec<f32>)> {
        prop::collection::vec((-1.0_f32..1.0, -1.1_f32..1.1), 0..200)
            .prop_map(|pairs| pairs.into_iter().unzip())
    }

    proptest! {
        #[test]
        fn a_split_anywhere_changes_nothing((x, c) in pairs(), share in 0.0..1.0, initial in -1.0_f32..1.0) {
            let place = (share * x.len() as f64) as usize;
            let mut parts = linrec(&x[..place], &c[..place], initial);
            let state = parts.last().copied().unwrap_or(initial);
            parts.extend(linrec(&x[place..], &c[place..], state));
            prop_assert_eq!(parts, linrec(&x, &c, initial));
        }

        #[test]
        fn slices_and_views_agree((x, c) in pairs(), initial in -1.0_f32..1.0) {
            let mut y = Array1::from_elem(x.len(), f32::NAN);
            let state = linrec_into(ArrayView1::from(&x), ArrayView1::from(&c), initial, y.view_mut());
            let expected = linrec(&x, &c, initial);
            prop_assert_eq!(state, expected.last().copied().unwrap_or(initial));
            prop_assert_eq!(y.to_vec(), expected);
        }

        #[test]
        fn sequences_in_step_equal_single_sequences((x, c) in pairs()) {
            let (rows_x, rows_c) = (x.as_chunks::<3>().0, c.as_chunks::<3>().0);
            let mut rows_y = vec![[f32::NAN; 3]; rows_x.len()];
            side_by_side(rows_x, rows_c, &mut rows_y);
            for i in 0..3 {
                let column = |rows: &[[f32; 3]]| rows.iter().map(|row| row[i]).collect::<Vec<_>>();
                prop_assert_eq!(column(&rows_y), linrec(&column(rows_x), &column(rows_c), 0.0));
            }
        }

        #[test]
        fn undone_recurrences_return_the_inputs((x, c) in pairs()) {
            // With f32 inputs and coefficients widened to f64, the last subtraction is nearly
            // exact.
            let (x, c): (Vec<f64>, Vec<f64>) =
                (x.into_iter().map(f64::from).collect(), c.into_iter().map(f64::from).collect());
            let y = linrec(&x, &c, 0.0);
            let largest = y.iter().fold(1.0_f64, |largest, y| largest.max(y.abs()));
            for (undone, x) in undo(&y, &c).into_iter().zip(x) {
                // The loop rounds twice per step, and so does `undo`; each rounding is at most u
                // times 2.2 max |y|.
                prop_assert!((undone - x).abs() <= 4.0 * f64::EPSILON / 2.0 * 2.2 * largest);
            }
        }

        #[test]
        fn an_average_of_equal_numbers_is_that_number(value in -4..5, len in 1_usize..50) {
            let value = f64::from(value);
            prop_assert_eq!(exponential_average(&vec![value; len], 0.75, value), vec![value; len]);
            let bound = 4.0 * len as f64 * f64::EPSILON * value.abs();
            for mean in running_mean(&vec![value; len]) {
                prop_assert!((mean - value).abs() <= bound);
            }
        }
    }

    #[test]
    fn restarts_past_the_end_are_left_out() {
        let mut coeffs = [1.0, 1.0, 1.0];
        restart(&mut coeffs, &[1, 3, 700]);
        assert_eq!(coeffs, [1.0, 0.0, 1.0]);
    }

    #[test]
    fn a_gated_average_starts_anew_after_a_jump() {
        let (averages, coeffs) = gated_average(&[1.0, 2.0, 9.0, 9.0], 3.0, 0.9);
        assert_eq!(averages, [1.0, 1.5, 9.0, 9.0]);
        assert_eq!(coeffs, [0.0, 0.5, 0.0, 0.5]);
    }

    #[test]
    fn exercises_have_the_answers_that_the_page_gives() -> Result<(), linrec::Error> {
        // 2 t^3 - 6 t^2 + 2 t - 1 at 3, and an empty polynomial.
        assert_eq!(polynomial(&[2.0, -6.0, 2.0, -1.0], 3.0), 5.0);
        assert_eq!(polynomial(&[], 3.0), 0.0);

        let last = [false, false, true, false, true];
        let returns = discounted_returns(array![1.0, 0.0, 4.0, 2.0, 8.0].view(), &last, 0.5)?;
        assert_eq!(returns, [2.0, 2.0, 4.0, 6.0, 8.0]);
        assert!(discounted_returns(array![1.0].view(), &last, 0.5).is_err());

        assert_eq!(coeff_of_half_life(1.0), 0.5);
        assert_abs_diff_eq!(coeff_of_half_life(10.0).powi(10), 0.5, epsilon = 1e-15);
        Ok(())
    }
}
