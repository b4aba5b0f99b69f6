//! The selective scan in double precision, step by step, with bounds for arithmetic of f32.
//!
//! All bounds are of first order, with `u` the unit round-off of f32; `judge` adds a thousandth for
//! the higher orders. An exponential of a given argument has an error of `4 u` (two units in the
//! last place), a reciprocal of `2 u`. A number below the smallest normal one may become zero,
//! which adds the smallest normal number wherever one of its factors is used.
//!
//! - The sum `x = delta + bias` is rounded once: `u |x|`.
//! - The softplus `max(x, 0) + s`, with `s = ln(1 + e)` and `e = exp(-|x|)`. The argument of `e` is
//!   rounded twice, by the constant `log2 e` and by the product. With the exponential's own error,
//!   `e` has a relative error of `4 u + 2 u |x|`, and `s` has no larger one, since
//!   `e / (1 + e) <= s`. The polynomial `s / e` is in `[ln 2, 1]`. Its error is 3.4e-8, which is
//!   `0.6 u`; its last multiply-add adds a relative `u`, and the one with the coefficient of `e^k`
//!   adds at most `u e^k / (k + 1)`, `1.9 u` in all for `k` from 1 to 8. Together this is less than
//!   `5 u` of `s`. The last multiply-add rounds `d`. An error of `x` counts with the slope,
//!   `sigmoid(x)`.
//! - The decay `c = exp(d A)`. Its argument is rounded three times: by the constant, by its product
//!   with `A`, and by the product with `d`. So the error of `c` is
//!   `c (4 u + 3 u |d A| + |A| bound(d))`.
//! - The input `(d u) B` is rounded twice.
//! - The state `c h + input` is one multiply-add:
//!   `bound(h) = c bound(h_before) + |h_before| bound(c) + bound(input) + u |h|`, the recurrence's
//!   bound with the errors of its coefficients and inputs in addition to its own operations. The
//!   state before a restart does not count.
//! - If a sequence is cut into chunks, each is first walked from states of zero (the first chunk
//!   from the initial ones). The states after a chunk follow from the states `h` before it and from
//!   its own states `g`: `P h + g` in one multiply-add, or `g` if it has a restart. Here
//!   `P = exp(A s)`, with `s` the sum of `d` over the chunk, rounded in at most 16 additions of a
//!   tile, one for each tile, and one for the two halves. From there on `P` is treated like the
//!   decay.
//! - The sum `y` of `C h` over the states, and `D u`. Each term is rounded in the multiply-adds of
//!   its lane (at most 4), in two additions across lanes, in one for each further pass over at most
//!   16 states, and in the addition of `D u`.
//! - The gate `z sigmoid(z)`. The exponential in `1 / (1 + exp(-z))` has a relative error of
//!   `4 u + 2 u |z|`, which counts with the factor `1 - sigmoid(z)`; the sum adds `u`, the
//!   reciprocal `2 u`, and the product with `z` adds `u`.

/// The unit round-off of f32.
const U: f64 = 1.0 / (1 << 24) as f64;
/// The relative errors of an exponential of a given argument, and of a reciprocal.
const EXP: f64 = 4.0 * U;
const RCP: f64 = 2.0 * U;
/// A smaller number may become zero.
const TINY: f64 = f32::MIN_POSITIVE as f64;

#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub batch: usize,
    pub channels: usize,
    pub groups: usize,
    pub states: usize,
    pub len: usize,
}

impl Sizes {
    /// The first element of a channel in an array with an axis of time.
    pub fn row(self, batch: usize, channel: usize) -> usize {
        (batch * self.channels + channel) * self.len
    }

    /// The first state of a channel.
    pub fn state(self, batch: usize, channel: usize) -> usize {
        (batch * self.channels + channel) * self.states
    }
}

/// `B` or `C`: `[batch, groups, states, len]`, or `[channels, states]` if constant.
#[derive(Debug, Clone)]
pub struct Coupling {
    pub values: Vec<f64>,
    pub varies: bool,
}

impl Coupling {
    pub fn index(&self, sizes: Sizes, [batch, channel, state, step]: [usize; 4]) -> usize {
        if !self.varies {
            return channel * sizes.states + state;
        }
        let group = channel / (sizes.channels / sizes.groups);
        ((batch * sizes.groups + group) * sizes.states + state) * sizes.len + step
    }
}

