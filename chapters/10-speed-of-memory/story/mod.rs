//! The story of chapter 10: climbs from the pipe kernel to the speed of an addition.
//!
//! Each step of the ladder is one idea: 16-byte vectors, warp-striped pieces, several rows in a
//! warp, tiles in flight. The story first checks that every step is right. It then shows each
//! idea's speed on an H200 next to the emulator's counters, which explain the speed, including
//! ideas that did not help. The last steps show any row length, the backward pass, all element
//! types, calls as graphs, and the result at every length. `cargo xtask record --check` compares
//! the checks and values of a run with the committed record.

mod pictures;

use bench::counted::{PerElement, counters};
use bench::figure::with_roof;
use bench::{LENGTHS, Race};
use ch11_tuning::record;
use lesson::plot::{self, Chart, Dot, kernels};
use lesson::{Kind, Lesson, Table};
use linrec::Error;
use linrec::contract::{self, Domain};
use linrec::device::{Copying, Device};
use linrec::kernels::{ElementType, KernelChoice, Pass, PipeConfig};
use linrec::simt::Counters;

use crate::count::{count, sectors_per_request};
use crate::kernel::Kernel;
use crate::record::{Ladder, call_us};
use crate::rung::{Idea, Rung};

pub(crate) fn run(lesson: &mut Lesson) -> lesson::Result {
    lesson.engine("pipe, ladder, rows, wide@simt");
    right(lesson)?;
    start(lesson)?;
    vectors(lesson)?;
    pieces(lesson)?;
    short(lesson)?;
    shares(lesson)?;
    ahead(lesson)?;
    flight(lesson)?;
    others(lesson)?;
    any(lesson)?;
    backward(lesson)?;
    types(lesson)?;
    walk(lesson)?;
    calls(lesson)?;
    result(lesson)
}

/// Checks that the steps keep to the error bound.
fn right(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("right", "First, is it right?")?;
    let device = Device::simt();
    let max_len = lesson.size(300, 4096);
    lesson.say(&format!(
        "Every step of the ladder on the emulator, through those cases of the contract that go forward over rows of whole \
         vectors, up to {max_len} steps; the largest error in units of its bound:",
    ));
    let mut table = Table::new(["step", "cases", "failed", "largest error"]);
    let mut failed = 0;
    // The addition is not a recurrence.
    for idea in Idea::ALL.into_iter().filter(|idea| *idea != Idea::Walk) {
        let kernel = Kernel::new(&device, Rung::shipped(idea))?;
        let (name, domain) = (kernel.rung().name(), Domain { max_len, ..kernel.domain() });
        let report = contract::run::<f32>(&Copying::from(kernel), &domain);
        failed += report.failures.len();
        let counts = [report.cases.to_string(), report.failures.len().to_string()];
        table.row([name].into_iter().chain(counts).chain([format!("{:.2}", report.worst)]));
    }
    lesson.table("right.csv", Kind::Computed, &table)?;
    lesson.check("cases outside the bound", failed as f64, 0.0);
    Ok(())
}

/// Shows how far the pipe kernel is from the roof.
fn start(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("start", "What is left")?;
    let race = record::race()?;
    lesson.say(
        "13200 rows of f32 on an H200: the fastest pipe kernel at some lengths, in microseconds, and how many of them the \
         roof does not need.",
    );
    let mut table =
        Table::new(["length", "pass", "roof, µs", "pipe, µs", "too many", "pipe / roof"]);
    for len in [16, 128, 1024, 4096, 65_536] {
        for pass in Pass::ALL {
            let roof = race.median(pass, "roof", len);
            let pipe = race.kernel(pass, "pipe", len).map(|(_, run)| run);
            let us = [roof, pipe].map(|run| run.map(|run| 1e3 * run.ms));
            let more = us[0].zip(us[1]).map(|(roof, pipe)| pipe - roof);
            table.row([
                len.to_string(),
                pass.name().to_owned(),
                cell(us[0], 1),
                cell(us[1], 1),
                cell(more, 1),
                cell(pipe.map(|run| run.ratio), 3),
            ]);
        }
    }
    lesson.table("start.csv", Kind::Computed, &table)
}

