//! The tests of chapter 15: one program, linked once.
//!
//! Each module has one subject: the atlas, the contract's table of cases, golden data, minGRU. The
//! tests judge log space by the bound that `bound` derives from the given problem. Two tests check
//! the bound itself: a lost carry must exceed it, and log space must exceed the narrower bound of a
//! tree.

mod atlas {
    //! Tests the maps of the atlas at places where the answer is known.

    use ch15_log_space::LogSpace;
    use ch15_log_space::atlas::{Grid, Legend, Map, Method, draw, map, sixteen_bits};

    fn grid() -> Grid {
        Grid { rates: vec![10.0, 0.1, -0.1, -10.0], lengths: vec![16, 64, 256, 8192], sequences: 1 }
    }

    fn whole() -> Method {
        Method::LogSpace(LogSpace::whole())
    }

    #[test]
    fn errors_stay_below_the_bounds() {
        for method in [Method::Loop, Method::TwoThreads, Method::Tree, whole()] {
            let single = map::<f32>(&grid(), &method, "f32").unwrap();
            let double = map::<f64>(&grid(), &method, "f64").unwrap();
            for map in [single, double] {
                let share = map.largest_share();
                assert!(share > 0.0 && share <= 1.0, "{method:?}, {}: {share}", map.title);
            }
        }
        for method in [Method::Loop, Method::TwoThreads, Method::Tree, whole()] {
            for map in sixteen_bits(&grid(), &method, "stored").unwrap() {
                let share = map.largest_share();
                assert!(share > 0.0 && share <= 1.0, "{method:?}, {}: {share}", map.title);
            }
        }
    }

    #[test]
    fn an_error_above_the_bound_is_noticed() {
        let mut map = map::<f32>(&grid(), &whole(), "f32").unwrap();
        let cell = [2, 0];
        map.errors[cell] = 2.0 * map.bounds[cell];
        assert!(map.largest_share() >= 2.0);
        map.errors[cell] = f64::INFINITY;
        assert!(map.largest_share() > 1e300);
    }

    #[test]
    fn results_beyond_a_types_range_are_nan_or_infinite() {
        // 16 factors of e^10 on average exceed f32 and are far within f64.
        let single: Map = map::<f32>(&grid(), &Method::Loop, "f32").unwrap();
        let double: Map = map::<f64>(&grid(), &Method::Loop, "f64").unwrap();
        assert!(single.errors[[0, 0]].is_nan() && !double.errors[[0, 0]].is_nan());
        assert!(double.errors[[0, 3]].is_nan());
        assert!(single.errors.row(3).iter().all(|error| error.is_finite()));

        // float16 cannot store a way of 80,000, and bfloat16 can.
        let [bf16, f16] = sixteen_bits(&grid(), &whole(), "log space").unwrap();
        assert!(f16.errors[[3, 3]].is_infinite() && f16.bounds[[3, 3]].is_infinite());
        assert!(bf16.errors[[3, 3]].is_finite());
    }

    #[test]
    fn restarts_keep_digits_that_whole_sums_lose() {
        let whole = map::<f32>(&grid(), &whole(), "whole").unwrap();
        let restarting = Method::LogSpace(LogSpace::restarting(8.0));
        let restarting = map::<f32>(&grid(), &restarting, "restarting").unwrap();
        // At long decays, the bound with a reach is even below the error without one.
        assert!(restarting.bounds[[3, 3]] < whole.errors[[3, 3]]);
    }

    #[test]
    fn a_page_draws_every_map() {
        let grid = grid();
        let map = map::<f32>(&grid, &Method::Loop, "the loop").unwrap();
        let legend = Legend { powers: (-8, 0), contours: [-6, -4, -2] };
        let svg = draw(&grid, &[&map, &map, &map], legend).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert_eq!(svg.matches("the loop").count(), 3);
    }
}
mod contract {
    //! Tests log space with the contract's table of cases, within its own bound.

    use ch15_log_space::{LogSpace, Order, Real};
    use linrec::Engine;
    use linrec::contract::{self, Case, CoeffKind, Domain, Table};

    /// The bound for prefix sums in order is NaN where the products of a very long sequence
    /// underflow. Those engines are judged up to this length, the others at every length.
    const MAX_LEN_IN_ORDER: usize = 1000;

    fn engines() -> [(LogSpace, usize); 5] {
        [
            (LogSpace::whole(), usize::MAX),
            (LogSpace::restarting(8.0), usize::MAX),
            (LogSpace::restarting(0.0), usize::MAX),
            (LogSpace::whole().with_order(Order::InOrder), MAX_LEN_IN_ORDER),
            (LogSpace::restarting(30.0).with_order(Order::InOrder), MAX_LEN_IN_ORDER),
        ]
    }

