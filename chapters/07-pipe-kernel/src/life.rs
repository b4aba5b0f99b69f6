//! The actions of a block's warps, in the order in which the emulator executed them.

use linrec::Error;
use linrec::device::{Buffer, Device, Recurrence};
use linrec::kernels::Pass;
use linrec::simt::{Trace, What};
use linrec::{Direction, device::Launched};

use crate::PIPE;

/// An action of a warp that involves memory or another warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// A load from global memory.
    Load,
    /// An exchange of values between the lanes.
    Shuffle,
    /// A write of the warp's total to shared memory, into the array with this number (of two).
    Publish(u32),
    /// The arrival at a barrier.
    Arrive,
    /// A read of a total from the array with this number (of two).
    Take(u32),
    /// A store to global memory.
    Store,
}

/// A stretch of equal actions of one warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// The warp's number in the block.
    pub warp: u32,
    /// The tile that the warp was at.
    pub tile: u32,
    /// The action.
    pub act: Act,
    /// The number of its first event in the order of execution.
    pub first: usize,
    /// The number of events.
    pub count: usize,
}

/// The size of one array of totals in bytes: 32 warps of two floats.
const TURN_BYTES: u64 = 32 * 8;

/// Returns the actions of the first block of a launch, from its trace.
pub fn of(trace: &Trace) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    // The tile that each warp is at.
    let mut tiles: Vec<u32> = Vec::new();
    let events = trace.events.iter().filter(|event| event.block == 0);
    for (number, event) in events.enumerate() {
        let warp = event.warp as usize;
        tiles.resize(tiles.len().max(warp + 1), 0);
        let turn = |addresses: &[u64; 32]| {
            let lane = event.lanes.trailing_zeros().min(31) as usize;
            (addresses[lane] / TURN_BYTES) as u32
        };
        let act = match &event.what {
            What::Load(load) if load.shared => Act::Take(turn(&load.addresses)),
            What::Load(_) => Act::Load,
            What::Store(store) if store.shared => Act::Publish(turn(&store.addresses)),
            What::Store(_) => Act::Store,
            What::Shuffle { .. } => Act::Shuffle,
            What::Barrier => Act::Arrive,
            What::Copy(_) => continue,
        };
        let before = stretches.iter().rposition(|stretch| stretch.warp == event.warp);
        if act == Act::Load && before.is_some_and(|last| stretches[last].act == Act::Store) {
            tiles[warp] += 1;
        }
        let tile = tiles[warp];
        match stretches.last_mut() {
            Some(last) if (last.warp, last.tile, last.act) == (event.warp, tile, act) => {
                last.count += 1;
            }
            _ => {
                let (warp, first) = (event.warp, number);
                stretches.push(Stretch { warp, tile, act, first, count: 1 });
            }
        }
    }
    stretches
}

/// Runs the kernel over one sequence on the emulator and records its actions.
///
/// # Errors
///
/// Returns the device's error.
pub fn traced(inputs: &[f32], coeffs: &[f32]) -> Result<(Vec<f32>, Trace, Launched), Error> {
    let device = Device::simt();
    let recurrence = Recurrence::<f32>::new(&device, PIPE)?;
    let (x, c) = (device.upload(inputs)?, device.upload(coeffs)?);
    let mut y = device.allocate_named::<f32>("outputs", inputs.len())?;
    let mut trace = Trace::new(1 << 16);
    let geometry =
        PIPE.geometry(linrec::kernels::ElementType::F32, Pass::Forward, 1, inputs.len() as u64);
    let none = None::<&Buffer<f32>>;
    let launch = recurrence.function(Pass::Forward, Direction::Forward)?;
    let launch = launch.launch(1, geometry.threads).arg(&x).arg(&c).arg(&mut y);
    let launch = launch.arg(none).arg(none).arg(1_i64).arg(inputs.len() as i64).arg(0_i32);
    let launched = launch.traced(&mut trace).run(&device.stream())?;
    Ok((y.download()?, trace, launched))
}

#[cfg(test)]
mod tests {
    use super::{Act, of, traced};

    #[test]
    fn warps_publish_and_store_every_tile_once() {
        let ones = vec![1.0; 1200];
        let (outputs, trace, _) = traced(&ones, &ones).unwrap();
        assert_eq!(outputs[1199], 1200.0);
        let life = of(&trace);
        for stretch in &life {
            println!("{stretch:?}");
        }
        // Every warp publishes a total of two floats in each tile, and the two arrays take turns.
        for warp in [0, 1] {
            let published: Vec<_> = life.iter().filter(|stretch| stretch.warp == warp).collect();
            let published = published.iter().filter_map(|stretch| match stretch.act {
                Act::Publish(turn) => Some((stretch.tile, turn, stretch.count)),
                _ => None,
            });
            assert_eq!(published.collect::<Vec<_>>(), [(0, 0, 2), (1, 1, 2), (2, 0, 2)]);
        }
        let stores: usize = life
            .iter()
            .filter(|stretch| stretch.act == Act::Store)
            .map(|stretch| stretch.count)
            .sum();
        // Two full tiles of 8 steps per thread, and one of at most 3.
        assert_eq!(stores, 2 * (8 + 8 + 3));
    }
}
