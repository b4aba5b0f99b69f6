//! Requests and sectors, from the simplest kernels there are.

use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::simt::Access;

use crate::patterns::PATTERNS;

/// Counts what each pattern costs.
pub fn patterns(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("patterns", "What a request costs")?;
    lesson.say(
        "Each kernel of access_patterns.cu copies an array, with 4 warps on the emulator. A load instruction \
         of a warp is one request; it costs one sector of 32 bytes for every sector that some lane touches.",
    );
    let header = ["each lane takes", "sectors per load", "bytes fetched", "of them used"];
    let mut table = Table::new(header);
    for pattern in PATTERNS {
        let cost = pattern.cost()?;
        let sectors = cost.sectors_per_request(Access::GlobalLoad);
        table.row([
            pattern.to_string(),
            format!("{sectors}"),
            format!("{}", 32.0 * sectors),
            format!("{:.1} %", 100.0 * cost.used()),
        ]);
    }
    lesson.table("patterns.csv", Kind::Computed, &table)?;
    Ok(())
}
