//! Who told what, and who waited for whom: from the emulator's trace.
//!
//! The emulator lets the blocks take turns, each warp for at most 256 instructions. A *turn* is one
//! round of it, and serves as a clock.

use std::collections::BTreeMap;

use linrec::kernels;
use linrec::simt::{Event, Trace, What};

/// What a block does, as far as others or memory take notice of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// Loads inputs and coefficients.
    Load,
    /// Looks at memory for nothing: it is kept back.
    Late,
    /// Exchanges numbers between lanes or warps: finds out what its tile does.
    Combine,
    /// Tells what its tile does to the state.
    TellAggregate,
    /// Tells the state after its tile.
    TellPrefix,
    /// Asks for what others tell.
    Ask,
    /// Stores outputs.
    Store,
}

/// Something that a block told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// The block.
    pub block: u64,
    /// The tile, in the order of the sequence.
    pub tile: usize,
    /// The turn.
    pub turn: usize,
    /// Whether it was the state after the tile, and not what the tile alone does.
    pub prefix: bool,
}

/// What a trace of one launch over one sequence says.
#[derive(Debug, Clone, Default)]
pub struct Life {
    /// What each block did in which turn, in order; no deed twice.
    pub deeds: Vec<(u64, usize, Act)>,
    /// What was told, in order.
    pub told: Vec<Told>,
    /// How many tiles back each block that looks back found a state: 1 is the tile just before its
    /// own.
    pub distances: BTreeMap<u64, usize>,
    /// Tiles whose outputs a block stored, and in which turn the first of them.
    pub stored: Vec<(u64, usize, usize)>,
    /// How many turns there were.
    pub turns: usize,
}

/// The most instructions of a warp in a turn.
const TURN: usize = 256;

/// How the places lie in which blocks tell each other something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    /// 128 bytes for each tile; an aggregate has an even tag and a prefix an odd one.
    Apart,
    /// 16 bytes for each tile, in groups of 128 that lie in turns over the lanes.
    Groups,
}

/// The line of source that an event came from.
fn code(event: &Event) -> &'static str {
    let Some((file, line)) = &event.source else { return "" };
    let text = file.strip_prefix("kernels/").and_then(kernels::source).unwrap_or_default();
    text.lines().nth((*line as usize).saturating_sub(1)).unwrap_or_default()
}

impl Life {
    /// Reads a trace, of a launch with tiles of so many steps.
    pub fn of(trace: &Trace, steps: usize, places: Places) -> Life {
        let (mut life, mut lines) = (Life::default(), Lines::default());
        // The first address of the outputs, and the place of tile 0.
        let mut base = u64::MAX;
        let mut first_place = u64::MAX;
        for event in &trace.events {
            let What::Store(store) = &event.what else { continue };
            let least = lanes(event).map(|lane| store.addresses[lane]).min().unwrap_or(u64::MAX);
            if lines.is_tell(event) {
                first_place = first_place.min(least);
            } else if is_output(event) {
                base = base.min(least);
            }
        }
        let tile_of = |address: u64| tile_at(address.wrapping_sub(first_place), places);
        let (mut last, mut in_a_row) = ((0, 0), 0);
        // What each block found when it looked last.
        let mut looks: BTreeMap<u64, Vec<(usize, bool)>> = BTreeMap::new();
        let without_copies = |event: &&Event| !matches!(event.what, What::Copy(_));
        for event in trace.events.iter().filter(without_copies) {
            let now = (event.block, event.warp);
            // A warp that nobody else comes between has had more than one turn, too, if it did so
            // much.
            in_a_row = if now == last { in_a_row + 1 } else { 0 };
            if now < last || in_a_row == TURN {
                life.turns += 1;
                in_a_row = 0;
            }
            last = now;
            let turn = life.turns;
            let act = match &event.what {
                What::Load(load) if load.shared => Act::Combine,
                What::Load(load) if lines.is_ask(event) => {
                    if places == Places::Apart && load.values.len() == 2 {
                        let found = lanes(event).map(|lane| {
                            let tags = [0, 1].map(|word| load.values[word][lane] >> 32);
                            let prefix = tags[0] == tags[1] && tags[0] % 2 == 1;
                            (tile_of(load.addresses[lane]), prefix)
                        });
                        looks.insert(event.block, found.collect());
                    }
                    Act::Ask
                }
                // One lane alone asks for the number of the launch.
                What::Load(_) if lines.is_idle(event) && event.lanes.count_ones() > 1 => Act::Late,
                What::Load(_) => Act::Load,
                What::Store(store) if store.shared => Act::Combine,
                What::Store(store) if lines.is_tell(event) => {
                    let lane = lanes(event).next().unwrap_or(0);
                    let tile = tile_of(store.addresses[lane]);
                    let tag = store.values[0][lane] >> 32;
                    // The chained scan tells states only.
                    let one_word = store.values.len() == 1;
                    let prefix = one_word || places == Places::Apart && tag % 2 == 1;
                    if prefix && !one_word {
                        let nearest = looks.remove(&event.block).unwrap_or_default();
                        let nearest = nearest.iter().filter(|(_, prefix)| *prefix);
                        let nearest = nearest.map(|(tile, _)| tile + 1).max().unwrap_or(0);
                        life.distances.insert(event.block, tile + 1 - nearest);
                    }
                    life.told.push(Told { block: event.block, tile, turn, prefix });
                    if prefix { Act::TellPrefix } else { Act::TellAggregate }
                }
                What::Store(_) if !is_output(event) => continue,
                What::Store(store) => {
                    let lane = lanes(event).next().unwrap_or(0);
                    let tile = ((store.addresses[lane] - base) / 4) as usize / steps;
                    let mine = (event.block, tile);
                    if !life.stored.iter().any(|&(block, tile, _)| (block, tile) == mine) {
                        life.stored.push((event.block, tile, turn));
                    }
                    Act::Store
                }
                What::Shuffle { .. } => Act::Combine,
                What::Barrier | What::Copy(_) => continue,
            };
            let deed = (event.block, turn, act);
            let known = life.deeds.iter().rev().take_while(|(_, other, _)| *other == turn);
            if !known.into_iter().any(|other| *other == deed) {
                life.deeds.push(deed);
            }
        }
        life.turns += 1;
        life
    }

