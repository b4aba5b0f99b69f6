//! `tour bench --group`: measures the recurrence over several GPUs of a host against one of them.
//!
//! Each case is measured on one device, and on the first 2, 4, 8 … devices in several
//! ways: with rows divided among the devices, or cut along their length. All devices
//! begin a run at the same tick of the host's clock, and the slowest one counts. The efficiency is
//! the speed-up divided by the number of devices. The test at the end of this file runs every case
//! over emulated devices, whose times mean nothing.

use std::fmt;
use std::hint;
use std::time::{SystemTime, UNIX_EPOCH};

use lesson::Table;
use lesson::output::println;
use linrec::Error;
use linrec::device::{Buffer, Device, Group, GroupRecurrence, Rank, Split, Way};
use linrec::kernels::{ElementType, Pass};

use crate::median;
use crate::row::{Baseline, Measured, Row};

/// The shape of the sequences and the range of the coefficients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case {
    /// The number of sequences.
    pub num_seqs: usize,
    /// The length of each sequence.
    pub seq_len: usize,
    /// The smallest and the largest coefficient.
    pub coeffs: (f32, f32),
}

/// The measured cases: many rows, few rows, and one row, with coefficients that fade and
/// coefficients that do not. Each case takes 17 to 22 GB on one GPU.
pub const CASES: [Case; 7] = [
    Case { num_seqs: 13_200, seq_len: 65_536, coeffs: (0.0, 1.0) },
    Case { num_seqs: 13_200, seq_len: 65_536, coeffs: (0.98, 1.0) },
    Case { num_seqs: 264, seq_len: 1 << 22, coeffs: (0.98, 1.0) },
    Case { num_seqs: 64, seq_len: 1 << 24, coeffs: (0.98, 1.0) },
    Case { num_seqs: 16, seq_len: 1 << 26, coeffs: (0.98, 1.0) },
    Case { num_seqs: 1, seq_len: 1 << 30, coeffs: (0.0, 1.0) },
    Case { num_seqs: 1, seq_len: 1 << 30, coeffs: (1.0, 1.0) },
];

/// Returns the groups to measure. A process that was started as one of several gets its own device
/// and the group of all processes. Otherwise the groups are one GPU of this machine and the first
/// 2, 4, 8 … GPUs.
///
/// # Errors
///
/// Returns an error if there are fewer than two devices, if there is no NCCL, or if the other
/// processes do not connect.
pub fn groups() -> lesson::Result<Vec<Group>> {
    if Group::is_started() {
        let all = Group::from_environment()?;
        if all.size() > 1 {
            return Ok(vec![Group::through_host(all.devices())?, all]);
        }
    }
    of_devices(&Device::gpus())
}

fn of_devices(devices: &[Device]) -> lesson::Result<Vec<Group>> {
    let count = devices.len();
    if count < 2 {
        return Err(format!("a group needs at least two GPUs; this machine has {count}").into());
    }
    let sizes = (0..).map(|power| 1_usize << power).take_while(|&size| size <= count);
    Ok(sizes.map(|size| Group::from_devices(&devices[..size])).collect::<Result<_, _>>()?)
}

/// Measures every case on each group, prints efficiencies, and returns every run. The first group
/// must be a single device. A row's ratio is the median time on that device divided by the row's
/// own time, so it equals the number of devices if nothing is lost. Among several processes, only
/// the process of rank 0 prints and returns rows.
///
/// A run is timed on each device from a common start to the end of its work, and the slowest device
/// counts. The time includes messages between ranks through the host. Each way is measured twice:
/// with one call in a run, and with [`IN_A_ROW`] calls one after the other as in a training loop,
/// where the host prepares a call while the devices compute the one before. The time is per call.
///
/// # Errors
///
/// Returns an error if a device fails or does not have enough memory.
pub fn run(groups: &[Group], cases: &[Case], runs: usize) -> lesson::Result<Vec<Row>> {
    let Some(largest) = groups.last() else { return Ok(Vec::new()) };
    let (size, name) = (largest.size(), largest.devices()[0].name().to_owned());
    let is_spread = largest.devices().len() < size;
    let (machine, many) = (format!("{size} x {name}"), if is_spread { " processes" } else { "" });
    let mut rows = Vec::new();
    for (case, pass) in cases.iter().flat_map(|&case| Pass::ALL.map(|pass| (case, pass))) {
        let Case { num_seqs, seq_len, coeffs: (low, high) } = case;
        // For single calls, and for calls in a row.
        let (mut engines, mut times) = ([vec![], vec![]], [vec![], vec![]]);
        let mut table = Table::new(["GPUs and way", "ms", "efficiency", "in a row", "efficiency"]);
        for group in groups {
            let ways = ways((num_seqs, seq_len), group.size());
            // In a group of processes, this process has one rank.
            let timed =
                group.run(|rank| Ok((rank.number(), timed(rank, case, pass, &ways, runs)?)))?;
            let Some((_, timed)) = timed.into_iter().find(|(number, _)| *number == 0) else {
                continue;
            };
            for (how, runs) in ways.into_iter().zip(timed) {
                let engine = match group.size() {
                    1 => String::from("1"),
                    size => format!("{size}{many} x {how}"),
                };
                let Some(runs) = runs else {
                    let missing = String::from("not possible here");
                    table.row([engine, missing, String::new(), String::new(), String::new()]);
                    continue;
                };
                let mut cells = vec![engine.clone()];
                for (kind, runs) in runs.into_iter().enumerate() {
                    let ms = median(runs.iter().copied());
                    let alone = median(times[kind].first().unwrap_or(&runs).iter().copied());
                    let efficiency = alone / ms / group.size() as f64;
                    cells.extend([format!("{ms:.3}"), format!("{efficiency:.3}")]);
                    let in_a_row = ["", ", in a row"][kind];
                    engines[kind].push(format!("{engine}{in_a_row}; coefficients {low} to {high}"));
                    times[kind].push(runs);
                }
                table.row(cells);
            }
        }
        // The process of another rank has measured its device alone, and no more.
        if engines[0].len() > 1 {
            println!(
                "\n{num_seqs} x {seq_len}, coefficients {low} to {high}, {pass}:\n\n{}",
                table.to_text()
            );
            let (machine, shape) = (machine.as_str(), (num_seqs, seq_len));
            let measured = Measured { machine, element: ElementType::F32, pass, shape };
            for (engines, times) in engines.iter().zip(&times) {
                rows.extend(measured.rows(engines, times, Baseline::Median));
            }
        }
    }
    Ok(rows)
}

