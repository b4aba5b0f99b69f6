//! Progress bars.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar for work of `len` units that takes more than a few seconds; silent where there is
/// no terminal, and gone when the work is done.
pub fn progress(len: usize, what: &str) -> ProgressBar {
    let bar = ProgressBar::new(len as u64).with_message(what.to_owned());
    // The template is a constant; if it did not parse, the default style would do.
    if let Ok(style) = ProgressStyle::with_template("  {msg} {wide_bar} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
