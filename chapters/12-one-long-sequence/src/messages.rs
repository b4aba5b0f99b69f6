//! The messages that blocks published, and how long others waited for them, from the emulator's
//! trace.
//!
//! The emulator lets the blocks take turns, each warp for at most 256 instructions. A *turn* is one
//! round of all blocks, and serves as a clock.

use std::collections::BTreeMap;

use linrec::kernels;
use linrec::simt::{Event, Trace, What};

/// An action of a block that involves memory or other blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// It loads inputs and coefficients.
    Load,
    /// It reads memory without a purpose, because it is delayed.
    Delayed,
    /// It exchanges numbers between lanes or warps to compute its tile's transition.
    Combine,
    /// It publishes its tile's transition.
    PublishAggregate,
    /// It publishes the state after its tile.
    PublishPrefix,
    /// It polls for messages of other blocks.
    Poll,
    /// It stores outputs.
    Store,
}

/// A message that a block published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// The block.
    pub block: u64,
    /// The tile, in the order of the sequence.
    pub tile: usize,
    /// The turn.
    pub turn: usize,
    /// True if the message was the state after the tile, false if it was the tile's transition.
    pub prefix: bool,
}

/// The content of a trace of one launch over one sequence.
#[derive(Debug, Clone, Default)]
pub struct Life {
    /// The actions of each block with their turns, in order and without repetitions.
    pub actions: Vec<(u64, usize, Act)>,
    /// The published messages, in order.
    pub messages: Vec<Message>,
    /// For each block that looks back, how many tiles back it found a state; 1 is the tile just
    /// before its own.
    pub distances: BTreeMap<u64, usize>,
    /// The tiles whose outputs a block stored, with the turn of the first store.
    pub stored: Vec<(u64, usize, usize)>,
    /// The number of turns.
    pub turns: usize,
}

/// The largest number of instructions of a warp in a turn.
const TURN: usize = 256;

/// The layout of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    /// 128 bytes for each tile; an aggregate has an even tag and a prefix an odd one.
    Apart,
    /// 16 bytes for each tile, in groups of 128 tiles that are interleaved over the lanes.
    Groups,
}

/// Returns the line of source that an event came from.
fn code(event: &Event) -> &'static str {
    let Some((file, line)) = &event.source else { return "" };
    let text = file.strip_prefix("kernels/").and_then(kernels::source).unwrap_or_default();
    text.lines().nth((*line as usize).saturating_sub(1)).unwrap_or_default()
}

