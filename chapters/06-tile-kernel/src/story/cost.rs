//! What the tile costs beside one thread per sequence.

use linrec::device::Launched;
use linrec::kernels::{ElementType, KernelChoice, Pass};
use linrec::lesson::{self, Kind, Lesson, Table, plot, plot::Chart};
use linrec::simt::{Access, Counters};

use crate::stages::{CHOICE, counted};

/// Sequences in a launch.
const NUM_SEQS: usize = 128;
/// Their length in the table.
const SEQ_LEN: usize = 1000;

/// Sectors, instructions and warps of both kernels.
pub fn cost(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("cost", "Beside one thread per sequence")?;
    lesson.say(&format!(
        "{NUM_SEQS} sequences of {SEQ_LEN} in f32, forward, counted in the emulator:"
    ));
    let reference = KernelChoice::default();
    let header = ["", "one thread per sequence", "one block per sequence"];
    let mut table = Table::new(header);
    let [of_ref, of_tile] = [reference, CHOICE].map(Cost::of);
    let (of_ref, of_tile) = (of_ref?, of_tile?);
    let mut row = |name: &str, count: fn(&Cost) -> String| {
        table.row([name.to_owned(), count(&of_ref), count(&of_tile)]);
    };
    row("warps", |cost| cost.warps.to_string());
    row("load requests", |cost| cost.counters.requests(Access::GlobalLoad).to_string());
    row("sectors of them", |cost| cost.counters.sectors(Access::GlobalLoad).to_string());
    row("sectors per request", |cost| format!("{:.1}", per_request(&cost.counters)));
    row("instructions of one warp", |cost| format!("{:.0}", cost.chain()));
    row("instructions of all warps", |cost| cost.counters.instructions.to_string());
    lesson.table("cost.csv", Kind::Computed, &table)?;
    lesson.value("shorter", format!("{:.0}", of_ref.chain() / of_tile.chain()), Kind::Computed);
    let more = of_tile.counters.instructions as f64 / of_ref.counters.instructions as f64;
    lesson.value("more_work", format!("{more:.0}"), Kind::Computed);
    lesson.value("tile_sectors", format!("{:.1}", per_request(&of_tile.counters)), Kind::Computed);
    lesson.value("ref_sectors", format!("{:.1}", per_request(&of_ref.counters)), Kind::Computed);
    // Four elements of four bytes lie between neighbouring lanes: two lanes share a sector.
    let excess = per_request(&of_tile.counters) - 16.0;
    lesson.check("sectors per request of the tile beyond 16", excess, 0.0);

    // An H200: 132 multiprocessors with room for 64 warps each.
    let (sequences, room) = (100 * 132, 132 * 64);
    let warps = sequences * of_tile.warps / NUM_SEQS as u64;
    lesson.say(&format!(
        "With the {sequences} sequences of the benchmarks there are {warps} warps instead of {}. An H200 holds {room} at a \
         time.",
        u64::div_ceil(sequences, 32),
    ));
    lesson.value("tile_warps", warps, Kind::Computed);
    lesson.value("ref_warps", u64::div_ceil(sequences, 32), Kind::Computed);
    lesson.value("room", room, Kind::Computed);

    let mut points = Vec::new();
    for seq_len in (8..=1024).step_by(8) {
        let launched = counted(CHOICE, (1, seq_len))?;
        points.push((seq_len as f64, per_request(&counters(&launched))));
    }
    let chart = Chart::new("Sectors per load request")
        .axes("length of a row", "sectors per request")
        .y_range(0.0, 48.0)
        .line("tile: one block per row", points)
        .dashed("ref: one thread per row", [(8.0, 32.0), (1024.0, 32.0)])
        .dashed("neighbours", [(8.0, 4.0), (1024.0, 4.0)]);
    let svg = plot::svg(&[&chart])?;
    lesson.figure("lengths.svg", "Sectors per request against length", Kind::Computed, &svg)
}

/// What a launch of a kernel was, and what it counted.
struct Cost {
    warps: u64,
    counters: Counters,
}

impl Cost {
    fn of(choice: KernelChoice) -> Result<Cost, linrec::Error> {
        let geometry =
            choice.geometry(ElementType::F32, Pass::Forward, NUM_SEQS as u64, SEQ_LEN as u64);
        let warps = geometry.blocks * u64::from(geometry.threads / 32);
        Ok(Cost { warps, counters: counters(&counted(choice, (NUM_SEQS, SEQ_LEN))?) })
    }

    /// Instructions of a warp, on average.
    fn chain(&self) -> f64 {
        self.counters.instructions as f64 / self.warps as f64
    }
}

fn counters(launched: &Launched) -> Counters {
    launched.counters().cloned().unwrap_or_default()
}

fn per_request(counters: &Counters) -> f64 {
    let requests = counters.requests(Access::GlobalLoad).max(1);
    counters.sectors(Access::GlobalLoad) as f64 / requests as f64
}
