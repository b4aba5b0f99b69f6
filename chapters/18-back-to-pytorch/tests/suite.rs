//! The tests of chapter 18: one program, linked once.

mod double {
    //! Tests of the gradients of gradients, against slopes.

    use ch04_gradient::differences::central_differences;
    use ch18_back_to_pytorch::double::{Arguments, double_backward};
    use linrec::{Error, Options, backward, forward};
    use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, concatenate, s};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    /// Returns a loss of a backward pass's results; its arguments follow one another in `flat`.
    fn loss(flat: ArrayView1<f64>, of: [ArrayView2<f64>; 2]) -> Result<f64, Error> {
        let (rows, len) = of[0].dim();
        let part = |number: usize| {
            let part = flat.slice(s![number * rows * len..(number + 1) * rows * len]).to_owned();
            part.into_shape_with_order((rows, len)).expect("as many as there are")
        };
        let [g, c, y] = [part(0), part(1), part(2)];
        let gradients = backward(g.view(), c.view(), y.view(), &Options::default())?;
        Ok((&gradients.d_inputs * &of[0]).sum() + (&gradients.d_coeffs * &of[1]).sum())
    }

    #[test]
    fn second_gradients_are_the_slopes_of_the_backward_pass() {
        let mut rng = StdRng::seed_from_u64(18);
        for (rows, len) in [(1, 1), (2, 2), (3, 17), (2, 33)] {
            let mut draw = |low: f64, high: f64| {
                Array2::from_shape_fn((rows, len), |_| rng.random_range(low..high))
            };
            // Coefficients near one, so that a lost carry shows.
            let (x, c, g) = (draw(-1.0, 1.0), draw(0.98, 1.0), draw(-1.0, 1.0));
            let (p, q) = (draw(-1.0, 1.0), draw(-1.0, 1.0));
            let y = forward(x.view(), c.view(), &Options::default()).unwrap().outputs;
            let back = backward(g.view(), c.view(), y.view(), &Options::default()).unwrap();
            let arguments = Arguments {
                coeffs: c.view(),
                outputs: y.view(),
                d_inputs: back.d_inputs.view(),
                of_d_inputs: p.view(),
                of_d_coeffs: q.view(),
            };
            let second = double_backward(&arguments).unwrap();
            let flat = |arrays: [&Array2<f64>; 3]| -> Array1<f64> {
                let rows: Vec<_> = arrays.iter().map(|array| array.flatten()).collect();
                let views: Vec<_> = rows.iter().map(|row| row.view()).collect();
                concatenate(Axis(0), &views).unwrap()
            };
            let at = flat([&g, &c, &y]);
            let slopes = central_differences(at.view(), 1e-5, |at| loss(at, [p.view(), q.view()]));
            let got = flat([&second.of_d_outputs, &second.of_coeffs, &second.of_outputs]);
            let largest = got.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
            for (slope, value) in slopes.unwrap().iter().zip(&got) {
                assert!((slope - value).abs() <= 1e-7 * largest, "{slope} {value} of {largest}");
            }
        }
    }

    #[test]
    fn shapes_that_differ_are_an_error() {
        let (a, b) = (Array2::zeros((2, 3)), Array2::zeros((2, 4)));
        let arguments = Arguments {
            coeffs: a.view(),
            outputs: a.view(),
            d_inputs: a.view(),
            of_d_inputs: a.view(),
            of_d_coeffs: b.view(),
        };
        let message = double_backward(&arguments).unwrap_err().to_string();
        assert_eq!(message, "shape mismatch in double_backward: coeffs [2, 3], of_d_coeffs [2, 4]");
    }
}
mod exercises {
    //! Tests of the exercises' solutions.

    use ch18_back_to_pytorch::exercises::{in_halves, refused_in_vain, tangent};
    use linrec::{Options, backward, forward};
    use ndarray::Array2;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    fn draw(rng: &mut StdRng, shape: (usize, usize), low: f64, high: f64) -> Array2<f64> {
        Array2::from_shape_fn(shape, |_| rng.random_range(low..high))
    }

