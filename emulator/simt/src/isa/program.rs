//! A decoded kernel: the parser's result, which the machine runs.
//!
//! Every operand is a *slot*: one register of all 32 lanes of a warp. Immediates and special
//! registers are slots, too. They are filled when a warp starts, so an instruction never checks the
//! kind of an operand. There are three banks: 32-bit slots, 64-bit slots, and predicates (one mask
//! of 32 bits). 16-bit values are in the lower half of 32-bit slots; the upper half is undefined.
//! Tested by `tests/suite/declarations.rs`, `variables.rs` and `cases/calls.ptx`.

use std::ops::Range;
use std::sync::Arc;

use super::instruction::Instruction;
use super::operand::{Bank, Slot};
use super::operation::Compare;

/// A kernel of a [`Module`](crate::Module), ready to run.
#[derive(Debug, Clone, Default)]
pub struct Kernel {
    pub(crate) name: Arc<str>,
    pub(crate) params: Vec<Param>,
    pub(crate) param_bytes: u32,
    /// The bytes of `.shared` variables with a size, and the offset of dynamic shared memory.
    pub(crate) static_shared: u32,
    pub(crate) dynamic_shared: u32,
    /// The bytes of `.local` variables of a thread.
    pub(crate) local_bytes: u32,
    /// `.maxntid` and `.reqntid`: the number of threads that a block may, or must, have.
    pub(crate) max_threads: Option<[u32; 3]>,
    pub(crate) required_threads: Option<[u32; 3]>,
    /// The number of slots in each bank.
    pub(crate) slots: [u32; 3],
    /// The registers with their names, if the module was parsed with names; likewise the variables
    /// in shared memory.
    pub(crate) registers: Vec<Register>,
    pub(crate) variables: Vec<SharedVariable>,
    pub(crate) presets: Vec<Preset>,
    pub(crate) code: Vec<Instruction>,
    /// The place in the source of each instruction of `code`.
    pub(crate) places: Vec<Place>,
    /// The text of each instruction, by index in `code`: its opcode with modifiers, as in the PTX.
    pub(crate) opcodes: Vec<Arc<str>>,
    /// The names of `.file` directives, by the index in a [`Place`].
    pub(crate) files: Arc<[Arc<str>]>,
    /// The first instruction of the kernel itself, after the functions that it calls.
    pub(crate) entry: u32,
    pub(crate) calls: Vec<Call>,
    /// The functions that it calls, in the order of their numbers in the module.
    pub(crate) functions: Vec<Function>,
    /// The variables of its module in device memory.
    pub(crate) globals: Arc<[Declared]>,
}

/// A call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) callee: Callee,
    /// The places of the arguments and of the results in the caller's frame.
    pub(crate) arguments: Vec<Passed>,
    pub(crate) returns: Vec<Option<Passed>>,
    /// The slot with the address of the caller's frame; `None` for a kernel, whose frame is at 0.
    pub(crate) frame: Option<Slot>,
    /// The bytes of the caller's frame. The callee's frame follows it.
    pub(crate) frame_bytes: u32,
    /// The caller's registers, if it may be called again before this call returns.
    pub(crate) saved: Option<Saved>,
    /// The instruction after the call.
    pub(crate) back: u32,
}

/// The target of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callee {
    /// A function by its number: in the module and, once linked, in the kernel.
    Function(u32),
    /// The function whose address is in a register.
    Pointer,
    System(System),
}

/// A function of the CUDA system, which no module defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    /// `vprintf`.
    Print,
    /// `__assertfail`.
    Assert,
}

impl System {
    /// Returns the system function with a name.
    pub(crate) fn of(name: &str) -> Option<System> {
        match name {
            "vprintf" => Some(System::Print),
            "__assertfail" => Some(System::Assert),
            _ => None,
        }
    }

    /// Returns the bytes of each parameter, and of each result.
    pub(crate) fn signature(self) -> (&'static [u32], &'static [u32]) {
        match self {
            System::Print => (&[8, 8], &[4]),
            System::Assert => (&[8, 8, 4, 8, 8], &[]),
        }
    }
}

/// A value in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// The range of slots in each of the three banks that belongs to a function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Saved {
    pub(crate) begins: [Slot; 3],
    pub(crate) ends: [Slot; 3],
}

/// A function that a kernel calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct Function {
    pub(crate) name: Arc<str>,
    /// Its number in the module.
    pub(crate) number: u32,
    /// Its first instruction.
    pub(crate) entry: u32,
    /// The slot with the address of its frame, and the bytes of the frame.
    pub(crate) frame: Slot,
    pub(crate) frame_bytes: u32,
    pub(crate) params: Vec<Passed>,
    pub(crate) returns: Vec<Passed>,
}

