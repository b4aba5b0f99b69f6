//! The gradients of gradients, against slopes.

use ch04_gradient::differences::central_differences;
use ch18_back_to_pytorch::double::{Asked, double_backward};
use linrec::{Error, Options, backward, forward};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, concatenate, s};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// A loss of what a backward pass gives for arrays that lie behind each other in `flat`.
fn loss(flat: ArrayView1<f64>, of: [ArrayView2<f64>; 2]) -> Result<f64, Error> {
    let (rows, len) = of[0].dim();
    let part = |number: usize| {
        let part = flat.slice(s![number * rows * len..(number + 1) * rows * len]).to_owned();
        part.into_shape_with_order((rows, len)).expect("as many as there are")
    };
    let [g, c, y] = [part(0), part(1), part(2)];
    let gradients = backward(g.view(), c.view(), y.view(), &Options::default())?;
    Ok((&gradients.d_inputs * &of[0]).sum() + (&gradients.d_coeffs * &of[1]).sum())
}

#[test]
fn they_are_the_slopes_of_the_backward_pass() {
    let mut rng = StdRng::seed_from_u64(18);
    for (rows, len) in [(1, 1), (2, 2), (3, 17), (2, 33)] {
        let mut draw = |low: f64, high: f64| {
            Array2::from_shape_fn((rows, len), |_| rng.random_range(low..high))
        };
        // Coefficients near one: a carry that was lost would show.
        let (x, c, g) = (draw(-1.0, 1.0), draw(0.98, 1.0), draw(-1.0, 1.0));
        let (p, q) = (draw(-1.0, 1.0), draw(-1.0, 1.0));
        let y = forward(x.view(), c.view(), &Options::default()).unwrap().outputs;
        let back = backward(g.view(), c.view(), y.view(), &Options::default()).unwrap();
        let asked = Asked {
            coeffs: c.view(),
            outputs: y.view(),
            d_inputs: back.d_inputs.view(),
            of_d_inputs: p.view(),
            of_d_coeffs: q.view(),
        };
        let second = double_backward(&asked).unwrap();
        let flat = |arrays: [&Array2<f64>; 3]| -> Array1<f64> {
            let rows: Vec<_> = arrays.iter().map(|array| array.flatten()).collect();
            let views: Vec<_> = rows.iter().map(|row| row.view()).collect();
            concatenate(Axis(0), &views).unwrap()
        };
        let at = flat([&g, &c, &y]);
        let slopes = central_differences(at.view(), 1e-5, |at| loss(at, [p.view(), q.view()]));
        let got = flat([&second.of_d_outputs, &second.of_coeffs, &second.of_outputs]);
        let largest = got.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        for (slope, value) in slopes.unwrap().iter().zip(&got) {
            assert!((slope - value).abs() <= 1e-7 * largest, "{slope} {value} of {largest}");
        }
    }
}

#[test]
fn shapes_that_differ_are_an_error() {
    let (a, b) = (Array2::zeros((2, 3)), Array2::zeros((2, 4)));
    let asked = Asked {
        coeffs: a.view(),
        outputs: a.view(),
        d_inputs: a.view(),
        of_d_inputs: a.view(),
        of_d_coeffs: b.view(),
    };
    let message = double_backward(&asked).unwrap_err().to_string();
    assert_eq!(message, "shape mismatch in double_backward: coeffs [2, 3], of_d_coeffs [2, 4]");
}
