//! The selective scan and its gradients in double precision, step by step, with bounds for
//! arithmetic of f32.
//!
//! Each gradient follows from the chain rule, loop by loop. Every number carries a bound of its
//! error to first order: the errors of its operands, times its derivative with respect to them,
//! plus its own roundings. `mod.rs` compares these gradients with differences of the forward pass.

/// The unit round-off of f32.
const U: f64 = 1.0 / (1 << 24) as f64;
/// The relative errors of an exponential of a given argument, and of a reciprocal: two units and
/// one unit in the last place.
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
    pub fn row(self, batch: usize, channel: usize) -> usize {
        (batch * self.channels + channel) * self.len
    }

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
    pub fn index(
        &self,
        sizes: Sizes,
        batch: usize,
        channel: usize,
        state: usize,
        step: usize,
    ) -> usize {
        if !self.varies {
            return channel * sizes.states + state;
        }
        let group = channel / (sizes.channels / sizes.groups);
        ((batch * sizes.groups + group) * sizes.states + state) * sizes.len + step
    }
}

/// The inputs of the scan, and the gradients of a loss with respect to its outputs and last states.
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
    pub d_out: Vec<f64>,
    pub d_last: Option<Vec<f64>>,
}

/// Numbers, and the largest error of each.
#[derive(Debug, Clone, Default)]
pub struct Bounded {
    pub values: Vec<f64>,
    pub bounds: Vec<f64>,
}

impl Bounded {
    fn zeros(len: usize) -> Bounded {
        Bounded { values: vec![0.0; len], bounds: vec![0.0; len] }
    }

    fn add(&mut self, index: usize, number: Number) {
        self.values[index] += number.value;
        self.bounds[index] += number.bound;
    }
}

#[derive(Debug, Clone)]
pub struct Gradients {
    pub u: Bounded,
    pub delta: Bounded,
    pub z: Bounded,
    pub a: Bounded,
    pub b: Bounded,
    pub c: Bounded,
    pub d: Bounded,
    pub bias: Bounded,
    pub initial: Bounded,
}

/// A number and the bound of its error.
#[derive(Debug, Clone, Copy, Default)]
struct Number {
    value: f64,
    bound: f64,
}

impl Number {
    fn exact(value: f64) -> Number {
        Number { value, bound: 0.0 }
    }

    /// Adds a relative error.
    fn off(self, relative: f64) -> Number {
        Number { value: self.value, bound: self.bound + relative * self.value.abs() }
    }

    /// Multiplies without a rounding.
    fn times(self, other: Number) -> Number {
        let bound = self.value.abs() * other.bound + other.value.abs() * self.bound;
        Number { value: self.value * other.value, bound: bound + TINY }
    }

    /// Adds without a rounding.
    fn plus(self, other: Number) -> Number {
        Number { value: self.value + other.value, bound: self.bound + other.bound }
    }

    fn rounded(self) -> Number {
        self.off(U)
    }
}

/// A sum of products: each product may be rounded, and so may each addition.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    number: Number,
    size: f64,
}

impl Sum {
    fn add(&mut self, number: Number) {
        self.number = self.number.plus(number);
        self.size += number.value.abs();
    }

    fn after(self, roundings: usize) -> Number {
        Number {
            value: self.number.value,
            bound: self.number.bound + roundings as f64 * U * self.size,
        }
    }
}

fn logistic(x: f64) -> f64 {
    if x >= 0.0 { 1.0 / (1.0 + (-x).exp()) } else { x.exp() / (1.0 + x.exp()) }
}

/// A sigmoid, by an exponential whose argument is rounded twice.
fn sigmoid(x: Number) -> Number {
    let value = logistic(x.value);
    let slope = value * (1.0 - value);
    let own = value * (RCP + U) + slope * (EXP + 3.0 * U * x.value.abs());
    Number { value, bound: slope * x.bound + own + TINY }
}

/// Returns the size of a step, and its slope.
fn step_size(problem: &Problem, channel: usize, element: usize) -> (Number, Number) {
    let bias = problem.bias.as_ref().map_or(0.0, |bias| bias[channel]);
    let mut x = Number::exact(problem.delta[element] + bias);
    if problem.bias.is_some() {
        x = x.rounded();
    }
    if !problem.softplus {
        return (x, Number::exact(1.0));
    }
    let value = x.value.max(0.0) + (-x.value.abs()).exp().ln_1p();
    let small = (-x.value.abs()).exp().ln_1p();
    let slope = logistic(x.value);
    // For e^-|x|, its own error and the error of its argument. Then eight multiply-adds, whose
    // errors shrink with each product, and the polynomial's own 3.4e-8; one more rounding joins it
    // with x.
    let own = small * (EXP + 3.0 * U * x.value.abs() + 8.0 * U) + U * value;
    let size = Number { value, bound: slope * x.bound + own + TINY };
    (size, sigmoid(x).off(2.0 * U))
}

