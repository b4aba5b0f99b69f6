//! Tables of steps: as parts of the roof, and counted.

use ch09_tuning::counted::PerElement;
use linrec::Error;
use linrec::lesson::Table;
use linrec::simt::Counters;

use super::cell;
use crate::count::sectors_per_request;
use crate::record::Ladder;

/// Lengths that the tables have.
pub const LENGTHS: [usize; 6] = [256, 1024, 4096, 16_384, 32_768, 65_536];

/// Of each kernel the fastest size at every length, as a part of the roof; and its size at 4096.
pub fn speeds(ladder: &Ladder, names: &[&str]) -> Table {
    let lengths = LENGTHS.map(|len| len.to_string());
    let header = [String::from("kernel")].into_iter().chain(lengths);
    let mut table = Table::new(header.chain([String::from("size at 4096")]));
    for name in names {
        let ratios = LENGTHS.map(|len| cell(ladder.best(name, len).map(|(_, run)| run.ratio), 3));
        let size = ladder.best(name, 4096).and_then(|(engine, _)| engine.split(':').nth(1));
        let cells = [String::from(*name)].into_iter().chain(ratios);
        table.row(cells.chain([size.unwrap_or("–").to_owned()]));
    }
    table
}

/// What the columns of [`counts`] are.
pub const COLUMNS: &str = "Instructions for each element; requests, shuffles and passes over shared memory for a warp's \
    share of 32 elements; sectors of a load and of a store; barriers for 1000 elements.";

/// What launches cost by the emulator's counters.
pub fn counts<'a>(
    launches: impl IntoIterator<Item = (&'a str, Counters)>,
    elements: usize,
) -> Result<Table, Error> {
    let header = [
        "kernel",
        "instructions",
        "requests",
        "of a load",
        "of a store",
        "shuffles",
        "shared",
        "barriers",
    ];
    let mut table = Table::new(header);
    for (name, counters) in launches {
        let each = PerElement::new(&counters, elements);
        let [load, store] = sectors_per_request(&counters);
        let digit = |number: f64| format!("{number:.1}");
        table.row([
            name.to_owned(),
            digit(each.instructions),
            format!("{:.2}", each.requests),
            digit(load),
            digit(store),
            digit(each.shuffles),
            digit(each.shared),
            digit(each.barriers),
        ]);
    }
    Ok(table)
}
