//! Solutions to the exercises that ask for code.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The effect of a piece of the sequence: it maps the state y to y * coeff + state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transition {
    /// The factor of the state.
    pub coeff: f32,
    /// The summand.
    pub state: f32,
}

impl Transition {
    /// Returns the transition of a piece with these inputs and coefficients.
    pub fn of(inputs: &[f32], coeffs: &[f32]) -> Transition {
        let start = Transition { coeff: 1.0, state: 0.0 };
        inputs.iter().zip(coeffs).fold(start, |upto, (&x, &c)| Transition {
            coeff: upto.coeff * c,
            state: upto.state.mul_add(c, x),
        })
    }

    /// Returns the state after the piece.
    pub fn apply(self, state: f32) -> f32 {
        state.mul_add(self.coeff, self.state)
    }
}

/// Returns the largest fraction of the roof's speed that a chained scan can reach. Tiles have
/// `tile` steps of 12 bytes each, a state takes `hop_ns` nanoseconds from one block to the next,
/// and the memory moves `gb_per_s` GB/s.
// ANCHOR: chain
pub fn chained_at_most(tile: usize, hop_ns: f64, gb_per_s: f64) -> f64 {
    // GB/s are bytes per nanosecond.
    let tile_ns = 12.0 * tile as f64 / gb_per_s;
    (tile_ns / hop_ns).min(1.0)
}
// ANCHOR_END: chain

/// The content of a tile's slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Message {
    /// Nothing has been published yet.
    Nothing,
    /// The transition of the tile alone.
    Aggregate(Transition),
    /// The state after the tile.
    Prefix(f32),
}

/// Returns the state before tile `tile`, from the messages of the tiles before it, and how many
/// tiles back a state was found (the beginning of the sequence is before tile 0). Returns `None` if
/// the tile must wait.
// ANCHOR: look_back
pub fn look_back(messages: &[Message], tile: usize, initial: f32) -> Option<(f32, usize)> {
    let mut between = Vec::new();
    let mut found = (initial, tile + 1);
    for (back, message) in (1..).zip(messages[..tile].iter().rev()) {
        match *message {
            Message::Nothing => return None,
            Message::Aggregate(does) => between.push(does),
            Message::Prefix(state) => {
                found = (state, back);
                break;
            }
        }
    }
    let (state, back) = found;
    Some((between.iter().rev().fold(state, |state, does| does.apply(state)), back))
}
// ANCHOR_END: look_back

/// A chained scan by threads of the processor. Its words can be reused without clearing.
// ANCHOR: words
#[derive(Debug)]
pub struct Chained {
    tile: usize,
    epoch: u32,
    words: Vec<AtomicU64>,
}

impl Chained {
    /// Makes a scan for sequences of up to `most` steps, in tiles of `tile` steps.
    pub fn new(tile: usize, most: usize) -> Chained {
        let tile = tile.max(1);
        let words = (0..most.div_ceil(tile)).map(|_| AtomicU64::new(0)).collect();
        Chained { tile, epoch: 0, words }
    }

    /// Computes the outputs from zero on `threads` threads. `inputs` and `coeffs` must have equal
    /// lengths of at most `most`.
    pub fn outputs(&mut self, inputs: &[f32], coeffs: &[f32], threads: usize) -> Vec<f32> {
        self.epoch += 1;
        let (tile, epoch, words) = (self.tile, self.epoch, &self.words);
        let next = AtomicUsize::new(0);
        let mut outputs = vec![0.0; inputs.len()];
        let places: Vec<_> = outputs.chunks_mut(tile).map(std::sync::Mutex::new).collect();
        std::thread::scope(|scope| {
            for _ in 0..threads.max(1) {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some(Ok(mut place)) = places.get(number).map(|place| place.lock())
                        else {
                            return;
                        };
                        let steps = number * tile..number * tile + place.len();
                        let (x, c) = (&inputs[steps.clone()], &coeffs[steps]);
                        let does = Transition::of(x, c);
                        let mut state = match number.checked_sub(1) {
                            None => 0.0,
                            Some(before) => loop {
                                let word = words[before].load(Ordering::Relaxed);
                                if (word >> 32) as u32 == epoch {
                                    break f32::from_bits(word as u32);
                                }
                                std::hint::spin_loop();
                            },
                        };
                        let after = u64::from(does.apply(state).to_bits());
                        words[number].store(u64::from(epoch) << 32 | after, Ordering::Relaxed);
                        for ((y, &x), &c) in place.iter_mut().zip(x).zip(c) {
                            state = state.mul_add(c, x);
                            *y = state;
                        }
                    }
                });
            }
        });
        drop(places);
        outputs
    }
}
// ANCHOR_END: words

