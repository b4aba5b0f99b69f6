//! The cycles of a wave, and the attempts to reduce them.
//!
//! Both records come from trials with one sequence of 2^28 steps and tiles of 4 vectors for each of
//! 288 threads. The kernel of the trials read the clock at every station and stored it, which the
//! library's kernel does not do.

use bench::csv::Table as Csv;
use bench::recorded;
use lesson::{Kind, Lesson, Table};

/// The cycles from station to station of a wave, averaged over blocks and waves.
const STATIONS: &str = "stations.csv";
/// The speeds of other forms, with the first form in the same rounds: medians of nine.
const ATTEMPTS: &str = "attempts.csv";
const H200: &str = include_str!("../results/h200/tables.json");

/// The names of the two forms in the record: with shuffles, and as in the library.
const FIRST: &str = "shuffles";
const TODAY: &str = "no shuffles";

/// Shows what the warps of a block do in a wave of the first form, and for how long.
pub(super) fn stations(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("stations", "Where a wave's time goes")?;
    lesson.say(
        "Cycles of a wave on an H200, from station to station (stations.csv in results/h200/tables.json). The first form of the kernel, which \
         scans with shuffles:",
    );
    let first = Wave::of(FIRST)?;
    lesson.table("stations.csv", Kind::Computed, &first.table())?;
    lesson.value("first_wave", first.cycles, Kind::Computed);
    lesson.value("first_carries", first.busy("carries"), Kind::Computed);
    lesson.value("first_computes", first.busy("computes"), Kind::Computed);
    lesson.value("first_waits", first.cycles_at("computes", BARRIER), Kind::Computed);
    Ok(())
}

/// Shows where the warps of today's form spend a wave.
pub(super) fn stations_today(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("stations_today", "Where it goes without shuffles")?;
    lesson.say(
        "The same of today's form, in which the warp that carries reads shared memory all at once:",
    );
    let today = Wave::of(TODAY)?;
    lesson.table("stations-today.csv", Kind::Computed, &today.table())?;
    lesson.value("today_wave", today.cycles, Kind::Computed);
    lesson.value("today_idle", today.cycles_at("carries", BARRIER), Kind::Computed);
    Ok(())
}

/// The station where a warp only waits for the others of its block.
const BARRIER: &str = "at the barrier";

/// The cycles of one form's wave.
struct Wave {
    cycles: usize,
    /// The warp, the station, and the number of cycles.
    stations: Vec<(String, String, usize)>,
}

impl Wave {
    fn of(form: &str) -> lesson::Result<Wave> {
        let record = Csv::read(&recorded::table(H200, STATIONS)?)?;
        let mut wave = Wave { cycles: 0, stations: Vec::new() };
        for row in record.rows().filter(|row| row.get("form") == Some(form)) {
            wave.cycles = row.number("wave")?;
            let (who, station) = (row.text("who")?.to_owned(), row.text("station")?.to_owned());
            wave.stations.push((who, station, row.number("cycles")?));
        }
        Ok(wave)
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["a wave", "the warp that", "station", "cycles"]);
        for (who, station, cycles) in &self.stations {
            table.row([self.cycles.to_string(), who.clone(), station.clone(), cycles.to_string()]);
        }
        table
    }

    fn cycles_at(&self, who: &str, station: &str) -> usize {
        let at = self.stations.iter().filter(|(warp, place, _)| warp == who && place == station);
        at.map(|(_, _, cycles)| cycles).sum()
    }

    /// Returns the cycles that a warp spends anywhere but at the barrier.
    fn busy(&self, who: &str) -> usize {
        let own = self.stations.iter().filter(|(warp, place, _)| warp == who && place != BARRIER);
        own.map(|(_, _, cycles)| cycles).sum()
    }
}

pub(super) fn attempts(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("attempts", "What was tried")?;
    let record = Csv::read(&recorded::table(H200, ATTEMPTS)?)?;
    lesson.say(
        "Parts of the roof at 2^28 steps, and what the first form reached in the same rounds \
         (attempts.csv in results/h200/tables.json):",
    );
    let mut table = Table::new(["attempt", "reached", "first form"]);
    let mut before: Vec<f64> = Vec::new();
    for row in record.rows() {
        let cells = [row.text("attempt")?, row.text("ratio")?, row.text("first_form")?];
        table.row(cells.map(str::to_owned));
        before.push(row.number("first_form")?);
    }
    lesson.table("attempts.csv", Kind::Computed, &table)?;
    let least = before.iter().copied().fold(f64::INFINITY, f64::min);
    let most = before.iter().copied().fold(0.0, f64::max);
    lesson.value("before_28", format!("{least:.2} to {most:.2}"), Kind::Computed);
    Ok(())
}