/// The shape of the counted problem.
const SHAPE: (usize, usize) = (4, 4096);

fn vectors(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("vectors", "A vector for each thread")?;
    let ladder = Ladder::read()?;
    lesson.say(&format!("Counted by the emulator over rows of {}. {}", SHAPE.1, COLUMNS));
    let config =
        PipeConfig { max_elems_per_thread: 4, max_threads_per_block: 128, ..PipeConfig::DEFAULT };
    let pipe = counters::<f32>(KernelChoice::Pipe(config), Pass::Forward, SHAPE)?;
    let vectors = count(Rung::shipped(Idea::Vectors), SHAPE)?;
    let [before, after] =
        [&pipe, &vectors].map(|counters| PerElement::new(counters, SHAPE.0 * SHAPE.1).requests);
    let launches = [("pipe:4x128:0", pipe), ("vectors:1x256", vectors)];
    let table = counts(launches, SHAPE.0 * SHAPE.1)?;
    lesson.table("vectors.csv", Kind::Computed, &table)?;
    lesson.value("fewer_requests", format!("{:.0}", before / after), Kind::Computed);
    lesson.say(&format!(
        "On an H200, as parts of the roof in the same rounds, of each kernel the fastest size; medians of at least {} \
         runs:",
        ladder.runs(4096)
    ));
    let table = speeds(&ladder, &["pipe", "vectors"]);
    lesson.table("vectors-speed.csv", Kind::Computed, &table)
}

fn pieces(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("pieces", "Blocked or warp-striped")?;
    let ladder = Ladder::read()?;
    let rungs = [Idea::Vectors, Idea::Blocked, Idea::Pieces].map(Rung::shipped);
    let mut launches = Vec::new();
    let names = rungs.map(|rung| rung.name());
    for (rung, name) in rungs.iter().zip(&names) {
        launches.push((name.as_str(), count(*rung, SHAPE)?));
    }
    let table = counts(launches, SHAPE.0 * SHAPE.1)?;
    lesson.table("pieces.csv", Kind::Computed, &table)?;
    let table = speeds(&ladder, &["vectors", "blocked", "pieces"]);
    lesson.table("pieces-speed.csv", Kind::Computed, &table)?;
    let svg = pictures::requests([rungs[1], rungs[2]])?;
    lesson.figure("pieces.svg", "Which lane asks for which bytes", Kind::Computed, &svg)
}

fn short(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("short", "Several rows in a warp")?;
    let race = record::race()?;
    lesson.say(
        "13200 short rows on an H200, forward: microseconds of 13200 empty blocks, and the kernels as parts of the roof. \
         Then the blocks of the fastest of rows.",
    );
    let header =
        ["length", "empty, µs", "roof, µs", "pipe", "wide", "rows", "blocks", "configuration"];
    let mut table = Table::new(header);
    for len in [16, 32, 64, 128, 256, 512] {
        let us = |engine| race.median(Pass::Forward, engine, len).map(|run| 1e3 * run.ms);
        let ratio = |name| race.kernel(Pass::Forward, name, len).map(|(_, run)| run.ratio);
        let engine = race.kernel(Pass::Forward, "rows", len).map_or("", |(engine, _)| engine);
        let blocks = engine.parse::<KernelChoice>().map(|choice| {
            choice.geometry(ElementType::F32, Pass::Forward, 13_200, len as u64).blocks
        });
        table.row([
            len.to_string(),
            cell(us("empty"), 1),
            cell(us("roof"), 1),
            cell(ratio("pipe"), 3),
            cell(ratio("wide"), 3),
            cell(ratio("rows"), 3),
            blocks.map_or_else(|_| String::from("–"), |blocks| blocks.to_string()),
            engine.to_owned(),
        ]);
    }
    lesson.table("short.csv", Kind::Computed, &table)
}

