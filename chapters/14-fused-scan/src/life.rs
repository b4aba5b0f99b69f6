//! The life of a tile in the library's kernel: what each warp does with it, from a trace.

use linrec::Error;
use linrec::device::Device;
use linrec::kernels;
use linrec::simt::{Event, Trace, What};

use crate::ladder::{Arrays, Kernel, Rung};
use crate::problem::{Problem, Sizes};

/// The number of steps in a tile.
pub const TILE: usize = 32;
/// The number of computing warps in a block; the warps after them are helpers.
pub const COMPUTING: u32 = 4;

/// One thing that a warp does with a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// A helper warp copies the tile's `u` to shared memory.
    Send,
    /// A helper warp writes the step sizes and inputs, step by step.
    Prepare,
    /// A computing warp walks its states.
    Walk,
    /// A helper warp writes the tile's outputs to memory.
    Store,
}

impl Act {
    /// All acts, in the order of a tile's life.
    pub const ALL: [Act; 4] = [Act::Send, Act::Prepare, Act::Walk, Act::Store];
}

/// An act on a tile in one turn; a turn is the time between two barriers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Action {
    /// The index of the tile.
    pub tile: usize,
    /// The act.
    pub act: Act,
    /// The turn, counted from the beginning of the walk.
    pub turn: i64,
}

/// Runs the library's kernel over tiles of 64 channels on the emulator, and returns the acts of the
/// first warp of each kind.
///
/// # Errors
///
/// Returns an error if the device fails.
pub fn of(tiles: usize) -> Result<Vec<Action>, Error> {
    let sizes = Sizes { batch: 1, channels: 64, len: tiles * TILE };
    let problem = Problem::draw(sizes, false, 141);
    let device = Device::simt();
    let kernel = Kernel::new(&device, Rung::Shipped)?;
    let arrays = Arrays::in_one_piece(&device, &problem)?;
    let mut out = device.allocate_named("out", sizes.elements())?;
    let mut trace = Trace::new(1 << 20);
    kernel.launch(&arrays, &mut out, Some(&mut trace))?;
    Ok(actions(&trace, sizes))
}

/// The number of turns by which the helpers begin before the walk.
const AHEAD: i64 = 2;

fn actions(trace: &Trace, sizes: Sizes) -> Vec<Action> {
    let first_lane = |event: &Event| event.lanes.trailing_zeros().min(31) as usize;
    let least = |of: fn(&Event) -> Option<&[u64; 32]>| {
        let all = trace.events.iter();
        let all = all.filter_map(|event| of(event).map(|all| all[first_lane(event)]));
        all.min().unwrap_or(0)
    };
    // u has the lowest addresses of what is copied, and the outputs are the only array stored.
    let (base, out_base) = (least(copied), least(stored));
    let tile_of = |address: u64, base: u64| {
        let element = address.checked_sub(base)? as usize / 4;
        (element < sizes.elements()).then_some(element % sizes.len / TILE)
    };
    let mut turns = [-AHEAD; 2];
    // The turns of acts without a tile in their addresses; their tiles count up by one.
    let mut counted: [Vec<i64>; 2] = Default::default();
    let mut actions = Vec::new();
    for event in &trace.events {
        let which = match event.warp {
            0 => 0,
            COMPUTING => 1,
            _ => continue,
        };
        let turn = turns[which];
        let count = |counted: &mut Vec<i64>| {
            if counted.last() != Some(&turn) {
                counted.push(turn);
            }
            counted.len() - 1
        };
        let found = match &event.what {
            What::Barrier => {
                turns[which] += 1;
                None
            }
            What::Copy(copy) if copy.read[first_lane(event)] > 0 => {
                tile_of(copy.from[first_lane(event)], base).map(|tile| (tile, Act::Send))
            }
            What::Store(store) if !store.shared => {
                tile_of(store.addresses[first_lane(event)], out_base).map(|tile| (tile, Act::Store))
            }
            What::Store(_) if which == 1 && prepares(event) => {
                Some((count(&mut counted[1]), Act::Prepare))
            }
            What::Shuffle { .. } if which == 0 && turn >= 0 => {
                Some((count(&mut counted[0]), Act::Walk))
            }
            _ => None,
        };
        if let Some((tile, act)) = found {
            actions.push(Action { tile, act, turn });
        }
    }
    actions.sort_unstable();
    actions.dedup();
    actions
}

fn copied(event: &Event) -> Option<&[u64; 32]> {
    match &event.what {
        What::Copy(copy) => Some(&copy.from),
        _ => None,
    }
}

fn stored(event: &Event) -> Option<&[u64; 32]> {
    match &event.what {
        What::Store(store) if !store.shared => Some(&store.addresses),
        _ => None,
    }
}

/// Returns true for the store of d and d u, recognised by its source line.
fn prepares(event: &Event) -> bool {
    let Some((file, line)) = &event.source else { return false };
    let text = file.strip_prefix("kernels/").and_then(kernels::source).unwrap_or_default();
    let code = text.lines().nth((*line as usize).saturating_sub(1)).unwrap_or_default();
    code.contains("make_float4(d[")
}