impl Life {
    /// Reads the trace of a launch with tiles of `steps` steps.
    pub fn of(trace: &Trace, steps: usize, places: Places) -> Life {
        let (mut life, mut lines) = (Life::default(), Lines::default());
        // The first address of the outputs, and the address of tile 0's message.
        let mut base = u64::MAX;
        let mut first_message = u64::MAX;
        for event in &trace.events {
            let What::Store(store) = &event.what else { continue };
            let least = lanes(event).map(|lane| store.addresses[lane]).min().unwrap_or(u64::MAX);
            if lines.is_publish(event) {
                first_message = first_message.min(least);
            } else if is_output(event) {
                base = base.min(least);
            }
        }
        let tile_of = |address: u64| tile_at(address.wrapping_sub(first_message), places);
        let (mut last, mut in_a_row) = ((0, 0), 0);
        // What each block found in its last look.
        let mut looks: BTreeMap<u64, Vec<(usize, bool)>> = BTreeMap::new();
        let without_copies = |event: &&Event| !matches!(event.what, What::Copy(_));
        for event in trace.events.iter().filter(without_copies) {
            let now = (event.block, event.warp);
            // A warp that ran alone for this many instructions has used up its turn and begins
            // another.
            in_a_row = if now == last { in_a_row + 1 } else { 0 };
            if now < last || in_a_row == TURN {
                life.turns += 1;
                in_a_row = 0;
            }
            last = now;
            let turn = life.turns;
            let act = match &event.what {
                What::Load(load) if load.shared => Act::Combine,
                What::Load(load) if lines.is_poll(event) => {
                    if places == Places::Apart && load.values.len() == 2 {
                        let found = lanes(event).map(|lane| {
                            let tags = [0, 1].map(|word| load.values[word][lane] >> 32);
                            let prefix = tags[0] == tags[1] && tags[0] % 2 == 1;
                            (tile_of(load.addresses[lane]), prefix)
                        });
                        looks.insert(event.block, found.collect());
                    }
                    Act::Poll
                }
                // A single lane reads the number of the launch.
                What::Load(_) if lines.is_idle(event) && event.lanes.count_ones() > 1 => {
                    Act::Delayed
                }
                What::Load(_) => Act::Load,
                What::Store(store) if store.shared => Act::Combine,
                What::Store(store) if lines.is_publish(event) => {
                    let lane = lanes(event).next().unwrap_or(0);
                    let tile = tile_of(store.addresses[lane]);
                    let tag = store.values[0][lane] >> 32;
                    // The chained scan publishes only states.
                    let one_word = store.values.len() == 1;
                    let prefix = one_word || places == Places::Apart && tag % 2 == 1;
                    if prefix && !one_word {
                        let nearest = looks.remove(&event.block).unwrap_or_default();
                        let nearest = nearest.iter().filter(|(_, prefix)| *prefix);
                        let nearest = nearest.map(|(tile, _)| tile + 1).max().unwrap_or(0);
                        life.distances.insert(event.block, tile + 1 - nearest);
                    }
                    life.messages.push(Message { block: event.block, tile, turn, prefix });
                    if prefix { Act::PublishPrefix } else { Act::PublishAggregate }
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
            let action = (event.block, turn, act);
            let known = life.actions.iter().rev().take_while(|(_, other, _)| *other == turn);
            if !known.into_iter().any(|other| *other == action) {
                life.actions.push(action);
            }
        }
        life.turns += 1;
        life
    }

    /// Returns the turns in which a block performed an action.
    pub fn turns_of(&self, block: u64, act: Act) -> impl Iterator<Item = usize> {
        let mine = self.actions.iter().filter(move |(who, _, what)| (*who, *what) == (block, act));
        mine.map(|(_, turn, _)| *turn)
    }

    /// Returns the number of turns in which a block polled and did nothing else that shows.
    pub fn waited(&self, block: u64) -> usize {
        let busy = [Act::Load, Act::PublishAggregate, Act::PublishPrefix, Act::Store];
        let is_busy = |turn| busy.iter().any(|&act| self.turns_of(block, act).any(|t| t == turn));
        self.turns_of(block, Act::Poll).filter(|&turn| !is_busy(turn)).count()
    }
}

fn lanes(event: &Event) -> impl Iterator<Item = usize> {
    let lanes = event.lanes;
    (0..32).filter(move |lane| lanes >> lane & 1 > 0)
}

/// Returns true if a store is of outputs. A store by a single lane is a final state, or something
/// that a launch leaves for the next.
fn is_output(event: &Event) -> bool {
    matches!(&event.what, What::Store(store) if !store.shared) && event.lanes.count_ones() > 1
}

/// Classifies the lines of the PTX: lines that publish, lines that poll, and lines that only pass
/// time.
#[derive(Debug, Default)]
struct Lines(BTreeMap<u32, [bool; 3]>);

impl Lines {
    fn of(&mut self, event: &Event) -> [bool; 3] {
        *self.0.entry(event.line).or_insert_with(|| {
            let code = code(event);
            let has = |all: [&str; 2]| all.iter().any(|words| code.contains(words));
            let publishes = has(["st.relaxed.gpu.global.v2.u64", "st.release.gpu.global.u32"]);
            let polls = has(["ld.relaxed.gpu.global.v2.u64", "ld.acquire.gpu.global.u32"]);
            [publishes, polls, code.contains("ld.relaxed.gpu.global.u32")]
        })
    }

    fn is_publish(&mut self, event: &Event) -> bool {
        self.of(event)[0]
    }

    fn is_poll(&mut self, event: &Event) -> bool {
        self.of(event)[1]
    }

    fn is_idle(&mut self, event: &Event) -> bool {
        self.of(event)[2]
    }
}

/// Returns the number of the tile whose message is `bytes` bytes after tile 0's message.
fn tile_at(bytes: u64, places: Places) -> usize {
    match places {
        Places::Apart => (bytes / 128) as usize,
        Places::Groups => {
            let place = (bytes / 16) as usize;
            place / 128 * 128 + place % 32 * 4 + place % 128 / 32
        }
    }
}
