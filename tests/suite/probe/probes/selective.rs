//! The kernels around a selective scan's recurrence, against formulas in double precision.

use linrec::device::{Buffer, Device, Function, Launch, Storage};
use linrec::{Element, Error};

use super::Ran;
use super::numbers::numbers;

const BATCH: usize = 2;
const CHANNELS: usize = 6;
const GROUPS: usize = 3;
const STATES: usize = 3;
const LEN: usize = 300;
const OWN: usize = BATCH * CHANNELS * LEN;
const EXPANDED: usize = OWN * STATES;
const SHARED: usize = BATCH * GROUPS * STATES * LEN;

/// An expected number, and the sum of its terms' absolute values.
type Expected = (f64, f64);

/// An input of the kernels, on the device and on the host.
struct Array<T> {
    buffer: Buffer<T>,
    values: Vec<f64>,
}

impl<T: Element<Wide = f64> + Storage> Array<T> {
    fn new(device: &Device, seed: u64, len: usize) -> Result<Self, Error> {
        let values = numbers::<T>(seed, len, -1.0, 1.0);
        let buffer = device.upload(&values)?;
        Ok(Array { buffer, values: values.into_iter().map(Element::widen).collect() })
    }
}

fn own(row: usize, l: usize) -> usize {
    row * LEN + l
}

fn expanded(row: usize, n: usize, l: usize) -> usize {
    (row * STATES + n) * LEN + l
}

/// Returns the index of a channel's element in its group's `B` and `C`.
fn shared(row: usize, n: usize, l: usize) -> usize {
    let (sequence, channel) = (row / CHANNELS, row % CHANNELS);
    ((sequence * GROUPS + channel / (CHANNELS / GROUPS)) * STATES + n) * LEN + l
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Adds terms, and their absolute values.
fn sum(terms: impl Iterator<Item = f64>) -> Expected {
    terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()))
}

/// Computes a value for every position of every channel.
fn of_own(value: impl Fn(usize, usize) -> Expected) -> Vec<Expected> {
    (0..OWN).map(|i| value(i / LEN, i % LEN)).collect()
}

/// Computes a value for every position of every state.
fn of_states(value: impl Fn(usize, usize, usize) -> Expected) -> Vec<Expected> {
    (0..EXPANDED).map(|i| value(i / LEN / STATES, i / LEN % STATES, i % LEN)).collect()
}

