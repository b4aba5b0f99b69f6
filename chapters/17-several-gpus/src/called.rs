//! The library's `GroupRecurrence` in a program: every device computes its stretch of all rows.

use linrec::Error;
use linrec::device::{Device, Group, GroupRecurrence, Links, Part, Split, Way};
use ndarray::{ArrayView2, s};

/// Computes the outputs of rows that are cut over devices: for each device, which part of the rows
/// it has, and the outputs of that part, row after row.
///
/// # Errors
///
/// Returns an error if there is no device, if some are emulated and others not, or if a device
/// fails.
// ANCHOR: called
pub fn outputs(
    devices: &[Device],
    inputs: ArrayView2<f32>,
    coeffs: ArrayView2<f32>,
) -> Result<Vec<(Part, Vec<f32>)>, Error> {
    let group = Group::from_devices(devices)?;
    let links = Links { peers: !devices.iter().any(Device::is_simt), ..Links::H200 };
    let way = Way::fastest(inputs.dim(), size_of::<f32>(), group.size(), links);
    group.run(|rank| {
        let recurrence = GroupRecurrence::<f32>::new(rank, Split::Steps).with_way(way);
        let part = recurrence.part(inputs.dim())?;
        let upload = |all: ArrayView2<f32>| {
            let mine = all.slice_move(s![part.rows.clone(), part.steps.clone()]);
            rank.device().upload(&mine.iter().copied().collect::<Vec<_>>())
        };
        let (x, c) = (upload(inputs)?, upload(coeffs)?);
        let mut y = rank.device().allocate(part.len())?;
        recurrence.forward_into(&x, &c, &mut y, inputs.dim(), Default::default())?;
        Ok((part, y.download()?))
    })
}
// ANCHOR_END: called
