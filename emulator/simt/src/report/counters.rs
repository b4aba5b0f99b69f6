//! What a launch did, counted: `tally` counts while it runs, `traffic` says what a request costs.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;

use crate::isa::{Access, Class};

/// What the warps of a launch executed. Counters of ranges of blocks add up (`+=`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Instructions, counted once for a warp (a divergent warp executes one once per path).
    pub instructions: u64,
    /// Instructions, counted once for every lane that executed them.
    pub thread_instructions: u64,
    /// Instructions of warps by what they do.
    pub classes: BTreeMap<Class, u64>,
    /// What every instruction that accesses memory did, in the order of the PTX.
    pub sites: Vec<Site>,
    /// Branches after which lanes of one warp went different ways.
    pub divergent_branches: u64,
    /// Barriers of whole blocks.
    pub barriers: u64,
    /// Blocks that ran.
    pub blocks: u64,
    /// What `printf` printed, in the order of the blocks, and of each in the order in which it was
    /// printed.
    pub printed: Vec<Printed>,
}

/// What a thread printed at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    /// The block's number in the grid.
    pub block: u64,
    /// The warp's number in the block.
    pub warp: u32,
    /// The lane.
    pub lane: u32,
    /// The text.
    pub text: String,
}

/// What a memory instruction did in all its executions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The line of the PTX, from 1.
    pub line: u32,
    /// The file and line that it was compiled from.
    pub source: Option<(Arc<str>, u32)>,
    /// The instruction as the PTX has it: `ld.global.v4.f32`.
    pub opcode: Arc<str>,
    /// Which memory, and in which direction.
    pub access: Access,
    /// How often a warp executed it with at least one lane.
    pub requests: u64,
    /// Global memory: how many 32-byte sectors those requests touched, counted per request.
    pub sectors: u64,
    /// Shared memory: how many passes over its 32 banks they took, and how many of them were due to
    /// conflicts.
    pub wavefronts: u64,
    /// Those of `wavefronts` that conflicts cost.
    pub conflicts: u64,
    /// Bytes that the lanes asked for.
    pub bytes: u64,
}

impl Site {
    /// 32-byte sectors per request: 4 for a coalesced `f32` of every lane, 32 if all lie apart.
    pub fn sectors_per_request(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.sectors as f64 / self.requests as f64 }
    }
}

impl Counters {
    /// The sum of `sectors` over the sites of a kind.
    pub fn sectors(&self, access: Access) -> u64 {
        self.sites.iter().filter(|site| site.access == access).map(|site| site.sectors).sum()
    }

    /// The sum of `requests` over the sites of a kind.
    pub fn requests(&self, access: Access) -> u64 {
        self.sites.iter().filter(|site| site.access == access).map(|site| site.requests).sum()
    }

    /// Instructions of a class.
    pub fn class(&self, class: Class) -> u64 {
        self.classes.get(&class).copied().unwrap_or(0)
    }
}

impl AddAssign<&Counters> for Counters {
    fn add_assign(&mut self, other: &Counters) {
        self.instructions += other.instructions;
        self.thread_instructions += other.thread_instructions;
        self.divergent_branches += other.divergent_branches;
        self.barriers += other.barriers;
        self.blocks += other.blocks;
        if !other.printed.is_empty() {
            self.printed.extend_from_slice(&other.printed);
            self.printed.sort_by_key(|printed| printed.block);
        }
        for (&class, count) in &other.classes {
            *self.classes.entry(class).or_default() += count;
        }
        if self.sites.is_empty() {
            self.sites.clone_from(&other.sites);
            return;
        }
        for (number, site) in other.sites.iter().enumerate() {
            let same = |mine: &Site| mine.line == site.line && mine.opcode == site.opcode;
            // Of one kernel, the sites are the same ones in the same order.
            let there = match self.sites.get(number) {
                Some(mine) if same(mine) => Some(number),
                _ => self.sites.iter().position(same),
            };
            match there.map(|number| &mut self.sites[number]) {
                Some(mine) => {
                    mine.requests += site.requests;
                    mine.sectors += site.sectors;
                    mine.wavefronts += site.wavefronts;
                    mine.conflicts += site.conflicts;
                    mine.bytes += site.bytes;
                }
                None => self.sites.push(site.clone()),
            }
        }
    }
}