    fn passes<T: Real>(domain: Domain) {
        for (engine, max_len) in engines() {
            let domain = Domain { max_len, ..domain.clone() };
            let report = contract::run_within::<T>(&engine, &domain, &engine);
            println!("{report}");
            assert!(report.passed(), "{report}");
            assert!(report.worst > 0.0, "nothing was compared");
        }
    }

    #[test]
    fn f32_stays_within_its_bound() {
        passes::<f32>(LogSpace::domain().as_asked());
    }

    #[test]
    fn f64_stays_within_its_bound() {
        passes::<f64>(LogSpace::domain().as_asked());
    }

    #[test]
    fn beyond_the_table() {
        passes::<f32>(Domain { table: Table::Drawn(200), ..LogSpace::domain() });
    }

    /// The bound is wider than the bound of a tree of products and additions for a reason: log
    /// space exceeds the tree's.
    #[test]
    fn the_bound_of_a_tree_is_too_narrow_for_log_space() {
        let tree = Domain { max_len: 100, levels: Domain::tree_levels, ..LogSpace::domain() };
        let report = contract::run::<f32>(&LogSpace::whole(), &tree);
        assert!(!report.failures.is_empty(), "{report}");
    }

    /// A bound that nothing exceeds proves nothing: one lost carry must exceed it.
    #[test]
    fn a_lost_carry_is_noticed() {
        /// Forgets the initial state.
        struct Forgetful;
        impl<T: Real> Engine<T> for Forgetful {
            fn name(&self) -> &str {
                "forgetful"
            }
            fn forward(
                &self,
                inputs: ndarray::ArrayView2<T>,
                coeffs: ndarray::ArrayView2<T>,
                options: &linrec::Options<T>,
            ) -> Result<linrec::Outputs<T>, linrec::Error> {
                let from_zero = linrec::Options { initial: None, ..options.clone() };
                LogSpace::whole().forward(inputs, coeffs, &from_zero)
            }
            fn backward(
                &self,
                d_outputs: ndarray::ArrayView2<T>,
                coeffs: ndarray::ArrayView2<T>,
                outputs: ndarray::ArrayView2<T>,
                options: &linrec::Options<T>,
            ) -> Result<linrec::Gradients<T>, linrec::Error> {
                LogSpace::whole().backward(d_outputs, coeffs, outputs, options)
            }
        }
        let (domain, bound) = (LogSpace::domain(), LogSpace::whole());
        let near_one = |case: &Case| {
            case.initial
                && case.coeffs == CoeffKind::NearOne
                && case.num_seqs > 0
                && case.seq_len > 0
        };
        let cases: Vec<_> = Table::asked().cases(64).into_iter().filter(near_one).collect();
        assert!(!cases.is_empty());
        for case in cases {
            let outcome = contract::check_within::<f32>(&Forgetful, &domain, &bound, &case);
            assert!(outcome.is_err(), "{case}");
        }
    }
}
mod golden {
    //! Compares log space, including gradients, with other implementations' results.

    use ch15_log_space::min_gru::{backward, forward, relative_bound};
    use ch15_log_space::{LogSpace, Order, SignedLog, bound, golden, heinsen};
    use linrec::contract::golden::{self as recurrences_with_gradients, array_distance};
    use linrec::{Engine, Options, reference};

    /// The largest `max |a − b| / max |b|` of an array, in double precision.
    const LIMIT: f64 = 1e-11;

    fn engines() -> [LogSpace; 3] {
        [LogSpace::whole(), LogSpace::restarting(8.0), LogSpace::whole().with_order(Order::InOrder)]
    }

    #[test]
    fn heinsens_sequences_agree_in_f64() {
        let cases = golden::recurrences().expect("the archive can be read");
        assert_eq!(cases.len(), 9);
        for case in &cases {
            for engine in engines() {
                let (x, c) = (case.inputs.view(), case.coeffs.view());
                let y = engine.forward(x, c, &case.options::<f64>()).expect("shapes match");
                let distance = array_distance(&y.outputs, &case.outputs);
                assert!(distance <= LIMIT, "{engine:?}, {}: {distance:e}", case.name);
            }
        }
    }

    #[test]
    fn the_special_case_agrees_for_positive_numbers() {
        let cases = golden::recurrences().expect("the archive can be read");
        for case in cases.iter().filter(|case| case.name.ends_with("positive")) {
            for i in 0..case.inputs.nrows() {
                let logs = |row: ndarray::ArrayView1<f64>| row.mapv(f64::ln).to_vec();
                let (log_x, log_c) = (logs(case.inputs.row(i)), logs(case.coeffs.row(i)));
                let log_y = heinsen(Order::Tree, &log_x, &log_c, case.initial[i].ln());
                let y = ndarray::Array1::from(log_y).mapv(f64::exp);
                let distance = array_distance(&y, &case.outputs.row(i).to_owned());
                assert!(distance <= LIMIT, "{}: {distance:e}", case.name);
            }
        }
    }

