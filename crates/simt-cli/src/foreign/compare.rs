//! The same launch on a GPU, and its bits beside the emulator's.

use linrec::device::{Buffer, Bytes, Device};

use super::row::Row;
use crate::number::Type;
use crate::options::extent;
use crate::output::difference;
use crate::plan::{Hole, Plan};

/// Runs a row's kernel on the first GPU and compares every buffer with what the emulator left in it: where they
/// differ, if they do.
pub fn on_gpu(
    row: &Row,
    ptx: &str,
    emulated: &[(String, Vec<u8>)],
) -> Result<Option<String>, String> {
    if !row.variables.is_empty() {
        return Err("variables of modules are written on the emulator only".to_owned());
    }
    let device = Device::cuda(0).map_err(|error| error.to_string())?;
    let module = device.module(ptx).map_err(|error| error.to_string())?;
    let mut functions =
        module.functions().filter(|function| super::is_of(row, ptx, function.name()));
    let function = functions.next().ok_or("the driver has no such kernel")?;
    let mut plan = Plan::default();
    plan.arguments(&row.arguments(), function.params())?;
    if plan.buffers.iter().any(|buffer| !buffer.holes.is_empty()) {
        return Err("addresses in memory are written on the emulator only".to_owned());
    }
    if plan.buffers.iter().any(|buffer| buffer.object.is_some()) {
        return Err("textures and surfaces are made on the emulator only".to_owned());
    }
    let mut buffers: Vec<Buffer<u8>> = Vec::new();
    for buffer in &plan.buffers {
        let mut made = device.zeros::<u8>(buffer.bytes).map_err(|error| error.to_string())?;
        if let Some(contents) = &buffer.contents {
            made.upload(contents).map_err(|error| error.to_string())?;
        }
        buffers.push(made);
    }
    let shared = if row.shared.is_empty() {
        0
    } else {
        row.shared.parse().map_err(|_| "no number of bytes")?
    };
    let ([gx, gy, gz], [bx, by, bz]) = (extent(&row.grid)?, extent(&row.block)?);
    // What arguments point to is borrowed until the launch.
    let mut parts = Vec::new();
    for &Hole { buffer, offset, .. } in plan.arguments.iter().flat_map(|piece| &piece.holes) {
        let part = buffers[buffer].slice(offset as usize..);
        parts.push(part.map_err(|error| error.to_string())?);
    }
    let mut launch = function.launch((gx, gy, gz), (bx, by, bz)).shared(shared);
    let mut parts = parts.iter();
    for piece in &plan.arguments {
        let holes = piece.holes.iter().zip(&mut parts);
        let bytes = Bytes::new(piece.bytes.clone());
        launch = launch.arg(holes.fold(bytes, |bytes, (hole, part)| bytes.address(hole.at, part)));
    }
    let stream = device.stream();
    launch.run(&stream).map_err(|error| error.to_string())?;
    for (((name, emulated), buffer), planned) in emulated.iter().zip(&buffers).zip(&plan.buffers) {
        let found = buffer.download().map_err(|error| error.to_string())?;
        if let Some(difference) = difference(planned.ty, &found, emulated, 0.0) {
            let farthest = farthest(planned.ty, &found, emulated);
            return Ok(Some(format!("{name}: {difference}{farthest}")));
        }
    }
    Ok(None)
}

/// How far numbers are apart at most, relative to those above 1.
fn farthest(ty: Type, found: &[u8], expected: &[u8]) -> String {
    let pairs = found.chunks(ty.bytes()).zip(expected.chunks(ty.bytes()));
    let apart = pairs.map(|(a, b)| (ty.value(a) - ty.value(b)).abs() / ty.value(b).abs().max(1.0));
    format!(", {:.1e} apart at most", apart.fold(0.0, f64::max))
}
