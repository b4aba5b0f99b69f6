//! Chapter 2's tests, in one program so that it is linked once.

mod contract {
    //! Both engines must pass the test contract and reproduce the golden data.

    use ch02_two_threads::{ManyThreads, TwoThreads};
    use linrec::contract::{self, Domain, Table, golden};
    use linrec::{Element, Engine, Error, Options};
    use ndarray::Array2;
    use num_complex::Complex;

    fn passes<T: Element>(engine: &dyn Engine<T>, domain: Domain) {
        let report = contract::run::<T>(engine, &domain);
        println!("{report}");
        assert!(report.passed(), "{report}");
    }

    fn many_threads_pass<T: Element>(threads: usize) {
        let engine = ManyThreads::new(threads);
        passes::<T>(&engine, engine.domain().as_asked());
    }

    #[test]
    fn two_threads_in_single_precision() {
        passes::<f32>(&TwoThreads, TwoThreads::domain().as_asked());
    }

    #[test]
    fn two_threads_in_double_precision() {
        passes::<f64>(&TwoThreads, TwoThreads::domain().as_asked());
    }

    #[test]
    fn two_threads_in_complex_single_precision() {
        passes::<Complex<f32>>(&TwoThreads, TwoThreads::domain().as_asked());
    }

    #[test]
    fn two_threads_in_complex_double_precision() {
        passes::<Complex<f64>>(&TwoThreads, TwoThreads::domain().as_asked());
    }

    #[test]
    fn seven_threads_in_single_precision() {
        many_threads_pass::<f32>(7);
    }

    #[test]
    fn three_threads_in_double_precision() {
        many_threads_pass::<f64>(3);
    }

    #[test]
    fn three_threads_in_complex_single_precision() {
        many_threads_pass::<Complex<f32>>(3);
    }

    #[test]
    fn three_threads_in_complex_double_precision() {
        many_threads_pass::<Complex<f64>>(3);
    }

    #[test]
    fn beyond_the_table() {
        let drawn = |domain| Domain { table: Table::Drawn(200), ..domain };
        passes::<f32>(&TwoThreads, drawn(TwoThreads::domain()));
        let five = ManyThreads::new(5);
        passes::<f32>(&five, drawn(five.domain()));
        passes::<Complex<f64>>(&five, drawn(five.domain()));
    }

    #[test]
    fn golden_data() -> Result<(), Box<dyn std::error::Error>> {
        for case in golden::real()? {
            for threads in [1, 2, 3, 8, 33] {
                let distance = golden::distance::<f64>(&ManyThreads::new(threads), &case)?;
                assert!(distance < 1e-12, "{threads} threads, {}: {distance:e}", case.name);
            }
            let distance = golden::distance::<f64>(&TwoThreads, &case)?;
            assert!(distance < 1e-12, "two threads, {}: {distance:e}", case.name);
        }
        for case in golden::complex()? {
            let distance = golden::distance::<Complex<f64>>(&ManyThreads::new(5), &case)?;
            assert!(distance < 1e-12, "{}: {distance:e}", case.name);
        }
        Ok(())
    }

    #[test]
    fn zero_threads_are_an_error_that_names_the_cause() {
        let ones = Array2::<f32>::ones((1, 4));
        let result = ManyThreads::new(0).forward(ones.view(), ones.view(), &Options::default());
        let error = result.expect_err("nobody computed it");
        assert!(matches!(error, Error::Unsupported { .. }));
        assert_eq!(
            error.to_string(),
            "many threads does not support 0 threads: at least one thread is needed"
        );
    }
}
mod parts {
    //! The pieces: the tree, the operator, the counted steps, the exercises.

    use ch02_two_threads::exercises::{
        combine_on_the_way, final_state, reduce, two_threads_in_thirds,
    };
    use ch02_two_threads::{Part, Transition, many_threads, merge_groups, tree};
    use linrec::Error;
    use ndarray::{Array1, ArrayView1};
    use proptest::prelude::*;

