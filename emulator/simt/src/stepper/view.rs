//! What there is to see at a moment: where the warps are, their registers, and shared memory.

use std::sync::Arc;

use super::moments::Stepper;
use crate::isa::{Bank, Kernel, SharedVariable};
use crate::machine::block::Block;
use crate::machine::state::{self, Waiting};
use crate::machine::warp;

/// A warp, and where its lanes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warp {
    /// The block's number in the grid.
    pub block: u32,
    /// The warp's number in the block.
    pub warp: u32,
    /// The lanes that have left the kernel.
    pub left: u32,
    /// Where the others are.
    pub paths: Vec<Path>,
}

/// Lanes of a warp that are at the same instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// The instruction that they execute next, or at which they wait.
    pub pc: u32,
    /// The lanes.
    pub lanes: u32,
    /// For whom they wait, if they do.
    pub waits: Option<Waits>,
}

/// For whom lanes wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// For all threads of the block, or for as many as a barrier names.
    Block,
    /// For lanes of their own warp.
    Lanes,
}

/// A register, with a value for every lane.
#[derive(Debug, Clone, PartialEq)]
pub struct Register {
    /// Its name in the PTX.
    pub name: Arc<str>,
    /// What it is declared as: `f32`, `b64`, `pred`.
    pub ty: &'static str,
    /// What it holds.
    pub values: Values,
}

/// The bits of a register.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Of 16 or 32 bits.
    Words([u32; 32]),
    /// Of 64 bits.
    Longs([u64; 32]),
    /// A predicate, lane 0 in the lowest bit.
    Mask(u32),
}

/// A word of shared memory, if something has been written to it.
pub type Cell = Option<u32>;

impl Stepper {
    /// Whose turn it is: the block's and the warp's number. `None` at the end.
    pub fn current(&self) -> Option<(u32, u32)> {
        let block = self.now.blocks.get(self.now.block)?;
        let warp = block.warps.get(self.now.warp)?;
        Some((block.number as u32, warp.index))
    }

    /// The warps of the blocks that run at the moment.
    pub fn warps(&self) -> Vec<Warp> {
        let blocks = self.now.blocks.iter();
        blocks.flat_map(|block| block.warps.iter().map(|warp| view(block, warp))).collect()
    }

    /// The registers of a warp whose values may be needed by what it executes next. There are none
    /// of a kernel that was not read by [`Module::parse_named`](crate::Module::parse_named).
    pub fn registers(&self, block: u32, warp: u32) -> Vec<Register> {
        let Some(warp) = self.block(block).and_then(|block| block.warps.get(warp as usize)) else {
            return Vec::new();
        };
        let live =
            |range: &std::ops::Range<u32>| warp.paths.iter().any(|path| range.contains(&path.pc));
        let all = self.kernel().registers.iter().filter(|register| live(&register.live));
        all.map(|register| Register {
            name: register.name.clone(),
            ty: register.ty,
            values: match register.bank {
                Bank::Word => Values::Words(*warp.registers.words(register.slot)),
                Bank::Long => Values::Longs(*warp.registers.longs(register.slot)),
                Bank::Predicate => Values::Mask(warp.registers.predicate(register.slot)),
            },
        })
        .collect()
    }

    /// The shared memory of a block, word by word.
    pub fn shared(&self, block: u32) -> Vec<Cell> {
        let Some(block) = self.block(block) else { return Vec::new() };
        block.shared.cells_of_words(block.shared_bytes)
    }

    fn block(&self, number: u32) -> Option<&Block> {
        self.now.blocks.iter().find(|block| block.number == u64::from(number))
    }
}

fn view(block: &Block, warp: &warp::Warp) -> Warp {
    let path = |path: &state::Path| Path {
        pc: path.pc,
        lanes: path.lanes,
        waits: path.waiting.map(|waiting| match waiting {
            Waiting::Barrier(_) | Waiting::Part { .. } => Waits::Block,
            Waiting::Lanes { .. } => Waits::Lanes,
        }),
    };
    Warp {
        block: block.number as u32,
        warp: warp.index,
        left: warp.exists & !warp.alive,
        paths: warp.paths.iter().map(path).collect(),
    }
}

impl Kernel {
    /// The line of the PTX, from 1, and the text of an instruction's opcode.
    ///
    /// # Panics
    ///
    /// If the kernel has no such instruction.
    pub fn instruction(&self, pc: u32) -> (u32, &str) {
        (self.places[pc as usize].line, &self.opcodes[pc as usize])
    }

    /// The file and line that an instruction was compiled from, if the PTX says it: in an inlined
    /// function, the line there.
    pub fn source(&self, pc: u32) -> Option<(&str, u32)> {
        let (file, line) = self.places.get(pc as usize)?.source?;
        Some((self.files.get(usize::from(file))?, line))
    }

    /// The name of the register that an instruction writes, or the first of them; of a kernel that
    /// was read by [`Module::parse_named`](crate::Module::parse_named).
    pub fn writes(&self, pc: u32) -> Option<&str> {
        let [_, writes] = self.code.get(pc as usize)?.slots();
        let &written = writes.first()?;
        let register = self.registers.iter().find(|one| (one.bank, one.slot) == written)?;
        Some(&register.name)
    }

    /// Returns whether an instruction is a barrier of the block.
    pub fn is_barrier(&self, pc: u32) -> bool {
        let instruction = self.code.get(pc as usize);
        instruction.is_some_and(|code| matches!(code.op, crate::isa::Op::Barrier { .. }))
    }

    /// The variables in shared memory that it uses; none unless it was read by
    /// [`Module::parse_named`](crate::Module::parse_named).
    pub fn shared_variables(&self) -> &[SharedVariable] {
        &self.variables
    }

    /// Where dynamic shared memory begins, in bytes.
    pub fn dynamic_shared(&self) -> u32 {
        self.dynamic_shared
    }
}
