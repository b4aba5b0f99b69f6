//! Beside the post's own kernel, on the same kind of GPU.

use std::collections::BTreeMap;

use linrec::lesson::{self, Kind, Lesson, Table};

use super::RECORD;
use crate::measured::Runs;

/// What was measured of the post's repository.
const PEERS: &str = include_str!("../../results/h200/peers.csv");

/// The short lengths once more, 99 runs each: there a run takes some microseconds, and the times of a launch vary.
const SHORT: &str = include_str!("../../results/h200/short.csv");

/// From here on the ratio must not be less than the post's.
const LONG: usize = 128;

/// One length of the peers' record.
#[derive(Default)]
struct Peer {
    add: f64,
    pipe: f64,
}

/// Compares the ratios to the add of each one's own run.
pub fn peers(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("peers", "Beside the post's kernel")?;
    let (runs, short) = (Runs::read(RECORD)?, Runs::read(SHORT)?);
    lesson.say(&format!(
        "Both pipes on an H200, forward, 13200 sequences in f32, each in the configuration that was fastest at the \
         length, and as a part of an addition of two arrays in its own run: torch.add there, the roof here. Ours \
         are medians, up to {LONG} steps of {} runs.",
        short.count("roof", LONG)
    ));
    let header = [
        "length",
        "post: add, GB/s",
        "post: pipe",
        "ratio",
        "here: add, GB/s",
        "here: pipe",
        "configuration",
        "ratio",
        "here / post",
    ];
    let mut table = Table::new(header);
    let (mut missing, mut least) = (0.0_f64, f64::INFINITY);
    for (seq_len, peer) in read_peers() {
        let runs = if seq_len <= LONG { &short } else { &runs };
        let Some((engine, best)) = runs.best("pipe:", seq_len) else { continue };
        let roof = runs.median("roof", seq_len).map_or(0.0, |run| run.gb_per_s);
        let theirs = peer.pipe / peer.add;
        if seq_len >= LONG {
            missing = missing.max(1.0 - best.ratio / theirs);
        }
        if seq_len >= 1000 {
            least = least.min(best.ratio / theirs);
        }
        table.row([
            seq_len.to_string(),
            format!("{:.0}", peer.add),
            format!("{:.0}", peer.pipe),
            format!("{theirs:.3}"),
            format!("{roof:.0}"),
            format!("{:.0}", best.gb_per_s),
            engine.trim_start_matches("pipe:").trim_end_matches(":0").replace('x', " x "),
            format!("{:.3}", best.ratio),
            format!("{:.2}", best.ratio / theirs),
        ]);
        for (key, text) in [
            ("post_add", format!("{:.0}", peer.add)),
            ("post_pipe", format!("{:.0}", peer.pipe)),
            ("post_ratio", format!("{theirs:.3}")),
            ("our_add", format!("{roof:.0}")),
            ("our_pipe", format!("{:.0}", best.gb_per_s)),
            ("our_ratio", format!("{:.3}", best.ratio)),
            ("short_of", format!("{:.0}", 100.0 * (1.0 - best.ratio / theirs))),
        ] {
            if seq_len == 64 {
                lesson.value(key, text, Kind::Computed);
            }
        }
    }
    lesson.table("peers.csv", Kind::Computed, &table)?;
    lesson.check(&format!("what is missing to the post's ratio, from {LONG} on"), missing, 0.0);
    lesson.value("gain", format!("{least:.2}"), Kind::Computed);
    Ok(())
}

/// The add and the pipe of each length.
fn read_peers() -> BTreeMap<usize, Peer> {
    let mut peers: BTreeMap<usize, Peer> = BTreeMap::new();
    for line in PEERS.lines().skip(1) {
        // workload, num_seqs, seq_len, implementation, gb_per_s, and then what may be quoted.
        let mut cells = line.splitn(6, ',').skip(2);
        let (Some(seq_len), Some(name), Some(speed)) = (cells.next(), cells.next(), cells.next())
        else {
            continue;
        };
        let (Ok(seq_len), Ok(speed)) = (seq_len.parse(), speed.parse()) else { continue };
        let peer = peers.entry(seq_len).or_default();
        if name.contains("add") {
            peer.add = speed;
        } else {
            peer.pipe = speed;
        }
    }
    peers.retain(|_, peer| peer.add > 0.0 && peer.pipe > 0.0);
    peers
}