/// The inputs of a scan in the layout of the kernels, and the gradients of a loss with respect to
/// its outputs and last states.
#[derive(Debug, Clone)]
pub struct Problem {
    pub sizes: Sizes,
    pub u: Vec<f64>,
    pub delta: Vec<f64>,
    pub a: Vec<f64>,
    pub b: Coupling,
    pub c: Coupling,
    pub d: Option<Vec<f64>>,
    pub z: Option<Vec<f64>>,
    pub bias: Option<Vec<f64>>,
    pub softplus: bool,
    pub initial: Option<Vec<f64>>,
    pub restarts: Option<Vec<u8>>,
    /// The largest number of chunks; `None` leaves it to the library.
    pub chunks: Option<usize>,
    /// The steps at which the stretches of ranks begin, each of which is a chunk. A rank does not
    /// cut its stretch.
    pub cuts: Vec<usize>,
    pub d_out: Vec<f64>,
    pub d_last: Option<Vec<f64>>,
    /// The most roundings of a term of the sum over the states; `None` means those of the kernels.
    pub additions: Option<usize>,
}

/// A number, and the largest error of its computed value.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bounded {
    pub value: f64,
    pub bound: f64,
}

#[derive(Debug, Clone)]
pub struct Results {
    pub out: Vec<Bounded>,
    pub last: Vec<Bounded>,
    pub checkpoints: Vec<Bounded>,
}

/// The number of steps in a tile; chunks consist of tiles.
const TILE: usize = 32;

/// The state of a chunk while it is walked, in the direction of time or, for gradients, against it.
pub struct Chunk {
    first: bool,
    before: Vec<Bounded>,
    /// The states from zeros before the chunk; for the first chunk from the initial states.
    pub own: Vec<Bounded>,
    pub restarted: bool,
    steps: usize,
    /// The sum of the step sizes and its bound, and the sum of their absolute values.
    sum: Bounded,
    sum_of_sizes: f64,
}

impl Chunk {
    pub fn beginning(before: &[Bounded], own: &[Bounded], first: bool) -> Chunk {
        Chunk {
            first,
            before: before.to_vec(),
            own: own.to_vec(),
            restarted: false,
            steps: 0,
            sum: Bounded::default(),
            sum_of_sizes: 0.0,
        }
    }

    pub fn add(&mut self, size: Bounded) {
        self.steps += 1;
        self.sum.value += size.value;
        self.sum.bound += size.bound;
        self.sum_of_sizes += size.value.abs();
    }