/// A use of a group: the split of the sequences, the way, and the number of pieces unless the
/// library chooses it.
#[derive(Debug, Clone, Copy)]
struct How {
    split: Split,
    way: Way,
    pieces: Option<usize>,
}

impl From<Way> for How {
    fn from(way: Way) -> How {
        How { split: Split::Steps, way, pieces: None }
    }
}

/// Writes `rows`, `mailboxes`, `passes in 2048 pieces`.
impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            How { split: Split::Rows, .. } => write!(f, "rows"),
            How { way, pieces: Some(pieces), .. } => write!(f, "{way} in {pieces} pieces"),
            How { way, .. } => write!(f, "{way}"),
        }
    }
}

impl How {
    fn recurrence(self, rank: &Rank) -> GroupRecurrence<'_, f32> {
        let recurrence = GroupRecurrence::new(rank, self.split).with_way(self.way);
        match self.pieces {
            Some(pieces) => recurrence.with_pieces(pieces),
            None => recurrence,
        }
    }
}

/// Numbers of pieces of a single long row, smaller than the library's own choice.
const PIECES: [usize; 2] = [1 << 11, 1 << 14];

/// Returns the ways to measure over `size` devices. On one device there is one way.
fn ways((num_seqs, seq_len): (usize, usize), size: usize) -> Vec<How> {
    let mut ways = Vec::new();
    if size == 1 || num_seqs >= size {
        ways.push(How { split: Split::Rows, ..Way::Passes.into() });
    }
    if size > 1 {
        ways.extend([Way::Passes, Way::TailFirst, Way::TailByMail].map(How::from));
        // Nothing hides the waiting of a single row.
        ways.extend((num_seqs > 1).then_some(How::from(Way::Mailboxes)));
        let long = |pieces: &usize| {
            num_seqs == 1 && seq_len >> 16 >= *pieces && pieces.is_multiple_of(size)
        };
        let in_pieces = |pieces| How { pieces: Some(pieces), ..Way::Passes.into() };
        ways.extend(PIECES.into_iter().filter(long).map(in_pieces));
    }
    ways
}

/// The number of calls that follow each other in a run of the second kind.
pub const IN_A_ROW: usize = 8;

/// The milliseconds per call of each run: of single calls, and of [`IN_A_ROW`] calls in a row.
type Times = [Vec<f64>; 2];

