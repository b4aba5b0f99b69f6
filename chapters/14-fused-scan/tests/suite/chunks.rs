//! Sequences that are cut.

use ch14_fused_scan::chunks::compute;
use ch14_fused_scan::ladder::Rung;
use ch14_fused_scan::problem::{Problem, Sizes, relative, worst};
use linrec::device::{Exponential, under_test};

/// A chunk begins from a state that was computed in another order, which the bound of a walk does
/// not know. So outputs are held to what the page says of cuts: they add hardly anything to the
/// error of a walk.
#[test]
fn chunks_compute_what_a_walk_does() {
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
                // The first chunk ends where the walk is, so that two of them change no bit.
                assert_eq!(out == whole, chunks == 2, "{chunks} chunks");
                assert!(!device.is_simt() || more > once, "{chunks}: {more}, not more than {once}");
                assert_eq!(out, compute(&device, exponential, &problem, chunks).unwrap().0);
            }
        }
    }
}