/// Launches the kernel with this name once.
pub fn run<T: Element<Wide = f64> + Storage>(kernel: &Function, base: &str) -> Result<Ran, Error> {
    let device = kernel.device();
    let array = |seed, len| Array::<T>::new(device, seed, len);
    let [u, given, z, d_sum] = [array(1, OWN)?, array(3, OWN)?, array(5, OWN)?, array(7, OWN)?];
    let [bias, skip, a] =
        [array(9, CHANNELS)?, array(11, CHANNELS)?, array(13, CHANNELS * STATES)?];
    let [mixing, d_last] = [array(15, SHARED)?, array(17, BATCH * CHANNELS * STATES)?];
    let [x, y, w] = [array(19, EXPANDED)?, array(21, EXPANDED)?, array(23, EXPANDED)?];

    let before = |row: usize, l: usize| given.values[own(row, l)] + bias.values[row % CHANNELS];
    let step = |row: usize, l: usize| before(row, l).exp().ln_1p();
    let rate = |row: usize, n: usize| a.values[row % CHANNELS * STATES + n];
    let read = |row: usize, l: usize| {
        let states =
            (0..STATES).map(|n| mixing.values[shared(row, n, l)] * x.values[expanded(row, n, l)]);
        sum(states.chain([skip.values[row % CHANNELS] * u.values[own(row, l)]]))
    };
    let gate = |row: usize, l: usize| z.values[own(row, l)] * sigmoid(z.values[own(row, l)]);
    let times = |(value, size): Expected, factor: f64| (value * factor, size * factor.abs());
    let one = |value: f64| (value, value.abs());

    let along = ((BATCH * CHANNELS) as u32, 2);
    let launch = kernel.launch(along, 128);
    let (launch, expected) = match base {
        "expand_fwd" => {
            let coeff = |row, n, l| {
                let exponent: f64 = step(row, l) * rate(row, n);
                (exponent.exp(), exponent.exp() * (1.0 + exponent.abs()))
            };
            let input = |row, n, l| {
                one(step(row, l) * u.values[own(row, l)] * mixing.values[shared(row, n, l)])
            };
            let launch = launch.arg(&u.buffer).arg(&given.buffer).arg(&bias.buffer).arg(&a.buffer);
            (launch.arg(&mixing.buffer), vec![of_states(input), of_states(coeff)])
        }
        "expand_bwd" => {
            let scaled = |row, l| {
                sum((0..STATES)
                    .map(|n| mixing.values[shared(row, n, l)] * x.values[expanded(row, n, l)]))
            };
            let d_u = |row, l| {
                let past = skip.values[row % CHANNELS] * d_sum.values[own(row, l)];
                let (value, size) = times(scaled(row, l), step(row, l));
                (value + past, size + past.abs())
            };
            let d_delta = |row, l| {
                let exponents = sum((0..STATES).map(|n| {
                    let i = expanded(row, n, l);
                    rate(row, n) * y.values[i] * w.values[i]
                }));
                let (value, size) = times(scaled(row, l), u.values[own(row, l)]);
                times((value + exponents.0, size + exponents.1), sigmoid(before(row, l)))
            };
            let expected = vec![
                of_own(d_u),
                of_own(d_delta),
                of_own(|row, l| one(step(row, l) * u.values[own(row, l)])),
                of_own(|row, l| one(step(row, l))),
            ];
            let launch = [&x, &y, &w, &d_sum, &u, &given, &bias, &a, &mixing, &skip]
                .into_iter()
                .fold(launch, |launch, array| launch.arg(&array.buffer));
            (launch, expected)
        }
        "contract_fwd" => {
            let launch = launch.arg(&x.buffer).arg(&mixing.buffer).arg(&u.buffer);
            let launch = launch.arg(&skip.buffer).arg(&z.buffer);
            (launch, vec![of_own(|row, l| times(read(row, l), gate(row, l)))])
        }
        "contract_bwd" => {
            let d_read = |row: usize, l: usize| d_sum.values[own(row, l)] * gate(row, l);
            let d_state = |row: usize, n: usize, l: usize| {
                let last = if l == LEN - 1 { d_last.values[row * STATES + n] } else { 0.0 };
                sum([d_read(row, l) * mixing.values[shared(row, n, l)], last].into_iter())
            };
            let d_z = |row: usize, l: usize| {
                let z = z.values[own(row, l)];
                let slope = sigmoid(z) * (1.0 + z * (1.0 - sigmoid(z)));
                times(read(row, l), d_sum.values[own(row, l)] * slope)
            };
            let launch = [&d_sum, &d_last, &x, &mixing, &u, &skip, &z]
                .into_iter()
                .fold(launch, |launch, array| launch.arg(&array.buffer));
            let d_read = of_own(|row, l| one(d_read(row, l)));
            (launch, vec![of_states(d_state), d_read, of_own(d_z)])
        }
        "sum_over_channels" => {
            let launch = kernel.launch(((BATCH * GROUPS * STATES) as u32, 3), 32 * 16);
            let size = CHANNELS / GROUPS;
            let sums = (0..SHARED).map(|i| {
                let (group, n, l) = (i / LEN / STATES, i / LEN % STATES, i % LEN);
                let rows = group * size..(group + 1) * size;
                sum(rows.map(|row| u.values[own(row, l)] * x.values[expanded(row, n, l)]))
            });
            (launch.arg(&u.buffer).arg(&x.buffer), vec![sums.collect()])
        }
        _ => {
            let launch = kernel.launch((CHANNELS * STATES) as u32, 256);
            let sums = (0..CHANNELS * STATES).map(|i| {
                let rows = (0..BATCH).map(|sequence| sequence * CHANNELS + i / STATES);
                let all = rows.flat_map(|row| (0..LEN).map(move |l| (row, l)));
                sum(all.map(|(row, l)| {
                    let place = expanded(row, i % STATES, l);
                    u.values[own(row, l)] * x.values[place] * y.values[place]
                }))
            });
            (launch.arg(&u.buffer).arg(&x.buffer).arg(&y.buffer), vec![sums.collect()])
        }
    };

    let mut results = Vec::new();
    for expected in &expected {
        let mut result = device.allocate_named::<T>("result", expected.len())?;
        result.poison()?;
        results.push(result);
    }
    let launch = results.iter_mut().fold(launch, |launch, result| launch.arg(result));
    let numbers = |launch: Launch, numbers: &[usize]| {
        let launch = numbers.iter().fold(launch, |launch, &number| launch.arg(number as i64));
        match base {
            "expand_fwd" | "expand_bwd" => launch.arg(1_i32).arg(0_i32).run(&device.stream()),
            "contract_fwd" | "contract_bwd" => launch.arg(0_i32).run(&device.stream()),
            _ => launch.run(&device.stream()),
        }
    };
    let launched = match base {
        "sum_over_positions" => numbers(launch, &[BATCH, CHANNELS, CHANNELS * STATES, LEN])?,
        _ => numbers(launch, &[CHANNELS, GROUPS, STATES, LEN])?,
    };
    device.synchronize()?;

    let mut verdict = Ok(());
    for (number, (result, expected)) in results.iter().zip(&expected).enumerate() {
        for (i, (got, (value, size))) in result.download()?.into_iter().zip(expected).enumerate() {
            // As many roundings as the longest sum has terms, which is far more than needed.
            let roundings = (BATCH * LEN) as f64;
            let error = (Element::widen(got) - value).abs();
            // In this form, NaN fails.
            let within = error <= roundings * T::UNIT_ROUNDOFF * size;
            if !within && verdict.is_ok() {
                verdict =
                    Err(format!("element {i} of result {number} is {got} instead of {value}"));
            }
        }
    }
    Ok(Ran { counters: launched.counters().cloned(), verdict })
}
