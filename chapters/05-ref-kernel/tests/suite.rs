//! Chapter 5's tests, in one program so that it is linked once. The library's own tests run the
//! contract on this chapter's kernel.

mod kernel {
    //! The host code, the bits, the patterns and the suspects.

    use ch01_sequential_loop::Loop;
    use ch05_ref_kernel::Suspect;
    use ch05_ref_kernel::by_hand::{self, CHOICE, THREADS};
    use ch05_ref_kernel::fused::fused;
    use ch05_ref_kernel::patterns::{PATTERNS, Pattern};
    use linrec::device::{Buffer, Device, KernelEngine, Recurrence, Storage, under_test};
    use linrec::simt::Access;
    use linrec::{Direction, Element, Engine, Error, Options};
    use ndarray::{Array1, Array2};
    use num_complex::Complex;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn a_launch_by_hand_gives_the_loops_outputs_without_rounding() {
        let (num_seqs, seq_len) = (THREADS + 3, 5);
        let values: Vec<f32> = (0..num_seqs * seq_len).map(|i| f32::from((i % 7) as u8)).collect();
        let array = Array2::from_shape_vec((num_seqs as usize, seq_len as usize), values.clone());
        let array = array.unwrap();
        let expected =
            Loop.forward(array.view(), array.view(), &Options::default()).unwrap().outputs;
        for device in under_test() {
            let (outputs, _) =
                by_hand::forward(&device, &values, &values, (num_seqs, seq_len)).unwrap();
            assert_eq!(outputs, expected.as_slice().unwrap());
        }
    }

    #[test]
    fn the_emulator_reports_unchecked_arguments() {
        let device = Device::simt();
        let error = by_hand::forward(&device, &[1.0; 6], &[1.0; 5], (2, 3)).unwrap_err();
        let sentence = error.to_string();
        assert!(matches!(error, Error::Kernel(_)), "{sentence}");
        for words in ["block 0, warp 0, lane 1", "buffer `coeffs`", "kernels/linrec_ref.cu:32"] {
            assert!(sentence.contains(words), "`{words}` is not in: {sentence}");
        }
        let error = by_hand::forward(&device, &[], &[], (0, 3)).unwrap_err();
        assert!(error.to_string().contains("is empty"), "{error}");
    }

    /// Asserts that the kernel and the loop with one rounding per step agree in every bit.
    fn same_bits<T: Element + Storage<Accum = T>>() {
        let mut rng = StdRng::seed_from_u64(50);
        let mut draw = |low: f64, high: f64| {
            let (length, angle) = (rng.random_range(low..high), rng.random_range(0.0..6.0));
            T::from_polar(length, angle)
        };
        let shape = (70, 301);
        let inputs = Array2::from_shape_simple_fn(shape, || draw(-1.0, 1.0));
        let coeffs = Array2::from_shape_simple_fn(shape, || draw(0.9, 1.0));
        let initial = Array1::from_shape_simple_fn(shape.0, || draw(-10.0, 10.0));
        for device in under_test() {
            let engine = KernelEngine::<T>::new(&device, CHOICE).unwrap();
            for direction in [Direction::Forward, Direction::Reverse] {
                let options =
                    Options { direction, initial: Some((&initial).into()), ..Options::default() };
                let kernel = engine.forward(inputs.view(), coeffs.view(), &options).unwrap();
                let host = fused(inputs.view(), coeffs.view(), &options).unwrap();
                assert_eq!(kernel.outputs, host.outputs, "{} on {device:?}", T::NAME);
                assert_eq!(kernel.final_state, host.final_state, "{} on {device:?}", T::NAME);
            }
        }
    }

    #[test]
    fn the_kernel_has_the_bits_of_a_loop_with_one_rounding_a_step() {
        same_bits::<f32>();
        same_bits::<f64>();
        same_bits::<Complex<f32>>();
        same_bits::<Complex<f64>>();
    }

    #[test]
    fn instances_are_chosen_by_type_and_direction() {
        for device in under_test() {
            let name = |function: Result<linrec::device::Function, Error>| {
                function.unwrap().name().to_owned()
            };
            let forward = by_hand::instance::<f32>(&device, Direction::Forward);
            assert_eq!(name(forward), "linrec_ref_fwd_float_false");
            let reverse = by_hand::instance::<Complex<f64>>(&device, Direction::Reverse);
            assert_eq!(name(reverse), "linrec_ref_fwd_complex_double_true");
        }
    }

    #[test]
    fn patterns_cost_what_the_page_says() {
        let per_load =
            PATTERNS.map(|pattern| pattern.cost().unwrap().sectors_per_request(Access::GlobalLoad));
        assert_eq!(per_load, [4.0, 5.0, 8.0, 8.0, 16.0, 1.0, 8.0, 16.0, 32.0, 32.0]);
        let cost = Pattern::Strided(4).cost().unwrap();
        assert_eq!(cost.used(), 0.25);
        assert!(Pattern::Coalesced(3).cost().is_err());
    }

    /// Returns the sectors per load request of the reference kernel, with rows far longer than a
    /// sector.
    fn sectors_of_the_kernel<S: Storage>() -> f64 {
        let (num_seqs, seq_len) = (64, 40);
        let device = Device::simt();
        let array = |name| -> Result<Buffer<S>, Error> {
            let mut array = device.allocate_named(name, num_seqs * seq_len)?;
            array.zero()?;
            Ok(array)
        };
        let recurrence = Recurrence::<S>::new(&device, CHOICE).unwrap();
        let (inputs, coeffs) = (array("inputs").unwrap(), array("coeffs").unwrap());
        let mut outputs = array("outputs").unwrap();
        let shape = (num_seqs, seq_len);
        let launched = recurrence
            .forward_into(&inputs, &coeffs, &mut outputs, shape, Default::default())
            .unwrap();
        let counters = launched.counters().unwrap();
        let [sectors, requests] =
            [counters.sectors(Access::GlobalLoad), counters.requests(Access::GlobalLoad)];
        assert_eq!(requests, 2 * 2 * seq_len as u64, "two arrays, two warps");
        sectors as f64 / requests as f64
    }

    #[test]
    fn every_lane_needs_a_sector_for_any_element_type() {
        let per_request = [
            sectors_of_the_kernel::<f32>(),
            sectors_of_the_kernel::<f64>(),
            sectors_of_the_kernel::<Complex<f32>>(),
            sectors_of_the_kernel::<Complex<f64>>(),
        ];
        assert_eq!(per_request, [32.0; 4]);
    }

    #[test]
    fn every_planted_mistake_is_found() {
        assert!(Suspect::names().count() >= 10);
        for name in Suspect::names() {
            let Some(found) = Suspect::new(name).unwrap().examine() else {
                panic!("nothing was found in {name}");
            };
            println!("{name}: {found}");
        }
        assert!(Suspect::new("nothing_of_the_kind").is_err());
    }

    #[test]
    fn nothing_is_found_in_their_twins() {
        for name in ["ref-f32", "block_scan", "look_back"] {
            assert_eq!(Suspect::load(name).unwrap().examine(), None, "{name}");
        }
    }
}
