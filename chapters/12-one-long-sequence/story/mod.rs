//! The story of chapter 12: lets many blocks share one long sequence.
//!
//! Five ways compute the same sequence: three launches, a chained scan, decoupled look-back, and
//! the library's waves and once. The story compares their errors and bytes, delays a block on the
//! emulator to show who waits for whom, and shows which ways give the same bits for every order of
//! blocks. It lets the emulator find planted mistakes, and draws the waves of a block. The modules
//! `measured` and `carrying` show records of an H200. `cargo xtask record --check` compares the
//! checks and values of a run with the committed record.

mod carrying;
mod measured;
mod pictures;

use bench::draw::{differ, near_one};
use lesson::{Kind, Lesson, Table, broken};
use linrec::contract::{Domain, suspect as suspects};
use linrec::device::Device;
use linrec::reference::{self, Rounding};
use linrec::simt::{Access, Counters, Trace};
use linrec::{Error, Options};
use ndarray::Array2;

use crate::kernel::{Kernel, Size, Watch, Way};
use crate::messages::{Life, Places};
use crate::shared_out::{self, AHEAD, GROUP, SHORT, SharedOut};
use crate::suspect;

/// The number of steps of a tile in the first three ways.
const STEPS: usize = 256;

pub(crate) fn run(lesson: &mut Lesson) -> lesson::Result {
    lesson.engine("three, chained, decoupled, waves, once@simt");
    measured::problem(lesson)?;
    right(lesson)?;
    waiting(lesson)?;
    bits(lesson)?;
    mistakes(lesson)?;
    waves(lesson)?;
    grids(lesson)?;
    carrying::stations(lesson)?;
    carrying::stations_today(lesson)?;
    carrying::attempts(lesson)?;
    measured::speed(lesson)?;
    measured::backward(lesson)?;
    measured::quoted(lesson)
}

/// One of the five ways.
#[derive(Debug, Clone, Copy)]
enum Any {
    Long(Way),
    Shared(shared_out::Way),
}

impl Any {
    /// All ways in the order of the page; waves run here in a grid of seven blocks.
    const ALL: [Any; 5] = [
        Any::Long(Way::Three),
        Any::Long(Way::Chained),
        Any::Long(Way::Decoupled),
        Any::Shared(shared_out::Way::Waves(7)),
        Any::Shared(shared_out::Way::Once(u64::MAX)),
    ];

    fn name(self) -> &'static str {
        match self {
            Any::Long(way) => way.name(),
            Any::Shared(shared_out::Way::Waves(_)) => "waves",
            Any::Shared(shared_out::Way::Once(_)) => "once",
        }
    }

    /// Returns the outputs and the counters.
    fn compute(self, x: &[f32], c: &[f32]) -> Result<(Vec<f32>, Counters), Error> {
        match self {
            Any::Long(way) => {
                let kernel = Kernel::new(&Device::simt(), way, Size::SHIPPED)?;
                let (outputs, _, counters) = kernel.compute(x, c, None, Watch::default())?;
                Ok((outputs, counters))
            }
            Any::Shared(way) => SharedOut::new(way, SHORT)?.compute(x, c, None),
        }
    }
}

fn slice(array: &Array2<f32>) -> &[f32] {
    array.as_slice().unwrap_or(&[])
}

/// Compares all five ways with the reference, and counts the bytes that they move.
fn right(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("right", "Five ways to one sequence")?;
    let tiles = 160;
    let seq_len = tiles * STEPS;
    let (inputs, coeffs) = near_one((1, seq_len), 120);
    let (x, c, options) = (inputs.view(), coeffs.view(), Options::default());
    let exact = reference::forward(x, c, &options)?.outputs;
    let rounding = Rounding { levels: Domain::tree_levels(seq_len), exp_ulps: 0.0 };
    let bound = reference::forward_bound(x, c, &options, rounding)?.outputs;
    lesson.say(&format!(
        "One sequence of {seq_len} steps, in tiles of {STEPS}, and of {SHORT} for waves and once. The largest error as a part of \
         its bound; bytes of the arrays that are read and written for each step, and bytes of messages; sectors of 32 bytes \
         that all requests touch, for each eight steps:",
    ));
    let header =
        ["way", "launches", "largest error / bound", "read", "written", "messages", "sectors"];
    let mut table = Table::new(header);
    let mut worst: f64 = 0.0;
    for way in Any::ALL {
        let (outputs, counters) = way.compute(slice(&inputs), slice(&coeffs))?;
        let errors = outputs.iter().zip(&exact).zip(&bound);
        let errors = errors.map(|((&y, exact), bound)| (f64::from(y) - exact).abs() / bound);
        let error = errors.fold(0.0, f64::max);
        worst = worst.max(error);
        let moved = Moved::of(&counters);
        let each = |bytes: u64| format!("{:.2}", bytes as f64 / seq_len as f64);
        let sectors = 8.0 * moved.sectors as f64 / seq_len as f64;
        let launches = if matches!(way, Any::Long(Way::Three)) { 3 } else { 1 };
        lesson.value(
            &format!("{}_bytes", way.name()),
            format!("{:.0}", (moved.read + moved.written) as f64 / seq_len as f64),
            Kind::Computed,
        );
        table.row([
            way.name().to_owned(),
            launches.to_string(),
            format!("{error:.3}"),
            each(moved.read),
            each(moved.written),
            each(moved.messages),
            format!("{sectors:.2}"),
        ]);
    }
    lesson.table("right.csv", Kind::Computed, &table)?;
    lesson.check("largest error / bound", worst, 1.0);
    lesson.value("tiles", tiles, Kind::Computed);
    Ok(())
}