/// The inputs of one step of one channel, computed.
struct Step {
    size: Number,
    slope: Number,
    input: Number,
    d_y: Number,
    d_gate: Number,
}

fn step(problem: &Problem, batch: usize, channel: usize, t: usize) -> Step {
    let element = problem.sizes.row(batch, channel) + t;
    let (size, slope) = step_size(problem, channel, element);
    let input = size.times(Number::exact(problem.u[element])).rounded();
    let d_out = Number::exact(problem.d_out[element]);
    let Some(z) = &problem.z else {
        return Step { size, slope, input, d_y: d_out, d_gate: Number::default() };
    };
    let z = Number::exact(z[element]);
    let s = sigmoid(z);
    let d_y = d_out.times(z.times(s).rounded()).rounded();
    let rest = Number { value: 1.0 - s.value, bound: s.bound }.rounded();
    let inner = z.times(rest).plus(Number::exact(1.0)).rounded();
    let d_gate = d_out.times(s).rounded().times(inner).rounded();
    Step { size, slope, input, d_y, d_gate }
}

fn decay(rate: f64, size: Number) -> Number {
    let x = size.value * rate;
    let value = x.exp();
    Number { value, bound: value * (EXP + 3.0 * U * x.abs() + rate.abs() * size.bound) + TINY }
}

fn restarts(problem: &Problem, batch: usize, t: usize) -> bool {
    problem.restarts.as_ref().is_some_and(|restarts| restarts[batch * problem.sizes.len + t] != 0)
}

/// Returns the outputs, the last states, and the states before each eighth step.
pub fn forward(problem: &Problem) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let sizes = problem.sizes;
    let tiles = sizes.len.div_ceil(8);
    let mut out = vec![0.0; sizes.batch * sizes.channels * sizes.len];
    let mut last = vec![0.0; sizes.batch * sizes.channels * sizes.states];
    let mut checkpoints = vec![0.0; sizes.batch * tiles * sizes.channels * sizes.states];
    for batch in 0..sizes.batch {
        for channel in 0..sizes.channels {
            let states = sizes.state(batch, channel)..sizes.state(batch, channel) + sizes.states;
            let mut h = problem
                .initial
                .as_ref()
                .map_or(vec![0.0; sizes.states], |initial| initial[states.clone()].to_vec());
            for t in 0..sizes.len {
                if t % 8 == 0 {
                    let to = ((batch * tiles + t / 8) * sizes.channels + channel) * sizes.states;
                    checkpoints[to..to + sizes.states].copy_from_slice(&h);
                }
                let element = sizes.row(batch, channel) + t;
                let size = step_size(problem, channel, element).0.value;
                let u = problem.u[element];
                let mut y = problem.d.as_ref().map_or(0.0, |d| d[channel] * u);
                for (n, h) in h.iter_mut().enumerate() {
                    let before = if restarts(problem, batch, t) { 0.0 } else { *h };
                    let b = problem.b.values[problem.b.index(sizes, batch, channel, n, t)];
                    let c = problem.c.values[problem.c.index(sizes, batch, channel, n, t)];
                    *h = (size * problem.a[channel * sizes.states + n]).exp() * before
                        + size * u * b;
                    y += c * *h;
                }
                out[element] =
                    problem.z.as_ref().map_or(y, |z| y * z[element] * logistic(z[element]));
            }
            last[states].copy_from_slice(&h);
        }
    }
    (out, last, checkpoints)
}

/// The length from which sequences may be cut into chunks.
const CUT_FROM: usize = 512;

