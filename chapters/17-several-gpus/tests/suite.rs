//! The tests of chapter 17: one program, linked once.
//!
//! Each module has one subject. All ranks are emulated devices, as threads of one process or as
//! processes of the example `job`, so the tests run on every machine. A result is compared bit by
//! bit with the result of one device, or with double precision and a derived bound. The library's
//! suite has the tests on real GPUs.

mod called {
    //! Tests of the page's call, over several numbers of emulated devices.

    use ch17_several_gpus::called;
    use linrec::contract::Domain;
    use linrec::device::Device;
    use linrec::reference::{self, Rounding};
    use linrec::{Error, Options};
    use ndarray::{Array2, s};

    #[test]
    fn the_call_of_the_page_computes_all_rows() {
        let shape = (5, 1003);
        let x = Array2::from_shape_fn(shape, |(row, l)| {
            ((row * 31 + l * 37) % 101) as f32 / 50.0 - 1.0
        });
        let c = Array2::from_shape_fn(shape, |(row, l)| {
            0.98 + ((row * 7 + l * 29) % 97) as f32 / 5000.0
        });
        let options = Options::default();
        let exact = reference::forward(x.view(), c.view(), &options).unwrap().outputs;
        let rounding = Rounding { levels: 2 * Domain::tree_levels(shape.1), exp_ulps: 0.0 };
        let bound =
            reference::forward_bound(x.view(), c.view(), &options, rounding).unwrap().outputs;
        for ranks in [1, 2, 3, 4] {
            let mut outputs = Array2::from_elem(shape, f32::NAN);
            for (part, mine) in
                called::outputs(&Device::emulated(ranks), x.view(), c.view()).unwrap()
            {
                let mut place = outputs.slice_mut(s![part.rows.clone(), part.steps.clone()]);
                assert_eq!(place.len(), mine.len());
                place.iter_mut().zip(mine).for_each(|(to, from)| *to = from);
            }
            for ((&y, &exact), &bound) in outputs.iter().zip(&exact).zip(&bound) {
                assert!((f64::from(y) - exact).abs() <= bound, "{ranks} ranks: {y} for {exact}");
            }
        }
    }

    #[test]
    fn an_empty_list_of_devices_is_an_error() {
        let ones = Array2::from_elem((1, 8), 1.0_f32);
        let nobody = called::outputs(&[], ones.view(), ones.view());
        assert!(matches!(nobody, Err(Error::Unsupported { .. })), "{nobody:?}");
    }
}
mod contract {
    //! Tests of the chapter's ways to cut rows, over several numbers of ranks.

    use ch17_several_gpus::by_hand::{ByHand, stretch};
    use ch17_several_gpus::mailbox::Mailboxes;
    use linrec::Element;
    use linrec::contract::{self, Domain};
    use linrec::device::{Device, Group, Storage};
    use num_complex::Complex;

    const SIZES: [usize; 5] = [1, 2, 3, 4, 8];

    fn by_hand<T: Storage<Accum = T> + Element>(ranks: usize, max_len: usize) {
        let engine = ByHand::new(Group::from_devices(&Device::emulated(ranks)).unwrap());
        let domain = Domain {
            max_len,
            levels: |len| 2 * Domain::tree_levels(len),
            backward: false,
            reverse: false,
            log_coeffs: false,
            ..Domain::default()
        };
        let report = contract::run::<T>(&engine, &domain.as_asked());
        println!("{report}");
        assert!(report.passed(), "{report}");
    }

    #[test]
    fn rows_cut_by_hand_pass_the_contract() {
        for ranks in SIZES {
            by_hand::<f32>(ranks, 1100);
        }
        by_hand::<f64>(3, 400);
        by_hand::<Complex<f32>>(3, 400);
        by_hand::<Complex<f64>>(3, 400);
    }

    #[test]
    fn mailboxes_pass_the_contract() {
        for ranks in SIZES {
            let engine = Mailboxes::new(ranks).unwrap();
            let domain = Domain { max_len: 1500, ..engine.domain() };
            let report = contract::run::<f32>(&engine, &domain.as_asked());
            println!("{report}");
            assert!(report.passed(), "{report}");
        }
    }

    #[test]
    fn every_step_is_in_one_stretch() {
        for ranks in SIZES {
            for seq_len in [0, 1, 2, 7, 8, 1000] {
                let steps: Vec<usize> =
                    (0..ranks).flat_map(|rank| stretch(seq_len, rank, ranks)).collect();
                assert_eq!(steps, (0..seq_len).collect::<Vec<_>>());
            }
        }
    }
}
mod processes {
    //! Tests of the example as a job of three processes, started by hand as on the page.

