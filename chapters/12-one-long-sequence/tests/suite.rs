//! Chapter 12's tests, in one program so that it is linked once.

mod contract {
    //! The ways of `kernels/long` on every device.

    use ch12_one_long_sequence::kernel::{Kernel, Size, Watch, Way};
    use linrec::contract::{self, Domain};
    use linrec::device::{Device, under_test};
    use linrec::{Direction, Engine, Options};
    use ndarray::Array2;

    /// A few tiles; the test below has more.
    const MAX_LEN: usize = 1500;

    #[test]
    fn every_way_passes() {
        for device in under_test() {
            for way in Way::ALL {
                let kernel = Kernel::new(&device, way, Size::SHIPPED).unwrap();
                let domain = Domain { max_len: MAX_LEN, ..kernel.domain() };
                let report = contract::run::<f32>(&kernel, &domain.as_asked());
                assert!(report.passed(), "{report}");
                println!("{report}");
            }
        }
    }

    /// More tiles than a lane, a warp or a block looks at.
    #[test]
    fn a_sequence_of_many_tiles_is_right() {
        for device in under_test() {
            for way in Way::ALL {
                let kernel = Kernel::new(&device, way, Size::SHIPPED).unwrap();
                let tiles = if way == Way::Three { 4200 } else { 70 };
                let seq_len = tiles * Size::SHIPPED.steps() + 13;
                let (inputs, coeffs) = bench::draw::near_one((1, seq_len), 120);
                let (x, c) = (inputs.as_slice().unwrap(), coeffs.as_slice().unwrap());
                let (outputs, last, _) = kernel.compute(x, c, Some(3.0), Watch::default()).unwrap();
                assert_eq!(last.to_bits(), outputs[seq_len - 1].to_bits(), "{way:?}");
                let initial = Some(ndarray::arr1(&[3.0_f32]).into());
                let options = Options { initial, ..Options::default() };
                let (x, c) = (inputs.view(), coeffs.view());
                let exact = linrec::reference::forward(x, c, &options).unwrap().outputs;
                let levels = Domain::tree_levels(seq_len);
                let rounding = linrec::reference::Rounding { levels, exp_ulps: 0.0 };
                let bound = linrec::reference::forward_bound(x, c, &options, rounding).unwrap();
                for ((&y, exact), bound) in outputs.iter().zip(&exact).zip(&bound.outputs) {
                    assert!((f64::from(y) - exact).abs() <= *bound, "{way:?}");
                }
            }
        }
    }

    #[test]
    fn a_workspace_serves_several_launches() {
        let device = Device::simt();
        for way in Way::ALL {
            let kernel = Kernel::new(&device, way, Size::SHIPPED).unwrap();
            let seq_len = 1000;
            let mut workspace = kernel.workspace(seq_len).unwrap();
            for round in 1..4_u8 {
                let x = device.upload(&vec![f32::from(round); seq_len]).unwrap();
                let c = device.upload(&vec![1.0; seq_len]).unwrap();
                let mut y = device.allocate(seq_len).unwrap();
                let (options, watch) = Default::default();
                kernel.launch(&x, &c, &mut y, &mut workspace, options, watch).unwrap();
                assert_eq!(y.download().unwrap()[999], 1000.0 * f32::from(round), "{way:?}");
            }
        }
    }

    #[test]
    fn unsupported_arguments_are_refused() {
        let kernel = Kernel::new(&Device::simt(), Way::Chained, Size::SHIPPED).unwrap();
        let row = Array2::<f32>::zeros((1, 6));
        let options = Options { direction: Direction::Reverse, ..Options::default() };
        let error = kernel.forward(row.view(), row.view(), &options).unwrap_err().to_string();
        assert!(error.contains("reverse") && error.contains("chained:1x64@simt"), "{error}");
        let device = Device::simt();
        let long = device.upload(&[0.0_f32; 9]).unwrap();
        let late = long.slice(1..).unwrap();
        let mut y = device.allocate(8).unwrap();
        let (mut workspace, (options, watch)) = (kernel.workspace(8).unwrap(), Default::default());
        let refused = kernel.launch(&late, &late, &mut y, &mut workspace, options, watch);
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("16-byte"), "{error}");
    }
}
mod shared_out {
    //! Waves and once by hand, and the content of traces.