    /// The turns in which a block did something.
    pub fn turns_of(&self, block: u64, act: Act) -> impl Iterator<Item = usize> {
        let mine = self.deeds.iter().filter(move |(who, _, what)| (*who, *what) == (block, act));
        mine.map(|(_, turn, _)| *turn)
    }

    /// The turns in which a block asked for something and did nothing else that shows.
    pub fn waited(&self, block: u64) -> usize {
        let busy = [Act::Load, Act::TellAggregate, Act::TellPrefix, Act::Store];
        let is_busy = |turn| busy.iter().any(|&act| self.turns_of(block, act).any(|t| t == turn));
        self.turns_of(block, Act::Ask).filter(|&turn| !is_busy(turn)).count()
    }
}

fn lanes(event: &Event) -> impl Iterator<Item = usize> {
    let lanes = event.lanes;
    (0..32).filter(move |lane| lanes >> lane & 1 > 0)
}

/// Whether a store is of outputs: what one lane stores is a final state, or what a launch leaves
/// for the next.
fn is_output(event: &Event) -> bool {
    matches!(&event.what, What::Store(store) if !store.shared) && event.lanes.count_ones() > 1
}

/// Which lines of the PTX tell something, which ask, and which look for nothing.
#[derive(Debug, Default)]
struct Lines(BTreeMap<u32, [bool; 3]>);

impl Lines {
    fn of(&mut self, event: &Event) -> [bool; 3] {
        *self.0.entry(event.line).or_insert_with(|| {
            let code = code(event);
            let has = |all: [&str; 2]| all.iter().any(|words| code.contains(words));
            let tells = has(["st.relaxed.gpu.global.v2.u64", "st.release.gpu.global.u32"]);
            let asks = has(["ld.relaxed.gpu.global.v2.u64", "ld.acquire.gpu.global.u32"]);
            [tells, asks, code.contains("ld.relaxed.gpu.global.u32")]
        })
    }

    fn is_tell(&mut self, event: &Event) -> bool {
        self.of(event)[0]
    }

    fn is_ask(&mut self, event: &Event) -> bool {
        self.of(event)[1]
    }

    fn is_idle(&mut self, event: &Event) -> bool {
        self.of(event)[2]
    }
}

/// The number of the tile whose place lies so many bytes behind the first one's.
fn tile_at(bytes: u64, places: Places) -> usize {
    match places {
        Places::Apart => (bytes / 128) as usize,
        Places::Groups => {
            let place = (bytes / 16) as usize;
            place / 128 * 128 + place % 32 * 4 + place % 128 / 32
        }
    }
}