    /// Draws whole numbers of one digit: sums and products of a few of them are exact.
    fn digits(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec((-9..10).prop_map(f64::from), len)
    }

    /// Draws a recurrence of whole and half numbers, which is exact as long as the sequence is
    /// short.
    fn sequence(len: std::ops::Range<usize>) -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
        let coeff = prop::sample::select(vec![0.5, 1.0, -1.0, 0.0, 2.0]);
        prop::collection::vec(((-9..10).prop_map(f64::from), coeff), len)
            .prop_map(|pairs| pairs.into_iter().unzip())
    }

    proptest! {
        #[test]
        fn the_operator_is_associative(numbers in digits(6..7)) {
            let [a, b, c] = [0, 2, 4].map(|i| Transition { coeff: numbers[i], state: numbers[i + 1] });
            prop_assert_eq!(a.then(b).then(c), a.then(b.then(c)));
        }

        #[test]
        fn the_tree_combines_every_entry_with_all_before_it(len in 0_usize..70) {
            // Ranges of positions reveal a combination of two entries that do not touch.
            let mut ranges: Vec<(usize, usize)> = (0..len).map(|i| (i, i)).collect();
            let mut touching = true;
            let levels = tree(&mut ranges, |a, b| {
                touching &= a.1 + 1 == b.0;
                (a.0, b.1)
            });
            prop_assert!(touching);
            prop_assert_eq!(ranges, (0..len).map(|i| (0, i)).collect::<Vec<_>>());
            prop_assert_eq!(levels, len.max(1).next_power_of_two().ilog2() as usize);
        }

        #[test]
        fn any_number_of_threads_gives_the_loop((x, c) in sequence(0..24), threads in 1_usize..40) {
            let expected = ch01_sequential_loop::linrec(&x, &c, 3.0);
            let mut y = Array1::from_elem(x.len(), f64::NAN);
            let part = Part::new(ArrayView1::from(&x), ArrayView1::from(&c), y.view_mut())?;
            let (state, steps) = many_threads(part, 3.0, threads)?;
            prop_assert_eq!(&y.to_vec(), &expected);
            prop_assert_eq!(state, expected.last().copied().unwrap_or(3.0));
            let levels = threads.next_power_of_two().ilog2() as usize;
            prop_assert!(steps.sequential() <= 2 * x.len().div_ceil(threads) + levels);

            let mut y = Array1::from_elem(x.len(), f64::NAN);
            let part = Part::new(ArrayView1::from(&x), ArrayView1::from(&c), y.view_mut())?;
            prop_assert_eq!(two_threads_in_thirds(part, 3.0)?, state);
            prop_assert_eq!(y.to_vec(), expected);
            prop_assert_eq!(final_state(&x, &c, 3.0, threads)?, state);
        }

        #[test]
        fn combining_without_stored_products_gives_the_same((x, c) in sequence(0..24)) {
            let mut y = ch01_sequential_loop::linrec(&x, &c, 0.0);
            combine_on_the_way(ArrayView1::from(&c), 3.0, &mut y);
            prop_assert_eq!(&y, &ch01_sequential_loop::linrec(&x, &c, 3.0));
            let whole = reduce(&x, &c);
            prop_assert_eq!(3.0 * whole.coeff + whole.state, y.last().copied().unwrap_or(3.0));
        }
    }

    #[test]
    fn unequal_lengths_are_an_error() {
        let (x, mut y) = (Array1::<f32>::zeros(3), Array1::<f32>::zeros(4));
        let error = Part::new(x.view(), x.view(), y.view_mut()).expect_err("3 inputs, 4 outputs");
        assert!(matches!(error, Error::ShapeMismatch { .. }), "{error}");
    }

    #[test]
    fn groups_of_size_zero_change_nothing() {
        let mut entries = [1, 2, 3];
        merge_groups(&mut entries, 0, |a, b| a + b);
        assert_eq!(entries, [1, 2, 3]);
        merge_groups(&mut entries, usize::MAX, |a, b| a + b);
        assert_eq!(entries, [1, 2, 3]);
    }
}
