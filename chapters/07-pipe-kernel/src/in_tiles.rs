//! Tiles one after the other, with a call for each.

use ch04_gradient::ThroughForward;
use linrec::{Direction, Element, Engine, Error, Gradients, Options, Outputs, validate};
use ndarray::{Array1, ArrayView2, CowArray, s};

/// An engine that computes at most `tile` steps at once. It computes a longer sequence tile by
/// tile, and the final state of one call becomes the initial state of the next.
///
/// ```
/// use ch07_pipe_kernel::{InTiles, TILE};
/// use linrec::device::{Device, KernelEngine};
/// use linrec::{Engine, Options};
/// use ndarray::Array2;
///
/// let ones = Array2::<f32>::ones((1, 2500));
/// let tile = KernelEngine::<f32>::new(&Device::simt(), TILE)?;
/// // The kernel holds 1024 steps at most.
/// assert!(tile.forward(ones.view(), ones.view(), &Options::default()).is_err());
///
/// let sum = InTiles::new(&tile, 1024).forward(ones.view(), ones.view(), &Options::default())?;
/// assert_eq!(sum.final_state[0], 2500.0);
/// # Ok::<(), linrec::Error>(())
/// ```
#[derive(Debug)]
pub struct InTiles<'a, E: ?Sized> {
    engine: &'a E,
    tile: usize,
}

impl<'a, E: ?Sized> InTiles<'a, E> {
    /// Makes tiles of `tile` steps, at least one.
    pub fn new(engine: &'a E, tile: usize) -> Self {
        InTiles { engine, tile: tile.max(1) }
    }
}

impl<E: ?Sized> Clone for InTiles<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E: ?Sized> Copy for InTiles<'_, E> {}

impl<T: Element, E: Engine<T> + ?Sized> Engine<T> for InTiles<'_, E> {
    fn name(&self) -> &str {
        "in tiles"
    }

    // ANCHOR: forward
    fn forward(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Outputs<T>, Error> {
        let (num_seqs, seq_len) = validate::forward(&inputs, &coeffs, options)?;
        let mut outputs = validate::allocate("forward", (num_seqs, seq_len))?;
        let mut carry = options.initial.clone();
        for first in (0..seq_len).step_by(self.tile) {
            let end = seq_len.min(first + self.tile);
            // The positions in a row of the steps from `first` to before `end`.
            let tile = match options.direction {
                Direction::Forward => s![.., first..end],
                Direction::Reverse => s![.., seq_len - end..seq_len - first],
            };
            let options = Options { initial: carry.take(), ..*options };
            let result = self.engine.forward(inputs.slice(tile), coeffs.slice(tile), &options)?;
            outputs.slice_mut(tile).assign(&result.outputs);
            carry = Some(result.final_state.into());
        }
        let final_state = carry.map_or_else(|| Array1::zeros(num_seqs), CowArray::into_owned);
        Ok(Outputs { outputs, final_state })
    }
    // ANCHOR_END: forward

    /// Uses the backward pass of chapter 4, which is a forward pass.
    fn backward(
        &self,
        d_outputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        outputs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Gradients<T>, Error> {
        ThroughForward(*self).backward(d_outputs, coeffs, outputs, options)
    }
}
