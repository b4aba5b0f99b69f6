//! The table of cases, and the data of each case.
//!
//! A case is a shape, a direction, and the kind of its data. [`cases`] combines the lengths at
//! which engines go wrong with every kind of coefficients, and then varies layout, logarithms and
//! sparsity one at a time, so that a failure points at its cause. [`Case::data`] draws the arrays
//! from a seed that depends on the shape alone. `tests/suite/mistakes.rs` tests that wrong engines
//! fail.

use std::fmt;

use ndarray::{Array1, Array2, ArrayView2, Axis, ShapeBuilder, s};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::{Direction, Element, Options};

/// The coefficients of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CoeffKind {
    /// Uniform in [0, 1), as a gate. Carries die out within a few steps.
    Gate,
    /// Uniform in [0.98, 1): carries reach far, so a lost one shows.
    NearOne,
    /// Uniform in (-1.2, 1.2).
    Signed,
    /// Near one, but exactly 0 at about every eighth step: the state is reset.
    Zeros,
    /// Exactly 1: the recurrence is a cumulative sum.
    One,
    /// Exactly -1.
    MinusOne,
    /// Uniform in [1, 1 + 16/L]: products grow up to about e^16.
    Growing,
    /// Below 10^-12: products underflow after a few steps.
    Underflow,
}

impl CoeffKind {
    /// All kinds.
    pub const ALL: [CoeffKind; 8] = {
        use CoeffKind::*;
        [Gate, NearOne, Signed, Zeros, One, MinusOne, Growing, Underflow]
    };

    /// Returns whether real coefficients of this kind have a logarithm (the logarithm of 0 is -∞).
    pub fn has_log(self) -> bool {
        !matches!(self, CoeffKind::Signed | CoeffKind::MinusOne)
    }

    fn draw(self, rng: &mut StdRng, seq_len: usize) -> f64 {
        match self {
            CoeffKind::Gate => rng.random_range(0.0..1.0),
            CoeffKind::NearOne => rng.random_range(0.98..1.0),
            CoeffKind::Signed => rng.random_range(-1.2..1.2),
            CoeffKind::Zeros if rng.random_range(0..8) == 0 => 0.0,
            CoeffKind::Zeros => rng.random_range(0.98..1.0),
            CoeffKind::One => 1.0,
            CoeffKind::MinusOne => -1.0,
            CoeffKind::Growing => 1.0 + rng.random_range(0.0..16.0) / seq_len.max(1) as f64,
            CoeffKind::Underflow => rng.random_range(0.0..1e-12),
        }
    }
}

/// The inputs of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InputKind {
    /// Uniform in (-1, 1).
    Dense,
    /// Zero except for about every sixteenth element.
    Sparse,
}

/// The layout of a case's arrays in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Rows one after another.
    Standard,
    /// Columns one after another: neighbours in a row are `num_seqs` apart.
    Columns,
    /// Both axes run backwards in memory.
    Backwards,
    /// Every second column of a wider array, whose other columns are NaN.
    EverySecond,
    /// The rows of the coefficients are the same memory (stride 0); other arrays are standard.
    SharedCoeffs,
}

impl Layout {
    /// All layouts.
    pub const ALL: [Layout; 5] = [
        Layout::Standard,
        Layout::Columns,
        Layout::Backwards,
        Layout::EverySecond,
        Layout::SharedCoeffs,
    ];

    /// Returns an array of the same shape and values in this layout. [`Layout::SharedCoeffs`] is
    /// the standard layout here, since only the coefficients are shared: see [`Data::coeffs`].
    pub fn apply<T: Element>(self, values: Array2<T>) -> Array2<T> {
        let (rows, columns) = values.dim();
        match self {
            Layout::Standard | Layout::SharedCoeffs => values,
            Layout::Columns => Array2::from_shape_fn((rows, columns).f(), |index| values[index]),
            Layout::Backwards => {
                let mut flipped = values.slice(s![..;-1, ..;-1]).to_owned();
                flipped.invert_axis(Axis(0));
                flipped.invert_axis(Axis(1));
                flipped
            }
            Layout::EverySecond => {
                let mut wide = Array2::from_elem((rows, 2 * columns), T::nan());
                wide.slice_mut(s![.., ..;2]).assign(&values);
                wide.slice_move(s![.., ..;2])
            }
        }
    }
}

/// One case of the table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Case {
    /// The number of sequences.
    pub num_seqs: usize,
    /// The length of each sequence.
    pub seq_len: usize,
    /// The direction of the recurrence.
    pub direction: Direction,
    /// True if an initial state is given.
    pub initial: bool,
    /// The coefficients.
    pub coeffs: CoeffKind,
    /// True if the coefficients are given as logarithms.
    pub log_coeffs: bool,
    /// The inputs.
    pub inputs: InputKind,
    /// The layout of the arrays in memory.
    pub layout: Layout,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { num_seqs, seq_len, direction, coeffs, inputs, layout, .. } = self;
        write!(f, "{num_seqs} x {seq_len}, {direction:?}, {coeffs:?} coefficients")?;
        write!(f, "{}", if self.log_coeffs { " as logarithms" } else { "" })?;
        write!(f, ", {inputs:?} inputs, {layout:?} layout")?;
        write!(f, "{}", if self.initial { ", initial state" } else { "" })
    }
}