    use bench::draw::near_one;
    use ch12_one_long_sequence::kernel::{Kernel, Size, Watch, Way};
    use ch12_one_long_sequence::messages::{Life, Places};
    use ch12_one_long_sequence::shared_out::{self, AHEAD, SHORT, SharedOut};
    use linrec::device::Device;
    use linrec::simt::Trace;

    #[test]
    fn every_grid_gives_the_bits_of_one_block_and_of_once() {
        let (inputs, coeffs) = near_one((1, 40 * SHORT + 100), 121);
        let (x, c) = (inputs.as_slice().unwrap(), coeffs.as_slice().unwrap());
        let bits = |way| {
            let kernel = SharedOut::new(way, SHORT).unwrap();
            let (outputs, _) = kernel.compute(x, c, None).unwrap();
            outputs.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        let one = bits(shared_out::Way::Waves(1));
        for blocks in [2, 7, 132] {
            assert!(bits(shared_out::Way::Waves(blocks)) == one, "{blocks}");
        }
        for at_a_time in [1, 5, 100] {
            assert!(bits(shared_out::Way::Once(at_a_time)) == one, "once, {at_a_time} at a time");
        }
    }

    #[test]
    fn a_tile_is_published_waves_before_it_is_stored() {
        let seq_len = 4 * 16 * SHORT;
        let (inputs, coeffs) = near_one((1, seq_len), 122);
        let (x, c) = (inputs.as_slice().unwrap(), coeffs.as_slice().unwrap());
        let waves = SharedOut::new(shared_out::Way::Waves(4), SHORT).unwrap();
        let mut trace = Trace::new(1 << 20);
        waves.compute(x, c, Some(&mut trace)).unwrap();
        assert_eq!(trace.left_out, 0);
        let life = Life::of(&trace, SHORT, Places::Groups);
        assert_eq!(life.messages.len(), waves.tiles(seq_len));
        for message in life.messages.iter().filter(|one| one.tile >= 4 * AHEAD && one.tile < 64) {
            assert_eq!(message.tile as u64 % 4, message.block);
            let stored = |tile| life.stored.iter().find(|one| one.1 == tile).unwrap().2;
            assert!(stored(message.tile) > message.turn);
            // The tile that is stored at about that time belongs to an earlier wave.
            assert!(stored(message.tile - 4 * (AHEAD - 2)) <= stored(message.tile));
        }
    }

    #[test]
    fn a_late_block_delays_the_chained_scan_but_not_look_back() {
        let seq_len = 16 * Size::SHIPPED.steps();
        let (inputs, coeffs) = near_one((1, seq_len), 123);
        let (x, c) = (inputs.as_slice().unwrap(), coeffs.as_slice().unwrap());
        let mut delays = vec![0; 16];
        delays[3] = 3000;
        let life = |way| {
            let kernel = Kernel::new(&Device::simt(), way, Size::SHIPPED).unwrap();
            let mut trace = Trace::new(1 << 20);
            let watch =
                Watch { delays: Some(&delays), trace: Some(&mut trace), ..Watch::default() };
            kernel.compute(x, c, None, watch).unwrap();
            assert_eq!(trace.left_out, 0);
            Life::of(&trace, Size::SHIPPED.steps(), Places::Apart)
        };
        let (chained, decoupled) = (life(Way::Chained), life(Way::Decoupled));
        assert_eq!((chained.messages.len(), decoupled.messages.len()), (16, 32));
        // The late block finds a state in its last look, and the block after it has looked past it.
        assert_eq!(decoupled.distances[&3], 1);
        assert!(decoupled.distances[&4] > 1);
        for block in 4..16 {
            assert!(chained.waited(block) > 10, "{block}");
            assert!(decoupled.waited(block) <= 2, "{block}");
        }
    }
}
mod suspects {
    //! The planted mistakes are found, and nothing is found in their twin.

    use ch12_one_long_sequence::suspect::{examine, names};

    #[test]
    fn mistakes_are_found_and_the_twin_is_correct() {
        let words = [
            ("published_without_release", "nothing orders the two"),
            ("epoch_before_state", "nothing orders the two"),
            ("taken_before_published", "nothing orders the two"),
            ("tile_by_number", "makes no progress"),
            ("epoch_that_stays", "which warp 0 of block 1 reads"),
        ];
        assert_eq!(names(), words.map(|(name, _)| name));
        lesson::broken::assert_found(words, "long/chained", examine);
    }
}