/// Compares numbers of lanes per row and vectors per lane.
fn shares(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("shares", "How many lanes for a row")?;
    let lines = record::tuning()?;
    lesson.say(
        "Rows of 64 and of 128, forward, as parts of the roof: how many lanes share a row, and how many vectors each \
         of them has; of blocks of 32 to 256 threads the fastest.",
    );
    let mut table = Table::new(["length", "lanes", "1 vector", "2 vectors", "4 vectors"]);
    for len in [64_usize, 128] {
        for lanes in [4_u32, 8, 16, 32] {
            let best = |vectors: u32| {
                let mine = lines.iter().filter(|line| {
                    let is_it = match line.engine.parse() {
                        Ok(KernelChoice::Rows(rows)) => {
                            rows.lanes == lanes && rows.vectors == vectors
                        }
                        _ => false,
                    };
                    is_it && line.pass == Pass::Forward && line.seq_len == len
                });
                mine.map(|line| line.ratio.value).reduce(f64::max)
            };
            let ratios = [1, 2, 4].map(|vectors| cell(best(vectors), 3));
            table.row([len.to_string(), lanes.to_string()].into_iter().chain(ratios));
        }
    }
    lesson.table("shares.csv", Kind::Computed, &table)
}

/// Shows the next tile in registers, and the next tiles in shared memory.
fn ahead(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("ahead", "Tiles ahead")?;
    let ladder = Ladder::read()?;
    let len = 16_384;
    lesson.say(&format!(
        "Rows of {len} on an H200, as parts of the roof: by vectors for each thread and threads of a block, without \
         loads ahead, with the next tile in registers, and with one or two tiles in shared memory.",
    ));
    let mut table = Table::new(["size", "pieces", "early", "ring:a1", "ring:a2"]);
    for size in ["2x128", "2x256", "2x512", "4x256", "4x512", "4x1024"] {
        let of = |name: &str| {
            let (name, ending) = name.split_once(':').unwrap_or((name, ""));
            let engine = match ending {
                "" => format!("{name}:{size}"),
                ending => format!("{name}:{size}:{ending}"),
            };
            cell(ladder.of(&engine, len).map(|run| run.ratio), 3)
        };
        let cells = ["pieces", "early", "ring:a1", "ring:a2"].map(of);
        table.row([size.to_owned()].into_iter().chain(cells));
    }
    lesson.table("ahead.csv", Kind::Computed, &table)?;
    lesson.say("And the fastest of each at every length:");
    let table = speeds(&ladder, &["pieces", "early", "ring:a1", "ring:a2"]);
    lesson.table("ahead-speed.csv", Kind::Computed, &table)
}

/// Shows the number of rows in progress, the bytes of them in flight, and the resulting speed.
fn flight(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("flight", "Rows at a time")?;
    let (taken, lines) = (record::attrs()?, record::tuning()?);
    let (len, sms) = (16_384, 132);
    lesson.say(&format!(
        "The kernel wide on an H200, rows of {len} forward, without and with tiles ahead: how many rows are worked on at \
         a time on the whole GPU; how many KiB each SM has in flight just before it waits; and the speed as a part of \
         the roof's.",
    ));
    let mut table = Table::new(["configuration", "rows at a time", "KiB in flight", "/ roof"]);
    let mut rows: Vec<(u32, f64, [String; 4])> = Vec::new();
    for line in lines.iter().filter(|line| line.pass == Pass::Forward && line.seq_len == len) {
        let Ok(choice @ KernelChoice::Wide(config)) = line.engine.parse() else { continue };
        let mine = taken.iter().find(|of| of.kernel == line.engine && of.pass == Pass::Forward);
        let Some(mine) = mine.filter(|_| config.whole) else { continue };
        // Two arrays: the tiles that are ahead, or else the tile that is waited for.
        let tiles = u64::from(config.ahead.max(1));
        let bytes = u64::from(mine.blocks) * tiles * 8 * config.tile(ElementType::F32);
        let cells = [
            choice.to_string(),
            (mine.blocks * sms).to_string(),
            format!("{}", bytes / 1024),
            cell(Some(line.ratio.value), 3),
        ];
        rows.push((mine.blocks, line.ratio.value, cells));
    }
    rows.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    for (_, _, row) in rows {
        table.row(row);
    }
    lesson.table("flight.csv", Kind::Computed, &table)
}

