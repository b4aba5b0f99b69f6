//! Occupancy by hand, beside the driver's.

use linrec::lesson::{self, Kind, Lesson, Table};

use super::NOTHING;
use crate::occupancy::{self, Limits};
use crate::record;

/// Compares the rule with the record, and shows what each limit does.
pub fn room(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("occupancy", "How many blocks fit")?;
    lesson.say(
        "A multiprocessor of an H200 has places for 64 warps and 32 blocks, 65536 registers and 228 KiB of shared \
         memory. Blocks of some threads, with some registers each and some shared memory:",
    );
    let mut table = Table::new(["threads", "registers", "shared, KiB", "blocks", "warps", "limit"]);
    for (threads, registers, kib) in [
        (32, 32, 0),
        (64, 32, 0),
        (256, 32, 0),
        (256, 40, 0),
        (256, 64, 0),
        (256, 128, 0),
        (1024, 64, 0),
        (1024, 65, 0),
        (256, 32, 32),
        (256, 32, 100),
    ] {
        let (blocks, limit) = occupancy::blocks(&Limits::H200, registers, threads, kib << 10);
        let warps = blocks * (threads / 32);
        let numbers = [threads, registers, kib, blocks, warps].map(|number| number.to_string());
        table.row(numbers.into_iter().chain([limit.to_string()]));
    }
    lesson.table("occupancy.csv", Kind::Computed, &table)?;

    let taken = record::attrs()?;
    let launchable: Vec<_> = taken.iter().filter(|taken| taken.blocks > 0).collect();
    let differ = launchable
        .iter()
        .filter(|taken| {
            let shared = taken.shared_bytes + taken.dynamic_bytes;
            let threads = taken.threads;
            occupancy::blocks(&Limits::H200, taken.registers, threads, shared).0 != taken.blocks
        })
        .count();
    lesson.say(&format!(
        "The rule against what the driver of the H200 says of {} kernels. {}",
        launchable.len(),
        if taken.is_empty() { NOTHING } else { "" }
    ));
    lesson.check("kernels for which the rule and the driver differ", differ as f64, 0.0);
    lesson.value("launchable", launchable.len(), Kind::Computed);
    Ok(())
}
