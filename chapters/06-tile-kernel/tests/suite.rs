//! Chapter 6's tests, in one program so that it is linked once. The library's own tests run the
//! contract on this chapter's kernel.

mod kernel {
    //! The stages, the bits, the limits and the suspects.

    use ch02_two_threads::Transition;
    use ch05_ref_kernel::fused::fused;
    use ch06_tile_kernel::layout::shares;
    use ch06_tile_kernel::levels::{LANES, scan_thread, scan_tile, scan_warp};
    use ch06_tile_kernel::stages::{self, CHOICE, stage};
    use linrec::contract::suspect;
    use linrec::device::{Device, KernelEngine, Storage, under_test};
    use linrec::kernels::{Algocode, ElementType, Pass};
    use linrec::simt::Access;
    use linrec::{Direction, Element, Engine, Options, kernels};
    use ndarray::{Array1, Array2, Axis};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    /// Draws data with coefficients near one, so that every lost contribution shows.
    fn data<T: Element>(shape: (usize, usize)) -> (Array2<T>, Array2<T>) {
        let mut rng = StdRng::seed_from_u64(62);
        let mut draw = |low: f64, high: f64| {
            Array2::from_shape_simple_fn(shape, || T::from_real(rng.random_range(low..high)))
        };
        (draw(-1.0, 1.0), draw(0.98, 1.0))
    }

    /// Asserts that kernel and host agree in every bit, for rows of this length and in both
    /// directions.
    fn same_bits<T: Element + Storage<Accum = T>>(device: &Device, seq_len: usize) {
        let (inputs, coeffs) = data::<T>((3, seq_len));
        let initial = Array1::from_vec([-2.0, 0.0, 5.0].map(T::from_real).to_vec());
        let engine = KernelEngine::<T>::new(device, CHOICE).unwrap();
        let threads =
            CHOICE.geometry(T::ELEMENT, Pass::Forward, 3, seq_len as u64).threads as usize;
        let shares = shares(seq_len, threads);
        for direction in [Direction::Forward, Direction::Reverse] {
            let options =
                Options { direction, initial: Some((&initial).into()), ..Options::default() };
            let outputs = engine.forward(inputs.view(), coeffs.view(), &options).unwrap().outputs;
            for row in 0..3 {
                let steps = |array: &Array2<T>| {
                    let mut row = array.row(row).to_owned();
                    if direction == Direction::Reverse {
                        row.invert_axis(Axis(0));
                    }
                    row.to_vec()
                };
                let host = scan_tile(&steps(&inputs), &steps(&coeffs), initial[row], &shares, 4);
                assert_eq!(steps(&outputs), host, "{} {seq_len} {direction:?}", T::NAME);
            }
        }
    }

    #[test]
    fn the_kernel_has_the_bits_of_its_levels_on_the_host() {
        for device in under_test() {
            for seq_len in (1..=1024).step_by(7).chain([128, 256, 1000, 1023, 1024]) {
                same_bits::<f32>(&device, seq_len);
            }
            for seq_len in [1, 33, 77, 129, 500, 1024] {
                same_bits::<f64>(&device, seq_len);
            }
        }
    }

    #[test]
    fn a_stage_performs_exactly_its_levels() {
        for device in under_test() {
            for seq_len in [1, 77, 128, 129, 1000] {
                let (x, c) = data::<f32>((1, seq_len));
                let (inputs, coeffs) = (x.as_slice().unwrap(), c.as_slice().unwrap());
                let run =
                    |algocode| stages::outputs(&device, algocode, x.view(), c.view()).unwrap();
                assert_eq!(run(Algocode::Copy), x);

                let threads = CHOICE
                    .geometry(ElementType::F32, Pass::Forward, 1, seq_len as u64)
                    .threads as usize;
                let shares = shares(seq_len, threads);
                let (mut states, mut lanes) = (Vec::new(), Vec::new());
                for share in &shares {
                    let (mut c, mut y) =
                        (coeffs[share.steps()].to_vec(), inputs[share.steps()].to_vec());
                    scan_thread(&mut c, &mut y);
                    let last = |of: &[f32], otherwise| of.last().copied().unwrap_or(otherwise);
                    lanes.push(Transition { coeff: last(&c, 1.0), state: last(&y, 0.0) });
                    states.extend(y.iter().copied().zip(c));
                }
                let level_1: Vec<f32> = states.iter().map(|&(y, _)| y).collect();
                assert_eq!(run(Algocode::Thread).as_slice().unwrap(), level_1);

                lanes.chunks_mut(LANES).for_each(scan_warp);
                let mut level_2 = Vec::new();
                for (thread, share) in shares.iter().enumerate() {
                    let before = if thread % LANES == 0 { 0.0 } else { lanes[thread - 1].state };
                    let mine = &states[share.steps()];
                    level_2.extend(mine.iter().map(|&(y, c)| before.mul_add(c, y)));
                }
                assert_eq!(run(Algocode::Warp).as_slice().unwrap(), level_2);
            }
        }
    }

