//! The backward pass: one task for each piece of a group's channels, from the last tile to the
//! first.
//!
//! The states of a tile are computed again from its checkpoint. The channels of a group share `B`
//! and `C`, so their gradients are sums over channels: a piece adds the vectors of its blocks and
//! then the lanes, and the pieces are added in order. `tests/suite/cpu_selective_scan.rs` compares
//! the gradients with an oracle and its bounds.

use ndarray::{ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis, s};

use super::arrays::{
    Coupling, CouplingViewMut, ScanDerivatives, ScanSizes, ScanViews, ScanViewsMut,
};
use super::forward::step;
use super::functions::{ScanReal, sigmoid};
use super::tile::{Block, LANES, TILE, Tile, Vector, load, map, split, store};
use crate::cpu::Cpu;
use crate::cpu::lanes::{LaneJob, Lanes};

/// The channels of a piece: four blocks.
const PIECE: usize = 4 * LANES;

/// Computes the gradients. The shapes of all arrays have been checked.
pub fn run<T: ScanReal>(
    cpu: &Cpu,
    inputs: &ScanViews<T>,
    given: &ScanDerivatives<T>,
    sizes: ScanSizes,
    gradients: ScanViewsMut<T>,
) {
    let pieces = Block::all(sizes, PIECE);
    let ScanViewsMut { u, delta, mut a, mut b, mut c, mut d, z, mut delta_bias, initial } =
        gradients;
    let mut d_u = split(u, Axis(1), &pieces).into_iter();
    let mut d_delta = split(delta, Axis(1), &pieces).into_iter();
    let mut d_z = z.map(|z| split(z, Axis(1), &pieces).into_iter());
    let mut d_initial = initial.map(|all| split(all, Axis(1), &pieces).into_iter());
    let mut sums: Vec<_> = pieces.iter().map(|_| None).collect();
    let tasks = pieces.iter().zip(&mut sums).filter_map(|(piece, sums)| {
        Some(Task {
            inputs,
            given,
            piece,
            len: sizes.len,
            d_u: d_u.next()?,
            d_delta: d_delta.next()?,
            d_z: d_z.as_mut().and_then(Iterator::next),
            d_initial: d_initial.as_mut().and_then(Iterator::next),
            sums,
        })
    });
    cpu.for_each(tasks.collect(), |task| T::dispatch(cpu.simd, task));

    a.fill(T::zero());
    clear(&mut b);
    clear(&mut c);
    d.iter_mut().chain(&mut delta_bias).for_each(|array| array.fill(T::zero()));
    for (piece, sums) in pieces.iter().zip(sums) {
        let Some(PieceSums { coupling: [d_b, d_c], blocks }) = sums else { continue };
        for (to, sums) in [(&mut b, d_b), (&mut c, d_c)] {
            if let Coupling::Varying(to) = to {
                let to = to.slice_mut(s![piece.batch, piece.group, .., ..]);
                to.into_iter().zip(sums).for_each(|(to, sum)| *to = *to + sum);
            }
        }
        for (block, sums) in piece.cut(LANES).zip(blocks) {
            add_vectors(&sums.a, &block, a.view_mut());
            for (to, sums) in [(&mut b, &sums.b), (&mut c, &sums.c)] {
                if let Coupling::Constant(to) = to {
                    add_vectors(sums, &block, to.view_mut());
                }
            }
            for (to, sum) in [(&mut d, sums.d), (&mut delta_bias, sums.bias)] {
                if let Some(to) = to {
                    add_vector(sum, &block, to.view_mut());
                }
            }
        }
    }
}

fn clear<T: ScanReal>(coupling: &mut CouplingViewMut<T>) {
    match coupling {
        Coupling::Varying(array) => array.fill(T::zero()),
        Coupling::Constant(array) => array.fill(T::zero()),
    }
}

/// Adds the vectors to the columns of an array `[channels, states]`.
fn add_vectors<T: ScanReal>(vectors: &[Vector<T>], block: &Block, mut to: ArrayViewMut2<T>) {
    for (vector, column) in vectors.iter().zip(to.columns_mut()) {
        add_vector(*vector, block, column);
    }
}

fn add_vector<T: ScanReal>(vector: Vector<T>, block: &Block, mut to: ArrayViewMut1<T>) {
    for (channel, number) in block.channels.clone().zip(vector) {
        to[channel] = to[channel] + number;
    }
}

/// The gradients of a piece of a group's channels.
struct Task<'t, 'a, 'g, T> {
    inputs: &'t ScanViews<'a, T>,
    given: &'t ScanDerivatives<'g, T>,
    piece: &'t Block,
    len: usize,
    /// `[channels, len]`.
    d_u: ArrayViewMut2<'t, T>,
    d_delta: ArrayViewMut2<'t, T>,
    d_z: Option<ArrayViewMut2<'t, T>>,
    /// `[channels, states]`.
    d_initial: Option<ArrayViewMut2<'t, T>>,
    sums: &'t mut Option<PieceSums<T>>,
}

