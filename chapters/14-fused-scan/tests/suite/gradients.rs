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