#[cfg(test)]
mod tests {
    use super::*;
    use bench::draw::near_one;
    use linrec::Options;
    use linrec::contract::Domain;
    use linrec::reference::{self, Rounding};

    #[test]
    fn a_chain_is_as_fast_as_its_hops() {
        // A tile of 8192 steps has 98,304 bytes: at 4300 GB/s about 22.9 ns.
        let most = chained_at_most(8192, 1000.0, 4300.0);
        assert!((most - 0.0229).abs() < 1e-4, "{most}");
        assert_eq!(chained_at_most(1 << 20, 1000.0, 4300.0), 1.0);
    }

    #[test]
    fn looking_back_stops_at_the_nearest_state() {
        let pieces: Vec<Transition> =
            (0..6_u8).map(|i| Transition { coeff: 0.5, state: f32::from(i) }).collect();
        let mut states = vec![4.0];
        for piece in &pieces {
            states.push(piece.apply(states[states.len() - 1]));
        }
        // All combinations of messages: for each tile nothing, an aggregate, or a state.
        for case in 0..3_usize.pow(6) {
            let messages: Vec<Message> = (0..6)
                .map(|i| match case / 3_usize.pow(i) % 3 {
                    0 => Message::Nothing,
                    1 => Message::Aggregate(pieces[i as usize]),
                    _ => Message::Prefix(states[i as usize + 1]),
                })
                .collect();
            for tile in 0..=6 {
                let state =
                    messages[..tile].iter().rposition(|one| matches!(one, Message::Prefix(_)));
                let begin = state.map_or(0, |state| state + 1);
                let waits = messages[begin..tile].contains(&Message::Nothing);
                let found = look_back(&messages, tile, 4.0);
                assert_eq!(found.is_none(), waits, "{messages:?}, {tile}");
                if let Some((state, back)) = found {
                    assert_eq!((state, back), (states[tile], tile + 1 - begin));
                }
            }
        }
    }

    #[test]
    fn repeated_runs_on_any_threads_give_the_same_bits() {
        let mut chained = Chained::new(100, 5000);
        for (round, seq_len) in [5000, 4999, 1, 0, 777].into_iter().enumerate() {
            let (inputs, coeffs) = near_one((1, seq_len), round as u64);
            let (x, c) = (inputs.as_slice().unwrap(), coeffs.as_slice().unwrap());
            let alone = chained.outputs(x, c, 1);
            for threads in [2, 5] {
                assert_eq!(chained.outputs(x, c, threads), alone);
            }
            let (x, c, options) = (inputs.view(), coeffs.view(), Options::default());
            let rounding = Rounding { levels: Domain::tree_levels(seq_len), exp_ulps: 0.0 };
            let exact = reference::forward(x, c, &options).unwrap().outputs;
            let bound = reference::forward_bound(x, c, &options, rounding).unwrap().outputs;
            for ((y, exact), bound) in alone.iter().zip(&exact).zip(&bound) {
                assert!((f64::from(*y) - exact).abs() <= *bound, "{y} instead of {exact}");
            }
        }
    }
}
