//! What is counted while a range of blocks runs, by instruction; and what each instruction counts
//! as.

use super::bounds::bytes_of;
use super::counters::{Counters, Printed, Site};
use crate::isa::{Class, Kernel, Place};

/// The counters while a range of blocks runs: by instruction.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    pub(crate) executed: Vec<Executed>,
    pub(crate) traffic: Vec<Traffic>,
    pub(crate) divergent_branches: u64,
    pub(crate) barriers: u64,
    pub(crate) blocks: u64,
    pub(crate) printed: Vec<Printed>,
}

/// How often, and by how many lanes in all.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Executed {
    pub(crate) times: u64,
    pub(crate) lanes: u64,
}

impl Executed {
    /// Once more, by those of a mask.
    #[inline(always)]
    pub(crate) fn by(&mut self, mask: u32) {
        self.times += 1;
        // Most of the time all: counting bits is a dozen operations where the processor's own is
        // not compiled in.
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
    /// What those of a kernel take of the host, the public form included.
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

    /// What was printed, in the order of the blocks, which may have run together.
    fn printed(&self) -> Vec<Printed> {
        let mut printed = self.printed.clone();
        printed.sort_by_key(|printed| printed.block);
        printed
    }

    /// The public form.
    pub(crate) fn counters(&self, kernel: &Kernel) -> Counters {
        // What is but a part of the instruction behind it does not count, nor what goes on with a
        // branch by an index.
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
