//! Progress bars.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Makes a progress bar for `len` units of work that take more than a few seconds in all. It is
/// silent without a terminal and disappears when the work is done.
pub fn progress(len: usize, what: &str) -> ProgressBar {
    let bar = ProgressBar::new(len as u64).with_message(what.to_owned());
    // If the constant template did not parse, the default style would do.
    if let Ok(style) = ProgressStyle::with_template("  {msg} {wide_bar} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
