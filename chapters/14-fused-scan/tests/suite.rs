//! The tests of chapter 14: one program, linked once.
//!
//! Each module has one subject: chunks, gradients, the ladder of kernels, planted mistakes,
//! training. Kernels run on the emulator, and also on a GPU if the machine has one. A result is
//! compared with double precision and a derived bound, or bit by bit with the library, because a
//! tolerance without a derivation would hide a lost state.

mod chunks {
    //! Sequences that are cut.

    use ch14_fused_scan::chunks::compute;
    use ch14_fused_scan::ladder::Rung;
    use ch14_fused_scan::problem::{Problem, Sizes, relative, worst};
    use linrec::device::{Exponential, under_test};

    /// A chunk begins from a state that was computed in another order, to which the bound of a walk
    /// does not apply. So the outputs are compared with the page's statement on cuts: they add
    /// hardly anything to the error of a walk.
    #[test]
    fn chunks_give_the_results_of_one_walk() {
        let problem = Problem::draw(Sizes { batch: 1, channels: 20, len: 1100 }, true, 5);
        let expected = problem.outputs(Rung::Shipped.order(problem.sizes.len));
        for device in under_test() {
            for exponential in [Exponential::Fast, Exponential::Exact] {
                let (whole, once) = compute(&device, exponential, &problem, 1).unwrap();
                assert!(worst(&whole, &expected) <= 1.0, "{}", device.label());
                let uncut = relative(&whole, &expected);
                for chunks in [2, 5, 40] {
                    let (out, more) = compute(&device, exponential, &problem, chunks).unwrap();
                    let error = relative(&out, &expected);
                    let what = format!("{} {exponential:?}, {chunks}", device.label());
                    assert!(error - uncut <= 1e-6, "{what}: {error}, and {uncut} uncut");
                    // The first chunk ends in the walk's own state, so two chunks change no bit.
                    assert_eq!(out == whole, chunks == 2, "{chunks} chunks");
                    assert!(
                        !device.is_simt() || more > once,
                        "{chunks}: {more}, not more than {once}"
                    );
                    assert_eq!(out, compute(&device, exponential, &problem, chunks).unwrap().0);
                }
            }
        }
    }
}
mod gradients {
    //! Gradients of the library's kernel: their bits and their errors.

    use ch14_fused_scan::backward::{NAMES, compute, exact, relative, with_threads};
    use ch14_fused_scan::problem::{Problem, Sizes};
    use linrec::device::{Device, Exponential, under_test};
    use linrec::simt::Class;

    fn drawn() -> (Problem, Vec<f32>) {
        let problem = Problem::draw(Sizes { batch: 2, channels: 40, len: 50 }, false, 3);
        let d_out = Problem::draw(problem.sizes, false, 4).u;
        (problem, d_out)
    }

    #[test]
    fn gradients_are_as_exact_as_the_page_says() {
        let (problem, d_out) = drawn();
        let exact = exact(&problem, &d_out).unwrap();
        for device in under_test() {
            for exponential in [Exponential::Fast, Exponential::Exact] {
                let computed = compute(&device, exponential, &problem, &d_out).unwrap();
                for (name, error) in NAMES.into_iter().zip(relative(&computed, &exact)) {
                    assert!(error <= 3e-6, "{name} {exponential:?} on {}: {error}", device.label());
                }
            }
        }
    }

    #[test]
    fn bits_do_not_depend_on_threads_and_no_number_is_added_atomically() {
        let (problem, d_out) = drawn();
        let first = compute(&Device::simt(), Exponential::Fast, &problem, &d_out).unwrap();
        assert_eq!(first.counters.class(Class::Atomic), 0);
        for threads in [1, 3] {
            let other = with_threads(threads, Exponential::Fast, &problem, &d_out).unwrap();
            assert!(other.bits() == first.bits(), "{threads} threads");
        }
    }
}
mod ladder {
    //! The rungs on every device.

    use ch14_fused_scan::counts::Counted;
    use ch14_fused_scan::ladder::{Arrays, Kernel, Rung};
    use ch14_fused_scan::life::{self, Act};
    use ch14_fused_scan::problem::{Problem, Sizes, worst};
    use linrec::device::{Device, Exponential, SelectiveScan, under_test};
    use linrec::simt::Class;