impl Function {
    /// Returns the address of the function with this number in its module. Nothing else is at it.
    pub(crate) fn address(number: u32) -> u64 {
        FUNCTIONS + 16 * u64::from(number)
    }

    /// Returns the number of the function at an address.
    pub(crate) fn at(address: u64) -> Option<u32> {
        let offset = address.checked_sub(FUNCTIONS).filter(|offset| offset.is_multiple_of(16))?;
        u32::try_from(offset / 16).ok()
    }
}

/// The first address of a function: above the windows of generic addresses, below global memory.
const FUNCTIONS: u64 = 1 << 36;

/// A register that the PTX names.
#[derive(Debug, Clone)]
pub(crate) struct Register {
    pub(crate) name: Arc<str>,
    /// The type that it is declared with: `f32`, `b64`, `pred`.
    pub(crate) ty: &'static str,
    pub(crate) bank: Bank,
    pub(crate) slot: Slot,
    /// The instructions before which its value may still be needed.
    pub(crate) live: Range<u32>,
}

/// A variable in shared memory, of a kernel that was read by
/// [`Module::parse_named`](crate::Module::parse_named).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedVariable {
    /// Its name in the PTX.
    pub name: Arc<str>,
    /// Its offset in the block's shared memory, in bytes.
    pub offset: u32,
    /// Its size in bytes.
    pub bytes: u32,
}

/// A parameter of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Its name in the PTX: the kernel's name and a number.
    pub name: Arc<str>,
    /// Its type in the PTX, or the type of its elements: `u64`, `b8`.
    pub ty: &'static str,
    /// Its size in bytes; 0 for a texture, a sampler or a surface.
    pub bytes: u32,
    /// Its required alignment in bytes, a power of two.
    pub align: u32,
    /// Its offset among the parameters, in bytes.
    pub offset: u32,
}

/// The place of an instruction in the PTX, and in the source that it was compiled from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The line of the PTX, from 1.
    pub(crate) line: u32,
    /// The file (an index into [`Kernel::files`]) and line of the last `.loc` before it. For an
    /// inlined function, this is the line inside of the function.
    pub(crate) source: Option<(u16, u32)>,
}

/// The value of a slot before the first instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Preset {
    Word {
        slot: Slot,
        value: u32,
    },
    Long {
        slot: Slot,
        value: u64,
    },
    Predicate {
        slot: Slot,
        value: bool,
    },
    /// The address of a variable in device memory, by its number in the module, plus `offset`.
    Global {
        slot: Slot,
        variable: u32,
        offset: i64,
    },
    /// The address of a function's frame, which each call sets.
    Frame {
        slot: Slot,
    },
    /// A special register, in a 32-bit slot.
    Special {
        slot: Slot,
        which: Special,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Special {
    /// `%tid`, `%ntid`, `%ctaid`, `%nctaid`; the axis is 0 to 2.
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    /// `%nwarpid`: warps in the block.
    WarpCount,
    /// `WARP_SZ`, 32.
    WarpSize,
    /// `%lanemask_eq`, `_le`, `_lt`, `_ge`, `_gt`.
    LaneMask(Compare),
    /// `%dynamic_smem_size`, `%total_smem_size`.
    DynamicShared,
    TotalShared,
    /// `%reserved_smem_offset_begin`, `_end`, `_cap`, `_0`, `_1`.
    Reserved(Reserved),
    /// `%smid` and `%nsmid`: the emulator has one multiprocessor, number 0.
    Multiprocessor,
    MultiprocessorCount,
    /// `%envreg0` to `%envreg31`, which the driver sets. CUDA stores the address of a cooperative
    /// launch's workspace in `%envreg1` (the upper half) and `%envreg2`, and 0 in the others.
    Environment(u8),
}

/// A place in the shared memory that CUDA reserves in each block, or its size. Code of cooperative
/// groups reads it where tiles of several warps meet. Here it is after the kernel's shared memory,
/// with a gap, so that an access slightly past the kernel's end does not reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reserved {
    Begin,
    Middle,
    End,
    Size,
}

impl Reserved {
    const BYTES: u32 = 1024;
    const GAP: u32 = 1024;

    /// Returns the value of the register if the kernel has `own` bytes of shared memory.
    pub(crate) fn value(self, own: u32) -> u32 {
        let begin = own.saturating_add(Reserved::GAP) / 16 * 16;
        match self {
            Reserved::Begin => begin,
            Reserved::Middle => begin.saturating_add(Reserved::BYTES / 2),
            Reserved::End => begin.saturating_add(Reserved::BYTES),
            Reserved::Size => Reserved::BYTES,
        }
    }
}

