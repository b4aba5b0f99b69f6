//! Chapter 09: Tuning and benchmarking.
//!
//! - [`attrs`]: what a compiled kernel takes, for every configuration: `tour attrs`.
//! - [`tune`]: which configuration is the fastest: `tour tune`.
//! - [`race`]: the fastest of each kernel beside the roof: `tour bench` on a GPU.
//! - [`occupancy`]: how many blocks a multiprocessor holds, by hand.
//! - [`configs`], [`element`]: which configurations there are, and code that is generic in the element type.
//! - [`field`], [`log`], [`rule`]: the arrays and the stopwatch, the measurements as they grow, the fastest of them.
//! - [`counted`]: what the emulator counts in place of a time.
//! - [`record`]: what was measured on an H200.
//! - [`exercises`]: the solutions of the page's exercises.

pub mod attrs;
pub mod configs;
pub mod counted;
pub mod element;
pub mod exercises;
pub mod field;
pub mod judge;
pub mod log;
pub mod occupancy;
pub mod race;
pub mod record;
pub mod rule;
pub mod tune;

mod story;

use linrec::device::Device;
use linrec::lesson::{self, Chapter};

/// This chapter.
pub const CHAPTER: Chapter =
    Chapter { number: 9, slug: "09-tuning", title: "Tuning and benchmarking", run: story::run };

/// The lengths that everything is measured at: the powers of two, and two lengths that are none.
pub const LENGTHS: [usize; 15] =
    [16, 32, 64, 128, 256, 512, 1000, 1024, 2048, 4093, 4096, 8192, 16_384, 32_768, 65_536];

/// The device of a name, `simt` or `cuda:1`; [`Device::auto`] if none is given.
///
/// # Errors
///
/// If there is no such device.
pub fn device(name: Option<&str>) -> lesson::Result<Device> {
    let Some(name) = name else { return Ok(Device::auto()?) };
    match name {
        "simt" => Ok(Device::simt()),
        "cuda" => Ok(Device::cuda(0)?),
        other => match other.strip_prefix("cuda:").and_then(|ordinal| ordinal.parse().ok()) {
            Some(ordinal) => Ok(Device::cuda(ordinal)?),
            None => Err(format!("`{other}` is no device; write simt, cuda or cuda:1").into()),
        },
    }
}

/// A folder that can be written to, made if it is not there.
pub(crate) fn folder(path: &std::path::Path) -> lesson::Result {
    std::fs::create_dir_all(path)
        .map_err(|error| format!("cannot make the folder {}: {error}", path.display()).into())
}

/// Writes a file.
pub(crate) fn write(path: &std::path::Path, text: &str) -> lesson::Result {
    std::fs::write(path, text)
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

/// The value in the middle; NaN of no values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
