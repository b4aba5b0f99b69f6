//! Broken kernels, and what is found in them.

use linrec::Error;
use linrec::device::Device;
use linrec::lesson::{self, Kind, Lesson};

use crate::by_hand;
use crate::suspect::{self, Suspect};

/// Those that the page's exercises ask about: the key of the value, and the kernel.
const ASKED: [(&str, &str); 4] = [
    ("found_unshifted", "unshifted_coefficient"),
    ("found_early_exit", "early_exit_before_shuffle"),
    ("found_reuse", "missing_barrier_before_reuse"),
    ("found_offset", "row_offset_32_bits"),
];

/// Shows two findings, and counts the others.
pub fn mistakes(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("mistakes", "Mistakes, found")?;
    for (what, name) in [
        ("Without the line `if (sequence >= num_seqs) return;`", "out_of_bounds_tail"),
        ("Shared memory, read without a barrier", "missing_barrier_after_publishing"),
    ] {
        let suspect = Suspect::new(name)?;
        let [file, _] = suspect.files();
        lesson.say(&format!("{what} ({file}):"));
        match suspect.examine() {
            Some(finding) => lesson.quote(&finding.to_string()),
            None => lesson.show("nothing was found"),
        }
    }

    let (mut found, mut by_emulator, mut all) = (0, 0, 0);
    for name in Suspect::names() {
        all += 1;
        if let Some(finding) = Suspect::new(name)?.examine() {
            found += 1;
            // The emulator's sentences say where in the source.
            by_emulator += usize::from(finding.what.contains("kernels/broken/"));
            if let Some((key, _)) = ASKED.iter().find(|(_, asked)| *asked == name) {
                lesson.value(key, format!("{}: {}", finding.case, finding.what), Kind::Computed);
            }
        }
    }
    lesson.say(&format!(
        "There are {all} kernels with a planted mistake. {by_emulator} are stopped by the emulator; {} compute \
         to the end, and the contract finds their numbers wrong.",
        found - by_emulator,
    ));
    lesson.value("broken", all, Kind::Computed);
    lesson.value("by_emulator", by_emulator, Kind::Computed);
    lesson.value("by_contract", found - by_emulator, Kind::Computed);
    lesson.check("planted mistakes that nothing finds", (all - found) as f64, 0.0);

    let kernel = by_hand::instance::<f32>(&Device::simt(), linrec::Direction::Forward)?;
    let row: Result<Vec<f32>, Error> = suspect::far_rows(&kernel);
    let off = (row?[63] - 2.0).abs();
    lesson.say(
        "The correct kernel finds its row at element 2^31, too: three arrays of 8 GiB are declared for it, of \
         which the emulator keeps what is touched.",
    );
    lesson.check("a row past element 2^31, error of its last output", f64::from(off), 0.0);
    Ok(())
}