/// The terms of a piece in gradients that it shares with other pieces.
struct PieceSums<T> {
    /// The gradients of a varying `B` and `C`, `[states, len]`.
    coupling: [Vec<T>; 2],
    blocks: Vec<BlockSums<T>>,
}

/// The terms of a block in the gradients of its channels, which have other batches, too.
#[derive(Debug)]
struct BlockSums<T> {
    a: Vec<Vector<T>>,
    /// The gradients of a constant `B` and `C`.
    b: Vec<Vector<T>>,
    c: Vec<Vector<T>>,
    d: Vector<T>,
    bias: Vector<T>,
}

/// A block on its way through the tiles.
struct Walk<'a, 'g, T> {
    block: Block,
    tile: Tile<'a, T>,
    d_out_rows: ArrayView2<'g, T>,
    /// The gradient of the states after the present step.
    carry: Vec<Vector<T>>,
    sums: BlockSums<T>,
}

/// Arrays for a tile of one block, `[TILE]` or `[TILE, states]`.
struct Scratch<T> {
    /// The sums over the states of the forward pass, with the skip connection.
    out: Vec<Vector<T>>,
    /// The gradient of these sums.
    d_sum: Vec<Vector<T>>,
    d_u: Vec<Vector<T>>,
    d_delta: Vec<Vector<T>>,
    d_z: Vec<Vector<T>>,
    /// The states before the tile, `[states]`.
    before: Vec<Vector<T>>,
    states: Vec<Vector<T>>,
    decays: Vec<Vector<T>>,
    /// The gradients of a varying `B` and `C`: sums over the blocks of the piece.
    d_b: Vec<Vector<T>>,
    d_c: Vec<Vector<T>>,
}

impl<T: ScanReal> LaneJob<T> for Task<'_, '_, '_, T> {
    type Output = ();

    /// Runs with the vectors that the compiler makes for the instruction set.
    #[inline(always)]
    fn run<const W: usize, L: Lanes<T, W>>(mut self, _lanes: L) {
        let (states, len) = (self.inputs.a.ncols(), self.len);
        let mut walks: Vec<_> = self.piece.cut(LANES).map(|block| self.walk(block)).collect();
        let mut scratch = Scratch::new(states);
        let varies = walks.first().is_some_and(|walk| walk.tile.b.varies() || walk.tile.c.varies());
        let numbers = if varies { states * len } else { 0 };
        let mut coupling = [vec![T::zero(); numbers], vec![T::zero(); numbers]];
        for first in (0..len).step_by(TILE).rev() {
            let steps = first..(first + TILE).min(len);
            for sums in [&mut scratch.d_b, &mut scratch.d_c] {
                sums.fill([T::zero(); LANES]);
            }
            let mut lane = 0;
            for walk in &mut walks {
                let channels = lane..lane + walk.block.channels.len();
                lane = channels.end;
                let checkpoints =
                    self.given.checkpoints.slice(s![walk.block.batch, first / TILE, .., ..]);
                scratch.before = walk.block.vectors(checkpoints);
                walk.tile.load(steps.clone());
                load(walk.d_out_rows, steps.clone(), &mut scratch.d_sum);
                forward(&walk.tile, steps.len(), &mut scratch);
                gate(&walk.tile, steps.len(), &mut scratch);
                backward(walk, steps.len(), &mut scratch);
                let rows = |array: &mut ArrayViewMut2<T>, vectors: &[Vector<T>]| {
                    let mut rows = array.slice_mut(s![channels.clone(), ..]);
                    store(vectors, &mut rows, steps.clone());
                };
                rows(&mut self.d_u, &scratch.d_u);
                rows(&mut self.d_delta, &scratch.d_delta);
                if let Some(d_z) = &mut self.d_z {
                    rows(d_z, &scratch.d_z);
                }
            }
            if varies {
                for (sums, vectors) in coupling.iter_mut().zip([&scratch.d_b, &scratch.d_c]) {
                    for (t, step) in steps.clone().enumerate() {
                        for n in 0..states {
                            sums[n * len + step] = total(vectors[t * states + n]);
                        }
                    }
                }
            }
        }
        if let Some(mut d_initial) = self.d_initial {
            let mut lane = 0;
            for walk in &walks {
                let channels = lane..lane + walk.block.channels.len();
                lane = channels.end;
                let mut to = d_initial.slice_mut(s![channels, ..]);
                store(&walk.carry, &mut to, 0..states);
            }
        }
        let blocks = walks.into_iter().map(|walk| walk.sums).collect();
        *self.sums = Some(PieceSums { coupling, blocks });
    }
}

impl<'a, 'g, T: ScanReal> Task<'_, 'a, 'g, T> {
    fn walk(&self, block: Block) -> Walk<'a, 'g, T> {
        let states = self.inputs.a.ncols();
        let zeros = vec![[T::zero(); LANES]; states];
        Walk {
            tile: Tile::new(self.inputs, &block),
            d_out_rows: block.rows(self.given.d_out),
            carry: block.states(self.given.d_last, states),
            block,
            sums: BlockSums {
                a: zeros.clone(),
                b: zeros.clone(),
                c: zeros,
                d: [T::zero(); LANES],
                bias: [T::zero(); LANES],
            },
        }
    }
}

