//! Widgets for the sectors of a request (chapter 5) and the banks of shared memory (9), for an
//! index that the reader writes.

use simt::{sectors, wavefronts};

use super::Controls;
use super::drawing::{Drawing, WIDTH};
use crate::expression::evaluate;

/// The number of lanes of a warp, and of banks.
const LANES: usize = 32;

/// Returns every lane's index by the reader's expression with `threadIdx.x`.
fn indices(text: &str) -> Result<[u64; LANES], String> {
    let mut all = [0; LANES];
    for (lane, index) in all.iter_mut().enumerate() {
        let value = evaluate(text, &|name| match name {
            "threadIdx.x" | "lane" => Some(lane as i64),
            _ => None,
        })?;
        *index = u64::try_from(value).ok().filter(|&index| index < 1 << 40).ok_or_else(|| {
            format!("`{text}` is {value} in lane {lane}: an index from 0 on is needed")
        })?;
    }
    Ok(all)
}

/// Draws the sectors that a load of `values[index]` touches.
pub fn requests(controls: &mut Controls<'_>) -> Result<(Drawing, String), String> {
    let text = controls.text("index", "threadIdx.x");
    let kind = controls.choice("element", &["float", "double", "float4", "half"]);
    let bytes = [4, 8, 16, 2][kind];
    let addresses = indices(&text)?.map(|index| index * bytes);
    let touched = sectors(&addresses, u32::MAX);
    let mut list: Vec<u64> = addresses.iter().map(|address| address / 32).collect();
    list.sort_unstable();
    list.dedup();
    let mut drawing = Drawing::new(140.0);
    let (lane_width, sector_width) = (WIDTH / LANES as f64, WIDTH / list.len().max(1) as f64);
    for (lane, address) in addresses.iter().enumerate() {
        let place = list.binary_search(&(address / 32)).unwrap_or(0) as f64;
        let inside = (address % 32) as f64 / 32.0;
        let from = lane_width * (lane as f64 + 0.5);
        drawing.stroke(
            (from, 26.0),
            (sector_width * (place + inside + bytes as f64 / 64.0), 104.0),
            "grid",
        );
        drawing.cell(
            (lane_width * lane as f64 + 1.0, 4.0),
            (lane_width - 2.0, 22.0),
            "positive",
            0.3,
        );
        drawing.text((from, 19.0), "middle", &lane.to_string());
    }
    for (place, sector) in list.iter().enumerate() {
        let used = addresses
            .iter()
            .filter(|address| **address / 32 == *sector)
            .collect::<std::collections::BTreeSet<_>>();
        let share = used.len() as f64 * bytes as f64 / 32.0;
        drawing.cell(
            (sector_width * place as f64 + 1.0, 104.0),
            (sector_width - 2.0, 22.0),
            "positive",
            0.1 + 0.6 * share.min(1.0),
        );
        if sector_width > 40.0 {
            drawing.text(
                (sector_width * (place as f64 + 0.5), 119.0),
                "middle",
                &format!("{sector}"),
            );
        }
    }
    let distinct: std::collections::BTreeSet<_> = addresses.iter().collect();
    let used = distinct.len() as u64 * bytes;
    let says = format!(
        "{touched} sector{}, {} bytes, of which {used} are used: {} %.",
        if touched == 1 { "" } else { "s" },
        32 * touched,
        100 * used / (32 * touched),
    );
    Ok((drawing, says))
}

/// Draws the banks of an access to shared memory, and its passes.
pub fn banks(controls: &mut Controls<'_>) -> Result<(Drawing, String), String> {
    let text = controls.text("word", "8 * threadIdx.x");
    let addresses = indices(&text)?.map(|word| 4 * word);
    let (passes, conflicts) = wavefronts(&addresses, u32::MAX, 4);
    let mut by_bank: [Vec<u64>; LANES] = Default::default();
    for address in addresses {
        let (word, bank) = (address / 4, (address / 4 % 32) as usize);
        if !by_bank[bank].contains(&word) {
            by_bank[bank].push(word);
        }
    }
    let mut drawing = Drawing::new(200.0);
    let (width, height) = (WIDTH / LANES as f64, (160.0 / passes as f64).min(22.0));
    for (bank, words) in by_bank.iter().enumerate() {
        let left = width * bank as f64 + 1.0;
        drawing.text((left + width / 2.0, 194.0), "middle", &bank.to_string());
        for level in 0..words.len() {
            let class = if level == 0 { "positive" } else { "negative" };
            drawing.cell(
                (left, 176.0 - height * (level + 1) as f64),
                (width - 2.0, height - 1.0),
                class,
                0.6,
            );
        }
    }
    let says = format!(
        "{passes} pass{}, {conflicts} of them for bank conflicts: in one pass each bank gives one word.",
        if passes == 1 { "" } else { "es" },
    );
    Ok((drawing, says))
}
