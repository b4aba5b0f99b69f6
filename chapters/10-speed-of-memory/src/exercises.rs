//! The solutions of the page's exercises.

use linrec::Error;
use linrec::device::{Buffer, Choice, Device, ForwardOptions, Graph, Recurrence};
use linrec::kernels::{ElementType, RowsConfig};

/// Returns the fewest threads with which a tile holds a whole row of `f32`, with `vectors` vectors
/// per thread, or `None` if a block of 1024 threads is too small.
// ANCHOR: threads_for
pub fn threads_for(seq_len: u32, vectors: u32) -> Option<u32> {
    let threads = seq_len.div_ceil(4 * vectors).next_multiple_of(32);
    (threads <= 1024).then_some(threads)
}
// ANCHOR_END: threads_for

/// Returns how many sectors a request of a blocked warp touches for each sector that it needs, with
/// `vectors` vectors per lane.
// ANCHOR: touched
pub fn touched(vectors: u32) -> f64 {
    let (lanes, bytes, sector) = (32, 16, 32);
    let mut sectors: Vec<u32> = (0..lanes).map(|lane| lane * vectors * bytes / sector).collect();
    sectors.dedup();
    sectors.len() as f64 / f64::from(lanes * bytes / sector)
}
// ANCHOR_END: touched

/// Returns the configuration for short rows of a type by the page's rule: two vectors per lane.
/// Returns `None` if a warp is too small, or if the row does not consist of whole vectors.
// ANCHOR: for_short
pub fn for_short(element: ElementType, seq_len: u32) -> Option<RowsConfig> {
    let vectors = (seq_len * element.bytes() as u32).div_ceil(16);
    let whole = (seq_len * element.bytes() as u32).is_multiple_of(16);
    let lanes = vectors.div_ceil(2).next_power_of_two();
    (whole && lanes <= 32).then_some(RowsConfig { lanes, vectors: 2, threads: 32, whole })
}
// ANCHOR_END: for_short

/// Records a chain of recurrences in which `x` becomes `y`, and `y` becomes `x`, `calls` times.
// ANCHOR: chain
pub fn chain(
    device: &Device,
    [x, c, y]: [&Buffer<f32>; 3],
    shape: (usize, usize),
    calls: usize,
) -> Result<Graph, Error> {
    let recurrence = Recurrence::<f32>::new(device, Choice::Fastest)?;
    device.record(|stream| {
        let (mut x, mut y) = (x.slice(..)?, y.slice(..)?);
        for _ in 0..calls {
            let options = ForwardOptions { stream: Some(stream), ..Default::default() };
            recurrence.forward_into(&x, c, &mut y, shape, options)?;
            std::mem::swap(&mut x, &mut y);
        }
        Ok(())
    })
}
// ANCHOR_END: chain

#[cfg(test)]
mod tests {
    use super::{chain, for_short, threads_for, touched};
    use linrec::kernels::{ElementType, KernelChoice};

    #[test]
    fn a_chain_is_replayed_over_the_current_arrays() {
        for device in linrec::device::under_test() {
            let upload = |numbers: &[f32]| device.upload(numbers).unwrap();
            let (mut x, c, y) = (upload(&[1.0, 0.0]), upload(&[0.5, 0.5]), upload(&[0.0, 0.0]));
            let graph = chain(&device, [&x, &c, &y], (1, 2), 2).unwrap();
            for (start, expected) in [([1.0, 0.0], [1.0, 1.0]), ([2.0, 4.0], [2.0, 6.0])] {
                x.upload(&start).unwrap();
                graph.replay(&device.stream()).unwrap();
                // Twice y_1 = y_0 / 2 + x_1.
                assert_eq!(x.download().unwrap(), expected);
            }
        }
    }

    #[test]
    fn a_tile_holds_the_row_with_the_fewest_warps() {
        for vectors in [1, 2, 4] {
            for seq_len in [4, 100, 1000, 1024, 4096, 16_000] {
                let Some(threads) = threads_for(seq_len, vectors) else {
                    assert!(1024 * 4 * vectors < seq_len);
                    continue;
                };
                assert!(threads * 4 * vectors >= seq_len && threads % 32 == 0);
                assert!(threads == 32 || (threads - 32) * 4 * vectors < seq_len);
            }
        }
    }

    #[test]
    fn a_blocked_warp_touches_a_sector_at_most_twice() {
        assert_eq!([1, 2, 4].map(touched), [1.0, 2.0, 2.0]);
    }

    #[test]
    fn the_rule_gives_kernels_that_support_the_row() {
        for element in ElementType::ALL {
            for seq_len in [4, 8, 12, 16, 100, 128, 256, 512] {
                let Some(config) = for_short(element, seq_len) else { continue };
                let choice = KernelChoice::Rows(config);
                assert!(choice.max_len(element).is_some_and(|most| u64::from(seq_len) <= most));
                assert_eq!(u64::from(seq_len) % choice.multiple_of(element), 0);
            }
        }
        let config = for_short(ElementType::F32, 128).unwrap();
        assert_eq!((config.lanes, config.vectors), (16, 2));
        assert!(for_short(ElementType::F32, 2048).is_none());
        assert!(for_short(ElementType::Bf16, 12).is_none());
    }
}
