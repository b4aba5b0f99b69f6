//! Several devices: what ranks do together, and the recurrence over them.

mod nccl;
mod processes;
mod recurrence;
mod several_gpus;
mod together;

use linrec::device::{Device, Group};

/// The numbers of ranks that are tried.
const SIZES: [usize; 5] = [1, 2, 3, 4, 8];

/// So many ranks on emulated devices.
fn emulated(ranks: usize) -> Group {
    Group::from_devices(&Device::emulated(ranks)).expect("there are devices")
}