    use std::net::TcpListener;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    /// Returns the path of the example, which cargo builds next to this program.
    fn job() -> PathBuf {
        let own = std::env::current_exe().unwrap();
        own.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join("job")
    }

    fn started(rank: usize, size: usize, port: u16) -> Command {
        let mut command = Command::new(job().with_extension(std::env::consts::EXE_EXTENSION));
        command
            .env("LINREC_DEVICE", "simt")
            .env("RANK", rank.to_string())
            .env("LOCAL_RANK", rank.to_string())
            .env("WORLD_SIZE", size.to_string())
            .env("MASTER_ADDR", "127.0.0.1")
            .env("MASTER_PORT", port.to_string())
            .env_remove("TORCHELASTIC_RUN_ID")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    #[test]
    fn all_three_processes_print_the_exact_sum() {
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port() - 1;
        let children: Vec<_> = (0..3).map(|rank| started(rank, 3, port).spawn().unwrap()).collect();
        let last_states = children.into_iter().enumerate().map(|(rank, child)| {
            let output = child.wait_with_output().unwrap();
            let (out, error) = (
                String::from_utf8(output.stdout).unwrap(),
                String::from_utf8(output.stderr).unwrap(),
            );
            assert!(output.status.success(), "{error}");
            assert!(out.starts_with(&format!("rank {rank} of 3 on simt:{rank}: ")), "{out}");
            let last = out.trim().rsplit(' ').next().unwrap().to_owned();
            last.parse::<f32>().unwrap()
        });
        let last_states: Vec<f32> = last_states.collect();
        assert!(last_states.iter().all(|last| *last == last_states[0]), "{last_states:?}");
        // 1000 (1 - 0.999^16384).
        assert!((last_states[0] - 1000.0).abs() < 0.2, "{last_states:?}");
    }

    #[test]
    fn a_process_without_a_rank_gets_an_error() {
        let mut command = started(0, 3, 29_500);
        for name in ["RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"] {
            command.env_remove(name);
        }
        let output = command.output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && error.contains("no variable says which rank"),
            "{error}"
        );
    }
}
mod scan {
    //! Tests of the fused scan over ranks, forward and backward, against one device.

    use ch17_several_gpus::scan::problem::{Computed, Problem};
    use ch17_several_gpus::scan::{Stretch, gradients, outputs};
    use linrec::Error;
    use linrec::device::{Device, Exponential, Group, Rank, ScanShape, SelectiveScan};

    fn shape(
        batch: usize,
        channels: usize,
        groups: usize,
        states: usize,
        seq_len: usize,
    ) -> ScanShape {
        ScanShape { batch, channels, seq_len, states, groups }
    }

    fn bits(numbers: &[f32]) -> Vec<u32> {
        numbers.iter().map(|number| number.to_bits()).collect()
    }

    /// Compares ranks that have these stretches with one device: bit by bit, or, for the gradients
    /// of the rates, which are sums over time, within the bound of sums in two orders.
    fn check(shape: ScanShape, stretches: &[usize], exponential: Exponential) -> Result<(), Error> {
        let what = format!("{shape:?} over {stretches:?}, {exponential:?}");
        let problem = Problem::drawn(shape);
        let (alone, over) = (problem.alone(exponential)?, problem.over(stretches, exponential)?);
        assert!(bits(&over.out) == bits(&alone.out), "outputs: {what}");
        for (which, name) in ["u", "delta", "B", "C"].into_iter().enumerate() {
            assert!(alone.d[which].iter().all(|number| number.is_finite()), "{name}: {what}");
            assert!(bits(&over.d[which]) == bits(&alone.d[which]), "gradient of {name}: {what}");
        }
        for (rank, d_a) in over.d_a.iter().enumerate() {
            assert!(bits(d_a) == bits(&over.d_a[0]), "gradient of A on rank {rank}: {what}");
        }
        let bounds = problem.apart(stretches, exponential)?;
        for ((&one, &other), bound) in alone.d_a[0].iter().zip(&over.d_a[0]).zip(bounds) {
            let apart = (f64::from(one) - f64::from(other)).abs();
            assert!(apart <= bound, "gradient of A: {other}, not {one} ± {bound:e}: {what}");
        }
        if stretches.len() == 1 {
            assert!(bits(&over.d_a[0]) == bits(&alone.d_a[0]), "gradient of A: {what}");
        }
        Ok(())
    }