    /// Returns the states behind the chunk, of these rates and values, as its own ones and those
    /// before it give them. The sum of sizes adds 16 in each half of a tile, tiles, and halves. If
    /// a rank cuts its stretch, sums of parts have no more additions than the sum of all tiles.
    pub fn end(&self, rates: &[f64], states: &[Bounded]) -> Vec<Bounded> {
        if self.first || self.restarted {
            return self.own.clone();
        }
        let roundings = (16 + self.steps.div_ceil(TILE) + 1) as f64;
        let sum = self.sum.bound + roundings * U * self.sum_of_sizes;
        let all = self.before.iter().zip(&self.own).zip(states).zip(rates);
        all.map(|(((before, own), now), a)| {
            let log = self.sum.value * a;
            let decay = log.exp();
            let of_decay = decay * (EXP + 3.0 * U * log.abs() + a.abs() * sum) + TINY;
            let bound = decay * before.bound + before.value.abs() * of_decay + own.bound;
            Bounded { value: now.value, bound: bound + U * now.value.abs() + TINY }
        })
        .collect()
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

impl Problem {
    fn size(&self, channel: usize, element: usize) -> Bounded {
        let bias = self.bias.as_ref().map_or(0.0, |bias| bias[channel]);
        let x = self.delta[element] + bias;
        let of_x = if self.bias.is_some() { U * x.abs() } else { 0.0 };
        if !self.softplus {
            return Bounded { value: x, bound: of_x };
        }
        let small = (-x.abs()).exp().ln_1p();
        let value = x.max(0.0) + small;
        let own = small * (EXP + 2.0 * U * x.abs() + 5.0 * U) + U * value + TINY;
        Bounded { value, bound: sigmoid(x) * of_x + own }
    }

    fn gate(z: f64) -> Bounded {
        let s = sigmoid(z);
        let own = (1.0 - s) * (EXP + 2.0 * U * z.abs()) + RCP + 2.0 * U;
        Bounded { value: z * s, bound: (z * s).abs() * own + TINY * (1.0 + z.abs()) }
    }

    pub fn results(&self) -> Results {
        let Sizes { batch: batches, channels, states, len, .. } = self.sizes;
        let (chunks, tiles) = (len.div_ceil(8), len.div_ceil(TILE));
        let chunk_steps = tiles.div_ceil(self.chunks.unwrap_or(1)).max(1) * TILE;
        let zeros = |count: usize| vec![Bounded::default(); count];
        let mut results = Results {
            out: zeros(batches * channels * len),
            last: zeros(batches * channels * states),
            checkpoints: zeros(batches * chunks * channels * states),
        };
        for row in 0..batches * channels {
            let (batch, channel) = (row / channels, row % channels);
            let mut h: Vec<Bounded> = (0..states)
                .map(|n| {
                    let initial = self.initial.as_ref().map_or(0.0, |all| all[row * states + n]);
                    Bounded { value: initial, bound: 0.0 }
                })
                .collect();
            let mut chunk = Chunk::beginning(&h, &h, true);
            for t in 0..len {
                if t > 0 && (t % chunk_steps == 0 || self.cuts.contains(&t)) {
                    h = chunk.end(&self.a[channel * states..(channel + 1) * states], &h);
                    chunk = Chunk::beginning(&h, &vec![Bounded::default(); states], false);
                }
                if t % 8 == 0 {
                    let to = ((batch * chunks + t / 8) * channels + channel) * states;
                    results.checkpoints[to..to + states].copy_from_slice(&h);
                }
                if self.restarts.as_ref().is_some_and(|all| all[batch * len + t] != 0) {
                    h.fill(Bounded::default());
                    chunk.own.fill(Bounded::default());
                    chunk.restarted = true;
                }
                results.out[row * len + t] = self.step([batch, channel, t], &mut h);
                if chunk_steps < len || !self.cuts.is_empty() {
                    self.step([batch, channel, t], &mut chunk.own);
                    chunk.add(self.size(channel, row * len + t));
                }
            }
            results.last[row * states..(row + 1) * states].copy_from_slice(&h);
        }
        results
    }

    /// Advances the states of a channel by one step, and returns the output.
    fn step(&self, [batch, channel, t]: [usize; 3], h: &mut [Bounded]) -> Bounded {
        let (states, element) = (self.sizes.states, self.sizes.row(batch, channel) + t);
        let (size, u) = (self.size(channel, element), self.u[element]);
        let by_d = self.d.as_ref().map_or(0.0, |d| d[channel] * u);
        let (mut value, mut bound, mut sum_of_sizes) = (by_d, 0.0, by_d.abs());
        for (n, h) in h.iter_mut().enumerate() {
            let a = self.a[channel * states + n];
            let [b, c] = [&self.b, &self.c]
                .map(|of| of.values[of.index(self.sizes, [batch, channel, n, t])]);
            let log = size.value * a;
            let decay = log.exp();
            let of_decay = decay * (EXP + 3.0 * U * log.abs() + a.abs() * size.bound) + TINY;
            let input = size.value * u * b;
            let of_input =
                (u * b).abs() * size.bound + 2.0 * U * input.abs() + TINY * (1.0 + b.abs());
            let now = decay * h.value + input;
            let of_now =
                decay * h.bound + h.value.abs() * of_decay + of_input + U * now.abs() + TINY;
            *h = Bounded { value: now, bound: of_now };
            value += c * now;
            bound += c.abs() * of_now;
            sum_of_sizes += (c * now).abs();
        }
        let roundings = self.additions.unwrap_or(4 + 2 + states.div_ceil(16) - 1 + 1);
        bound += roundings as f64 * (U * sum_of_sizes + TINY);
        let Some(z) = &self.z else {
            return Bounded { value, bound };
        };
        let gate = Problem::gate(z[element]);
        let out = value * gate.value;
        let own = U * out.abs() + TINY;
        Bounded { value: out, bound: gate.value.abs() * bound + value.abs() * gate.bound + own }
    }
}