/// The bytes that a launch moved.
#[derive(Debug, Default)]
struct Moved {
    /// The bytes of the arrays.
    read: u64,
    written: u64,
    /// All other bytes: messages between launches and between blocks.
    messages: u64,
    sectors: u64,
}

impl Moved {
    fn of(counters: &Counters) -> Moved {
        let mut moved = Moved::default();
        for site in &counters.sites {
            let opcode = &site.opcode;
            let ordered = ["relaxed", "acquire", "release"].iter().any(|how| opcode.contains(how));
            // Memory other than the arrays is accessed in the files of the kernels themselves.
            let own = site.source.as_ref().is_some_and(|(file, _)| {
                file.starts_with("kernels/long/") && !file.ends_with("long.cuh")
            });
            let to = match site.access {
                Access::GlobalLoad if !ordered && !own => &mut moved.read,
                Access::CopyAsync => &mut moved.read,
                Access::GlobalStore if !ordered && !own => &mut moved.written,
                Access::GlobalLoad | Access::GlobalStore | Access::GlobalAtomic => {
                    &mut moved.messages
                }
                _ => continue,
            };
            *to += site.bytes;
            moved.sectors += site.sectors;
        }
        moved
    }
}

/// The number of blocks in the picture, the late block, and its delay.
const WATCHED: usize = 12;
const LATE: usize = 3;
const DELAY: i32 = 3000;

/// Runs the chained scan and decoupled look-back with one late block.
fn waiting(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("waiting", "A block that is late")?;
    let (inputs, coeffs) = near_one((1, WATCHED * STEPS), 121);
    let mut delays = vec![0; WATCHED];
    delays[LATE] = DELAY;
    let live = |way| -> lesson::Result<Life> {
        let kernel = Kernel::new(&Device::simt(), way, Size::SHIPPED)?;
        let mut trace = Trace::new(1 << 20);
        let watch = Watch { delays: Some(&delays), trace: Some(&mut trace), ..Watch::default() };
        kernel.compute(slice(&inputs), slice(&coeffs), None, watch)?;
        Ok(Life::of(&trace, STEPS, Places::Apart))
    };
    let lives = [live(Way::Chained)?, live(Way::Decoupled)?];
    lesson.say(&format!(
        "{WATCHED} blocks with a tile each, in the emulator. Block {LATE} is kept back when it knows what its tile does. \
         Turns of the emulator in which each block only polled for what others publish:",
    ));
    let mut table = Table::new(["block", "chained", "decoupled", "it found a state"]);
    let blocks = 0..WATCHED as u64;
    for block in blocks.clone() {
        let [chained, decoupled] = [0, 1].map(|way| lives[way].waited(block));
        let distance = lives[1].distances.get(&block).copied().unwrap_or(0);
        let found = match distance as u64 {
            distance if distance > block => String::from("at the beginning"),
            1 => String::from("after the tile before"),
            distance => format!("{distance} tiles back"),
        };
        table.row([block.to_string(), chained.to_string(), decoupled.to_string(), found]);
    }
    lesson.table("waiting.csv", Kind::Computed, &table)?;
    let [chained, decoupled] =
        [0, 1].map(|way| blocks.clone().map(|block| lives[way].waited(block)).sum::<usize>());
    lesson.value("waited_chained", chained, Kind::Computed);
    lesson.value("waited_decoupled", decoupled, Kind::Computed);
    let surplus = decoupled as f64 - chained as f64;
    lesson.check("turns of waiting beyond those of the chained scan", surplus, 0.0);
    let svg = pictures::waiting(&lives, WATCHED)?;
    lesson.figure("waiting.svg", "Who waits for whom", Kind::Computed, &svg)?;
    Ok(())
}

/// The number of tiles of the sequence whose bits are compared.
const COMPARED: usize = 150;

