//! Shows which thread loads and stores which element of a row, from the emulator's trace.
//!
//! A trace contains addresses and words, but no names of arrays. [`watch`] therefore fills each
//! array with words that count up from a different start, so that a loaded word names its array and
//! position. Stored words are results, so stores are assigned to arrays by their addresses: the
//! addresses of an array are contiguous. The tests at the end of this file check these assignments
//! for every way between memory and registers, in both directions and passes.

use std::collections::BTreeSet;

use linrec::device::{Device, Recurrence};
use linrec::kernels::{ElementType, KernelChoice, Pass};
use linrec::simt::{Accessed, Counters, Event, Trace, What};
use linrec::{Direction, Error};

/// One access of a lane to an element of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The number of the array. A forward pass loads inputs (0) and coefficients (1), and stores
    /// outputs (0). A backward pass loads the outputs' gradients (0), coefficients (1) and outputs
    /// (2), and stores two gradients (0 and 1). [`INITIAL`] is the initial state.
    pub array: usize,
    /// The element's position in the row.
    pub position: usize,
    /// The thread's number in the block.
    pub thread: u32,
    /// The tile that the thread's warp was at.
    pub tile: u32,
    /// The number of the warp's earlier requests to this array in this tile.
    pub request: usize,
}

/// The number of the initial state among the arrays.
pub const INITIAL: usize = 3;

/// The accesses of one block to one row.
#[derive(Debug, Clone)]
pub struct Watched {
    /// All loads from global memory, in the order of execution.
    pub loads: Vec<Access>,
    /// All stores to global memory, in the order of execution.
    pub stores: Vec<Access>,
    /// The number of threads of the block.
    pub threads: u32,
    /// The emulator's counters.
    pub counters: Counters,
}

impl Watched {
    /// Returns all loads of an element.
    pub fn loads_of(&self, array: usize, position: usize) -> impl Iterator<Item = &Access> {
        self.loads.iter().filter(move |load| load.array == array && load.position == position)
    }
}

/// The first word of each array, and of the initial state. The following words count up, so that
/// every word reveals its position. As floats, all of these words are harmless.
const FIRST_WORDS: [u32; 4] = [0x3e80_0000, 0x3f00_0000, 0x3f80_0000, 0x4000_0000];
/// The largest number of positions that can be distinguished.
const MOST: usize = 1 << 23;

/// Returns the array and the position of a word.
fn place_of(word: u32) -> Option<(usize, usize)> {
    let array = FIRST_WORDS.iter().rposition(|&first| first <= word)?;
    Some((array, (word - FIRST_WORDS[array]) as usize))
}

/// Runs a tile or pipe kernel over one row of two elements or more, on the emulator.
///
/// # Errors
///
/// Returns an error if the kernel is not shipped or does not support such a row, or the device's
/// own error.
pub fn watch(
    choice: KernelChoice,
    pass: Pass,
    direction: Direction,
    seq_len: usize,
) -> Result<Watched, Error> {
    let device = Device::simt();
    // A row of one element could not be distinguished from a state.
    if !(2..=MOST).contains(&seq_len) {
        let arrays = vec![("row", vec![seq_len])];
        return Err(Error::ShapeMismatch { operation: "watch", arrays });
    }
    let array = |number: usize, len: usize| {
        let words = FIRST_WORDS[number]..;
        device.upload(&words.take(len).map(f32::from_bits).collect::<Vec<_>>())
    };
    let [a, b, c] = [array(0, seq_len)?, array(1, seq_len)?, array(2, seq_len)?];
    let initial = array(INITIAL, 1)?;
    let mut state = device.allocate::<f32>(1)?;
    let (mut d, mut e) = (device.allocate::<f32>(seq_len)?, device.allocate::<f32>(seq_len)?);

    let recurrence = Recurrence::<f32>::new(&device, choice)?;
    let kernel = recurrence.function(pass, direction)?;
    let geometry = choice.geometry(ElementType::F32, Pass::Forward, 1, seq_len as u64);
    let launch = kernel.launch(1, geometry.threads).shared(geometry.shared_bytes);
    let launch = match pass {
        Pass::Forward => launch.arg(&a).arg(&b).arg(&mut d).arg(&initial).arg(&mut state),
        Pass::Backward => {
            launch.arg(&a).arg(&b).arg(&c).arg(&initial).arg(&mut d).arg(&mut e).arg(&mut state)
        }
    };
    let launch = launch.arg(1_i64).arg(seq_len as i64);
    let launch = launch.arg(i32::from(direction == Direction::Reverse));
    let mut trace = Trace::new(64 * (seq_len + 1000));
    let launched = launch.traced(&mut trace).run(&device.stream())?;

    let tiles = tiles(&trace.events);
    Ok(Watched {
        loads: loads(&trace.events, &tiles),
        stores: stores(&trace.events, &tiles, seq_len),
        threads: geometry.threads,
        counters: launched.counters().cloned().unwrap_or_default(),
    })
}