pub fn gradients(problem: &Problem) -> Gradients {
    let sizes = problem.sizes;
    let Sizes { batch: batches, channels, states, len, .. } = sizes;
    let per_group = channels / sizes.groups;
    let mut all = Gradients {
        u: Bounded::zeros(problem.u.len()),
        delta: Bounded::zeros(problem.u.len()),
        z: Bounded::zeros(problem.u.len()),
        a: Bounded::zeros(problem.a.len()),
        b: Bounded::zeros(problem.b.values.len()),
        c: Bounded::zeros(problem.c.values.len()),
        d: Bounded::zeros(channels),
        bias: Bounded::zeros(channels),
        initial: Bounded::zeros(batches * channels * states),
    };
    let [mut a, mut b, mut c] = [problem.a.len(), problem.b.values.len(), problem.c.values.len()]
        .map(|len| vec![Sum::default(); len]);
    let (mut skip, mut shift) = (vec![Sum::default(); channels], vec![Sum::default(); channels]);
    for batch in 0..batches {
        for channel in 0..channels {
            let first = sizes.state(batch, channel);
            let row = sizes.row(batch, channel);
            let steps: Vec<Step> = (0..len).map(|t| step(problem, batch, channel, t)).collect();
            let at = |coupling: &Coupling, n, t| coupling.index(sizes, batch, channel, n, t);
            let skip_weight = problem.d.as_ref().map_or(0.0, |d| d[channel]);
            let mut y = vec![Sum::default(); len];
            let (mut by_input, mut by_decay) = (y.clone(), y.clone());
            for n in 0..states {
                let rate = problem.a[channel * states + n];
                // The state before each step, and after the last one.
                let mut h = vec![Number::exact(
                    problem.initial.as_ref().map_or(0.0, |initial| initial[first + n]),
                )];
                for t in 0..len {
                    let before = if restarts(problem, batch, t) { Number::default() } else { h[t] };
                    h[t] = before;
                    let input = steps[t]
                        .input
                        .times(Number::exact(problem.b.values[at(&problem.b, n, t)]))
                        .rounded();
                    let now = decay(rate, steps[t].size).times(before).plus(input).rounded();
                    let read = Number::exact(problem.c.values[at(&problem.c, n, t)]);
                    y[t].add(read.times(now));
                    c[at(&problem.c, n, t)].add(steps[t].d_y.times(now));
                    h.push(now);
                }
                let mut carry =
                    Number::exact(problem.d_last.as_ref().map_or(0.0, |d_last| d_last[first + n]));
                // The effect of a chunk on the gradients of later chunks is one exponential of a
                // sum of sizes: of tiles of 8, then of all tiles. It adds the roundings of that sum
                // to the exponentials of the steps.
                let of_chunk = if len < CUT_FROM { 0.0 } else { (len / 8 + 8) as f64 * U };
                for t in (0..len).rev() {
                    let write = Number::exact(problem.b.values[at(&problem.b, n, t)]);
                    let read = Number::exact(problem.c.values[at(&problem.c, n, t)]);
                    let d_h = read.times(steps[t].d_y).plus(carry).rounded();
                    by_input[t].add(d_h.times(write));
                    b[at(&problem.b, n, t)].add(d_h.times(steps[t].input));
                    carry = decay(rate, steps[t].size).times(d_h).rounded();
                    if restarts(problem, batch, t) {
                        carry = Number::default();
                    }
                    let d_log = carry.times(h[t]).rounded();
                    by_decay[t].add(Number::exact(rate).times(d_log));
                    a[channel * states + n].add(steps[t].size.times(d_log));
                    carry = carry.off(of_chunk * (rate * steps[t].size.value).abs());
                }
                all.initial.add(first + n, carry);
            }
            for (t, step) in steps.iter().enumerate() {
                let u = Number::exact(problem.u[row + t]);
                let across = states + 4;
                let (y, by_input) = (y[t].after(across), by_input[t].after(across));
                let by_decay = by_decay[t].after(across + 3);
                let skip_weight = Number::exact(skip_weight);
                let y = y.plus(skip_weight.times(u)).rounded();
                all.z.add(row + t, step.d_gate.times(y).rounded());
                let d_u =
                    step.size.times(by_input).plus(skip_weight.times(step.d_y).rounded()).rounded();
                all.u.add(row + t, d_u);
                let d_size = u.times(by_input).plus(by_decay).rounded();
                let d_delta = d_size.times(step.slope).rounded();
                all.delta.add(row + t, d_delta);
                shift[channel].add(d_delta);
                skip[channel].add(step.d_y.times(u));
            }
        }
    }
    // The number of additions on a term's way: over the steps, and over sequences and chunks.
    let through = |steps: usize| steps + batches * (1 + len / 256) + 12;
    let vary = |coupling: &Coupling| if coupling.varies { per_group + 3 } else { through(len) };
    let finish = |to: &mut Bounded, from: &[Sum], roundings: usize| {
        for (index, sum) in from.iter().enumerate() {
            to.add(index, sum.after(roundings));
        }
    };
    finish(&mut all.a, &a, through(len));
    finish(&mut all.b, &b, vary(&problem.b));
    finish(&mut all.c, &c, vary(&problem.c));
    finish(&mut all.d, &skip, through(len));
    finish(&mut all.bias, &shift, through(len));
    all
}