/// Returns several patterns of delays, with a delay for each block.
fn patterns() -> [(&'static str, Vec<i32>); 3] {
    let every = |what: fn(usize) -> i32| (0..COMPARED).map(what).collect::<Vec<_>>();
    [
        ("nobody", every(|_| 0)),
        ("every seventh block", every(|block| if block % 7 == 3 { 900 } else { 0 })),
        ("each by another time", every(|block| (block * 7919 % 31 * 40) as i32)),
    ]
}

/// Computes one sequence with other blocks late each time, and counts the outputs that change and
/// the distances at which states were found.
fn bits(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("bits", "What the bits depend on")?;
    let seq_len = COMPARED * STEPS;
    let (inputs, coeffs) = near_one((1, seq_len), 122);
    lesson.say(&format!(
        "One sequence of {COMPARED} tiles, with other blocks kept back each time. How many of its {seq_len} outputs have \
         other bits than with nobody late; and for decoupled look-back, how many blocks found a state how many tiles \
         before their own:",
    ));
    let header =
        ["late", "chained", "decoupled", "1 back", "2 to 32", "33 to 64", "more, or the beginning"];
    let mut table = Table::new(header);
    let mut first: Option<[Vec<f32>; 2]> = None;
    let mut changed = [0.0_f64; 2];
    for (name, delays) in patterns() {
        let mut life = Life::default();
        let mut outputs: [Vec<f32>; 2] = Default::default();
        for (way, outputs) in [Way::Chained, Way::Decoupled].into_iter().zip(&mut outputs) {
            let kernel = Kernel::new(&Device::simt(), way, Size::SHIPPED)?;
            let mut trace = Trace::new(1 << 22);
            let watch =
                Watch { delays: Some(&delays), trace: Some(&mut trace), ..Watch::default() };
            *outputs = kernel.compute(slice(&inputs), slice(&coeffs), None, watch)?.0;
            life = Life::of(&trace, STEPS, Places::Apart);
        }
        let before = first.get_or_insert_with(|| outputs.clone());
        let other = [0, 1].map(|way| differ(&before[way], &outputs[way]));
        changed = [0, 1].map(|way| changed[way].max(other[way]));
        let count = |range: std::ops::RangeInclusive<usize>| {
            let found = life.distances.iter();
            let inside = found.filter(|&(&block, &distance)| {
                distance as u64 <= block && range.contains(&distance)
            });
            inside.count()
        };
        let counts = [count(1..=1), count(2..=32), count(33..=64)];
        let rest = life.distances.len() - counts.iter().sum::<usize>();
        let cells = other.map(|other| format!("{other:.0}")).into_iter();
        let cells = cells.chain(counts.map(|count| count.to_string())).chain([rest.to_string()]);
        table.row([name.to_owned()].into_iter().chain(cells));
    }
    lesson.table("bits.csv", Kind::Computed, &table)?;
    lesson.check("outputs of the chained scan that change", changed[0], 0.0);
    lesson.value("bits_changed", format!("{:.0}", changed[1]), Kind::Computed);
    lesson.value("bits_outputs", seq_len, Kind::Computed);
    lesson.check(
        "patterns that change nothing in decoupled look-back",
        f64::from(changed[1] == 0.0),
        0.0,
    );
    Ok(())
}

/// Shows the emulator's report of each mistake.
fn mistakes(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("mistakes", "What goes wrong")?;
    lesson.say("The chained scan with one mistake at a time, as the emulator sees it.");
    let mut unnoticed = broken::narrate(lesson, suspect::names(), suspect::examine)?;
    lesson.say("published_by_a_plain_store, which is the kernel once with one mistake:");
    let found = plain_store()?;
    unnoticed += usize::from(found.is_none());
    lesson.quote(found.as_deref().unwrap_or("nothing was found"));
    lesson.say("And waves, as it is, in a grid of four blocks of which only three are there:");
    let (inputs, coeffs) = near_one((1, 20 * SHORT), 123);
    let waves = SharedOut::new(shared_out::Way::Waves(4), SHORT)?;
    let found = waves.without_the_last(slice(&inputs), slice(&coeffs));
    let found = found.err().map(|error| error.to_string());
    unnoticed += usize::from(found.is_none());
    lesson.quote(found.as_deref().unwrap_or("nothing was found"));
    lesson.check("mistakes that went unnoticed", unnoticed as f64, 0.0);
    Ok(())
}

/// Runs the kernel `once` with a mistake: it publishes by a plain store.
fn plain_store() -> lesson::Result<Option<String>> {
    let (inputs, coeffs) = near_one((1, 4 * SHORT), 124);
    let way = shared_out::Way::Once(u64::MAX);
    let kernel = SharedOut::load("broken/published_by_a_plain_store", way, SHORT)?;
    let found = kernel.compute(slice(&inputs), slice(&coeffs), None);
    debug_assert!(
        suspects::names("linrec_once.cu").any(|name| name == "published_by_a_plain_store")
    );
    Ok(found.err().map(|error| error.to_string()))
}

/// The number of blocks and waves in the picture.
const BLOCKS: usize = 4;
const WAVES: usize = 12;

/// Draws when tiles are published and when they are stored.
fn waves(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("waves", "A block's life over its waves")?;
    let seq_len = BLOCKS * WAVES * SHORT - 3;
    let (inputs, coeffs) = near_one((1, seq_len), 125);
    let waves = SharedOut::new(shared_out::Way::Waves(BLOCKS as u32), SHORT)?;
    let mut trace = Trace::new(1 << 21);
    waves.compute(slice(&inputs), slice(&coeffs), Some(&mut trace))?;
    let life = Life::of(&trace, SHORT, Places::Groups);
    lesson.say(&format!(
        "{BLOCKS} blocks share a sequence of {} tiles, {WAVES} for each. Of block 0: the turn of the emulator \
         in which it published the tile's transition, the turn in which it stored the tile's outputs, and how many tiles \
         it published in between:",
        BLOCKS * WAVES,
    ));
    let mut table =
        Table::new(["wave", "tile", "published in", "stored in", "published in between"]);
    let mut least = usize::MAX;
    for wave in 0..WAVES {
        let tile = wave * BLOCKS;
        let published =
            life.messages.iter().find(|message| message.tile == tile).map(|message| message.turn);
        let stored = life.stored.iter().find(|stored| stored.1 == tile).map(|stored| stored.2);
        let (Some(published), Some(stored)) = (published, stored) else { continue };
        let between = life
            .messages
            .iter()
            .filter(|other| other.block == 0 && other.tile > tile && other.turn <= stored);
        let between = between.count();
        if wave + AHEAD < WAVES {
            least = least.min(between);
        }
        let cells = [wave, tile, published, stored, between];
        table.row(cells.map(|number| number.to_string()));
    }
    lesson.table("waves.csv", Kind::Computed, &table)?;
    lesson.value("ahead", AHEAD, Kind::Computed);
    lesson.value("told_between", least, Kind::Computed);
    lesson.value("group", GROUP, Kind::Computed);
    lesson.check("tiles stored before three others were published", f64::from(least < 3), 0.0);
    let waited: usize = (0..BLOCKS as u64).map(|block| life.waited(block)).sum();
    lesson.value("waves_waited", waited, Kind::Computed);
    let svg = pictures::waves(&life, BLOCKS)?;
    lesson.figure("waves.svg", "A block's life over its waves", Kind::Computed, &svg)?;
    Ok(())
}

/// Compares the bits of grids of many sizes, and of once.
fn grids(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("grids", "The same bits for every grid")?;
    let seq_len = COMPARED * SHORT + 77;
    let (inputs, coeffs) = near_one((1, seq_len), 126);
    lesson.say(&format!(
        "One sequence of {seq_len} steps. Outputs that differ from those of waves in a grid of one block:",
    ));
    let mut table = Table::new(["kernel", "blocks", "outputs that differ"]);
    let outputs = |way| -> lesson::Result<Vec<f32>> {
        Ok(SharedOut::new(way, SHORT)?.compute(slice(&inputs), slice(&coeffs), None)?.0)
    };
    let alone = outputs(shared_out::Way::Waves(1))?;
    let mut all = 0.0;
    let grids = [2, 7, 132].map(|blocks| (shared_out::Way::Waves(blocks), blocks.to_string()));
    let tiles = SharedOut::new(shared_out::Way::Once(1), SHORT)?.tiles(seq_len);
    let once = [1, 9, u64::MAX].map(|count| {
        let at_a_time = if count == u64::MAX {
            String::from("all at once")
        } else {
            format!("{count} at a time")
        };
        (shared_out::Way::Once(count), format!("{tiles}, {at_a_time}"))
    });
    for (way, blocks) in grids.into_iter().chain(once) {
        let count = differ(&alone, &outputs(way)?);
        all += count;
        table.row([Any::Shared(way).name().to_owned(), blocks, format!("{count:.0}")]);
    }
    lesson.table("grids.csv", Kind::Computed, &table)?;
    lesson.check("outputs that depend on the grid", all, 0.0);
    let (decoupled, _) = Any::Long(Way::Decoupled).compute(slice(&inputs), slice(&coeffs))?;
    lesson.value("grids_others", format!("{:.0}", differ(&alone, &decoupled)), Kind::Computed);
    lesson.value("grids_outputs", seq_len, Kind::Computed);
    Ok(())
}
