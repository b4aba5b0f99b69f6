//! `tour bench --group`: the recurrence over all GPUs of this machine, beside one of them.

use std::time::Instant;

use lesson::Table;
use lesson::output::println;
use linrec::device::{Buffer, Device, Group, GroupRecurrence, Links, Rank, Split, Way};
use linrec::kernels::{ElementType, Pass};

use crate::median;
use crate::row::{Beside, Measured, Row};

/// Sequences, and the range that coefficients lie in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case {
    /// How many sequences.
    pub num_seqs: usize,
    /// How long they are.
    pub seq_len: usize,
    /// The least and the largest coefficient.
    pub coeffs: (f32, f32),
}

/// Those that are measured: many rows, few, and one, with coefficients that fade and that do not. Each takes 11 to 14 GB, on one
/// GPU.
pub const CASES: [Case; 5] = [
    Case { num_seqs: 13_200, seq_len: 65_536, coeffs: (0.0, 1.0) },
    Case { num_seqs: 13_200, seq_len: 65_536, coeffs: (0.98, 1.0) },
    Case { num_seqs: 264, seq_len: 1 << 22, coeffs: (0.98, 1.0) },
    Case { num_seqs: 1, seq_len: 1 << 30, coeffs: (0.0, 1.0) },
    Case { num_seqs: 1, seq_len: 1 << 30, coeffs: (1.0, 1.0) },
];

/// Measures every case on one of the devices, and over 2, 4, 8 … of them; prints efficiencies, and gives every run. The ratio
/// of a row is the median time on one device over its own, so that it is the number of devices where nothing is lost.
///
/// A run is from a moment when all ranks are there to one when all are done. Ranks find both out through the host, which
/// takes some tens of microseconds.
///
/// # Errors
///
/// If there are fewer than two devices, or no NCCL, or a device fails or has not enough memory.
pub fn run(devices: &[Device], cases: &[Case], runs: usize) -> lesson::Result<Vec<Row>> {
    let [first, _, ..] = devices else {
        let count = devices.len();
        return Err(format!("a group needs two GPUs or more, and here is {count}").into());
    };
    let sizes = (1..).map(|power| 1_usize << power).take_while(|&size| size <= devices.len());
    let groups: Vec<Group> = std::iter::once(1)
        .chain(sizes)
        .map(|size| Group::from_devices(&devices[..size]))
        .collect::<Result<_, _>>()?;
    println!("{} x {}, medians of {runs} runs", devices.len(), first.name());
    let mut rows = Vec::new();
    for &case in cases {
        let Case { num_seqs, seq_len, coeffs: (low, high) } = case;
        let shape = (num_seqs, seq_len);
        let machine = format!("{} x {}", devices.len(), first.name());
        let measured =
            Measured { machine: &machine, element: ElementType::F32, pass: Pass::Forward, shape };
        let (mut engines, mut times) = (Vec::new(), Vec::new());
        for group in &groups {
            for (split, way) in ways(shape, group.size()) {
                let how = if split == Split::Rows { String::from("rows") } else { way.to_string() };
                engines.push(format!("{} x {how}; coefficients {low} to {high}", group.size()));
                times.push(timed(group, case, (split, way), runs)?);
            }
        }
        let mut table = Table::new(["GPUs and way", "ms", "efficiency"]);
        let alone = median(times.first().into_iter().flatten().copied());
        for (engine, times) in engines.iter().zip(&times) {
            let ms = median(times.iter().copied());
            let size: f64 =
                engine.split(' ').next().and_then(|size| size.parse().ok()).unwrap_or(1.0);
            table.row([engine.clone(), format!("{ms:.3}"), format!("{:.3}", alone / ms / size)]);
        }
        println!("\n{num_seqs} x {seq_len}:\n\n{}", table.to_text());
        rows.extend(measured.rows(&engines, &times, Beside::Median));
    }
    Ok(rows)
}

/// What is measured over so many devices: on one, it itself.
fn ways(shape: (usize, usize), size: usize) -> Vec<(Split, Way)> {
    let mut ways = Vec::new();
    if size == 1 || shape.0 >= size {
        ways.push((Split::Rows, Way::Passes));
    }
    if size > 1 {
        let pipeline = Way::pipeline(shape, size_of::<f32>(), size, Links::H200);
        ways.extend([Way::Passes, Way::TailFirst, pipeline].map(|way| (Split::Steps, way)));
    }
    ways
}

/// Milliseconds of each run, on the slowest rank.
fn timed(
    group: &Group,
    case: Case,
    (split, way): (Split, Way),
    runs: usize,
) -> lesson::Result<Vec<f64>> {
    let shape = (case.num_seqs, case.seq_len);
    let all = group.run(|rank: &Rank| {
        let recurrence = GroupRecurrence::<f32>::new(rank, split).with_way(way);
        let len = recurrence.part(shape)?.len();
        let (low, high) = case.coeffs;
        let (inputs, coeffs) = (filled(rank, len, -1.0, 1.0)?, filled(rank, len, low, high)?);
        let mut outputs = rank.device().allocate(len)?;
        let mut times = Vec::with_capacity(runs);
        // The first one loads the kernels.
        for number in 0..=runs {
            rank.device().synchronize()?;
            rank.barrier()?;
            let start = Instant::now();
            recurrence.forward_into(&inputs, &coeffs, &mut outputs, shape, Default::default())?;
            rank.device().synchronize()?;
            rank.barrier()?;
            if number > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
        Ok(times)
    })?;
    let slowest = |run: usize| all.iter().map(|times| times[run]).fold(0.0, f64::max);
    Ok((0..runs).map(slowest).collect())
}

/// An array of numbers between two others, which repeat from some place on.
fn filled(rank: &Rank, len: usize, low: f32, high: f32) -> Result<Buffer<f32>, linrec::Error> {
    /// Odd, so that rows of a power of two do not look alike.
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

    /// What is timed here means nothing: emulated devices have no speed.
    #[test]
    fn every_case_is_measured_over_every_number_of_devices() {
        let case = Case { num_seqs: 5, seq_len: 640, coeffs: (0.98, 1.0) };
        let one = Case { num_seqs: 1, ..case };
        let rows = run(&Device::emulated(5), &[case, one], 2).unwrap();
        // On one device one; on two and on four rows, passes, tail first and a pipeline; and of one row no rows.
        assert_eq!(rows.len(), 2 * (1 + 4 + 4) + 2 * (1 + 3 + 3));
        assert!(rows[0].engine.starts_with("1 x rows"));
        assert!(rows.iter().any(|row| row.engine == "4 x tail first; coefficients 0.98 to 1"));
        assert!(rows.iter().all(|row| row.machine.starts_with("5 x ")));
        let error = run(&Device::emulated(1), &[case], 2).unwrap_err().to_string();
        assert_eq!(error, "a group needs two GPUs or more, and here is 1");
    }
}
