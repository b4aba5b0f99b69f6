//! Chained scans with one planted mistake each, and what is found in them.

use linrec::contract::suspect::{self, Finding};
use linrec::device::Device;
use linrec::{Error, reference};
use ndarray::Array2;

use crate::kernel::{Kernel, Size, Watch, Way};

/// The file of their correct twin.
pub const TWIN: &str = "long/chained.cu";

/// The number of tiles of the sequences.
const TILES: usize = 4;

/// Returns the names of the mistakes, in the order of the page.
pub fn names() -> Vec<&'static str> {
    suspect::names(TWIN).collect()
}

/// Finds the mistake of a kernel, or nothing in its correct twin with the name `long/chained`.
///
/// The kernel runs in three ways: all blocks at once, the later blocks before the others, and two
/// launches with one workspace, in which the first block is late.
///
/// # Errors
///
/// Returns [`Error::Device`] if no kernel of this name is shipped.
// ANCHOR: examine
pub fn examine(name: &str) -> Result<Option<Finding>, Error> {
    let file = if name.contains('/') { format!("{name}.cu") } else { format!("broken/{name}.cu") };
    let kernel = Kernel::load(&Device::simt(), Way::Chained, Size::SHIPPED, &file)?;
    let seq_len = TILES * Size::SHIPPED.steps();
    let found = |case: &str, what: String| Ok(Some(Finding { case: case.to_owned(), what }));

    let tiles = TILES as u64;
    let late_first = [tiles / 2..tiles, 0..tiles / 2];
    let ways = [("all blocks at once", None), ("the later blocks first", Some(&late_first[..]))];
    for (case, blocks) in ways {
        let watch = Watch { blocks, ..Watch::default() };
        if let Err(error) = kernel.compute(&vec![1.0; seq_len], &vec![0.5; seq_len], None, watch) {
            return found(case, error.to_string());
        }
    }
    let case = "two launches with one workspace";
    match two_launches(&kernel, seq_len) {
        Ok(None) => Ok(None),
        Ok(Some(what)) => found(case, what),
        Err(error) => found(case, error.to_string()),
    }
}
// ANCHOR_END: examine

/// Returns the first wrong output of two launches in a row.
fn two_launches(kernel: &Kernel, seq_len: usize) -> Result<Option<String>, Error> {
    let device = Device::simt();
    let mut workspace = kernel.workspace(seq_len)?;
    // Halves and small integers are exact.
    let c = device.upload(&vec![0.5_f32; seq_len])?;
    for (launch, input) in [(1, 1.0_f32), (2, 3.0)] {
        let x = device.upload(&vec![input; seq_len])?;
        let mut y = device.allocate_named::<f32>("outputs", seq_len)?;
        // The first block is late, so the second one polls before anything has been published.
        let delays = [200, 0, 0, 0];
        let watch = Watch { delays: Some(&delays[..TILES]), ..Watch::default() };
        kernel.launch(&x, &c, &mut y, &mut workspace, Default::default(), watch)?;
        let row = |value: f32| Array2::from_elem((1, seq_len), value);
        let (inputs, coeffs) = (row(input), row(0.5));
        let right = reference::forward(inputs.view(), coeffs.view(), &Default::default())?.outputs;
        let outputs = y.download()?;
        let wrong = outputs.iter().zip(&right).position(|(&y, &right)| y != right as f32);
        if let Some(l) = wrong {
            let (is, right) = (outputs[l], right[[0, l]] as f32);
            return Ok(Some(format!("launch {launch}: outputs[{l}] is {is} instead of {right}")));
        }
    }
    Ok(None)
}