    fn sizes(batch: usize, channels: usize, len: usize) -> Sizes {
        Sizes { batch, channels, len }
    }

    #[test]
    fn every_rung_is_within_its_bound() {
        for device in under_test() {
            for rung in Rung::ALL {
                let kernel = Kernel::new(&device, rung).unwrap();
                for (sizes, slow) in [
                    (sizes(2, 3, 100), false),
                    (sizes(1, 70, 36), true),
                    (sizes(1, 2, 1000), true),
                    (sizes(3, 65, 4), false),
                    (sizes(1, 1, 33), true),
                    (sizes(1, 5, 1), false),
                ] {
                    let problem = Problem::draw(sizes, slow, sizes.len as u64);
                    let computed = kernel.compute(&problem);
                    if rung.needs_vectors() && sizes.len % 4 > 0 {
                        let error = computed.unwrap_err().to_string();
                        assert!(
                            error.contains(rung.name()) && error.contains("multiple"),
                            "{error}"
                        );
                        continue;
                    }
                    let share =
                        worst(&computed.unwrap().0, &problem.outputs(rung.order(sizes.len)));
                    assert!(share <= 1.0, "{rung:?} {sizes:?} on {}: {share}", device.label());
                }
            }
        }
    }

    /// The kernel launched here is the library's.
    #[test]
    fn the_last_rungs_have_the_bits_of_the_library() {
        let sizes = sizes(2, 70, 77);
        let problem = Problem::draw(sizes, false, 7);
        for device in under_test() {
            for (rung, exponential) in
                [(Rung::Shipped, Exponential::Fast), (Rung::Exact, Exponential::Exact)]
            {
                let (out, _) = Kernel::new(&device, rung).unwrap().compute(&problem).unwrap();
                let arrays = Arrays::upload(&device, &problem).unwrap();
                let (inputs, shape) = arrays.for_the_library();
                let mut theirs = device.allocate(sizes.elements()).unwrap();
                let scan = SelectiveScan::<f32>::new(&device, exponential);
                scan.forward_into(&inputs, &mut theirs, shape, Default::default()).unwrap();
                let theirs: Vec<f32> = theirs.download().unwrap();
                let bits = |out: &[f32]| out.iter().map(|out| out.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&out), bits(&theirs), "{rung:?}");
            }
        }
    }

    #[test]
    fn the_library_reads_each_byte_once_and_a_scan_reads_shared_ones_again_for_each_channel() {
        let problem = Problem::draw(sizes(1, 64, 128), false, 9);
        for (rung, times) in [(Rung::BlockScan, 64), (Rung::Lane, 2), (Rung::Shipped, 1)] {
            let counted = Counted::of(rung, &problem).unwrap();
            for array in &counted.arrays {
                assert_eq!(array.touched, array.bytes, "{rung:?} {array:?}");
                let times = match array.name {
                    "B" | "C" => times,
                    "u" | "delta" | "z" | "out" => 1,
                    _ => continue,
                };
                assert_eq!(array.asked, times * array.bytes, "{rung:?} {array:?}");
            }
            assert!(counted.class(Class::Special) > 1.0);
        }
    }

    #[test]
    fn one_allocation_for_all_arrays_gives_the_same_outputs() {
        let problem = Problem::draw(sizes(1, 64, 64), false, 10);
        let device = Device::simt();
        let kernel = Kernel::new(&device, Rung::Quad).unwrap();
        let arrays = Arrays::in_one_piece(&device, &problem).unwrap();
        let mut out = device.allocate(problem.sizes.elements()).unwrap();
        kernel.launch(&arrays, &mut out, None).unwrap();
        assert_eq!(out.download().unwrap(), kernel.compute(&problem).unwrap().0);
    }

    #[test]
    fn a_tile_is_sent_made_ready_walked_and_stored_in_turns() {
        let actions = life::of(6).unwrap();
        for tile in 0..6 {
            let turn = |act| {
                let of = actions.iter().filter(|action| (action.tile, action.act) == (tile, act));
                let turns: Vec<i64> = of.map(|action| action.turn).collect();
                assert_eq!(turns.len(), 1, "{act:?} of tile {tile}: {turns:?}");
                turns[0] - tile as i64
            };
            assert_eq!(Act::ALL.map(turn), [-2, -1, 0, 1], "tile {tile}");
        }
    }
}
mod suspects {
    //! Tests that the planted mistakes are found, and none in the correct kernel.