fn others(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("others", "What else was tried")?;
    let ladder = Ladder::read()?;
    lesson.say(
        "With hints at loads (l), at stores (s), at both; and as many blocks as there is room for, each with one row \
         after the other:",
    );
    let names = ["pieces", "hints:l", "hints:s", "hints:ls", "persistent"];
    let table = speeds(&ladder, &names);
    lesson.table("others.csv", Kind::Computed, &table)
}

/// Compares rows of whole vectors with other rows.
fn any(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("any", "Rows that begin anywhere")?;
    let lines = record::tuning()?;
    lesson.say(
        "The kernel wide on an H200, as parts of the roof: the fastest that is compiled for rows of whole vectors, and \
         the fastest that takes any row.",
    );
    let mut table =
        Table::new(["length", "pass", "whole vectors", "any row", "configuration of the latter"]);
    for len in [1000, 4093, 4096, 16_384] {
        for pass in Pass::ALL {
            let best = |whole: bool| {
                let mine = lines.iter().filter(|line| {
                    let is_it = match line.engine.parse() {
                        Ok(KernelChoice::Wide(config)) => config.whole == whole,
                        _ => false,
                    };
                    is_it && line.pass == pass && line.seq_len == len
                });
                mine.max_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value))
            };
            let [whole, any] = [true, false].map(best);
            table.row([
                len.to_string(),
                pass.name().to_owned(),
                cell(whole.map(|line| line.ratio.value), 3),
                cell(any.map(|line| line.ratio.value), 3),
                any.map_or("–", |line| line.engine.as_str()).to_owned(),
            ]);
        }
    }
    lesson.table("any.csv", Kind::Computed, &table)
}

fn backward(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("backward", "Backward")?;
    let lines = record::tuning()?;
    lesson.say(
        "The backward pass on an H200, as parts of its roof, which reads three arrays and writes two: the fastest pipe; \
         rows; wide without loads ahead, with one tile and with two.",
    );
    let header = ["length", "pipe", "rows", "wide", "wide:a1", "wide:a2", "fastest"];
    let mut table = Table::new(header);
    for len in [16, 64, 256, 1000, 1024, 4093, 4096, 16_384, 32_768, 65_536] {
        let best = |wanted: &dyn Fn(KernelChoice) -> bool| {
            let mine = lines.iter().filter(|line| {
                let here = line.pass == Pass::Backward && line.seq_len == len;
                here && line.engine.parse().is_ok_and(wanted)
            });
            mine.max_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value))
        };
        let wide = |ahead: u32| {
            best(&move |choice| matches!(choice, KernelChoice::Wide(c) if c.ahead == ahead))
        };
        let all = [
            best(&|choice| choice.name() == "pipe"),
            best(&|choice| choice.name() == "rows"),
            wide(0),
            wide(1),
            wide(2),
        ];
        let ratios = all.map(|line| cell(line.map(|line| line.ratio.value), 3));
        let fastest = best(&|choice| matches!(choice.name(), "rows" | "wide"));
        let fastest = fastest.map_or("–", |line| line.engine.as_str());
        table.row([len.to_string()].into_iter().chain(ratios).chain([fastest.to_owned()]));
    }
    lesson.table("backward.csv", Kind::Computed, &table)
}

