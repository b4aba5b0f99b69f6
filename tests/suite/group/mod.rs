//! Tests of several devices: the operations of ranks, and the recurrence over them.

mod nccl;
mod processes;
mod recurrence;
mod several_gpus;
mod together;

use linrec::device::{Device, Group};

/// The numbers of ranks under test.
const SIZES: [usize; 5] = [1, 2, 3, 4, 8];

/// Makes a group of ranks on emulated devices.
fn emulated(ranks: usize) -> Group {
    Group::from_devices(&Device::emulated(ranks)).expect("there are devices")
}
