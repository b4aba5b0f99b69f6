//! Chapter 7's tests, in one program so that it is linked once.

mod contract {
    //! The tile kernel in tiles, on every device. The library's own tests run the contract on the
    //! pipe kernel.

    use ch07_pipe_kernel::{InTiles, TILE, TILE_LEN};
    use linrec::contract::{self, Domain};
    use linrec::device::{KernelEngine, under_test};

    /// Two tiles of one length, ten of the other.
    const MAX_LEN: usize = 1000;

    #[test]
    fn any_engine_in_tiles_passes() {
        for device in under_test() {
            // Tiles that are not a multiple of anything, and shorter than the kernel's own.
            for tile in [TILE_LEN, 100] {
                let kernel = KernelEngine::<f32>::new(&device, TILE).unwrap();
                let domain = Domain { max_len: MAX_LEN, tile, ..kernel.domain() };
                let report = contract::run::<f32>(&InTiles::new(&kernel, tile), &domain.as_asked());
                assert!(report.passed(), "{report}");
                println!("{report}");
            }
        }
    }
}
mod pipe {
    //! Tiles from outside and inside, far rows, and the suspects.

    use ch07_pipe_kernel::far::{SEQ_LEN, last_rows};
    use ch07_pipe_kernel::{InTiles, PIPE, TILE, TILE_LEN};
    use linrec::contract::Domain;
    use linrec::contract::suspect;
    use linrec::device::{Device, KernelEngine, under_test};
    use linrec::kernels::Pass;
    use linrec::{Direction, Engine, Options};
    use ndarray::{Array1, Array2};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    fn data(shape: (usize, usize)) -> (Array2<f32>, Array2<f32>) {
        let mut rng = StdRng::seed_from_u64(77);
        let mut draw = |low: f32, high: f32| {
            Array2::from_shape_simple_fn(shape, || rng.random_range(low..high))
        };
        (draw(-1.0, 1.0), draw(0.98, 1.0))
    }

    #[test]
    fn one_launch_has_the_bits_of_many() {
        let (inputs, coeffs) = data((5, 2 * TILE_LEN + 301));
        for device in under_test() {
            let pipe = KernelEngine::<f32>::new(&device, PIPE).unwrap();
            for direction in [Direction::Forward, Direction::Reverse] {
                let initial = Some(Array1::from_elem(5, 3.0));
                let options =
                    Options { direction, initial: initial.map(Into::into), ..Options::default() };
                let (x, c) = (inputs.view(), coeffs.view());
                let whole = pipe.forward(x, c, &options).unwrap();
                let parts = InTiles::new(&pipe, TILE_LEN).forward(x, c, &options).unwrap();
                assert_eq!(whole, parts, "{direction:?} on {device:?}");
            }
        }
    }

    #[test]
    fn empty_arrays_pass_through_tiles() {
        let empty = Array2::<f32>::zeros((3, 0));
        let tile = KernelEngine::<f32>::new(&Device::simt(), TILE).unwrap();
        let in_tiles = InTiles::new(&tile, 0);
        let initial = Array1::from_elem(3, 7.0);
        let options = Options { initial: Some((&initial).into()), ..Options::default() };
        let result = in_tiles.forward(empty.view(), empty.view(), &options).unwrap();
        assert_eq!(result.final_state, initial);
        let result = in_tiles.forward(empty.view(), empty.view(), &Options::default()).unwrap();
        assert_eq!(result.final_state, Array1::<f32>::zeros(3));
    }

    #[test]
    fn rows_past_2_to_the_31_have_the_same_bits() {
        let (inputs, coeffs) = data((1, SEQ_LEN));
        let pipe = KernelEngine::<f32>::new(&Device::simt(), PIPE).unwrap();
        let near = pipe.forward(inputs.view(), coeffs.view(), &Options::default()).unwrap().outputs;
        let kernel = pipe.recurrence().function(Pass::Forward, Direction::Forward).unwrap();
        let (x, c) = (inputs.as_slice().unwrap(), coeffs.as_slice().unwrap());
        let far = last_rows(kernel, x, c, 2).unwrap();
        assert_eq!(near.as_slice().unwrap(), &far[..SEQ_LEN]);
        assert_eq!(near.as_slice().unwrap(), &far[SEQ_LEN..]);
    }

    #[test]
    fn every_planted_mistake_is_found() {
        let mut names: Vec<_> = suspect::names("linrec_pipe.cu").collect();
        names.sort_unstable();
        assert_eq!(names, ["forgotten_between_tiles", "totals_not_in_turns", "unshifted_in_scan"]);
        for name in names {
            let (engine, domain) = suspect::load(&format!("broken/{name}"), PIPE).unwrap();
            let Some(found) = suspect::examine(&engine, &domain) else {
                panic!("nothing was found in {name}");
            };
            println!("{name}: {found}");
        }
        assert!(suspect::load("broken/nothing_of_the_kind", PIPE).is_err());
    }

    #[test]
    fn nothing_is_found_in_their_twin() {
        let engine = KernelEngine::<f32>::new(&Device::simt(), PIPE).unwrap();
        let domain = Domain { max_len: 1100, ..engine.domain() };
        assert_eq!(suspect::examine(&engine, &domain), None);
    }
}
