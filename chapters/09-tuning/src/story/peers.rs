//! Beside others, as ratios to an addition in each one's own run.

use linrec::kernels::Pass;
use linrec::lesson::{self, Kind, Lesson, Table};

use super::cell;
use crate::record::{self, Peer};

/// Who is compared: a part of the name in the record, and a column.
const COLUMNS: [(&str, &str); 5] = [
    ("CUDA ref", "post: ref"),
    ("CUDA pipe default", "post: pipe, default"),
    ("CUDA pipe best", "post: pipe, best"),
    ("Triton pipe", "post: Triton"),
    ("accelerated-scan", "accelerated-scan"),
];

/// One row for each length: theirs to their addition, ours to our roof.
pub fn peers(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("peers", "Beside others")?;
    let (peers, race) = (record::peers(), record::race()?);
    lesson.say(
        "On H200s, 13200 sequences of f32. Two records come from two runs, so each speed is divided by that of an \
         addition in its own run: torch.add for the peers, the roof for ours. There was no torch operation with the \
         bytes of the backward pass; the addition of the same length stands in for it.",
    );
    let mut slower = 0;
    for pass in Pass::ALL {
        lesson.say(&format!("The {} pass:", pass.name()));
        let columns = COLUMNS.iter().map(|&(_, column)| column);
        let mut table = Table::new(
            ["length"].into_iter().chain(columns).chain(["ours: pipe", "ours: fastest"]),
        );
        let mut lengths: Vec<usize> = peers.iter().map(|peer| peer.seq_len).collect();
        lengths.sort_unstable();
        lengths.dedup();
        for len in lengths {
            let ours = |name: &str| race.kernel(pass, name, len).map(|(_, run)| run.gb_per_s);
            let roof = race.median(Pass::Forward, "roof", len).map(|run| run.gb_per_s);
            let ratio = |speed: Option<f64>| speed.zip(roof).map(|(speed, roof)| speed / roof);
            let theirs = COLUMNS.map(|(part, _)| quoted(&peers, pass, len, part));
            let fastest = ratio(race.fastest(pass, len).map(|(_, run)| run.gb_per_s));
            slower += theirs
                .iter()
                .flatten()
                .filter(|&&theirs| fastest.is_some_and(|ours| ours <= theirs))
                .count();
            let cells = theirs.into_iter().chain([ratio(ours("pipe")), fastest]);
            table.row([len.to_string()].into_iter().chain(cells.map(|ratio| cell(ratio, 3))));
        }
        lesson.table(&format!("peers-{}.csv", pass.name()), Kind::Computed, &table)?;
    }
    lesson.value("slower_than_peers", slower, Kind::Computed);
    lesson.value("of_the_post", of_the_post(&peers), Kind::Computed);
    Ok(())
}

/// A peer's speed as a part of the addition's in its own record.
fn quoted(peers: &[Peer], pass: Pass, len: usize, part: &str) -> Option<f64> {
    let speed = |pass: Pass, part: &str| {
        let mut mine = peers.iter().filter(|peer| peer.pass == pass && peer.seq_len == len);
        mine.find(|peer| peer.name.contains(part)).map(|peer| peer.gb_per_s)
    };
    Some(speed(pass, part)? / speed(Pass::Forward, "torch.add")?)
}

/// From which to which part of the addition the post's best pipe reaches.
fn of_the_post(peers: &[Peer]) -> String {
    let lengths = crate::LENGTHS.iter();
    let all: Vec<f64> =
        lengths.filter_map(|&len| quoted(peers, Pass::Forward, len, "CUDA pipe best")).collect();
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(0.0, f64::max);
    format!("{:.0} to {:.0} %", 100.0 * least, 100.0 * most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_posts_pipe_beside_its_addition() {
        assert_eq!(of_the_post(&record::peers()), "39 to 81 %");
        let ratio = quoted(&record::peers(), Pass::Forward, 65_536, "CUDA pipe best").unwrap();
        assert!((ratio - 3079.7 / 4365.4).abs() < 1e-9);
    }
}