fn types(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("types", "Numbers of 2 to 16 bytes")?;
    let lines = crate::record::types()?;
    lesson.say(
        "13200 sequences on an H200: the fastest kernel as a part of the roof for numbers of that size, and how many \
         elements it computes in the time in which f32 computes one.",
    );
    let header =
        ["type", "bytes", "pass", "256", "4096", "65536", "elements, 4096", "elements, 65536"];
    let mut table = Table::new(header);
    let of = |element: ElementType, pass: Pass, len: usize| {
        lines.iter().find(|line| (line.element, line.pass, line.seq_len) == (element, pass, len))
    };
    for element in ElementType::ALL {
        for pass in Pass::ALL {
            let ratio = |len| cell(of(element, pass, len).map(|line| line.ratio.value), 3);
            let more = |len| {
                let both = of(ElementType::F32, pass, len).zip(of(element, pass, len));
                cell(both.map(|(f32, mine)| f32.ms.value / mine.ms.value), 2)
            };
            table.row([
                element.to_string(),
                element.bytes().to_string(),
                pass.name().to_owned(),
                ratio(256),
                ratio(4096),
                ratio(65_536),
                more(4096),
                more(65_536),
            ]);
        }
    }
    lesson.table("types.csv", Kind::Computed, &table)?;
    for element in [ElementType::Bf16, ElementType::F16] {
        let both = of(ElementType::F32, Pass::Forward, 4096).zip(of(element, Pass::Forward, 4096));
        let more = cell(both.map(|(f32, mine)| f32.ms.value / mine.ms.value), 2);
        lesson.value(&format!("{element}_4096"), more, Kind::Computed);
    }
    Ok(())
}

/// Compares the recurrence with the addition that walks along rows.
fn walk(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("walk", "The last percent")?;
    let ladder = Ladder::read()?;
    lesson.say(
        "An addition whose blocks walk along rows, as the recurrence's do, beside the recurrence; of each the fastest \
         size, as parts of the roof, which goes through memory from its beginning to its end:",
    );
    let table = speeds(&ladder, &["walk", "pieces", "early", "wide"]);
    lesson.table("walk.csv", Kind::Computed, &table)?;
    for name in ["walk", "wide"] {
        let ratio = ladder.best(name, 65_536).map(|(_, run)| run.ratio);
        lesson.value(&format!("{name}_65536"), cell(ratio, 3), Kind::Computed);
    }
    Ok(())
}