    /// The reference starts from the golden numbers after they are rounded to `f32`.
    #[test]
    fn heinsens_sequences_stay_within_the_bound_in_f32() {
        for case in golden::recurrences().expect("the archive can be read") {
            for engine in engines() {
                let (x, c) = (case.inputs.mapv(|x| x as f32), case.coeffs.mapv(|c| c as f32));
                let (x, c, options) = (x.view(), c.view(), case.options::<f32>());
                let exact = reference::forward(x, c, &options).expect("shapes match");
                let limit = bound::forward(&engine, x, c, &options).expect("shapes match");
                let got = engine.forward(x, c, &options).expect("shapes match");
                let name = format!("{engine:?}, {}", case.name);
                for ((got, exact), bound) in
                    got.outputs.iter().zip(&exact.outputs).zip(&limit.outputs)
                {
                    let error = (f64::from(*got) - exact).abs();
                    assert!(error <= *bound, "{name}: {got} instead of {exact}, bound {bound:e}");
                }
            }
        }
    }

    #[test]
    fn recurrences_agree_in_f64_with_their_gradients() {
        let cases = recurrences_with_gradients::real().expect("the archive can be read");
        assert_eq!(cases.len(), 66);
        for case in &cases {
            for engine in engines() {
                let distance = recurrences_with_gradients::distance::<f64>(&engine, case)
                    .expect("the engine takes it");
                assert!(distance <= LIMIT, "{engine:?}, {}: {distance:e}", case.name);
            }
        }
    }

    #[test]
    fn min_gru_agrees_in_f64_with_its_gradients() {
        let case = golden::min_gru().expect("the archive can be read");
        assert_eq!(case.h.dim(), (12, 40));
        for engine in engines() {
            let given = (case.k.view(), case.h_tilde.view(), case.h0.view());
            let h = forward(&engine, given.0, given.1, given.2).expect("shapes match");
            let d = backward(&engine, case.d_h.view(), given, case.h.view()).expect("shapes match");
            for (name, distance) in [
                ("h", array_distance(&h, &case.h)),
                ("d_k", array_distance(&d.d_k, &case.d_k)),
                ("d_h_tilde", array_distance(&d.d_h_tilde, &case.d_h_tilde)),
            ] {
                assert!(distance <= LIMIT, "{engine:?}, {name}: {distance:e}");
            }
        }
    }

    /// Compares the states of the rounded problem in double precision and in `f32`.
    #[test]
    fn min_gru_stays_within_its_bound_in_f32() {
        let case = golden::min_gru().expect("the archive can be read");
        let engine = LogSpace::whole();
        let (k, h_tilde) = (case.k.mapv(|k| k as f32), case.h_tilde.mapv(|h| h as f32));
        let h0 = case.h0.mapv(|h| h as f32);
        let got = forward(&engine, k.view(), h_tilde.view(), h0.view()).expect("shapes match");
        let (wide_k, wide_h, wide_h0) =
            (k.mapv(f64::from), h_tilde.mapv(f64::from), h0.mapv(f64::from));
        let exact =
            forward(&engine, wide_k.view(), wide_h.view(), wide_h0.view()).expect("shapes match");
        for i in 0..got.nrows() {
            let bounds = relative_bound(&engine, k.row(i), h_tilde.row(i), h0[i]);
            for ((got, exact), bound) in got.row(i).iter().zip(exact.row(i)).zip(bounds) {
                let error = (f64::from(*got) - exact).abs() / exact;
                assert!(error <= bound, "row {i}: {got} instead of {exact}, bound {bound:e}");
            }
        }
    }

    #[test]
    fn a_wrong_sign_of_the_initial_state_shows() {
        let cases = golden::recurrences().expect("the archive can be read");
        let case = cases.iter().find(|case| case.name == "L1000_signed").expect("it is there");
        let pack = |row: ndarray::ArrayView1<f64>, signed: bool| -> Vec<SignedLog<f64>> {
            row.iter().map(|&v| SignedLog::of(if signed { v } else { v.abs() })).collect()
        };
        let y = LogSpace::whole().sequence(
            &pack(case.inputs.row(0), true),
            &pack(case.coeffs.row(0), true),
            // ln |y| alone loses the sign of the initial state.
            SignedLog::of(case.initial[0].abs()),
        );
        assert!(case.initial[0] < 0.0);
        let first = y[0].value() - case.outputs[[0, 0]];
        assert!(first.abs() > 0.1, "{first}");
    }

