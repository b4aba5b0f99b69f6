//! Counters of a launch: the public form, and the form while a range of blocks runs.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;

use super::bounds::bytes_of;
use crate::isa::{Access, Class, Kernel, Place};

/// Counts of what the warps of a launch executed. Counters of ranges of blocks add up (`+=`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Instructions, counted once for each warp, and once for each path of a divergent warp.
    pub instructions: u64,
    /// Instructions, counted once for each lane that executed them.
    pub thread_instructions: u64,
    /// Instructions of warps by class.
    pub classes: BTreeMap<Class, u64>,
    /// The counts of each instruction that accesses memory, in the order of the PTX.
    pub sites: Vec<Site>,
    /// Branches after which lanes of one warp went different ways.
    pub divergent_branches: u64,
    /// Barriers of whole blocks.
    pub barriers: u64,
    /// Blocks that ran.
    pub blocks: u64,
    /// The output of `printf`, in the order of the blocks, and of printing within a block.
    pub printed: Vec<Printed>,
}

/// The output of one call of `printf` by one thread.
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

/// The counts of a memory instruction over all its executions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The line of the PTX, from 1.
    pub line: u32,
    /// The file and line that it was compiled from.
    pub source: Option<(Arc<str>, u32)>,
    /// The instruction as in the PTX: `ld.global.v4.f32`.
    pub opcode: Arc<str>,
    /// The memory and the direction of the access.
    pub access: Access,
    /// The number of times that a warp executed it with at least one lane.
    pub requests: u64,
    /// Global memory: the number of 32-byte sectors touched, counted for each request.
    pub sectors: u64,
    /// Shared memory: the number of passes over its 32 banks that the requests took.
    pub wavefronts: u64,
    /// The part of `wavefronts` that is due to bank conflicts.
    pub conflicts: u64,
    /// The number of bytes that the lanes requested.
    pub bytes: u64,
}

impl Site {
    /// Returns the 32-byte sectors per request: 4 for a coalesced `f32`, 32 if none is shared.
    pub fn sectors_per_request(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.sectors as f64 / self.requests as f64 }
    }
}

impl Counters {
    /// Returns the sum of `sectors` over the sites of a kind.
    pub fn sectors(&self, access: Access) -> u64 {
        self.sites.iter().filter(|site| site.access == access).map(|site| site.sectors).sum()
    }

    /// Returns the sum of `requests` over the sites of a kind.
    pub fn requests(&self, access: Access) -> u64 {
        self.sites.iter().filter(|site| site.access == access).map(|site| site.requests).sum()
    }

    /// Returns the number of instructions of a class.
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
            // Counters of one kernel have the same sites in the same order.
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

/// The counters while a range of blocks runs, by instruction.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    pub(crate) executed: Vec<Executed>,
    pub(crate) traffic: Vec<Traffic>,
    pub(crate) divergent_branches: u64,
    pub(crate) barriers: u64,
    pub(crate) blocks: u64,
    pub(crate) printed: Vec<Printed>,
}

/// The number of executions, and the number of lanes in all of them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Executed {
    pub(crate) times: u64,
    pub(crate) lanes: u64,
}

impl Executed {
    /// Counts one more execution by the lanes of a mask.
    #[inline(always)]
    pub(crate) fn by(&mut self, mask: u32) {
        self.times += 1;
        // Most masks are full, and counting bits takes a dozen operations where the processor's own
        // instruction is not enabled.
        self.lanes += u64::from(if mask == u32::MAX { 32 } else { mask.count_ones() });
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traffic {
    pub(crate) requests: u64,
    pub(crate) sectors: u64,
    pub(crate) wavefronts: u64,
    pub(crate) conflicts: u64,
    pub(crate) bytes: u64,
}

impl Tally {
    /// Returns the bytes of the host that the tally of a kernel takes, with its public form.
    pub(crate) fn bytes(kernel: &Kernel) -> u64 {
        let each = bytes_of::<(Executed, Traffic)>(1) + bytes_of::<Site>(1);
        (kernel.code.len() as u64).saturating_mul(each)
    }

    pub(crate) fn new(kernel: &Kernel) -> Tally {
        let length = kernel.code.len();
        Tally {
            executed: vec![Executed::default(); length],
            traffic: vec![Traffic::default(); length],
            divergent_branches: 0,
            barriers: 0,
            blocks: 0,
            printed: Vec::new(),
        }
    }

    /// Returns the output in the order of the blocks, which may have run together.
    fn printed(&self) -> Vec<Printed> {
        let mut printed = self.printed.clone();
        printed.sort_by_key(|printed| printed.block);
        printed
    }

    /// Returns the public form.
    pub(crate) fn counters(&self, kernel: &Kernel) -> Counters {
        // Neither a part of the next instruction counts, nor the instructions that a branch by an
        // index becomes after its first.
        let is_switch = |pc: usize| kernel.opcodes[pc].starts_with("brx");
        let goes_on = |pc: usize| {
            let before = pc.checked_sub(1).filter(|&before| is_switch(before) && is_switch(pc));
            before.is_some_and(|before| kernel.places[before] == kernel.places[pc])
        };
        let is_part = |pc: usize| kernel.code[pc].op.is_part() || goes_on(pc);
        let all = || self.executed.iter().enumerate();
        let counted = || all().filter(|(pc, _)| !is_part(*pc)).map(|(_, executed)| executed);
        let mut counters = Counters {
            instructions: counted().map(|executed| executed.times).sum(),
            thread_instructions: counted().map(|executed| executed.lanes).sum(),
            divergent_branches: self.divergent_branches,
            barriers: self.barriers,
            blocks: self.blocks,
            printed: self.printed(),
            ..Counters::default()
        };
        for (pc, instruction) in kernel.code.iter().enumerate() {
            let Executed { times, .. } = self.executed[pc];
            if times > 0 && !is_part(pc) {
                let class = if is_switch(pc) { Class::Control } else { instruction.op.class() };
                *counters.classes.entry(class).or_default() += times;
            }
            let Some(access) = instruction.op.access() else { continue };
            let Place { line, .. } = kernel.places[pc];
            let Traffic { requests, sectors, wavefronts, conflicts, bytes } = self.traffic[pc];
            counters.sites.push(Site {
                line,
                source: kernel.source_of(pc),
                opcode: kernel.opcodes[pc].clone(),
                access,
                requests,
                sectors,
                wavefronts,
                conflicts,
                bytes,
            });
        }
        counters
    }
}
