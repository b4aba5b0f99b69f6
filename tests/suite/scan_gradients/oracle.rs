//! The selective scan and its gradients in double precision, step by step, with bounds for
//! arithmetic of f32.
//!
//! Each gradient follows from the chain rule, loop by loop. Every number carries a bound of its
//! error to first order: the errors of its operands, times its derivative with respect to them,
//! plus its own roundings. `mod.rs` compares these gradients with differences of the forward pass.

use super::reference::{Bounded, Chunk, Coupling, Problem, Sizes};

/// The unit round-off of f32.
const U: f64 = 1.0 / (1 << 24) as f64;
/// The relative errors of an exponential of a given argument, and of a reciprocal: two units and
/// one unit in the last place.
const EXP: f64 = 4.0 * U;
const RCP: f64 = 2.0 * U;
/// A smaller number may become zero.
const TINY: f64 = f32::MIN_POSITIVE as f64;

#[derive(Debug, Clone)]
pub struct Gradients {
    pub u: Vec<Bounded>,
    pub delta: Vec<Bounded>,
    pub z: Vec<Bounded>,
    pub a: Vec<Bounded>,
    pub b: Vec<Bounded>,
    pub c: Vec<Bounded>,
    pub d: Vec<Bounded>,
    pub bias: Vec<Bounded>,
    pub initial: Vec<Bounded>,
}

/// A number and the bound of its error.
type Number = Bounded;

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

fn add(to: &mut [Bounded], index: usize, number: Number) {
    to[index] = to[index].plus(number);
}

/// The length from which sequences may be cut into chunks.
const CUT_FROM: usize = 512;

pub fn gradients(problem: &Problem) -> Gradients {
    let zeros = |len: usize| vec![Bounded::default(); len];
    let sizes = problem.sizes;
    let Sizes { batch: batches, channels, states, len, .. } = sizes;
    let per_group = channels / sizes.groups;
    let mut all = Gradients {
        u: zeros(problem.u.len()),
        delta: zeros(problem.u.len()),
        z: zeros(problem.u.len()),
        a: zeros(problem.a.len()),
        b: zeros(problem.b.values.len()),
        c: zeros(problem.c.values.len()),
        d: zeros(channels),
        bias: zeros(channels),
        initial: zeros(batches * channels * states),
    };
    let [mut a, mut b, mut c] = [problem.a.len(), problem.b.values.len(), problem.c.values.len()]
        .map(|len| vec![Sum::default(); len]);
    let (mut skip, mut shift) = (vec![Sum::default(); channels], vec![Sum::default(); channels]);
    for batch in 0..batches {
        for channel in 0..channels {
            let first = sizes.state(batch, channel);
            let row = sizes.row(batch, channel);
            let steps: Vec<Step> = (0..len).map(|t| step(problem, batch, channel, t)).collect();
            let at = |coupling: &Coupling, n, t| coupling.index(sizes, [batch, channel, n, t]);
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
                // A rank's stretch passes on what it has from zero, and its decays times what
                // arrives.
                let mut stretch = Chunk::beginning(&[carry], &[carry], true);
                for t in (0..len).rev() {
                    let write = Number::exact(problem.b.values[at(&problem.b, n, t)]);
                    let read = Number::exact(problem.c.values[at(&problem.c, n, t)]);
                    let d_h = read.times(steps[t].d_y).plus(carry).rounded();
                    by_input[t].add(d_h.times(write));
                    b[at(&problem.b, n, t)].add(d_h.times(steps[t].input));
                    let passed = |d_h: Number| match restarts(problem, batch, t) {
                        true => Number::default(),
                        false => decay(rate, steps[t].size).times(d_h).rounded(),
                    };
                    carry = passed(d_h);
                    let d_log = carry.times(h[t]).rounded();
                    by_decay[t].add(Number::exact(rate).times(d_log));
                    a[channel * states + n].add(steps[t].size.times(d_log));
                    let of_chunk = of_chunk * (rate * steps[t].size.value).abs();
                    carry = carry.off(of_chunk);
                    if problem.cuts.is_empty() {
                        continue;
                    }
                    let d_h = read.times(steps[t].d_y).plus(stretch.own[0]).rounded();
                    stretch.own[0] = passed(d_h).off(of_chunk);
                    stretch.restarted |= restarts(problem, batch, t);
                    stretch.add(steps[t].size);
                    if problem.cuts.contains(&t) {
                        carry = stretch.end(&[rate], &[carry])[0];
                        stretch = Chunk::beginning(&[carry], &[Number::default()], false);
                    }
                }
                add(&mut all.initial, first + n, carry);
            }
            for (t, step) in steps.iter().enumerate() {
                let u = Number::exact(problem.u[row + t]);
                let across = states + 4;
                let (y, by_input) = (y[t].after(across), by_input[t].after(across));
                let by_decay = by_decay[t].after(across + 3);
                let skip_weight = Number::exact(skip_weight);
                let y = y.plus(skip_weight.times(u)).rounded();
                add(&mut all.z, row + t, step.d_gate.times(y).rounded());
                let d_u =
                    step.size.times(by_input).plus(skip_weight.times(step.d_y).rounded()).rounded();
                add(&mut all.u, row + t, d_u);
                let d_size = u.times(by_input).plus(by_decay).rounded();
                let d_delta = d_size.times(step.slope).rounded();
                add(&mut all.delta, row + t, d_delta);
                shift[channel].add(d_delta);
                skip[channel].add(step.d_y.times(u));
            }
        }
    }
    // The number of additions on a term's way: over the steps, and over sequences and chunks.
    let through = |steps: usize| steps + batches * (1 + len / 256) + 12;
    let vary = |coupling: &Coupling| if coupling.varies { per_group + 3 } else { through(len) };
    let finish = |to: &mut [Bounded], from: &[Sum], roundings: usize| {
        for (index, sum) in from.iter().enumerate() {
            add(to, index, sum.after(roundings));
        }
    };
    finish(&mut all.a, &a, through(len));
    finish(&mut all.b, &b, vary(&problem.b));
    finish(&mut all.c, &c, vary(&problem.c));
    finish(&mut all.d, &skip, through(len));
    finish(&mut all.bias, &shift, through(len));
    all
}