    fn assert_near(a: &Array2<f64>, b: &Array2<f64>, tolerance: f64) {
        let largest = b.iter().fold(1e-300_f64, |most, value| most.max(value.abs()));
        let off = (a - b).iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        assert!(off <= tolerance * largest, "{off} of {largest}");
    }

    #[test]
    fn a_layout_is_refused_although_it_shares_no_element() {
        let layout = refused_in_vain();
        assert!(layout.may_meet_itself() && !layout.meets_itself());
    }

    #[test]
    fn forward_mode_is_the_slope_of_the_outputs() {
        let mut rng = StdRng::seed_from_u64(1);
        let shape = (3, 21);
        let (x, c) = (draw(&mut rng, shape, -1.0, 1.0), draw(&mut rng, shape, 0.98, 1.0));
        let (dx, dc) = (draw(&mut rng, shape, -1.0, 1.0), draw(&mut rng, shape, -1.0, 1.0));
        let run = |step: f64| {
            let (x, c) = (&x + &(&dx * step), &c + &(&dc * step));
            forward(x.view(), c.view(), &Options::default()).unwrap().outputs
        };
        let (y, step) = (run(0.0), 1e-6);
        let slope = (run(step) - run(-step)) / (2.0 * step);
        let got = tangent(c.view(), y.view(), dx.view(), dc.view()).unwrap();
        assert_near(&got, &slope, 1e-8);
    }

    #[test]
    fn two_halves_equal_the_whole() {
        let mut rng = StdRng::seed_from_u64(2);
        for len in [0, 1, 2, 7, 100] {
            let shape = (2, len);
            let (x, c) = (draw(&mut rng, shape, -1.0, 1.0), draw(&mut rng, shape, 0.98, 1.0));
            let g = draw(&mut rng, shape, -1.0, 1.0);
            let (y, dx) = in_halves(x.view(), c.view(), g.view()).unwrap();
            let whole = forward(x.view(), c.view(), &Options::default()).unwrap().outputs;
            assert_near(&y, &whole, 1e-13);
            let back = backward(g.view(), c.view(), whole.view(), &Options::default()).unwrap();
            assert_near(&dx, &back.d_inputs, 1e-13);
        }
    }
}
mod layout {
    //! Tests of layouts: their elements, and whether two indices name the same one.

    use ch18_back_to_pytorch::layout::Layout;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn views_name_the_right_elements() {
        let rows = Layout::rows(&[2, 3]);
        assert_eq!(rows.places(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(rows.clone().transposed(0, 1).places(), [0, 3, 1, 4, 2, 5]);
        assert_eq!(rows.clone().every(1, 2).places(), [0, 2, 3, 5]);
        assert_eq!(rows.clone().every(1, -1).places(), [2, 1, 0, 5, 4, 3]);
        assert_eq!(rows.clone().every(1, -2).places(), [2, 0, 5, 3]);
        assert_eq!(rows.clone().every(1, 0), rows);
        assert_eq!(rows.clone().transposed(0, 2), rows);
        assert_eq!(Layout::rows(&[2]).repeated(2).places(), [0, 1, 0, 1]);
        assert!(Layout::rows(&[]).places() == [0] && Layout::rows(&[3, 0]).is_empty());
    }

    proptest! {
        /// The check by strides misses no shared element, and refuses no part of rows.
        #[test]
        fn the_check_by_strides_misses_no_shared_element(shape in vec(0..4_usize, 0..4), strides in vec(-5..6_isize, 4)) {
            let strides = strides[..shape.len()].to_vec();
            let layout = Layout { shape: shape.clone(), strides, offset: 0 };
            prop_assert!(layout.may_meet_itself() || !layout.meets_itself());
            let parts = Layout::rows(&shape).every(0, -2).transposed(0, 1).every(1, 3);
            prop_assert!(!parts.may_meet_itself() && !parts.meets_itself());
            prop_assert_eq!(parts.places().len(), parts.len());
        }
    }
}
