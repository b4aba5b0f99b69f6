//! The call that the page shows, over several numbers of emulated devices.

use ch17_several_gpus::called;
use linrec::contract::Domain;
use linrec::device::Device;
use linrec::reference::{self, Rounding};
use linrec::{Error, Options};
use ndarray::{Array2, s};

#[test]
fn the_call_of_the_page_computes_all_rows() {
    let shape = (5, 1003);
    let x =
        Array2::from_shape_fn(shape, |(row, l)| ((row * 31 + l * 37) % 101) as f32 / 50.0 - 1.0);
    let c =
        Array2::from_shape_fn(shape, |(row, l)| 0.98 + ((row * 7 + l * 29) % 97) as f32 / 5000.0);
    let options = Options::default();
    let exact = reference::forward(x.view(), c.view(), &options).unwrap().outputs;
    let rounding = Rounding { levels: 2 * Domain::tree_levels(shape.1), exp_ulps: 0.0 };
    let bound = reference::forward_bound(x.view(), c.view(), &options, rounding).unwrap().outputs;
    for ranks in [1, 2, 3, 4] {
        let mut outputs = Array2::from_elem(shape, f32::NAN);
        for (part, mine) in called::outputs(&Device::emulated(ranks), x.view(), c.view()).unwrap() {
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
fn no_device_at_all_is_an_error() {
    let ones = Array2::from_elem((1, 8), 1.0_f32);
    let nobody = called::outputs(&[], ones.view(), ones.view());
    assert!(matches!(nobody, Err(Error::Unsupported { .. })), "{nobody:?}");
}