    #[test]
    fn ranks_have_the_bits_of_one_device_and_sums_over_time_are_within_their_bound()
    -> Result<(), Error> {
        for exponential in [Exponential::Exact, Exponential::Fast] {
            // Even and uneven stretches, at the ends of tiles of 8 steps and next to them; one
            // step; none.
            for stretches in [
                &[45][..],
                &[16, 29],
                &[23, 22],
                &[0, 45],
                &[13, 1, 31],
                &[20, 0, 25],
                &[11, 12, 11, 11],
                &[1, 40, 4, 0],
            ] {
                check(shape(3, 5, 1, 3, 45), stretches, exponential)?;
            }
            check(shape(2, 6, 2, 20, 33), &[9, 17, 7], exponential)?;
            // The kernels for common sizes, in whole vectors and not.
            check(shape(2, 64, 1, 16, 48), &[16, 32], exponential)?;
            check(shape(2, 64, 1, 8, 41), &[9, 12, 20], exponential)?;
        }
        Ok(())
    }

    /// One device would cut sequences of this length into chunks by default, and so would a rank.
    #[test]
    fn long_stretches_have_the_bits_of_one_device() -> Result<(), Error> {
        for stretches in [&[1100][..], &[537, 563], &[100, 900, 100]] {
            check(shape(1, 3, 1, 4, 1100), stretches, Exponential::Exact)?;
        }
        Ok(())
    }

    #[test]
    fn empty_problems_have_gradients_of_zero() -> Result<(), Error> {
        for (shape, stretches) in [
            (shape(0, 3, 1, 4, 5), [2, 3]),
            (shape(2, 0, 1, 4, 5), [2, 3]),
            (shape(2, 3, 1, 4, 0), [0, 0]),
        ] {
            check(shape, &stretches, Exponential::Exact)?;
            let Computed { d_a, .. } =
                Problem::drawn(shape).over(&stretches, Exponential::Exact)?;
            assert!(d_a.concat().iter().all(|&number| number == 0.0), "{shape:?}");
        }
        Ok(())
    }

    /// Runs a stretch of two batches of one channel with one state and three steps over two ranks,
    /// where `spoil` changes the length of one array.
    fn refused(spoil: impl Fn(&Rank, &mut [usize; 4]) + Sync) -> String {
        let group = Group::from_devices(&Device::emulated(2)).unwrap();
        let refused = group.run(|rank| {
            let device = rank.device();
            let scan = SelectiveScan::<f32>::new(device, Exponential::Exact);
            let shape = shape(2, 1, 1, 1, 3);
            let mut lens = [6, 2, 6, 1];
            spoil(rank, &mut lens);
            let [out, kept, d_u, d_a] = lens;
            let stretch = |u: usize, a: usize| -> Result<Stretch, Error> {
                let [delta, b, c] = [device.zeros(6)?, device.zeros(6)?, device.zeros(6)?];
                Ok(Stretch { u: device.zeros(u)?, delta, a: device.zeros(a)?, b, c })
            };
            let (mine, mut d) = (stretch(6, 1)?, stretch(d_u, d_a)?);
            let (mut out, mut checkpoints) = (device.zeros(out)?, device.zeros(kept)?);
            outputs(rank, &scan, &mine, shape, [&mut out, &mut checkpoints])?;
            gradients(rank, &scan, &mine, shape, [&device.zeros(6)?, &checkpoints], &mut d)
        });
        refused.map_or_else(|error| error.to_string(), |_| "nothing".into())
    }

    /// Both ranks refuse, and neither waits for the other.
    #[test]
    fn arrays_of_another_length_are_refused() {
        assert_eq!(refused(|_, _| {}), "nothing");
        for (which, wrong, words) in [
            (0, 7, "out [4]"),
            (0, 5, "out [2]"),
            (1, 3, "checkpoints [2]"),
            (2, 7, "gradient of u [4]"),
            (3, 2, "gradient of A [2]"),
        ] {
            let error = refused(|rank, lens| {
                if rank.number() == 1 {
                    lens[which] = wrong;
                }
            });
            assert!(error.contains(words), "{words}: {error}");
        }
        let problem = Problem::drawn(shape(1, 1, 1, 1, 4));
        let error = problem.over(&[1, 2], Exponential::Exact).unwrap_err().to_string();
        assert!(error.contains("steps [4], stretches [1, 2]"), "{error}");
    }
}
mod suspects {
    //! Tests that each planted mistake is found, and none in the correct kernel.

    use ch17_several_gpus::suspect;

    #[test]
    fn every_mistake_is_named_in_a_sentence() {
        let words = [
            "rank 1 has ended without receiving an array that rank 0 has sent (1 in all)",
            "nothing orders the two",
            "pass 2: ",
        ];
        let mistakes = suspect::NAMES.into_iter().zip(words);
        lesson::broken::assert_found(mistakes, "mailbox", suspect::examine);
    }
}