impl<T: ScanReal> Scratch<T> {
    fn new(states: usize) -> Self {
        let zeros = |number| vec![[T::zero(); LANES]; number];
        Scratch {
            out: zeros(TILE),
            d_sum: zeros(TILE),
            d_u: zeros(TILE),
            d_delta: zeros(TILE),
            d_z: zeros(TILE),
            before: zeros(states),
            states: zeros(TILE * states),
            decays: zeros(TILE * states),
            d_b: zeros(TILE * states),
            d_c: zeros(TILE * states),
        }
    }
}

/// Computes the states of a tile again.
#[inline(always)]
fn forward<T: ScanReal>(tile: &Tile<T>, steps: usize, scratch: &mut Scratch<T>) {
    let number = scratch.before.len();
    let mut states = scratch.before.clone();
    for t in 0..steps {
        let decays = &mut scratch.decays[t * number..][..number];
        let walked = &mut scratch.states[t * number..][..number];
        scratch.out[t] = step(tile, t, &mut states, |n, decay, state| {
            (decays[n], walked[n]) = (decay, state);
        });
    }
}

/// Passes the gradient of the outputs through the gate: to `z`, and to the sums.
#[inline(always)]
fn gate<T: ScanReal>(tile: &Tile<T>, steps: usize, scratch: &mut Scratch<T>) {
    let Some(z) = &tile.z else { return };
    for t in 0..steps {
        let open = map([z[t]], |[z]| sigmoid(z));
        let vectors = [scratch.d_sum[t], z[t], open, scratch.out[t]];
        scratch.d_z[t] = map(vectors, |[d_out, z, open, out]| {
            d_out * open * (T::one() + z * (T::one() - open)) * out
        });
        scratch.d_sum[t] =
            map([scratch.d_sum[t], z[t], open], |[d_out, z, open]| d_out * (z * open));
    }
}

/// Walks a tile from its last step to its first.
#[inline(always)]
fn backward<T: ScanReal>(walk: &mut Walk<T>, steps: usize, scratch: &mut Scratch<T>) {
    let Walk { tile, carry, sums, .. } = walk;
    let number = carry.len();
    let zero = [T::zero(); LANES];
    let (b_varies, c_varies) = (tile.b.varies(), tile.c.varies());
    for t in (0..steps).rev() {
        let (size, u, d_sum) = (tile.size[t], tile.u[t], scratch.d_sum[t]);
        let input = map([size, u], |[size, u]| size * u);
        let (mut by_input, mut by_decay) = (zero, zero);
        let restart = tile.restart[t];
        for (n, carry) in carry.iter_mut().enumerate() {
            let (b, c) = (tile.b.at(t, n, number), tile.c.at(t, n, number));
            let at = t * number + n;
            let (decay, state) = (scratch.decays[at], scratch.states[at]);
            let d_state = map([*carry, c, d_sum], |[carry, c, d_sum]| carry + c * d_sum);
            by_input = map([by_input, d_state, b], |[sum, d_state, b]| sum + d_state * b);
            let d_b = if b_varies { &mut scratch.d_b[at] } else { &mut sums.b[n] };
            *d_b = map([*d_b, d_state, input], |[sum, d_state, x]| sum + d_state * x);
            let d_c = if c_varies { &mut scratch.d_c[at] } else { &mut sums.c[n] };
            *d_c = map([*d_c, d_sum, state], |[sum, d_sum, state]| sum + d_sum * state);
            if restart {
                // No state comes from before this step.
                *carry = zero;
                continue;
            }
            *carry = map([decay, d_state], |[decay, d_state]| decay * d_state);
            let before = if t > 0 { scratch.states[at - number] } else { scratch.before[n] };
            let d_log = map([*carry, before], |[carry, before]| carry * before);
            by_decay = map([by_decay, tile.a[n], d_log], |[sum, a, d_log]| sum + a * d_log);
            sums.a[n] = map([sums.a[n], size, d_log], |[sum, size, d_log]| sum + size * d_log);
        }
        let mut d_u = map([size, by_input], |[size, by_input]| size * by_input);
        if let Some(d) = tile.d {
            d_u = map([d_u, d, d_sum], |[d_u, d, d_sum]| d_u + d * d_sum);
        }
        sums.d = map([sums.d, d_sum, u], |[sum, d_sum, u]| sum + d_sum * u);
        let mut d_size =
            map([u, by_input, by_decay], |[u, by_input, by_decay]| u * by_input + by_decay);
        if tile.softplus {
            d_size = map([d_size, tile.given[t]], |[d_size, given]| d_size * sigmoid(given));
        }
        sums.bias = map([sums.bias, d_size], |[sum, d_size]| sum + d_size);
        (scratch.d_u[t], scratch.d_delta[t]) = (d_u, d_size);
    }
}

/// Adds the lanes of a vector, halves first.
#[inline(always)]
fn total<T: ScanReal>(mut vector: Vector<T>) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            vector[lane] = vector[lane] + vector[lane + half];
        }
        half /= 2;
    }
    vector[0]
}