/// The arrays of a case, in its layout.
#[derive(Debug, Clone)]
pub struct Data<T: Element> {
    /// `x`.
    pub inputs: Array2<T>,
    /// `c`, or its logarithm; a single row if all sequences share it.
    coeffs: Array2<T>,
    /// The loss's gradient with respect to the outputs.
    pub d_outputs: Array2<T>,
    /// The options.
    pub options: Options<'static, T>,
}

impl<T: Element> Data<T> {
    /// `c`, or its logarithm, in the shape of the inputs.
    pub fn coeffs(&self) -> ArrayView2<'_, T> {
        // A view of the array itself, or of one row repeated; both always fit.
        self.coeffs.broadcast(self.inputs.dim()).unwrap_or(self.coeffs.view())
    }

    /// Returns this data with every array changed by `change`, and with the same options, the
    /// initial state included.
    pub(super) fn map(self, change: impl Fn(Array2<T>) -> Array2<T>) -> Data<T> {
        Data {
            inputs: change(self.inputs),
            coeffs: change(self.coeffs),
            d_outputs: change(self.d_outputs),
            options: self.options,
        }
    }
}

/// Returns the whole table. `tile` is a length at which the engine changes its method.
pub fn cases(tile: usize) -> Vec<Case> {
    let mut lengths = vec![0, 1, 2, 3, 31, 32, 33, 1000, 4093, 65537];
    lengths.extend([tile.saturating_sub(1), tile, tile + 1]);
    lengths.sort_unstable();
    lengths.dedup();

    let mut all = Vec::new();
    for &seq_len in &lengths {
        // The longest sequences come in small batches: the table would spend nearly all of its time
        // on them, and few rows are enough for an engine that cuts rows.
        let batches: &[usize] = if seq_len > 10_000 { &[0, 1, 3] } else { &[0, 1, 3, 17] };
        for &num_seqs in batches {
            for direction in [Direction::Forward, Direction::Reverse] {
                for initial in [false, true] {
                    push_variants(&mut all, num_seqs, seq_len, direction, initial);
                }
            }
        }
    }
    all
}

/// Adds every kind of coefficients in the standard layout, and then the other options, one at a
/// time.
fn push_variants(
    all: &mut Vec<Case>,
    num_seqs: usize,
    seq_len: usize,
    direction: Direction,
    initial: bool,
) {
    let standard = |coeffs| Case {
        num_seqs,
        seq_len,
        direction,
        initial,
        coeffs,
        log_coeffs: false,
        inputs: InputKind::Dense,
        layout: Layout::Standard,
    };
    all.extend(CoeffKind::ALL.map(standard));
    for coeffs in [CoeffKind::NearOne, CoeffKind::Signed] {
        all.push(Case { inputs: InputKind::Sparse, ..standard(coeffs) });
    }
    for &layout in &Layout::ALL[1..] {
        all.push(Case { layout, ..standard(CoeffKind::NearOne) });
    }
    for coeffs in CoeffKind::ALL.into_iter().filter(|kind| kind.has_log()) {
        all.push(Case { log_coeffs: true, ..standard(coeffs) });
    }
    all.push(Case {
        log_coeffs: true,
        layout: Layout::Columns,
        inputs: InputKind::Sparse,
        ..standard(CoeffKind::NearOne)
    });
}

impl Case {
    /// Draws the arrays of this case: the same ones every time. Complex elements get a random phase
    /// (except for the exact coefficients 0, 1 and -1).
    pub fn data<T: Element>(&self) -> Data<T> {
        let Case { num_seqs, seq_len, layout, .. } = *self;
        let mut rng = StdRng::seed_from_u64((num_seqs * 1_000_003 + seq_len) as u64);
        let shape = (num_seqs, seq_len);

        let mut coeffs = Array2::from_shape_simple_fn(shape, || {
            let coeff = self.coeffs.draw(&mut rng, seq_len);
            let exact = matches!(self.coeffs, CoeffKind::One | CoeffKind::MinusOne);
            let phased = if exact { T::from_real(coeff) } else { phase(&mut rng, coeff) };
            if self.log_coeffs { phased.ln() } else { phased }
        });
        let mut draw_input = || match self.inputs {
            InputKind::Sparse if rng.random_range(0..16) != 0 => T::zero(),
            _ => {
                let magnitude = rng.random_range(-1.0..1.0);
                phase(&mut rng, magnitude)
            }
        };
        let inputs = Array2::from_shape_simple_fn(shape, &mut draw_input);
        let d_outputs = Array2::from_shape_simple_fn(shape, &mut draw_input);
        let initial =
            self.initial.then(|| Array1::from_shape_fn(num_seqs, |_| phase(&mut rng, 10.0)).into());

        if layout == Layout::SharedCoeffs {
            coeffs = coeffs.slice_move(s![..num_seqs.min(1), ..]);
        }
        Data {
            inputs: layout.apply(inputs),
            coeffs: layout.apply(coeffs),
            d_outputs: layout.apply(d_outputs),
            options: Options { direction: self.direction, initial, log_coeffs: self.log_coeffs },
        }
    }
}

/// Returns `magnitude`, turned by a random angle if elements are complex.
fn phase<T: Element>(rng: &mut StdRng, magnitude: f64) -> T {
    let angle = rng.random_range(0.0..std::f64::consts::TAU);
    T::from_polar(magnitude, angle)
}
