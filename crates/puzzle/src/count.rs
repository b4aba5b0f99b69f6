//! The counts of the emulator in a launch, and the limits of a goal.

use std::fmt;

use linrec::simt::{Access, Counters, Site, Trace, What};
use serde::Deserialize;

/// A quantity that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Count {
    /// 32-byte sectors per load request of a warp from global memory.
    SectorsPerLoad,
    /// Bytes that the lanes of a warp read in a load request from global memory.
    BytesPerLoad,
    /// Bytes that the lanes of a warp write in a store request to global memory.
    BytesPerStore,
    /// Load requests of global memory.
    Loads,
    /// Passes over the banks per request of shared memory, for the instruction with the most
    /// passes.
    PassesPerRequest,
    /// Requests of shared memory.
    SharedRequests,
    /// Requests of local memory, which contains the arrays that are not in registers.
    LocalRequests,
    /// Barriers at which a block has waited.
    Barriers,
    /// Load requests of global memory that the first warp makes before its first barrier.
    LoadsBeforeBarrier,
}

/// The limit of a goal for a count.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// The quantity that is counted.
    pub count: Count,
    /// The largest value that reaches the goal.
    pub most: Option<f64>,
    /// The smallest value that reaches the goal.
    pub least: Option<f64>,
}

/// A counted value, with its limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted {
    /// The quantity that was counted, and its limits.
    pub limit: Limit,
    /// The counted value.
    pub value: f64,
}

impl Count {
    /// Returns the value of a launch. `trace` is the trace of its first block.
    pub(crate) fn of(self, counters: &Counters, trace: &Trace) -> f64 {
        let sites = |of: &[Access]| -> Vec<&Site> {
            counters.sites.iter().filter(|site| of.contains(&site.access)).collect()
        };
        let loads = sites(&[Access::GlobalLoad]);
        let shared = sites(&[Access::SharedLoad, Access::SharedStore]);
        let sum =
            |sites: &[&Site], of: fn(&Site) -> u64| sites.iter().map(|site| of(site)).sum::<u64>();
        let requests = |sites: &[&Site]| sum(sites, |site| site.requests);
        let ratio = |sites: &[&Site], of: fn(&Site) -> u64| {
            sum(sites, of) as f64 / requests(sites).max(1) as f64
        };
        match self {
            Count::SectorsPerLoad => ratio(&loads, |site| site.sectors),
            Count::BytesPerLoad => ratio(&loads, |site| site.bytes),
            Count::BytesPerStore => ratio(&sites(&[Access::GlobalStore]), |site| site.bytes),
            Count::Loads => requests(&loads) as f64,
            Count::PassesPerRequest => {
                let passes = shared.iter().map(|&site| ratio(&[site], |site| site.wavefronts));
                passes.fold(0.0, f64::max)
            }
            Count::SharedRequests => requests(&shared) as f64,
            Count::LocalRequests => {
                requests(&sites(&[Access::LocalLoad, Access::LocalStore])) as f64
            }
            Count::Barriers => counters.barriers as f64,
            Count::LoadsBeforeBarrier => {
                let mine = trace.events.iter().filter(|event| event.block == 0 && event.warp == 0);
                let before = mine.take_while(|event| event.what != What::Barrier);
                before
                    .filter(|event| matches!(&event.what, What::Load(load) if !load.shared))
                    .count() as f64
            }
        }
    }

    /// Returns the words that follow `number`: `barrier in the launch` after 1.
    fn words(self, number: f64) -> String {
        let (one, several, of) = match self {
            Count::SectorsPerLoad => ("sector", "sectors", "per load request"),
            Count::BytesPerLoad => ("bytes", "bytes", "per load request"),
            Count::BytesPerStore => ("bytes", "bytes", "per store request"),
            Count::Loads => ("load request", "load requests", "in the launch"),
            Count::PassesPerRequest => ("pass", "passes", "per request of shared memory"),
            Count::SharedRequests => ("request", "requests", "of shared memory in the launch"),
            Count::LocalRequests => ("request", "requests", "of local memory in the launch"),
            Count::Barriers => ("barrier", "barriers", "in the launch"),
            Count::LoadsBeforeBarrier => {
                ("load request", "load requests", "of a warp before its first barrier")
            }
        };
        format!("{} {of}", if number == 1.0 { one } else { several })
    }
}

impl Counted {
    /// Returns true if the value reaches the goal.
    pub fn reached(&self) -> bool {
        self.limit.most.is_none_or(|most| self.value <= most)
            && self.limit.least.is_none_or(|least| self.value >= least)
    }
}

/// `at most 4 sectors per load request`.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |number| self.count.words(number);
        match (self.most, self.least) {
            (Some(0.0), _) => write!(f, "no {}", words(0.0)),
            (Some(most), _) => write!(f, "at most {} {}", Number(most), words(most)),
            (None, Some(least)) => write!(f, "at least {} {}", Number(least), words(least)),
            (None, None) => write!(f, "any number of {}", words(0.0)),
        }
    }
}

/// `16 sectors per load request, and the goal is at most 4`.
impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", Number(self.value), self.limit.count.words(self.value))?;
        match (self.limit.most, self.limit.least) {
            (Some(0.0), _) => write!(f, ", and the goal is none"),
            (Some(most), _) => write!(f, ", and the goal is at most {}", Number(most)),
            (None, Some(least)) => write!(f, ", and the goal is at least {}", Number(least)),
            (None, None) => Ok(()),
        }
    }
}

/// A number that is printed with at most one decimal.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.fract() == 0.0 { write!(f, "{}", self.0) } else { write!(f, "{:.1}", self.0) }
    }
}
