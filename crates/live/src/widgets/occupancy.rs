//! A widget for the number of blocks on an SM (chapter 11), for a reader's kernel.

use ch11_tuning::occupancy::{Limits, blocks};

use super::Controls;
use super::drawing::{Drawing, WIDTH};

/// The number of parts of an SM, to which warps are assigned in turns.
const PARTS: u32 = 4;

/// Draws the places for warps in the four parts of an SM, and the blocks that fill them.
pub fn occupancy(controls: &mut Controls<'_>) -> Result<(Drawing, String), String> {
    let threads = controls.slider("threads", 256.0, 32.0..=1024.0, 32.0) as u32;
    let registers = controls.whole("registers", 40, 16..=255) as u32;
    let kib = controls.whole("KiB of shared memory", 0, 0..=227) as u32;
    let limits = Limits::H200;
    let (count, limit) = blocks(&limits, registers, threads, kib << 10);
    let warps = threads.div_ceil(32);
    let places = limits.warps / PARTS;
    let (label, width, row) = (70.0, (WIDTH - 70.0) / f64::from(places), 30.0);
    let mut drawing = Drawing::new(row * f64::from(PARTS) + 8.0);
    for part in 0..PARTS {
        let top = row * f64::from(part) + 4.0;
        drawing.text((0.0, top + 18.0), "start", &format!("part {part}"));
        for place in 0..places {
            let warp = PARTS * place + part;
            let block = warp / warps;
            // Neighbouring blocks have different shades.
            let (class, share) = match (block < count, block % 2) {
                (false, _) => ("positive", 0.06),
                (true, 0) => ("positive", 0.8),
                (true, _) => ("positive", 0.45),
            };
            let left = label + width * f64::from(place);
            drawing.cell((left + 1.0, top), (width - 2.0, row - 4.0), class, share);
            if block < count {
                let middle = (left + width / 2.0, top + 18.0);
                drawing.text(middle, "middle", &block.to_string());
            }
        }
    }
    if count == 0 {
        let says = format!("Such a block cannot run: an SM has not enough {limit} for one.");
        return Ok((drawing, says));
    }
    let held = count * warps;
    let says = format!(
        "An SM holds {count} such block{}: {held} of its {} warps, {:.0} %. What runs out first: {limit}. (A box is the place of a warp, with the number of its block.)",
        if count == 1 { "" } else { "s" },
        limits.warps,
        100.0 * f64::from(held) / f64::from(limits.warps),
    );
    Ok((drawing, says))
}
