//! The CPU's engine with shapes that no memory holds, and with products that overflow.

use linrec::contract::Domain;
use linrec::reference::{self, Rounding};
use linrec::{Error, Options};
use ndarray::{Array2, array};

#[test]
fn more_rows_than_memory_has_states_for_are_an_error() {
    let rows = 1_usize << 40;
    let empty = Array2::<f64>::zeros((rows, 0));
    let view = empty.view();
    let forward = linrec::forward(view, view, &Options::default()).map(|result| result.final_state);
    let backward =
        linrec::backward(view, view, view, &Options::default()).map(|result| result.d_initial);
    for (operation, states) in [("forward", forward), ("backward", backward)] {
        match states {
            // A system that promises any memory provides these pages only when they are touched.
            Ok(states) => assert_eq!(states.len(), rows),
            Err(error) => {
                assert_eq!(error, Error::OutOfMemory { operation, bytes: 8 * rows });
            }
        }
    }
}

#[test]
fn results_of_overflowing_products_are_right_or_not_finite() {
    let mut not_finite = 0;
    for coeffs in [
        array![[1e200, 1e200, 1.0, 1.0]],
        array![[1e-200, 1e-200, 1e200, 1e200, 0.5, 1e-300, 1e300, 1e300, 1e-300]],
        Array2::from_elem((1, 33), 1e300),
    ] {
        for scale in [0.0, 1e-300, 1.0] {
            let inputs: Array2<f64> = coeffs.mapv(|_| scale);
            let (x, c, options) = (inputs.view(), coeffs.view(), Options::default());
            let exact = reference::forward(x, c, &options).unwrap().outputs;
            let levels = Domain::tree_levels(coeffs.ncols());
            let rounding = Rounding { levels, exp_ulps: 1.0 };
            let bound = reference::forward_bound(x, c, &options, rounding).unwrap().outputs;
            let got = linrec::forward(x, c, &options).unwrap().outputs;
            for ((got, exact), bound) in got.iter().zip(&exact).zip(&bound) {
                not_finite += usize::from(!got.is_finite() && exact.is_finite());
                let is_right = (got - exact).abs() <= *bound || bound.is_nan();
                assert!(
                    is_right || !got.is_finite(),
                    "{got} instead of {exact}, off by more than {bound}"
                );
            }
            if scale == 0.0 {
                assert!(exact.iter().all(|&y| y == 0.0), "the loop has nothing to multiply");
            }
        }
    }
    // This does happen, wherever vectors are scanned, as the documentation says.
    println!("{not_finite} results are not finite where the loop's are");
}