    use ch14_fused_scan::suspect::{examine, names};

    #[test]
    fn mistakes_are_found_and_the_twin_is_correct() {
        let words = [
            ("walk_before_the_tile", "which nothing has written"),
            ("tile_before_the_end_of_the_walk", "no barrier"),
            ("sum_by_half_a_warp", "waits for lanes that its mask names"),
            ("powers_of_two_for_powers_of_e", "times its bound"),
        ];
        assert_eq!(names(), words.map(|(name, _)| name));
        lesson::broken::assert_found(words, "fused/quad", examine);
    }
}
mod training {
    //! Chapter 13's block with the fused scan inside.

    use ch13_mamba::block::{Block, Config, Weights, engine};
    use ch13_mamba::on_device::Scan;
    use ch13_mamba::task::{Batch, Task};
    use ch13_mamba::training::Plan;
    use ch14_fused_scan::training::{Fused, compare};
    use linrec::device::{Choice, Exponential, under_test};
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    const TASK: Task = Task { symbols: 3, asked: 2, most: 4, positions: 37 };

    fn config(is_selective: bool) -> Config {
        Config {
            tokens: TASK.tokens(),
            answers: TASK.symbols,
            width: 5,
            channels: 7,
            states: 9,
            rank: 2,
            reach: 3,
            is_selective,
        }
    }

    fn block(is_selective: bool) -> (Block<f32>, Batch) {
        let weights = Weights::initial(&config(is_selective), 3).flat();
        let weights = Weights::from_flat(&config(is_selective), weights.view());
        let batch = TASK.draw(&mut StdRng::seed_from_u64(4), 5);
        (Block::new(config(is_selective), weights), batch)
    }

    /// Both are rounded: a loss of about one to a few units in the last place of `f32`, and
    /// gradients to a few more.
    #[test]
    fn losses_and_gradients_match_chapter_13() {
        let all =
            under_test().into_iter().flat_map(|device| [(device.clone(), true), (device, false)]);
        for (device, is_selective) in all {
            let (block, batch) = block(is_selective);
            let unfused = Scan::<f32>::new(&device, Choice::FastestShipped).unwrap();
            for exponential in [Exponential::Fast, Exponential::Exact] {
                let fused = Fused::new(&device, exponential);
                let label = device.label();
                for (([one, other], gradients), what) in [
                    (compare(&block, &batch, &engine(), &fused).unwrap(), "by the CPU"),
                    (compare(&block, &batch, &unfused, &fused).unwrap(), "unfused"),
                ] {
                    assert!((one - other).abs() < 1e-6, "{label}: {other}, and {one} {what}");
                    assert!(gradients < 1e-5, "{label}: gradients differ by {gradients} {what}");
                }
            }
        }
    }

    /// The fused scan takes part in every step of a training.
    #[test]
    fn training_gives_the_weights_of_the_cpu() {
        let plan = Plan {
            task: TASK,
            config: config(true),
            batch: 3,
            steps: 5,
            rate: 0.01,
            every: 5,
            tested: 8,
        };
        let by_cpu = plan.train(7, &|| ()).unwrap();
        for device in under_test() {
            let fused = Fused::new(&device, Exponential::Exact);
            let trained = plan.train_by(&fused, 7, &|| ()).unwrap();
            let again = plan.train_by(&fused, 7, &|| ()).unwrap();
            let (expected, weights) = (by_cpu.block.weights.flat(), trained.block.weights.flat());
            let farthest = (&expected - &weights).iter().fold(0.0, |far: f64, d| far.max(d.abs()));
            assert!(farthest < 1e-4, "{}: weights differ by {farthest}", device.label());
            assert!(
                weights == again.block.weights.flat(),
                "{}: not twice the same",
                device.label()
            );
            assert!(weights != Weights::<f64>::initial(&config(true), 7).flat());
        }
    }
}
