//! The exercises' solutions.

use ch18_back_to_pytorch::exercises::{in_halves, refused_in_vain, tangent};
use linrec::{Options, backward, forward};
use ndarray::Array2;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn draw(rng: &mut StdRng, shape: (usize, usize), low: f64, high: f64) -> Array2<f64> {
    Array2::from_shape_fn(shape, |_| rng.random_range(low..high))
}

fn assert_near(a: &Array2<f64>, b: &Array2<f64>, tolerance: f64) {
    let largest = b.iter().fold(1e-300_f64, |most, value| most.max(value.abs()));
    let off = (a - b).iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    assert!(off <= tolerance * largest, "{off} of {largest}");
}

#[test]
fn a_layout_that_is_refused_in_vain() {
    let layout = refused_in_vain();
    assert!(layout.may_meet_itself() && !layout.meets_itself());
}

#[test]
fn forward_mode_is_a_difference_in_the_limit() {
    let mut rng = StdRng::seed_from_u64(1);
    let shape = (3, 21);
    let (x, c) = (draw(&mut rng, shape, -1.0, 1.0), draw(&mut rng, shape, 0.98, 1.0));
    let (dx, dc) = (draw(&mut rng, shape, -1.0, 1.0), draw(&mut rng, shape, -1.0, 1.0));
    let run = |step: f64| {
        let (x, c) = (&x + &(&dx * step), &c + &(&dc * step));
        forward(x.view(), c.view(), &Options::default()).unwrap().outputs
    };
    let (y, step) = (run(0.0), 1e-6);
    let slope = (run(step) - run(-step)) / (2.0 * step);
    let got = tangent(c.view(), y.view(), dx.view(), dc.view()).unwrap();
    assert_near(&got, &slope, 1e-8);
}

#[test]
fn halves_are_the_whole() {
    let mut rng = StdRng::seed_from_u64(2);
    for len in [0, 1, 2, 7, 100] {
        let shape = (2, len);
        let (x, c) = (draw(&mut rng, shape, -1.0, 1.0), draw(&mut rng, shape, 0.98, 1.0));
        let g = draw(&mut rng, shape, -1.0, 1.0);
        let (y, dx) = in_halves(x.view(), c.view(), g.view()).unwrap();
        let whole = forward(x.view(), c.view(), &Options::default()).unwrap().outputs;
        assert_near(&y, &whole, 1e-13);
        let back = backward(g.view(), c.view(), whole.view(), &Options::default()).unwrap();
        assert_near(&dx, &back.d_inputs, 1e-13);
    }
}
