//! Chapter 4's tests, in one program so that it is linked once.

mod contract {
    //! The backward pass through the forward pass, around two engines.

    use ch01_sequential_loop::Loop;
    use ch03_matrix_form::Matrix;
    use ch04_gradient::ThroughForward;
    use linrec::contract::{self, Domain, Table, golden};
    use linrec::{Element, Engine};
    use num_complex::Complex;

    fn passes<T: Element>(engine: &dyn Engine<T>, domain: Domain) {
        let report = contract::run::<T>(engine, &domain);
        assert!(report.passed(), "{report}");
        println!("{report}");
    }

    #[test]
    fn f32_passes() {
        passes::<f32>(&ThroughForward(Loop), Domain::default().as_asked());
    }

    #[test]
    fn f64_passes() {
        passes::<f64>(&ThroughForward(Loop), Domain::default().as_asked());
    }

    #[test]
    fn complex_f32_passes() {
        passes::<Complex<f32>>(&ThroughForward(Loop), Domain::default().as_asked());
    }

    #[test]
    fn complex_f64_passes() {
        passes::<Complex<f64>>(&ThroughForward(Loop), Domain::default().as_asked());
    }

    #[test]
    fn other_engines_pass() {
        let short = Domain { max_len: 100, ..Matrix::domain() };
        passes::<f32>(&ThroughForward(Matrix), short.clone());
        passes::<Complex<f64>>(&ThroughForward(Matrix), short);
    }

    #[test]
    fn beyond_the_table() {
        let drawn = Domain { table: Table::Drawn(200), ..Domain::default() };
        passes::<f32>(&ThroughForward(Loop), drawn.clone());
        passes::<Complex<f64>>(&ThroughForward(Loop), drawn);
    }

    #[test]
    fn golden_data_agree() {
        for case in golden::real().unwrap() {
            let distance = golden::distance::<f64>(&ThroughForward(Loop), &case).unwrap();
            assert!(distance <= 1e-12, "{}: {distance:e}", case.name);
        }
        for case in golden::complex().unwrap() {
            let distance = golden::distance::<Complex<f64>>(&ThroughForward(Loop), &case).unwrap();
            assert!(distance <= 1e-12, "{}: {distance:e}", case.name);
        }
    }
}
mod gradient {
    //! Shifts, slopes, the chain rule and the model.

    use approx::assert_abs_diff_eq;
    use ch01_sequential_loop::Loop;
    use ch04_gradient::ThroughForward;
    use ch04_gradient::differences::{central_differences, complex_step};
    use ch04_gradient::model::{Adam, Memory};
    use ch04_gradient::shift::{first, shift};
    use ch04_gradient::task::Batch;
    use linrec::{Direction, Error};
    use ndarray::{Array2, array};
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    #[test]
    fn shifts_follow_the_direction() {
        let array = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let fill = array![8.0, 9.0];
        let forward = shift(array.view(), Direction::Forward, fill.view()).unwrap();
        assert_eq!(forward, array![[8.0, 1.0, 2.0], [9.0, 4.0, 5.0]]);
        let reverse = shift(array.view(), Direction::Reverse, fill.view()).unwrap();
        assert_eq!(reverse, array![[2.0, 3.0, 8.0], [5.0, 6.0, 9.0]]);
        assert_eq!(first(array.view(), Direction::Reverse), array![3.0, 6.0]);
        let empty = Array2::<f64>::zeros((2, 0));
        assert_eq!(shift(empty.view(), Direction::Forward, fill.view()).unwrap(), empty);
        assert_eq!(first(empty.view(), Direction::Forward), array![0.0, 0.0]);
        assert!(shift(array.view(), Direction::Forward, array![8.0].view()).is_err());
    }

    #[test]
    fn differences_give_the_slopes_of_a_cubic() {
        let at = array![2.0, -1.0];
        let central = central_differences(at.view(), 1e-5, |p| Ok::<_, Error>(p[0].powi(3) * p[1]));
        let by_complex = complex_step(at.view(), |p| Ok::<_, Error>(p[0].powi(3) * p[1])).unwrap();
        for (got, tolerance) in [(central.unwrap(), 1e-8), (by_complex, 1e-14)] {
            assert_abs_diff_eq!(got, array![-12.0, 8.0], epsilon = tolerance);
        }
    }

    #[test]
    fn targets_repeat_the_last_marked_value() {
        let batch = Batch::draw(&mut StdRng::seed_from_u64(1), 5, 40);
        for ((seq, l), &target) in batch.targets.indexed_iter() {
            let last = (0..=l).rev().find(|&k| batch.keep[[seq, k]] == 1.0);
            assert_eq!(target, batch.values[[seq, last.unwrap()]]);
            assert!(batch.keep[[seq, l]] + batch.decoy[[seq, l]] <= 1.0);
        }
    }

    #[test]
    fn the_models_gradient_is_the_slope_of_its_loss() {
        let engine = ThroughForward(Loop);
        let batch = Batch::draw(&mut StdRng::seed_from_u64(2), 3, 30);
        for mut memory in [Memory::selective(), Memory::fixed()] {
            memory.weights.iter_mut().enumerate().for_each(|(i, w)| *w = 0.5 - 0.3 * i as f64);
            let (_, gradient) = memory.loss_and_gradient(&engine, &batch).unwrap();
            let slopes = central_differences(memory.weights.view(), 1e-5, |weights| {
                let there = Memory { weights: weights.to_owned(), ..memory };
                there.loss_and_gradient(&engine, &batch).map(|(loss, _)| loss)
            });
            assert_abs_diff_eq!(gradient, slopes.unwrap(), epsilon = 1e-9);
        }
    }

    #[test]
    fn adam_finds_the_bottom_of_a_bowl() {
        let mut weights = array![3.0, -2.0];
        let mut adam = Adam::new(2, 0.1);
        for _ in 0..500 {
            let gradient = array![2.0 * (weights[0] - 1.0), 20.0 * (weights[1] - 0.5)];
            adam.step(&mut weights, &gradient);
        }
        assert_abs_diff_eq!(weights, array![1.0, 0.5], epsilon = 1e-2);
    }
}