/// Returns the tile of each event. A warp begins the next tile when it loads from the first array
/// after a store.
fn tiles(events: &[Event]) -> Vec<u32> {
    let (mut tiles, mut stored) = ([0_u32; 32], [false; 32]);
    let mut of_events = Vec::with_capacity(events.len());
    for event in events {
        let warp = event.warp as usize % 32;
        match &event.what {
            What::Store(store) if !store.shared => stored[warp] = true,
            What::Load(load) if !load.shared && array_of(event, load) == Some(0) => {
                tiles[warp] += u32::from(stored[warp]);
                stored[warp] = false;
            }
            _ => {}
        }
        of_events.push(tiles[warp]);
    }
    of_events
}

/// Returns the array of a request, by its first lane's word.
fn array_of(event: &Event, load: &Accessed) -> Option<usize> {
    let lane = event.lanes.trailing_zeros() as usize;
    place_of(*load.values.first()?.get(lane)? as u32).map(|(array, _)| array)
}

fn lanes(event: &Event) -> impl Iterator<Item = usize> {
    let lanes = event.lanes;
    (0..32).filter(move |lane| lanes >> lane & 1 > 0)
}

fn loads(events: &[Event], tiles: &[u32]) -> Vec<Access> {
    let mut counts = Requests::default();
    let mut accesses = Vec::new();
    for (event, &tile) in events.iter().zip(tiles) {
        let What::Load(load) = &event.what else { continue };
        let Some(array) = array_of(event, load).filter(|_| !load.shared) else { continue };
        let request = counts.next(event.warp, tile, array);
        for lane in lanes(event) {
            for word in &load.values {
                let Some((array, position)) = place_of(word[lane] as u32) else { continue };
                let thread = 32 * event.warp + lane as u32;
                accesses.push(Access { array, position, thread, tile, request });
            }
        }
    }
    accesses
}

/// Returns all stores. Stored results do not reveal their array, but their addresses do: the
/// addresses of an array are contiguous, and the array that is written first has the lower number.
fn stores(events: &[Event], tiles: &[u32], seq_len: usize) -> Vec<Access> {
    let stores = || {
        events.iter().zip(tiles).filter_map(|(event, &tile)| match &event.what {
            What::Store(store) if !store.shared => Some((event, store, tile)),
            _ => None,
        })
    };
    let words = |store: &Accessed, lane: usize| {
        let (first, bytes) = (store.addresses[lane], u64::from(store.bytes));
        (0..store.values.len() as u64).map(move |word| first + bytes * word).collect::<Vec<_>>()
    };
    let mut all = BTreeSet::new();
    for (event, store, _) in stores() {
        all.extend(lanes(event).flat_map(|lane| words(store, lane)));
    }
    let all: Vec<u64> = all.into_iter().collect();
    let rows: Vec<u64> = all
        .chunk_by(|a, b| a + 4 == *b)
        .filter(|row| row.len() == seq_len)
        .map(|row| row[0])
        .collect();

    let (mut order, mut counts, mut accesses) = (Vec::new(), Requests::default(), Vec::new());
    for (event, store, tile) in stores() {
        let row_of = |address: u64| {
            rows.iter().copied().find(|&row| (row..row + 4 * seq_len as u64).contains(&address))
        };
        let first = event.lanes.trailing_zeros() as usize;
        let Some(row) = row_of(store.addresses[first]) else { continue };
        let array = order.iter().position(|&seen| seen == row).unwrap_or_else(|| {
            order.push(row);
            order.len() - 1
        });
        let request = counts.next(event.warp, tile, array);
        for lane in lanes(event) {
            let thread = 32 * event.warp + lane as u32;
            accesses.extend(words(store, lane).into_iter().map(|address| {
                let position = ((address - row) / 4) as usize;
                Access { array, position, thread, tile, request }
            }));
        }
    }
    accesses
}

