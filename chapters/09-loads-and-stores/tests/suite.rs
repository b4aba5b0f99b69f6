//! Chapter 9's tests, in one program so that it is linked once. The library's own tests run the
//! contract on this chapter's kernels.

mod kernels {
    //! The exercises' kernels.

    use ch08_reverse_and_backward::pipe;
    use ch09_loads_and_stores::ahead;
    use ch09_loads_and_stores::strides::{self, Known};
    use linrec::contract::Domain;
    use linrec::device::{Device, Function, KernelEngine, under_test};
    use linrec::kernels::Memcode;
    use linrec::reference::{self, Rounding};
    use linrec::{Direction, Engine, Options};
    use ndarray::Array2;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    fn data(shape: (usize, usize)) -> (Array2<f32>, Array2<f32>) {
        let mut rng = StdRng::seed_from_u64(8);
        let mut draw = |low: f32, high: f32| {
            Array2::from_shape_simple_fn(shape, || rng.random_range(low..high))
        };
        (draw(-1.0, 1.0), draw(0.98, 1.0))
    }

    /// Returns the outputs of a kernel that is launched by hand.
    fn outputs(
        device: &Device,
        kernel: &Function,
        size: ((u32, u32), u32),
        (x, c): &(Array2<f32>, Array2<f32>),
        direction: Direction,
    ) -> Array2<f32> {
        let inputs = device.upload(x.as_slice().unwrap()).unwrap();
        let coeffs = device.upload(c.as_slice().unwrap()).unwrap();
        let mut outputs = device.allocate::<f32>(x.len()).unwrap();
        outputs.poison().unwrap();
        let launch =
            strides::launch(kernel, size, &inputs, &coeffs, &mut outputs, x.dim(), direction);
        launch.run(&device.stream()).unwrap();
        Array2::from_shape_vec(x.dim(), outputs.download().unwrap()).unwrap()
    }

    /// Asserts that the kernel has the pipe kernel's bits for 8 x 64, and is within the bound for
    /// any size.
    fn is_right(device: &Device, kernel: &Function, size: ((u32, u32), u32)) {
        for seq_len in [1, 31, 77, 512, 513, 1300] {
            for direction in [Direction::Forward, Direction::Reverse] {
                let data = data((3, seq_len));
                let (x, c) = (data.0.view(), data.1.view());
                let options = Options { direction, ..Options::default() };
                let mine = outputs(device, kernel, size, &data, direction);
                if size.0 == (8, 64) {
                    let engine = KernelEngine::<f32>::new(device, pipe(Memcode::Direct)).unwrap();
                    let theirs = engine.forward(x, c, &options).unwrap().outputs;
                    assert_eq!(mine, theirs, "{} {seq_len} {direction:?}", kernel.name());
                }
                let exact = reference::forward(x, c, &options).unwrap().outputs;
                let rounding = Rounding { levels: Domain::tree_levels(seq_len), exp_ulps: 0.0 };
                let bound = reference::forward_bound(x, c, &options, rounding).unwrap().outputs;
                for ((mine, exact), bound) in mine.iter().zip(&exact).zip(&bound) {
                    assert!(
                        (f64::from(*mine) - exact).abs() <= *bound,
                        "{} {seq_len}",
                        kernel.name()
                    );
                }
            }
        }
    }

    #[test]
    fn strides_change_no_bit() {
        for device in under_test() {
            let module = strides::module(&device).unwrap();
            for size in strides::SIZES {
                for known in Known::ALL {
                    let kernel = module.function(&strides::entry(size, known)).unwrap();
                    is_right(&device, &kernel, (size, 0));
                }
            }
        }
    }

    #[test]
    fn loading_ahead_changes_no_bit() {
        for device in under_test() {
            let module = ahead::module(&device).unwrap();
            for size in ahead::SIZES {
                for free in ahead::FREE {
                    let kernel = module.function(&ahead::entry(size, free)).unwrap();
                    is_right(&device, &kernel, (size, ahead::shared_bytes(size, free)));
                }
            }
        }
    }
}