    #[test]
    fn early_stages_do_not_compute_the_recurrence() {
        let (x, c) = data::<f32>((1, 1000));
        let right = fused(x.view(), c.view(), &Options::default()).unwrap().outputs;
        for (algocode, part) in Algocode::ALL.into_iter().zip([1, 4, 128]) {
            let outputs = stages::outputs(&Device::simt(), algocode, x.view(), c.view()).unwrap();
            let far = |l: usize| (outputs[[0, l]] - right[[0, l]]).abs() > 1e-4;
            assert_eq!((0..1000).find(|&l| far(l)), Some(part), "algocode {algocode}");
        }
    }

    #[test]
    fn stages_have_no_backward_pass() {
        let (x, c) = data::<f32>((1, 10));
        let engine = KernelEngine::<f32>::new(&Device::simt(), stage(Algocode::Warp)).unwrap();
        let outcome = engine.backward(x.view(), c.view(), x.view(), &Options::default());
        assert!(outcome.unwrap_err().to_string().contains("linrec_tile_bwd"));
    }

    #[test]
    fn a_longer_sequence_is_refused_with_the_limit_and_advice() {
        for device in under_test() {
            let engine = KernelEngine::<f32>::new(&device, CHOICE).unwrap();
            let (x, c) = data::<f32>((2, 1025));
            let error = engine.forward(x.view(), c.view(), &Options::default()).unwrap_err();
            let sentence = error.to_string();
            for words in ["1025 elements", "1024 at most", "`auto` takes any length"] {
                assert!(sentence.contains(words), "`{words}` is not in: {sentence}");
            }
        }
    }

    #[test]
    fn two_lanes_share_a_sector() {
        for (seq_len, per_request) in [(32, 4.0), (64, 8.0), (96, 12.0), (128, 16.0), (1024, 16.0)]
        {
            let launched = stages::counted(CHOICE, (3, seq_len)).unwrap();
            let counters = launched.counters().unwrap();
            for access in [Access::GlobalLoad, Access::GlobalStore] {
                let (sectors, requests) = (counters.sectors(access), counters.requests(access));
                assert_eq!(sectors as f64 / requests as f64, per_request, "{seq_len}");
            }
        }
    }

    #[test]
    fn every_planted_mistake_is_found() {
        assert!(suspect::names("linrec_tile.cu").count() >= 1);
        for name in suspect::names("linrec_tile.cu") {
            let (engine, domain) = suspect::load(&format!("broken/{name}"), CHOICE).unwrap();
            println!("{name}: {}", suspect::examine(&engine, &domain).expect("a planted mistake"));
        }
        assert!(suspect::load("broken/nothing_of_the_kind", CHOICE).is_err());
    }

    #[test]
    fn zero_for_missing_coefficients_shows_if_a_register_has_no_step() {
        let program = kernels::program("broken/zero_for_missing_coefficients.cu").unwrap();
        let program = program.with_entries(["linrec_tile_fwd<float, 4, 256, 0, 3>"]);
        let engine = KernelEngine::<f32>::from_program(&Device::simt(), CHOICE, &program).unwrap();
        for seq_len in [1, 2, 100, 127, 128, 129, 255, 256, 257, 384, 1000, 1023, 1024] {
            let (x, c) = data::<f32>((1, seq_len));
            let broken = engine.forward(x.view(), c.view(), &Options::default()).unwrap();
            let right = KernelEngine::<f32>::new(&Device::simt(), CHOICE).unwrap();
            let right = right.forward(x.view(), c.view(), &Options::default()).unwrap();
            assert_eq!(broken.final_state == right.final_state, seq_len % 128 == 0, "{seq_len}");
            // Only the last thread has a register without a step, and only the carry comes after
            // it.
            if seq_len % 128 == 127 {
                let wrong =
                    broken.outputs.indexed_iter().filter(|&(at, y)| *y != right.outputs[at]);
                assert_eq!(wrong.map(|((_, step), _)| step).collect::<Vec<_>>(), [seq_len - 1]);
            }
        }
    }

    /// The exercises' kernels, in CUDA.
    #[test]
    fn nothing_is_found_in_the_exercises_kernels() {
        for name in ["exercises/reverse_by_shfl_down", "exercises/spread_tail"] {
            let (engine, domain) = suspect::load(name, CHOICE).unwrap();
            assert_eq!(suspect::examine(&engine, &domain), None, "{name}");
        }
    }
}