/// Compares single calls, calls as a graph, and one call for all.
fn calls(lesson: &mut Lesson) -> lesson::Result {
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

/// Shows the fastest kernel at every length, and the ladder as a picture.
fn result(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("result", "At every length")?;
    let race = record::race()?;
    lesson.say(
        "13200 sequences of f32 on an H200: the fastest kernel at every length as a part of the roof, with the number of \
         runs whose median it is.",
    );
    let header = ["length", "runs", "forward", "by", "backward", "by"];
    let mut table = Table::new(header);
    for len in LENGTHS {
        let runs =
            race.count(Pass::Forward, "roof", len).min(race.count(Pass::Backward, "roof", len));
        let mut cells = vec![len.to_string(), runs.to_string()];
        for pass in Pass::ALL {
            let (engine, run) = race.fastest(pass, len).unzip();
            cells.extend([cell(run.map(|run| run.ratio), 3), engine.unwrap_or("–").to_owned()]);
        }
        table.row(cells);
    }
    lesson.table("result.csv", Kind::Computed, &table)?;
    for pass in Pass::ALL {
        let of = |lengths: &[usize]| {
            let fastest = lengths.iter().filter_map(|&len| race.fastest(pass, len));
            cell(fastest.map(|(_, run)| run.ratio).reduce(f64::min), 3)
        };
        let name = pass.name();
        lesson.value(&format!("least_{name}_short"), of(&LENGTHS[..6]), Kind::Computed);
        lesson.value(&format!("least_{name}_long"), of(&LENGTHS[6..14]), Kind::Computed);
        lesson.value(&format!("least_{name}_last"), of(&LENGTHS[14..]), Kind::Computed);
    }
    let (numbers, different) = crate::record::bits()?;
    lesson.value("bits_numbers", numbers / 1_000_000, Kind::Computed);
    lesson.value("bits_different", different, Kind::Computed);
    let ladder = Ladder::read()?;
    for (key, run) in [
        ("pipe_16", race.kernel(Pass::Forward, "pipe", 16).map(|(_, run)| run.ratio)),
        ("rows_16", race.kernel(Pass::Forward, "rows", 16).map(|(_, run)| run.ratio)),
        ("pipe_4096", ladder.best("pipe", 4096).map(|(_, run)| run.ratio)),
        ("vectors_4096", ladder.best("vectors", 4096).map(|(_, run)| run.ratio)),
    ] {
        lesson.value(key, cell(run, 2), Kind::Computed);
    }
    let svg = figure(&race, &ladder)?;
    lesson.figure("ladder.svg", "The ladder", Kind::Computed, &svg)
}

/// Draws fractions of the roof against the length of a row: short rows by kernel, long rows by
/// step.
fn figure(race: &Race, ladder: &Ladder) -> lesson::Result<String> {
    let axes = |title, (low, high)| {
        Chart::new(title)
            .axes("length of a sequence", "part of the roof")
            .log_x(2.0)
            .y_range(low, high)
    };
    let short = [16, 32, 64, 128, 256, 512];
    let mut above = axes("short rows: the fastest kernel of each family", (0.0, 1.2));
    for name in ["pipe", "rows", "wide"] {
        let points = short
            .iter()
            .filter_map(|&len| Some((len as f64, race.kernel(Pass::Forward, name, len)?.1.ratio)));
        above = above.measured(name, points).color(kernels::color(name));
    }
    let long = ladder.lengths().into_iter().filter(|&len| len >= 256);
    let long: Vec<usize> = long.collect();
    let mut below = axes("long rows: from pipe to wide, step by step", (0.82, 1.2));
    // The steps between two kernels have different dots, and colours that lead from one kernel to
    // the other.
    let (pipe, wide) = (kernels::color("pipe"), kernels::color("wide"));
    let steps = ["pipe", "vectors", "blocked", "pieces", "early", "wide"];
    for (step, name) in steps.into_iter().enumerate() {
        // A block with tiles ahead is far too large for a row that fits into one tile.
        let least = if name == "early" { 4096 } else { 0 };
        let here = long.iter().filter(|&&len| len >= least);
        let points = here.filter_map(|&len| Some((len as f64, ladder.best(name, len)?.1.ratio)));
        let color = kernels::mixed(pipe, wide, step as f64 / 5.0);
        below = below.measured(name, points).color(color).dot(Dot::ALL[step % 5]);
    }
    let roof = |lengths: &[usize]| -> Vec<(f64, f64)> {
        let at =
            |&len: &usize| Some((len as f64, race.median(Pass::Forward, "roof", len)?.gb_per_s));
        lengths.iter().filter_map(at).collect()
    };
    let above = with_roof(above, roof(&short), 1.2);
    let below = with_roof(below, roof(&long), 1.2);
    plot::grid(&[&above, &below], 1)
}

const CLIMB_LENGTHS: [usize; 6] = [256, 1024, 4096, 16_384, 32_768, 65_536];

/// Makes a table of each kernel's fastest size at every length, as a fraction of the roof, with its
/// size at 4096.
fn speeds(ladder: &Ladder, names: &[&str]) -> Table {
    let lengths = CLIMB_LENGTHS.map(|len| len.to_string());
    let header = [String::from("kernel")].into_iter().chain(lengths);
    let mut table = Table::new(header.chain([String::from("size at 4096")]));
    for name in names {
        let ratios =
            CLIMB_LENGTHS.map(|len| cell(ladder.best(name, len).map(|(_, run)| run.ratio), 3));
        let size = ladder.best(name, 4096).and_then(|(engine, _)| engine.split(':').nth(1));
        let cells = [String::from(*name)].into_iter().chain(ratios);
        table.row(cells.chain([size.unwrap_or("–").to_owned()]));
    }
    table
}

/// The explanation of the columns of [`counts`].
const COLUMNS: &str = "Instructions for each element; requests, shuffles and passes over shared memory for a warp's \
    share of 32 elements; sectors of a load and of a store; barriers for 1000 elements.";

/// Makes a table of launches' costs by the emulator's counters.
fn counts<'a>(
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

/// Formats a number of the record, or a dash if there is none.
fn cell(number: Option<f64>, digits: usize) -> String {
    match number {
        Some(number) if number.is_finite() => format!("{number:.digits$}"),
        _ => String::from("–"),
    }
}
