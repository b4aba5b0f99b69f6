//! The view of a moment: where the warps are, their registers, and shared memory.

use std::sync::Arc;

use super::moments::Stepper;
use crate::isa::{Bank, Kernel, SharedVariable};
use crate::machine::block::Block;
use crate::machine::state::{self, Waiting};
use crate::machine::warp;

/// A warp, and the places of its lanes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warp {
    /// The block's number in the grid.
    pub block: u32,
    /// The warp's number in the block.
    pub warp: u32,
    /// The lanes that have left the kernel, one bit for each.
    pub left: u32,
    /// The places of the other lanes.
    pub paths: Vec<Path>,
}

/// Lanes of a warp that are at the same instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// The instruction that they execute next, or at which they wait.
    pub pc: u32,
    /// The lanes, one bit for each.
    pub lanes: u32,
    /// The threads or lanes that the path waits for, if it waits.
    pub waits: Option<Waits>,
}

/// The threads or lanes that a path waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// All threads of the block, or as many as a barrier names.
    Block,
    /// Lanes of their own warp.
    Lanes,
}

/// A register, with a value for every lane.
#[derive(Debug, Clone, PartialEq)]
pub struct Register {
    /// The name in the PTX.
    pub name: Arc<str>,
    /// The type of the declaration: `f32`, `b64`, `pred`.
    pub ty: &'static str,
    /// The values of all lanes.
    pub values: Values,
}

/// The bits of a register.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// A register of 16 or 32 bits.
    Words([u32; 32]),
    /// A register of 64 bits.
    Longs([u64; 32]),
    /// A predicate, with lane 0 in the lowest bit.
    Mask(u32),
}

/// A word of shared memory, or `None` if nothing has been written to it.
pub type Cell = Option<u32>;

impl Stepper {
    /// Returns the numbers of the block and of the warp whose turn it is, or `None` at the end.
    pub fn current(&self) -> Option<(u32, u32)> {
        let block = self.now.blocks.get(self.now.block)?;
        let warp = block.warps.get(self.now.warp)?;
        Some((block.number as u32, warp.index))
    }

    /// Returns the warps of the blocks that run at the moment.
    pub fn warps(&self) -> Vec<Warp> {
        let blocks = self.now.blocks.iter();
        blocks.flat_map(|block| block.warps.iter().map(|warp| view(block, warp))).collect()
    }

    /// Returns the registers of a warp whose values its next instructions may need. The list is
    /// empty if the kernel was not read by [`Module::parse_named`](crate::Module::parse_named).
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

    /// Returns the shared memory of a block, word by word.
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
    /// Returns the line of an instruction in the PTX, counted from 1, and the text of its opcode.
    ///
    /// # Panics
    ///
    /// Panics if the kernel has no such instruction.
    pub fn instruction(&self, pc: u32) -> (u32, &str) {
        (self.places[pc as usize].line, &self.opcodes[pc as usize])
    }

    /// Returns the file and line that an instruction was compiled from, if the PTX has them. For an
    /// inlined function it is the line in that function.
    pub fn source(&self, pc: u32) -> Option<(&str, u32)> {
        let (file, line) = self.places.get(pc as usize)?.source?;
        Some((self.files.get(usize::from(file))?, line))
    }

    /// Returns the name of the first register that an instruction writes, if the kernel was read by
    /// [`Module::parse_named`](crate::Module::parse_named).
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

    /// Returns the kernel's variables in shared memory. The list is empty unless the kernel was
    /// read by [`Module::parse_named`](crate::Module::parse_named).
    pub fn shared_variables(&self) -> &[SharedVariable] {
        &self.variables
    }

    /// Returns the offset in bytes at which dynamic shared memory begins.
    pub fn dynamic_shared(&self) -> u32 {
        self.dynamic_shared
    }
}
