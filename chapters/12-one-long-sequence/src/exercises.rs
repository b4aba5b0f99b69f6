//! Solutions to the exercises that ask for code.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What a piece of the sequence does: it takes the state y to y * coeff + state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transition {
    /// What the state is multiplied by.
    pub coeff: f32,
    /// What is added.
    pub state: f32,
}

impl Transition {
    /// What a piece with these inputs and coefficients does.
    pub fn of(inputs: &[f32], coeffs: &[f32]) -> Transition {
        let start = Transition { coeff: 1.0, state: 0.0 };
        inputs.iter().zip(coeffs).fold(start, |upto, (&x, &c)| Transition {
            coeff: upto.coeff * c,
            state: upto.state.mul_add(c, x),
        })
    }

    /// The state after the piece.
    pub fn apply(self, state: f32) -> f32 {
        state.mul_add(self.coeff, self.state)
    }
}

/// The part of the roof's speed that a chained scan reaches at most: tiles of so many steps at 12
/// bytes each, a state that takes `hop_ns` nanoseconds from one block to the next, and a memory
/// that moves so many GB/s.
// ANCHOR: chain
pub fn chained_at_most(tile: usize, hop_ns: f64, gb_per_s: f64) -> f64 {
    // GB/s are bytes per nanosecond.
    let tile_ns = 12.0 * tile as f64 / gb_per_s;
    (tile_ns / hop_ns).min(1.0)
}
// ANCHOR_END: chain

/// What can be found in a tile's place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Told {
    /// Nothing yet.
    Nothing,
    /// What the tile alone does.
    Aggregate(Transition),
    /// The state after it.
    Prefix(f32),
}

/// The state before tile `tile`, by what the tiles before it have told, and how many tiles back a
/// state was found (the beginning of the sequence is behind tile 0). `None` if it has to wait.
// ANCHOR: look_back
pub fn look_back(told: &[Told], tile: usize, initial: f32) -> Option<(f32, usize)> {
    let mut between = Vec::new();
    let mut found = (initial, tile + 1);
    for (back, told) in (1..).zip(told[..tile].iter().rev()) {
        match *told {
            Told::Nothing => return None,
            Told::Aggregate(does) => between.push(does),
            Told::Prefix(state) => {
                found = (state, back);
                break;
            }
        }
    }
    let (state, back) = found;
    Some((between.iter().rev().fold(state, |state, does| does.apply(state)), back))
}
// ANCHOR_END: look_back

/// A chained scan by threads of the processor; its places can be used again and again.
// ANCHOR: words
#[derive(Debug)]
pub struct Chained {
    tile: usize,
    epoch: u32,
    words: Vec<AtomicU64>,
}

impl Chained {
    /// For sequences of up to `most` steps, in tiles of `tile` steps.
    pub fn new(tile: usize, most: usize) -> Chained {
        let tile = tile.max(1);
        let words = (0..most.div_ceil(tile)).map(|_| AtomicU64::new(0)).collect();
        Chained { tile, epoch: 0, words }
    }

    /// The outputs, from zero, by so many threads; `inputs` and `coeffs` are of equal length,
    /// `most` at most.
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
        // A tile of 8192 steps is 98,304 bytes: at 4300 GB/s some 22.9 ns.
        let most = chained_at_most(8192, 1000.0, 4300.0);
        assert!((most - 0.0229).abs() < 1e-4, "{most}");
        assert_eq!(chained_at_most(1 << 20, 1000.0, 4300.0), 1.0);
    }

    #[test]
    fn looking_back_waits_for_nothing_behind_a_state() {
        let pieces: Vec<Transition> =
            (0..6_u8).map(|i| Transition { coeff: 0.5, state: f32::from(i) }).collect();
        let mut states = vec![4.0];
        for piece in &pieces {
            states.push(piece.apply(states[states.len() - 1]));
        }
        // Everything that can have been told: of each tile nothing, an aggregate, a state.
        for case in 0..3_usize.pow(6) {
            let told: Vec<Told> = (0..6)
                .map(|i| match case / 3_usize.pow(i) % 3 {
                    0 => Told::Nothing,
                    1 => Told::Aggregate(pieces[i as usize]),
                    _ => Told::Prefix(states[i as usize + 1]),
                })
                .collect();
            for tile in 0..=6 {
                let state = told[..tile].iter().rposition(|told| matches!(told, Told::Prefix(_)));
                let begin = state.map_or(0, |state| state + 1);
                let waits = told[begin..tile].contains(&Told::Nothing);
                let found = look_back(&told, tile, 4.0);
                assert_eq!(found.is_none(), waits, "{told:?}, {tile}");
                if let Some((state, back)) = found {
                    assert_eq!((state, back), (states[tile], tile + 1 - begin));
                }
            }
        }
    }

    #[test]
    fn threads_give_the_bits_of_one_thread_again_and_again() {
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
