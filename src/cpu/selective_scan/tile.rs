//! A block of channels, and the transposed arrays of its tiles: a vector for each step.
//!
//! Arrays have their steps one after the other, and the walk needs the channels side by side. So a
//! tile is read row by row and written column by column, into memory that stays in the nearest
//! cache; results go the other way. `B` and `C` have one number for all channels of a group, which
//! becomes a vector when it is used. `tests/suite/cpu_selective_scan.rs` tests it with all strides.

use std::array::from_fn;
use std::ops::Range;

use ndarray::{
    ArrayView1, ArrayView2, ArrayView3, ArrayViewMut, ArrayViewMut2, Axis, Dimension, RemoveAxis, s,
};

use super::arrays::{Coupling, CouplingView, ScanSizes, ScanViews};
use super::functions::{ScanReal, softplus};

/// The channels of a vector.
pub const LANES: usize = 16;
/// The steps of a tile, and the steps between two checkpoints.
pub const TILE: usize = 64;

/// One number for each channel of a block; lanes beyond the last channel hold zeros.
pub type Vector<T> = [T; LANES];

/// Applies a function to the numbers of each channel.
#[inline(always)]
pub fn map<T: ScanReal, const N: usize>(
    vectors: [Vector<T>; N],
    function: impl Fn([T; N]) -> T,
) -> Vector<T> {
    from_fn(|lane| function(vectors.map(|vector| vector[lane])))
}

/// Neighbouring channels of one batch and one group, at most [`LANES`].
#[derive(Debug, Clone)]
pub struct Block {
    pub batch: usize,
    pub group: usize,
    pub channels: Range<usize>,
}

impl Block {
    /// Cuts the channels of a batch and group into blocks of at most `size` channels.
    pub fn all(sizes: ScanSizes, size: usize) -> Vec<Block> {
        let per_group = sizes.group_channels();
        let pairs = (0..sizes.batch).flat_map(|i| (0..sizes.groups).map(move |group| (i, group)));
        let cut = |(batch, group)| {
            (0..per_group).step_by(size).map(move |first| {
                let begin = group * per_group;
                let channels = begin + first..begin + (first + size).min(per_group);
                Block { batch, group, channels }
            })
        };
        pairs.flat_map(cut).collect()
    }

    /// Cuts the block into smaller ones.
    pub fn cut(&self, size: usize) -> impl Iterator<Item = Block> {
        let Block { batch, group, channels } = self.clone();
        let end = channels.end;
        channels.step_by(size).map(move |first| Block {
            batch,
            group,
            channels: first..(first + size).min(end),
        })
    }

    /// Returns the rows `[channels, len]` of an array `[batch, channels, len]`.
    pub fn rows<'a, T>(&self, array: ArrayView3<'a, T>) -> ArrayView2<'a, T> {
        array.slice_move(s![self.batch, self.channels.clone(), ..])
    }

    /// Returns a vector for each column of an array `[channels, columns]`.
    pub fn vectors<T: ScanReal>(&self, array: ArrayView2<T>) -> Vec<Vector<T>> {
        let columns = array.ncols();
        let mut vectors = vec![[T::zero(); LANES]; columns];
        load(array.slice(s![self.channels.clone(), ..]), 0..columns, &mut vectors);
        vectors
    }

    /// Returns a vector for each state of an array `[batch, channels, states]`; zeros without it.
    pub fn states<T: ScanReal>(
        &self,
        array: Option<ArrayView3<T>>,
        number: usize,
    ) -> Vec<Vector<T>> {
        match array {
            Some(array) => self.vectors(array.slice(s![self.batch, .., ..])),
            None => vec![[T::zero(); LANES]; number],
        }
    }
}

/// Splits an array whose first axis is the batch into the parts of all blocks, without that axis.
pub fn split<'a, T, D>(
    array: ArrayViewMut<'a, T, D>,
    channels: Axis,
    blocks: &[Block],
) -> Vec<ArrayViewMut<'a, T, D::Smaller>>
where
    D: Dimension + RemoveAxis,
    D::Smaller: Dimension,
{
    let mut blocks = blocks.iter().peekable();
    let mut parts = Vec::with_capacity(blocks.len());
    let mut batches = array;
    for batch in 0..batches.len_of(Axis(0)) {
        let (mut rest, others) = batches.split_at(Axis(0), 1);
        batches = others;
        while let Some(block) = blocks.next_if(|block| block.batch == batch) {
            let (part, others) = rest.split_at(channels, block.channels.len());
            parts.push(part.index_axis_move(Axis(0), 0));
            rest = others;
        }
    }
    parts
}

/// Transposes some columns of `[channels, len]`: a vector for each column.
#[inline(always)]
pub fn load<T: ScanReal>(rows: ArrayView2<T>, columns: Range<usize>, to: &mut [Vector<T>]) {
    for (lane, row) in rows.outer_iter().enumerate() {
        match row.to_slice() {
            Some(row) => {
                for (vector, &number) in to.iter_mut().zip(&row[columns.clone()]) {
                    vector[lane] = number;
                }
            }
            None => {
                for (vector, &number) in to.iter_mut().zip(row.slice(s![columns.clone()])) {
                    vector[lane] = number;
                }
            }
        }
    }
}

