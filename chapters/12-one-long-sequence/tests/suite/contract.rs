//! The ways of `kernels/long` on every device.

use ch12_one_long_sequence::kernel::{Kernel, Size, Watch, Way};
use linrec::contract::{self, Domain};
use linrec::device::{Device, under_test};
use linrec::{Direction, Engine, Options};
use ndarray::Array2;

/// A few tiles; longer sequences are tried below.
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
fn a_workspace_serves_one_launch_after_the_other() {
    let device = Device::simt();
    for way in Way::ALL {
        let kernel = Kernel::new(&device, way, Size::SHIPPED).unwrap();
        let seq_len = 1000;
        let mut workspace = kernel.workspace(seq_len).unwrap();
        for round in 1..4_u8 {
            let x = device.upload(&vec![f32::from(round); seq_len]).unwrap();
            let c = device.upload(&vec![1.0; seq_len]).unwrap();
            let mut y = device.allocate(seq_len).unwrap();
            let arrays = ch12_one_long_sequence::kernel::Arrays {
                inputs: &x,
                coeffs: &c,
                outputs: &mut y,
                initial: None,
                final_state: None,
            };
            kernel.launch(arrays, &mut workspace, &device.stream()).unwrap();
            assert_eq!(y.download().unwrap()[999], 1000.0 * f32::from(round), "{way:?}");
        }
    }
}

#[test]
fn what_it_does_not_take_is_refused() {
    let kernel = Kernel::new(&Device::simt(), Way::Chained, Size::SHIPPED).unwrap();
    let row = Array2::<f32>::zeros((1, 6));
    let options = Options { direction: Direction::Reverse, ..Options::default() };
    let error = kernel.forward(row.view(), row.view(), &options).unwrap_err().to_string();
    assert!(error.contains("reverse") && error.contains("chained:1x64@simt"), "{error}");
    let device = Device::simt();
    let long = device.upload(&[0.0_f32; 9]).unwrap();
    let late = long.slice(1..).unwrap();
    let mut y = device.allocate(8).unwrap();
    let arrays = ch12_one_long_sequence::kernel::Arrays {
        inputs: &late,
        coeffs: &late,
        outputs: &mut y,
        initial: None,
        final_state: None,
    };
    let mut workspace = kernel.workspace(8).unwrap();
    let error = kernel.launch(arrays, &mut workspace, &device.stream()).unwrap_err().to_string();
    assert!(error.contains("16-byte"), "{error}");
}