impl Kernel {
    /// Returns true if it uses variables of its module in device memory.
    pub(crate) fn uses_globals(&self) -> bool {
        self.presets.iter().any(|preset| matches!(preset, Preset::Global { .. }))
    }

    /// Returns true if it reads the workspace of a cooperative launch, so that it may wait at a
    /// barrier of the grid.
    pub(crate) fn uses_workspace(&self) -> bool {
        self.uses_special(|which| matches!(which, Special::Environment(1 | 2)))
    }

    /// Returns true if it uses the shared memory that CUDA reserves.
    pub(crate) fn uses_reserved_shared(&self) -> bool {
        self.uses_special(|which| matches!(which, Special::Reserved(_)))
    }

    fn uses_special(&self, is_one: fn(Special) -> bool) -> bool {
        let is_one =
            |preset: &Preset| matches!(*preset, Preset::Special { which, .. } if is_one(which));
        self.presets.iter().any(is_one)
    }

    /// Returns the kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the bytes of all parameters together, with the padding between them: the length of
    /// [`Launch::arguments`](crate::Launch::arguments).
    pub fn param_bytes(&self) -> u32 {
        self.param_bytes
    }

    /// Returns its parameters, in order.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Returns the bytes of shared memory that it has in any launch, without the dynamic part.
    pub fn shared_bytes(&self) -> usize {
        self.static_shared as usize
    }

    /// Returns the bytes of local memory of each thread.
    pub fn local_bytes(&self) -> usize {
        self.local_bytes as usize
    }

    /// Returns the file and line that an instruction was compiled from.
    pub(crate) fn source_of(&self, pc: usize) -> Option<(Arc<str>, u32)> {
        let (file, line) = self.places[pc].source?;
        Some((self.files.get(usize::from(file))?.clone(), line))
    }

    /// Returns the place of an instruction in words: `ref.cu:12`, or else the line of the PTX.
    pub(crate) fn place_of(&self, pc: usize) -> String {
        match self.source_of(pc) {
            Some((file, line)) => format!("{file}:{line}"),
            None => format!("PTX line {}", self.places[pc].line),
        }
    }

    /// Returns the largest number of threads of a block: the bound of `__launch_bounds__`, or 1024.
    pub fn max_threads_per_block(&self) -> usize {
        let bounds = self.required_threads.or(self.max_threads);
        bounds.map_or(1024, |[x, y, z]| {
            (u64::from(x) * u64::from(y) * u64::from(z)).min(1024) as usize
        })
    }
}

/// A variable as a module declares it.
#[derive(Debug, Clone)]
pub(crate) struct Declared {
    pub(crate) name: Arc<str>,
    pub(crate) constant: bool,
    pub(crate) bytes: u32,
    /// The initial bytes that are not zero, in ascending order and without overlaps.
    pub(crate) pieces: Vec<Piece>,
    pub(crate) addresses: Vec<Reference>,
}

/// Initial bytes from an offset on.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) offset: u32,
    pub(crate) bytes: Vec<u8>,
}

/// The address of another variable, plus `more` bytes, at an offset in a variable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reference {
    pub(crate) offset: u32,
    /// The number of a variable of the module.
    pub(crate) to: u32,
    pub(crate) more: i64,
}

impl Call {
    /// Returns a call before it is linked.
    pub(crate) fn new(
        callee: Callee,
        arguments: Vec<Passed>,
        returns: Vec<Option<Passed>>,
    ) -> Call {
        Call { callee, arguments, returns, frame: None, frame_bytes: 0, saved: None, back: 0 }
    }

    /// Returns a mismatch with what a function takes, as the rest of a sentence.
    pub(crate) fn mismatch(&self, params: &[Passed], returns: &[Passed]) -> Option<String> {
        let (given, takes) = (self.arguments.len(), params.len());
        if given != takes {
            return Some(format!("hands over {given} arguments, and it takes {takes}"));
        }
        // Results may be ignored.
        let (wanted, gives) = (self.returns.len(), returns.len());
        if wanted > gives {
            return Some(format!("wants {wanted} results, and it gives {gives}"));
        }
        let arguments = self.arguments.iter().zip(params).find(|(a, b)| a.bytes != b.bytes);
        let results = self.returns.iter().flatten().zip(returns).find(|(a, b)| a.bytes != b.bytes);
        let (here, there) = arguments.or(results)?;
        Some(format!("hands over {} bytes where it has {}", here.bytes, there.bytes))
    }
}
