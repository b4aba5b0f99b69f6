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
        let mut states = self.block.states(self.inputs.initial, self.inputs.a.ncols());
        let mut tile = Tile::new(self.inputs, self.block);
        let mut sums = vec![[T::zero(); LANES]; TILE];
        for (number, first) in (0..self.len).step_by(TILE).enumerate() {
            let steps = first..(first + TILE).min(self.len);
            tile.load(steps.clone());
            if let Some(checkpoints) = &mut self.checkpoints {
                let mut to = checkpoints.slice_mut(s![number, .., ..]);
                store(&states, &mut to, 0..states.len());
            }
            for (t, sum) in sums.iter_mut().enumerate().take(steps.len()) {
                *sum = step(&tile, t, &mut states, |_, _, _| ());
                if let Some(z) = &tile.z {
                    *sum = map([*sum, z[t]], |[sum, z]| sum * (z * sigmoid(z)));
                }
            }
            store(&sums, &mut self.out, steps);
        }
        if let Some(mut last) = self.last {
            store(&states, &mut last, 0..states.len());
        }
    }
}

/// Advances the states by one step, and calls `each` with the number, the decay and the value of
/// each state. Returns the sum over the states and the skip connection: `C h + D u`.
#[inline(always)]
pub fn step<T: ScanReal>(
    tile: &Tile<T>,
    t: usize,
    states: &mut [Vector<T>],
    mut each: impl FnMut(usize, Vector<T>, Vector<T>),
) -> Vector<T> {
    if tile.restart[t] {
        states.fill([T::zero(); LANES]);
    }
    let (size, u, number) = (tile.size[t], tile.u[t], states.len());
    let input = map([size, u], |[size, u]| size * u);
    let mut sum = [T::zero(); LANES];
    for (n, state) in states.iter_mut().enumerate() {
        let decay = map([size, tile.a[n]], |[size, a]| exp(size * a));
        let (b, c) = (tile.b.at(t, n, number), tile.c.at(t, n, number));
        *state = map([decay, *state, input, b], |[decay, state, x, b]| decay * state + x * b);
        sum = map([sum, c, *state], |[sum, c, state]| sum + c * state);
        each(n, decay, *state);
    }
    match tile.d {
        Some(d) => map([sum, d, u], |[sum, d, u]| sum + d * u),
        None => sum,
    }
}
