//! The code on the start page, compiled and run.

use linrec::{Direction, Options};
use ndarray::{Array2, array};

#[test]
fn forward_and_backward() -> Result<(), linrec::Error> {
    // ANCHOR: forward
    let inputs = array![[1.0, 2.0, 3.0, 4.0]];
    let coeffs = array![[0.0, 1.0, 0.5, 0.5]];
    let result = linrec::forward(inputs.view(), coeffs.view(), &Options::default())?;
    assert_eq!(result.outputs, array![[1.0, 3.0, 4.5, 6.25]]);
    // ANCHOR_END: forward
    // ANCHOR: backward
    let d_outputs = array![[0.0, 0.0, 0.0, 1.0]]; // the loss is the last output
    let gradients = linrec::backward(
        d_outputs.view(),
        coeffs.view(),
        result.outputs.view(),
        &Options::default(),
    )?;
    assert_eq!(gradients.d_inputs, array![[0.25, 0.25, 0.5, 1.0]]);
    // ANCHOR_END: backward
    Ok(())
}

#[test]
fn options() -> Result<(), linrec::Error> {
    let inputs = array![[1.0, 2.0, 3.0, 4.0]];
    let coeffs = array![[0.0, 1.0, 0.5, 0.5]];
    // ANCHOR: options
    let options = Options {
        direction: Direction::Reverse,
        initial: Some(array![8.0].into()),
        ..Options::default()
    };
    let result = linrec::forward(inputs.view(), coeffs.view(), &options)?;
    assert_eq!(result.outputs, array![[1.0, 9.0, 7.0, 8.0]]);
    assert_eq!(result.final_state, array![1.0]);
    // ANCHOR_END: options
    Ok(())
}

#[test]
fn errors_name_the_operation_and_the_shapes() {
    // ANCHOR: error
    let (inputs, coeffs) = (Array2::<f32>::zeros((3, 100)), Array2::<f32>::zeros((3, 99)));
    let error = linrec::forward(inputs.view(), coeffs.view(), &Options::default()).unwrap_err();
    assert_eq!(error.to_string(), "shape mismatch in forward: inputs [3, 100], coeffs [3, 99]");
    // ANCHOR_END: error
}