/// Counts requests by warp, tile and array.
#[derive(Default)]
struct Requests(std::collections::BTreeMap<(u32, u32, usize), usize>);

impl Requests {
    fn next(&mut self, warp: u32, tile: u32, array: usize) -> usize {
        let count = self.0.entry((warp, tile, array)).or_default();
        *count += 1;
        *count - 1
    }
}

#[cfg(test)]
mod tests {
    use super::{INITIAL, watch};
    use crate::pipe;
    use ch06_tile_kernel::layout::shares;
    use linrec::Direction::{Forward, Reverse};
    use linrec::kernels::{Memcode, Pass};

    #[test]
    fn every_way_loads_and_stores_every_element_once() {
        for memcode in Memcode::ALL {
            for direction in [Forward, Reverse] {
                for seq_len in [2, 31, 500, 600, 1100] {
                    let watched = watch(pipe(memcode), Pass::Forward, direction, seq_len).unwrap();
                    for position in 0..seq_len {
                        for array in 0..2 {
                            let count = watched.loads_of(array, position).count();
                            assert_eq!(count, 1, "{memcode} {direction:?} {seq_len} {position}");
                        }
                        let stores = watched.stores.iter();
                        let stores = stores.filter(|store| store.position == position);
                        assert_eq!(stores.count(), 1, "{memcode} {direction:?} {seq_len}");
                    }
                }
            }
        }
    }

    #[test]
    fn in_reverse_the_first_thread_has_the_end_of_the_row() {
        for (direction, from_end) in [(Forward, false), (Reverse, true)] {
            let watched = watch(pipe(Memcode::Direct), Pass::Forward, direction, 77).unwrap();
            for (thread, share) in shares(77, 32).into_iter().enumerate() {
                for step in share.steps() {
                    let position = if from_end { 76 - step } else { step };
                    let load = watched.loads_of(0, position).next().unwrap();
                    assert_eq!(load.thread as usize, thread);
                }
            }
        }
    }

    #[test]
    fn the_backward_pass_reads_shifted_elements() {
        for (direction, later) in [(Forward, 1_isize), (Reverse, -1)] {
            let seq_len = 600;
            let watched = watch(pipe(Memcode::Direct), Pass::Backward, direction, seq_len).unwrap();
            let ends = [0, seq_len - 1];
            let (first, last) = if later > 0 { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
            for position in 0..seq_len {
                let of = |array, at: isize| {
                    let mut loads = watched.loads_of(array, at as usize);
                    loads.next().map(|load| (load.tile, load.thread))
                };
                let (here, mine) = (position as isize, watched.loads_of(0, position).count());
                assert_eq!(mine, 1);
                if position != last {
                    assert_eq!(of(0, here), of(1, here + later), "coefficient after {position}");
                }
                if position != first {
                    assert_eq!(of(0, here), of(2, here - later), "output before {position}");
                }
            }
            // The first coefficient is only for the initial state, and the last output is never
            // loaded.
            assert_eq!(watched.loads_of(1, first).count(), 1);
            assert_eq!(watched.loads_of(2, last).count(), 0);
            assert!(watched.loads_of(INITIAL, 0).count() > 0);
            for array in 0..2 {
                let stores = watched.stores.iter().filter(|store| store.array == array);
                assert_eq!(stores.count(), seq_len);
            }
        }
    }

    #[test]
    fn rows_of_fewer_than_two_elements_are_refused() {
        for seq_len in 0..2 {
            assert!(watch(pipe(Memcode::Direct), Pass::Forward, Forward, seq_len).is_err());
        }
    }
}
