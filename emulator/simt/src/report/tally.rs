//! What is counted while a range of blocks runs, by instruction; and what each instruction counts
//! as.

use super::bounds::bytes_of;
use super::counters::{Counters, Printed, Site};
use crate::isa::{Access, Class, Kernel, Op, Place, Space, Unary};

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
        let is_part = |pc: usize| {
            matches!(kernel.code[pc].op, Op::Factors { .. } | Op::BulkTarget { .. }) || goes_on(pc)
        };
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
                let class = if is_switch(pc) { Class::Control } else { class(&instruction.op) };
                *counters.classes.entry(class).or_default() += times;
            }
            let Some(access) = access(&instruction.op) else { continue };
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

fn class(op: &Op) -> Class {
    match op {
        Op::Unary { op: Unary::Approximate { .. }, .. } => Class::Special,
        Op::Unary { op: Unary::Move, .. } => Class::Integer,
        Op::Arithmetic { .. } | Op::Fma { .. } | Op::ConvertPair { .. } => Class::Float,
        Op::Unary { ty, .. } | Op::Binary { ty, .. } if ty.is_float() => Class::Float,
        Op::Convert { to, from, .. } if to.is_float() || from.is_float() => Class::Float,
        Op::SetPredicate { ty, .. } if ty.is_float() => Class::Float,
        Op::Test { .. } => Class::Float,
        Op::Branch { .. } | Op::Call { .. } | Op::Return { .. } | Op::Exit | Op::Trap => {
            Class::Control
        }
        Op::Barrier { .. }
        | Op::BarrierArrive { .. }
        | Op::BarrierReduce { .. }
        | Op::WarpBarrier { .. }
        | Op::MbarrierInit { .. }
        | Op::MbarrierInvalidate { .. }
        | Op::MbarrierArrive { .. }
        | Op::MbarrierExpect { .. }
        | Op::MbarrierTest { .. } => Class::Barrier,
        Op::Multiply { .. } => Class::Matrix,
        Op::MatrixLoad { space, .. } | Op::MatrixStore { space, .. } => match space {
            Space::Shared => Class::Shared,
            _ => Class::Global,
        },
        Op::RowsLoad { .. } | Op::RowsStore { .. } => Class::Shared,
        Op::RowsTranspose { .. } => Class::Shuffle,
        Op::Shuffle { .. }
        | Op::Vote { .. }
        | Op::Ballot { .. }
        | Op::Elect { .. }
        | Op::Reduce { .. }
        | Op::Match { .. } => Class::Shuffle,
        Op::LoadParam { .. } => Class::Parameter,
        Op::Load { space, .. } | Op::Store { space, .. } => match space {
            Space::Global | Space::Generic => Class::Global,
            Space::Shared => Class::Shared,
            Space::Local => Class::Local,
            Space::Constant | Space::Parameter => Class::Parameter,
        },
        Op::CopyAsync { .. } | Op::BulkIn { .. } | Op::BulkOut { .. } => Class::Global,
        Op::Fetch { .. } | Op::SurfaceLoad { .. } | Op::SurfaceStore { .. } => Class::Texture,
        Op::Atomic { .. } | Op::Fence { .. } => Class::Atomic,
        Op::Nothing | Op::CommitGroup | Op::WaitGroup { .. } => Class::Nothing,
        _ => Class::Integer,
    }
}

fn access(op: &Op) -> Option<Access> {
    Some(match op {
        Op::Load { space: Space::Global, .. } => Access::GlobalLoad,
        Op::Load { space: Space::Shared, .. } => Access::SharedLoad,
        Op::Load { space: Space::Local, .. } => Access::LocalLoad,
        Op::Store { space: Space::Global, .. } => Access::GlobalStore,
        Op::Store { space: Space::Shared, .. } => Access::SharedStore,
        Op::Store { space: Space::Local, .. } => Access::LocalStore,
        Op::Atomic { space: Space::Global, .. } => Access::GlobalAtomic,
        Op::Atomic { space: Space::Shared, .. } => Access::SharedAtomic,
        Op::MatrixLoad { space: Space::Global, .. } => Access::GlobalLoad,
        Op::MatrixLoad { space: Space::Shared, .. } | Op::RowsLoad { .. } => Access::SharedLoad,
        Op::MatrixStore { space: Space::Global, .. } => Access::GlobalStore,
        Op::MatrixStore { space: Space::Shared, .. } | Op::RowsStore { .. } => Access::SharedStore,
        Op::MatrixLoad { .. } | Op::MatrixStore { .. } => Access::Generic,
        Op::CopyAsync { .. } | Op::BulkIn { .. } => Access::CopyAsync,
        Op::BulkOut { .. } => Access::GlobalStore,
        Op::Fetch { .. } => Access::TextureFetch,
        Op::SurfaceLoad { .. } => Access::SurfaceLoad,
        Op::SurfaceStore { .. } => Access::SurfaceStore,
        Op::Load { space: Space::Constant | Space::Parameter, .. } => return None,
        Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } => Access::Generic,
        _ => return None,
    })
}
