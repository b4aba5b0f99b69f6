//! The time of a forward pass over any number of GPUs, from the times of links and memory.
//!
//! This module computes times, and no outputs. Each rank does its work in order, and a message
//! arrives some time after it was sent. The simulation follows these events one by one, so the
//! waiting times need no formula. The tests at the end compare the times with formulas for simple
//! cases and with the trials in `quoted`.

use linrec::device::Links;

/// A cluster of hosts with several GPUs each.
#[derive(Debug, Clone, Copy)]
pub struct Cluster {
    /// The number of GPUs in a host.
    pub per_host: usize,
    /// The times of links and memory within a host.
    pub inside: Links,
    /// The seconds from one rank's call that sends a few bytes to the moment when the other rank
    /// has them, within a host.
    pub message: f64,
    /// The seconds from a send to its arrival on another host, without the time of its bytes.
    pub between: f64,
    /// The bandwidth between hosts, in bytes per second.
    pub between_link: f64,
}

/// The work of each GPU: a stretch of each row.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// The number of rows.
    pub rows: usize,
    /// The number of steps in a stretch.
    pub steps: usize,
}

/// The time of a message within a host, in seconds: 8 bytes from one H200 to the next by NCCL
/// (`trials.csv`).
pub const MESSAGE: f64 = 5.8e-6;

/// The number of bytes of a value.
const BYTES: f64 = 4.0;
/// The way in which states get from rank to rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Way {
    /// Two passes; in between, every rank sends to all others.
    Gather,
    /// Two passes; in between, in round k, each rank sends to the rank 2^k further.
    Rounds,
    /// The same as [`Way::Rounds`], but the first pass reads only this part of its arrays.
    TailFirst(f64),
    /// One pass over this number of groups of rows, with messages between neighbours.
    Pipeline(usize),
    /// One pass in which blocks find states in mailboxes, within one host.
    Mailboxes,
}

impl Cluster {
    /// Returns the seconds of one pass over a rank's own arrays.
    pub fn alone(&self, work: Work) -> f64 {
        3.0 * BYTES * (work.rows * work.steps) as f64 / self.inside.memory
    }

    /// Returns the seconds of a message of `numbers` values from rank `from` to rank `to`.
    fn message(&self, from: usize, to: usize, numbers: usize) -> f64 {
        let bytes = BYTES * numbers as f64;
        match from / self.per_host == to / self.per_host {
            true => self.message + bytes / self.inside.link,
            false => self.between + bytes / self.between_link,
        }
    }

    /// Returns the seconds until the last of `ranks` ranks is done.
    pub fn time(&self, work: Work, ranks: usize, way: Way) -> f64 {
        let alone = self.alone(work);
        // Of the 12 bytes per step, 8 are read a second time.
        let first = 2.0 / 3.0 * alone;
        match way {
            _ if ranks <= 1 => alone,
            Way::Gather => first + self.gather(work, ranks) + alone,
            Way::Rounds => first + self.rounds(work, ranks) + alone,
            Way::TailFirst(part) => part * first + self.rounds(work, ranks) + alone,
            Way::Pipeline(groups) => {
                let numbers = work.rows.div_ceil(groups);
                let stages = Stages { ranks, groups, each: alone / groups as f64 };
                stages.last(|rank| Hop::busy(self.message(rank - 1, rank, numbers)))
            }
            Way::Mailboxes => {
                let groups = work.rows.div_ceil(self.inside.at_a_time);
                let stages = Stages { ranks, groups, each: alone / groups as f64 };
                stages.last(|_| Hop::seen_after(self.inside.store))
            }
        }
    }

    /// Returns the seconds in which every rank receives two values per row from all others, over
    /// the slowest link on their way.
    fn gather(&self, work: Work, ranks: usize) -> f64 {
        let hosts = ranks.div_ceil(self.per_host);
        let bytes = 2.0 * BYTES * (work.rows * (ranks - 1)) as f64;
        if hosts == 1 {
            return self.inside.all_gather + bytes / self.inside.link;
        }
        let rounds = f64::from(hosts.next_power_of_two().ilog2());
        // Each GPU of a host has its own network card, and passes on what arrives to the others.
        self.inside.all_gather
            + rounds * self.between
            + bytes / self.between_link.min(self.inside.link)
    }

    /// Returns the seconds of all rounds, each as long as its slowest rank.
    // ANCHOR: rounds
    fn rounds(&self, work: Work, ranks: usize) -> f64 {
        let mut known = vec![0.0; ranks];
        let mut reach = 1;
        while reach < ranks {
            let before = known.clone();
            for rank in reach..ranks {
                let message = self.message(rank - reach, rank, 2 * work.rows);
                known[rank] = f64::max(before[rank], before[rank - reach]) + message;
            }
            reach *= 2;
        }
        known.into_iter().fold(0.0, f64::max)
    }
    // ANCHOR_END: rounds

    /// Returns the time of a GPU's own work, divided by the time that it takes among `ranks` ranks.
    pub fn efficiency(&self, work: Work, ranks: usize, way: Way) -> f64 {
        self.alone(work) / self.time(work, ranks, way)
    }