/// Transposes vectors back, into some columns of `[channels, len]`.
#[inline(always)]
pub fn store<T: ScanReal>(
    vectors: &[Vector<T>],
    rows: &mut ArrayViewMut2<T>,
    columns: Range<usize>,
) {
    for (lane, mut row) in rows.outer_iter_mut().enumerate() {
        let mut part = row.slice_mut(s![columns.clone()]);
        for (number, vector) in part.iter_mut().zip(vectors) {
            *number = vector[lane];
        }
    }
}

/// A coupling of a block: the numbers of a tile `[steps, states]`, or a vector for each state.
#[derive(Debug)]
pub struct BlockCoupling<'a, T> {
    /// `[states, len]`.
    varying: Option<ArrayView2<'a, T>>,
    /// `[states]`.
    constant: Vec<Vector<T>>,
    /// `[steps, states]`.
    tile: Vec<T>,
}

impl<'a, T: ScanReal> BlockCoupling<'a, T> {
    pub fn new(coupling: CouplingView<'a, T>, block: &Block, states: usize) -> Self {
        match coupling {
            Coupling::Varying(array) => BlockCoupling {
                varying: Some(array.slice_move(s![block.batch, block.group, .., ..])),
                constant: Vec::new(),
                tile: vec![T::zero(); TILE * states],
            },
            Coupling::Constant(array) => {
                BlockCoupling { varying: None, constant: block.vectors(array), tile: Vec::new() }
            }
        }
    }

    pub fn varies(&self) -> bool {
        self.varying.is_some()
    }

    /// Reads the numbers of some steps, at most a tile.
    pub fn load(&mut self, steps: Range<usize>) {
        let Some(rows) = &self.varying else { return };
        let states = rows.nrows();
        for (n, row) in rows.outer_iter().enumerate() {
            for (t, &number) in row.slice(s![steps.clone()]).iter().enumerate() {
                self.tile[t * states + n] = number;
            }
        }
    }

    /// Returns the vector of state `n` at step `t` of the tile.
    #[inline(always)]
    pub fn at(&self, t: usize, n: usize, states: usize) -> Vector<T> {
        match self.varying {
            Some(_) => [self.tile[t * states + n]; LANES],
            None => self.constant[n],
        }
    }
}

/// The inputs of a block of channels: those of a tile, transposed, and those of all steps.
#[derive(Debug)]
pub struct Tile<'a, T> {
    u_rows: ArrayView2<'a, T>,
    delta_rows: ArrayView2<'a, T>,
    z_rows: Option<ArrayView2<'a, T>>,
    restarts: Option<ArrayView1<'a, u8>>,
    bias: Option<Vector<T>>,
    pub softplus: bool,
    pub a: Vec<Vector<T>>,
    pub d: Option<Vector<T>>,
    pub b: BlockCoupling<'a, T>,
    pub c: BlockCoupling<'a, T>,
    pub u: Vec<Vector<T>>,
    /// The step sizes before the softplus.
    pub given: Vec<Vector<T>>,
    /// The step sizes.
    pub size: Vec<Vector<T>>,
    pub z: Option<Vec<Vector<T>>>,
    /// True where the states before a step count as zero.
    pub restart: Vec<bool>,
}

impl<'a, T: ScanReal> Tile<'a, T> {
    pub fn new(inputs: &ScanViews<'a, T>, block: &Block) -> Self {
        let zeros = || vec![[T::zero(); LANES]; TILE];
        let states = inputs.a.ncols();
        let per_channel = |array: ArrayView1<T>| {
            let mut vector = [T::zero(); LANES];
            for (lane, channel) in block.channels.clone().enumerate() {
                vector[lane] = array[channel];
            }
            vector
        };
        Tile {
            u_rows: block.rows(inputs.u),
            delta_rows: block.rows(inputs.delta),
            z_rows: inputs.z.map(|z| block.rows(z)),
            restarts: inputs.restarts.map(|restarts| restarts.slice_move(s![block.batch, ..])),
            bias: inputs.delta_bias.map(per_channel),
            softplus: inputs.softplus,
            a: block.vectors(inputs.a),
            d: inputs.d.map(per_channel),
            b: BlockCoupling::new(inputs.b, block, states),
            c: BlockCoupling::new(inputs.c, block, states),
            u: zeros(),
            given: zeros(),
            size: zeros(),
            z: inputs.z.map(|_| zeros()),
            restart: vec![false; TILE],
        }
    }

    /// Reads the inputs of some steps, at most a tile.
    #[inline(always)]
    pub fn load(&mut self, steps: Range<usize>) {
        load(self.u_rows, steps.clone(), &mut self.u);
        load(self.delta_rows, steps.clone(), &mut self.given);
        if let (Some(rows), Some(z)) = (self.z_rows, &mut self.z) {
            load(rows, steps.clone(), z);
        }
        for (given, size) in self.given.iter_mut().zip(&mut self.size) {
            if let Some(bias) = self.bias {
                *given = map([*given, bias], |[given, bias]| given + bias);
            }
            *size = if self.softplus { map([*given], |[x]| softplus(x)) } else { *given };
        }
        if let Some(restarts) = self.restarts {
            for (restart, &given) in self.restart.iter_mut().zip(restarts.slice(s![steps.clone()]))
            {
                *restart = given != 0;
            }
        }
        self.b.load(steps.clone());
        self.c.load(steps);
    }
}
