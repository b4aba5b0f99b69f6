//! The forward pass: one task for each block of channels, tile by tile.

use ndarray::{ArrayViewMut2, ArrayViewMut3, Axis, s};

use super::arrays::{ScanResults, ScanSizes, ScanViews};
use super::functions::{ScanReal, exp, sigmoid};
use super::tile::{Block, LANES, TILE, Tile, Vector, map, split, store};
use crate::cpu::Cpu;
use crate::cpu::lanes::{LaneJob, Lanes};

/// Computes the results, whose shapes have been checked.
pub fn run<T: ScanReal>(
    cpu: &Cpu,
    inputs: &ScanViews<T>,
    sizes: ScanSizes,
    results: ScanResults<T>,
) {
    let blocks = Block::all(sizes, LANES);
    let mut outs = split(results.out, Axis(1), &blocks).into_iter();
    let mut lasts = results.last.map(|last| split(last, Axis(1), &blocks).into_iter());
    let mut checkpoints = results.checkpoints.map(|all| split(all, Axis(2), &blocks).into_iter());
    let tasks = blocks.iter().filter_map(|block| {
        Some(Task {
            inputs,
            block,
            len: sizes.len,
            out: outs.next()?,
            last: lasts.as_mut().and_then(Iterator::next),
            checkpoints: checkpoints.as_mut().and_then(Iterator::next),
        })
    });
    cpu.for_each(tasks.collect(), |task| T::dispatch(cpu.simd, task));
}

/// The results of one block of channels.
struct Task<'t, 'a, T> {
    inputs: &'t ScanViews<'a, T>,
    block: &'t Block,
    len: usize,
    /// `[channels, len]`.
    out: ArrayViewMut2<'t, T>,
    /// `[channels, states]`.
    last: Option<ArrayViewMut2<'t, T>>,
    /// `[tiles, channels, states]`.
    checkpoints: Option<ArrayViewMut3<'t, T>>,
}

impl<T: ScanReal> LaneJob<T> for Task<'_, '_, T> {
    type Output = ();

    /// Runs with the vectors that the compiler makes for the instruction set.
    #[inline(always)]
    fn run<const W: usize, L: Lanes<T, W>>(mut self, _lanes: L) {
        let mut states = initial(self.inputs, self.block);
        let mut tile = Tile::new(self.inputs, self.block);
        let mut sums = vec![[T::zero(); LANES]; TILE];
        for (number, first) in (0..self.len).step_by(TILE).enumerate() {
            let steps = first..(first + TILE).min(self.len);
            tile.load(steps.clone());
            if let Some(checkpoints) = &mut self.checkpoints {
                write_states(&states, checkpoints.slice_mut(s![number, .., ..]));
            }
            for (t, sum) in sums.iter_mut().enumerate().take(steps.len()) {
                *sum = step(&tile, t, &mut states);
            }
            finish(&tile, &mut sums);
            store(&sums, &mut self.out, steps);
        }
        if let Some(last) = self.last {
            write_states(&states, last);
        }
    }
}

/// Returns the states before the first step, a vector for each.
pub fn initial<T: ScanReal>(inputs: &ScanViews<T>, block: &Block) -> Vec<Vector<T>> {
    match inputs.initial {
        Some(initial) => block.vectors(initial.slice(s![block.batch, .., ..])),
        None => vec![[T::zero(); LANES]; inputs.a.ncols()],
    }
}

/// Writes a vector for each state into an array `[channels, states]`.
pub fn write_states<T: ScanReal>(states: &[Vector<T>], mut to: ArrayViewMut2<T>) {
    for (lane, mut row) in to.outer_iter_mut().enumerate() {
        for (number, vector) in row.iter_mut().zip(states) {
            *number = vector[lane];
        }
    }
}

/// Advances the states by one step; returns the sum over the states.
#[inline(always)]
fn step<T: ScanReal>(tile: &Tile<T>, t: usize, states: &mut [Vector<T>]) -> Vector<T> {
    if tile.restart[t] {
        states.fill([T::zero(); LANES]);
    }
    let (size, number) = (tile.size[t], states.len());
    let input = map([size, tile.u[t]], |[size, u]| size * u);
    let mut sum = [T::zero(); LANES];
    for (n, state) in states.iter_mut().enumerate() {
        let decay = map([size, tile.a[n]], |[size, a]| exp(size * a));
        let (b, c) = (tile.b.at(t, n, number), tile.c.at(t, n, number));
        *state = map([decay, *state, input, b], |[decay, state, x, b]| decay * state + x * b);
        sum = map([sum, c, *state], |[sum, c, state]| sum + c * state);
    }
    sum
}

/// Adds the skip connection and applies the gate: `(y + D u) z sigmoid(z)`.
#[inline(always)]
fn finish<T: ScanReal>(tile: &Tile<T>, sums: &mut [Vector<T>]) {
    for (t, sum) in sums.iter_mut().enumerate() {
        if let Some(d) = tile.d {
            *sum = map([*sum, d, tile.u[t]], |[sum, d, u]| sum + d * u);
        }
        if let Some(z) = &tile.z {
            *sum = map([*sum, z[t]], |[sum, z]| sum * (z * sigmoid(z)));
        }
    }
}