    /// Returns the number of groups with which the pipeline is fastest.
    pub fn best_pipeline(&self, work: Work, ranks: usize) -> usize {
        let most = work.rows.min(256);
        let time = |groups: &usize| self.time(work, ranks, Way::Pipeline(*groups));
        let all = (0..).map(|power| 1_usize << power).take_while(|&groups| groups <= most);
        let finer =
            all.flat_map(|groups| [groups, groups * 3 / 2]).filter(|groups| *groups <= most);
        finer.min_by(|a, b| time(a).total_cmp(&time(b))).unwrap_or(1)
    }
}

/// Groups of rows that pass through the ranks one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Stages {
    /// The number of ranks.
    pub ranks: usize,
    /// The number of groups.
    pub groups: usize,
    /// The seconds of a group on a rank.
    pub each: f64,
}

/// The begin and the end of a rank's work on a group.
pub type Span = (f64, f64);

/// The seconds to hand on the states of a group.
#[derive(Debug, Clone, Copy)]
pub struct Hop {
    /// The time until they arrive, during which both ranks can work.
    pub travel: f64,
    /// The time during which the receiver, and also the sender, is busy with the message.
    pub busy: f64,
}

impl Hop {
    /// Makes a message that keeps both ranks busy, as NCCL's kernels do.
    pub fn busy(busy: f64) -> Hop {
        Hop { travel: 0.0, busy }
    }

    /// Makes a store that becomes visible some time later.
    pub fn seen_after(travel: f64) -> Hop {
        Hop { travel, busy: 0.0 }
    }
}

impl Stages {
    /// Returns the times of each rank's work on each group; `hop(rank)` is from the rank before.
    // ANCHOR: stages
    pub fn spans(self, hop: impl Fn(usize) -> Hop) -> Vec<Vec<Span>> {
        let mut spans: Vec<Vec<Span>> = Vec::new();
        for rank in 0..self.ranks {
            let mut free = 0.0;
            let groups = 0..self.groups;
            let mine = groups.map(|group| {
                let begin = match rank.checked_sub(1) {
                    None => free,
                    Some(before) => {
                        let Hop { travel, busy } = hop(rank);
                        f64::max(free, spans[before][group].1 + travel) + busy
                    }
                };
                let end = begin + self.each;
                free = if rank + 1 < self.ranks { end + hop(rank + 1).busy } else { end };
                (begin, end)
            });
            spans.push(mine.collect());
        }
        spans
    }
    // ANCHOR_END: stages

    /// Returns the time at which the last rank is done.
    fn last(self, hop: impl Fn(usize) -> Hop) -> f64 {
        let spans = self.spans(hop);
        spans.last().and_then(|rank| rank.last()).map_or(0.0, |span| span.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> Cluster {
        let (inside, message) = (Links::H200, MESSAGE);
        Cluster { per_host: 8, inside, message, between: 20e-6, between_link: 50e9 }
    }

    const WORK: Work = Work { rows: 13_200, steps: 16_384 };

    #[test]
    fn one_rank_never_waits() {
        for way in [Way::Gather, Way::Rounds, Way::TailFirst(0.1), Way::Pipeline(7), Way::Mailboxes]
        {
            assert_eq!(cluster().efficiency(WORK, 1, way), 1.0, "{way:?}");
        }
    }

    #[test]
    fn pipelines_pay_for_their_start_and_their_messages() {
        let stages = Stages { ranks: 4, groups: 12, each: 1.0 };
        assert_eq!(stages.last(|_| Hop::busy(0.0)), 15.0);
        // A message on its way keeps no rank from working.
        assert_eq!(stages.last(|_| Hop::seen_after(0.5)), 15.0 + 3.0 * 0.5);
        // A rank between two others is busy with two messages for each group.
        assert_eq!(stages.last(|_| Hop::busy(0.5)), 3.0 * 1.5 + 12.0 + 11.0 * 1.0);
        let spans = stages.spans(|_| Hop { travel: 0.25, busy: 0.25 });
        for (before, rank) in spans.iter().zip(&spans[1..]) {
            for (sent, received) in before.iter().zip(rank) {
                assert!(received.0 >= sent.1 + 0.5);
            }
            assert!(rank.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        }
    }

    #[test]
    fn the_model_is_near_the_measurements() {
        // The trials of `quoted`, on four GPUs.
        let of = |way| cluster().efficiency(WORK, 4, way);
        let close = |is: f64, was: f64| assert!((is - was).abs() < 0.03, "{is} {was}");
        close(of(Way::Gather), 0.61);
        close(of(Way::Pipeline(12)), 0.64);
        close(of(Way::Mailboxes), 0.975);
    }

    #[test]
    fn the_number_of_rounds_is_the_logarithm_of_the_ranks() {
        let cluster = Cluster { per_host: 1, ..cluster() };
        let one = cluster.message(0, 1, 2 * WORK.rows);
        for (ranks, rounds) in [(2, 1.0), (3, 2.0), (8, 3.0), (1024, 10.0)] {
            assert!((cluster.rounds(WORK, ranks) - rounds * one).abs() < 1e-12);
        }
    }
}
