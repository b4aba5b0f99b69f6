//! Chapter 10's tests, in one program so that it is linked once.

mod contract {
    //! Every step of the ladder on every device.

    use ch10_speed_of_memory::kernel::Kernel;
    use ch10_speed_of_memory::rung::{Idea, Rung};
    use linrec::contract::{self, Domain};
    use linrec::device::{Copying, under_test};
    use linrec::{Direction, Engine, Options};
    use ndarray::Array2;

    /// Just past four tiles.
    const MAX_LEN: usize = 4100;

    #[test]
    fn every_step_passes() {
        for device in under_test() {
            for idea in Idea::ALL.into_iter().filter(|idea| *idea != Idea::Walk) {
                let kernel = Kernel::new(&device, Rung::shipped(idea)).unwrap();
                let domain = Domain { max_len: MAX_LEN, ..kernel.domain() };
                let report = contract::run::<f32>(&Copying::from(kernel), &domain.as_asked());
                assert!(report.passed(), "{report}");
                assert!(report.cases > 300, "{report}");
                println!("{report}");
            }
        }
    }

    #[test]
    fn the_first_step_of_the_ladder_adds() {
        let x = Array2::from_shape_fn((3, 2052), |(row, l)| (row * 7 + l % 1000) as f32);
        let c = Array2::from_shape_fn((3, 2052), |(row, l)| (l % 77) as f32 - row as f32);
        for device in under_test() {
            let kernel = Copying::from(Kernel::new(&device, Rung::shipped(Idea::Walk)).unwrap());
            let sum = kernel.forward(x.view(), c.view(), &Options::default()).unwrap().outputs;
            assert_eq!(sum, &x + &c);
        }
    }

    #[test]
    fn unsupported_arrays_are_refused_with_the_numbers() {
        let device = linrec::device::Device::simt();
        let kernel = Copying::from(Kernel::new(&device, Rung::shipped(Idea::Pieces)).unwrap());
        let row = Array2::<f32>::zeros((1, 6));
        let error_with =
            |options| kernel.forward(row.view(), row.view(), &options).unwrap_err().to_string();
        let error = error_with(Options::default());
        assert!(
            error.contains("rows of 6 elements") && error.contains("pieces:2x128@simt"),
            "{error}"
        );
        let error = error_with(Options { direction: Direction::Reverse, ..Options::default() });
        assert!(error.contains("reverse"), "{error}");
    }
}