    #[test]
    fn empty_arrays_are_valid() {
        for shape in [(0, 3), (3, 0), (0, 0)] {
            let empty = ndarray::Array2::<f32>::zeros(shape);
            let y = LogSpace::whole()
                .forward(empty.view(), empty.view(), &Options::default())
                .expect("empty arrays are valid");
            assert_eq!(y.outputs.dim(), shape);
            assert_eq!(y.final_state.len(), shape.0);
        }
    }
}
mod min_gru {
    //! Tests minGRU with extreme inputs, and with shapes that do not fit.

    use approx::assert_abs_diff_eq;
    use ch15_log_space::LogSpace;
    use ch15_log_space::min_gru::{backward, forward, softplus};
    use linrec::Error;
    use ndarray::{Array1, Array2, array};

    #[test]
    fn gates_may_be_fully_open_or_closed() {
        // σ(±1000) is 0 or 1 in every type; its logarithm is -1000 or 0.
        let (k, h_tilde) = (array![[-1000.0_f32, 1000.0, -1000.0]], array![[5.0_f32, 7.0, 5.0]]);
        let h =
            forward(&LogSpace::whole(), k.view(), h_tilde.view(), array![3.0_f32].view()).unwrap();
        // Sums of logarithms up to 1000 have errors of some thousand units.
        assert_abs_diff_eq!(h, array![[3.0, 7.5, 7.5]], epsilon = 1e5 * f32::EPSILON);
        assert_eq!(softplus(-1000.0_f64), 0.0);
        assert_eq!(softplus(1000.0_f64), 1000.0);
    }

    #[test]
    fn gradients_are_slopes() {
        let k = array![[0.3_f64, -1.2, 0.8, 2.0, -0.4]];
        let h_tilde = array![[0.7_f64, -0.9, -2.0, 1.1, 0.2]];
        let h0 = array![0.6_f64];
        let engine = LogSpace::restarting(2.0);
        // The loss is the sum of cubes.
        let loss = |k: &Array2<f64>, h_tilde: &Array2<f64>, h0: &Array1<f64>| {
            let h = forward(&engine, k.view(), h_tilde.view(), h0.view()).unwrap();
            h.mapv(|h| h * h * h).sum()
        };
        let h = forward(&engine, k.view(), h_tilde.view(), h0.view()).unwrap();
        let d_h = h.mapv(|h| 3.0 * h * h);
        let given = (k.view(), h_tilde.view(), h0.view());
        let d = backward(&engine, d_h.view(), given, h.view()).unwrap();

        let step = 1e-5;
        // A truncation of some step² and a rounding of some 1e-15 / step are both below this.
        let close = |slope: f64, gradient: f64| {
            assert_abs_diff_eq!(slope, gradient, epsilon = 1e-7);
        };
        for l in 0..5 {
            let moved = |array: &Array2<f64>, by: f64| {
                let mut array = array.clone();
                array[[0, l]] += by;
                array
            };
            let up = loss(&moved(&k, step), &h_tilde, &h0);
            let down = loss(&moved(&k, -step), &h_tilde, &h0);
            close((up - down) / (2.0 * step), d.d_k[[0, l]]);
            let up = loss(&k, &moved(&h_tilde, step), &h0);
            let down = loss(&k, &moved(&h_tilde, -step), &h0);
            close((up - down) / (2.0 * step), d.d_h_tilde[[0, l]]);
        }
        let up = loss(&k, &h_tilde, &(&h0 + step));
        let down = loss(&k, &h_tilde, &(&h0 - step));
        close((up - down) / (2.0 * step), d.d_h0[0]);
    }

    #[test]
    fn a_negative_initial_state_keeps_its_sign() {
        let (k, h_tilde) = (array![[0.0_f64, 0.0]], array![[0.5_f64, 0.5]]);
        let h = forward(&LogSpace::whole(), k.view(), h_tilde.view(), array![-4.0].view()).unwrap();
        assert_abs_diff_eq!(h, array![[-1.5, -0.25]], epsilon = 1e-14);
    }

    #[test]
    fn shapes_that_do_not_fit_are_named() {
        let (wide, narrow) = (Array2::<f32>::zeros((2, 3)), Array2::<f32>::zeros((2, 2)));
        let h0 = Array1::zeros(2);
        let engine = LogSpace::whole();
        let error = forward(&engine, wide.view(), narrow.view(), h0.view()).unwrap_err();
        assert_eq!(error.to_string(), "shape mismatch in min_gru: k [2, 3], h_tilde [2, 2]");
        let three = Array1::zeros(3);
        let error = forward(&engine, wide.view(), wide.view(), three.view()).unwrap_err();
        assert!(matches!(error, Error::ShapeMismatch { .. }), "{error}");
        let given = (wide.view(), wide.view(), h0.view());
        let error = backward(&engine, narrow.view(), given, wide.view()).unwrap_err();
        assert!(error.to_string().starts_with("shape mismatch in min_gru: d_h [2, 2]"), "{error}");
    }
}
