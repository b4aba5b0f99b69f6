//! Many small calls.

use linrec::lesson::{self, Kind, Lesson, Table};

use super::cell;
use crate::record::call_us;

/// One by one, as a graph, and as one.
pub fn calls(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("calls", "Many small calls")?;
    lesson.say(
        "Twenty calls on an H200, each over what the one before it wrote: microseconds for each, if they are queued one \
         by one, replayed as a graph, or (were they independent) made as one call with twenty times the sequences.",
    );
    let mut table = Table::new(["sequences", "length", "one by one", "graph", "one call"]);
    for num_seqs in [1, 16, 132] {
        for seq_len in [64, 1024, 4096] {
            let times =
                ["plain", "graph", "batch"].map(|way| cell(call_us(way, num_seqs, seq_len), 2));
            table.row([num_seqs.to_string(), seq_len.to_string()].into_iter().chain(times));
        }
    }
    lesson.table("calls.csv", Kind::Computed, &table)
}