/// Measures the times of each way, on the slowest rank. A way that these ranks do not support gives
/// `None`.
fn timed(
    rank: &Rank,
    case: Case,
    pass: Pass,
    ways: &[How],
    runs: usize,
) -> Result<Vec<Option<Times>>, Error> {
    let shape = (case.num_seqs, case.seq_len);
    let recurrences: Vec<_> = ways.iter().map(|how| how.recurrence(rank)).collect();
    let lens = recurrences.iter().map(|recurrence| Ok(recurrence.part(shape)?.len()));
    let lens = lens.collect::<Result<Vec<_>, Error>>()?;
    let most = lens.iter().copied().max().unwrap_or(0);
    let (low, high) = case.coeffs;
    let (inputs, coeffs) = (filled(rank, most, -1.0, 1.0)?, filled(rank, most, low, high)?);
    let array = |needed: bool| rank.device().zeros::<f32>(if needed { most } else { 0 });
    let is_backward = pass == Pass::Backward;
    let (outputs, d_inputs, d_coeffs) = (array(true)?, array(is_backward)?, array(is_backward)?);
    let (stream, start, end) =
        (rank.device().stream(), rank.device().event()?, rank.device().event()?);
    let mut all = Vec::with_capacity(ways.len());
    for (recurrence, &len) in recurrences.iter().zip(&lens) {
        let (inputs, coeffs) = (inputs.slice(..len)?, coeffs.slice(..len)?);
        let once = |calls: usize| -> Result<f64, Error> {
            let mut outputs = outputs.slice(..len)?;
            rank.device().synchronize()?;
            rank.barrier()?;
            await_tick();
            start.record(&stream)?;
            for _ in 0..calls {
                if is_backward {
                    let (mut d_inputs, mut d_coeffs) =
                        (d_inputs.slice(..len)?, d_coeffs.slice(..len)?);
                    recurrence.backward_into(
                        &inputs,
                        &coeffs,
                        &outputs,
                        &mut d_inputs,
                        &mut d_coeffs,
                        shape,
                        Default::default(),
                    )?;
                } else {
                    let options = Default::default();
                    recurrence.forward_into(&inputs, &coeffs, &mut outputs, shape, options)?;
                }
            }
            end.record(&stream)?;
            Ok(start.elapsed_ms(&end)? / calls as f64)
        };
        // The first run loads the kernels.
        match once(1) {
            Ok(_) => {}
            Err(Error::Unsupported { .. }) => {
                all.push(None);
                continue;
            }
            Err(error) => return Err(error),
        }
        let measure = |calls: usize| -> Result<Vec<f64>, Error> {
            let mine = (0..runs).map(|_| once(calls)).collect::<Result<Vec<_>, _>>()?;
            let mut everyone = rank.device().zeros(runs * rank.size())?;
            rank.all_gather(&rank.device().upload(&mine)?, &mut everyone)?;
            let everyone = everyone.download()?;
            let slowest =
                |run: usize| everyone.iter().skip(run).step_by(runs).copied().fold(0.0, f64::max);
            Ok((0..runs).map(slowest).collect())
        };
        all.push(Some([measure(1)?, measure(IN_A_ROW)?]));
    }
    Ok(all)
}

/// Waits until the host's clock reaches the next whole multiple of 8 ms. All ranks call this just
/// after a barrier. They then begin together, although a barrier ends for one rank later than for
/// another. If the barrier ends so close to a multiple that some ranks miss it, the run is slow.
fn await_tick() {
    const TICK: u128 = 8_000_000;
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let next = now() / TICK + 1;
    while now() / TICK < next {
        hint::spin_loop();
    }
}

fn filled(rank: &Rank, len: usize, low: f32, high: f32) -> Result<Buffer<f32>, linrec::Error> {
    /// Odd, so that rows of a power of two differ.
    const REPEATED: usize = (1 << 22) - 1;
    let place = |index: usize| ((index * 7919 + rank.number() * 31) % 99_991) as f32 / 99_991.0;
    let numbers: Vec<f32> =
        (0..len.min(REPEATED)).map(|index| low + (high - low) * place(index)).collect();
    let array = rank.device().allocate(len)?;
    let mut begin = 0;
    while begin < len {
        let end = len.min(begin + REPEATED);
        array.slice(begin..end)?.upload(&numbers[..end - begin])?;
        begin = end;
    }
    Ok(array)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_measured_over_every_number_of_devices() {
        let case = Case { num_seqs: 5, seq_len: 640, coeffs: (0.98, 1.0) };
        let one = Case { num_seqs: 1, ..case };
        let rows = run(&of_devices(&Device::emulated(5)).unwrap(), &[case, one], 2).unwrap();
        // Two passes, two runs. On one device there is one way. On two and on four devices there
        // are rows, passes and tail first; mailboxes and tails by mail are not possible, because
        // emulated devices do not share memory. A single row rules out rows.
        // Each is measured by single calls and by calls in a row.
        assert_eq!(rows.len(), 2 * 2 * (2 * (1 + 3 + 3) + 2 * (1 + 2 + 2)));
        assert_eq!(rows[0].engine, "1; coefficients 0.98 to 1");
        let has = |engine: &str| rows.iter().any(|row| row.engine == engine);
        assert!(has("4 x tail first; coefficients 0.98 to 1"));
        assert!(has("4 x tail first, in a row; coefficients 0.98 to 1"));
        assert!(rows.iter().all(|row| row.machine.starts_with("4 x ")));
        let error = of_devices(&Device::emulated(1)).unwrap_err().to_string();
        assert_eq!(error, "a group needs at least two GPUs; this machine has 1");
    }
}
