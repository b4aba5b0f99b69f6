//! What the operands and modifiers of instructions say: types, roundings, spaces, orders,
//! addresses.
//!
//! Every register is a slot, an index into one of three banks. Types are those that instructions
//! compute with; types as PTX writes them are the parser's. The windows of generic addresses are
//! here because the parser needs them for `isspacep`, and the machine for every generic access.
//! Each of them is tested with the instructions that have it.

/// The type an instruction works on. Bits (`.b32`) are unsigned integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Type {
    U8,
    S8,
    U16,
    S16,
    U32,
    S32,
    U64,
    S64,
    F16,
    /// F16 of an instruction with `.ftz`: subnormal operands and results are zeros of their sign.
    F16Ftz,
    Bf16,
    /// Two halves in 32 bits.
    F16x2,
    F16x2Ftz,
    Bf16x2,
    F32,
    F32Ftz,
    F64,
}

impl Type {
    pub(crate) fn bytes(self) -> u32 {
        match self {
            Type::U8 | Type::S8 => 1,
            Type::U16 | Type::S16 | Type::F16 | Type::F16Ftz | Type::Bf16 => 2,
            Type::U32 | Type::S32 | Type::F32 | Type::F32Ftz => 4,
            Type::F16x2 | Type::F16x2Ftz | Type::Bf16x2 => 4,
            Type::U64 | Type::S64 | Type::F64 => 8,
        }
    }

    /// Returns whether values of the type live in 64-bit slots.
    pub(crate) fn is_wide(self) -> bool {
        self.bytes() == 8
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Type::F32 | Type::F32Ftz | Type::F64) || self.is_half() || self.is_pair()
    }

    /// Returns whether it is a float of 16 bits.
    pub(crate) fn is_half(self) -> bool {
        matches!(self, Type::F16 | Type::F16Ftz | Type::Bf16)
    }

    /// Returns whether it is two floats of 16 bits.
    pub(crate) fn is_pair(self) -> bool {
        matches!(self, Type::F16x2 | Type::F16x2Ftz | Type::Bf16x2)
    }

    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Type::S8 | Type::S16 | Type::S32 | Type::S64)
    }
}

/// How a result is rounded to the destination's format: to nearest even, toward zero, down, up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Round {
    Nearest,
    Zero,
    Down,
    Up,
}

/// The bounds that a float result is clamped to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Clamp {
    Not,
    /// `.sat`: to [0, 1], and +0 if it is NaN.
    Saturate,
    /// `.relu`: to +0 if it is negative.
    Relu,
}

/// A state space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Space {
    Global,
    Shared,
    Local,
    /// `ld.const` only: its addresses are those of global memory.
    Constant,
    /// The kernel's parameters, at an address in a register: only read.
    Parameter,
    Generic,
}

/// The order of an access among the accesses of other threads. Cache hints (`.cs`, `.nc`, …) are
/// `Weak`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Order {
    Weak,
    /// `.volatile` and `.relaxed`.
    Relaxed,
    Acquire,
    Release,
    AcquireRelease,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    Block,
    Device,
}

/// An address: a register plus an offset, or the offset alone (of a variable in its space).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) base: Base,
    pub(crate) offset: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    Zero,
    Word(Slot),
    Long(Slot),
}

/// U32, S32, U64, S64 (`Add`, `Min`, `Max`), F32, F64 (`Add`), U32 and U64 (the rest).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Atomic {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exchange,
    CompareAndSwap,
    /// `inc` and `dec` of U32, which wrap at the operand.
    Increment,
    Decrement,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

/// The number of a barrier, or the 32-bit slot that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BarrierId {
    Number(u8),
    Register(Slot),
}

/// The lower or upper half of 64 bits, or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Clock {
    Low,
    High,
    Whole,
}

/// A reduction of the predicates of a block: the number that hold (a 32-bit slot), or whether all
/// or any hold (a predicate).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reduction {
    Count,
    All,
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Vote {
    All,
    Any,
    Uniform,
}

/// A register: an index into the bank that its type belongs to.
pub(crate) type Slot = u16;

/// The three kinds of slots, by what fits in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bank {
    Word,
    Long,
    Predicate,
}

/// Generic addresses: shared and local memory and the parameters each have a window below the first
/// buffer of global memory.
pub(crate) const SHARED_WINDOW: u64 = 1 << 32;
pub(crate) const LOCAL_WINDOW: u64 = 2 << 32;
pub(crate) const PARAMETER_WINDOW: u64 = 3 << 32;
pub(crate) const WINDOW_END: u64 = 4 << 32;

/// A load or a store of every lane: `count` values of type `ty`.
#[derive(Clone, Copy)]
pub(crate) struct Vector {
    pub(crate) space: Space,
    pub(crate) order: Order,
    pub(crate) ty: Type,
    pub(crate) count: u8,
    /// The registers have 64 bits.
    pub(crate) wide: bool,
    pub(crate) slots: [Slot; 4],
}

impl Vector {
    /// One of parameters, which nothing orders.
    pub(crate) fn plain(ty: Type, count: u8, wide: bool, slots: [Slot; 4]) -> Vector {
        Vector { space: Space::Parameter, order: Order::Weak, ty, count, wide, slots }
    }

    pub(crate) fn bytes(&self) -> u32 {
        self.ty.bytes() * u32::from(self.count)
    }
}

/// The geometry of a texture or surface instruction: its coordinates, behind the number of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Geometry {
    One,
    Two,
    Three,
    Layers1,
    Layers2,
}

impl Geometry {
    /// As PTX writes it.
    pub(crate) fn of(name: &str) -> Option<Geometry> {
        let all = [Self::One, Self::Two, Self::Three, Self::Layers1, Self::Layers2];
        all.into_iter().find(|geometry| geometry.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Geometry::One => "1d",
            Geometry::Two => "2d",
            Geometry::Three => "3d",
            Geometry::Layers1 => "a1d",
            Geometry::Layers2 => "a2d",
        }
    }

    pub(crate) fn is_layered(self) -> bool {
        matches!(self, Geometry::Layers1 | Geometry::Layers2)
    }

    /// Returns the count of numbers of a place: the layer and the coordinates.
    pub(crate) fn numbers(self) -> usize {
        match self {
            Geometry::One => 1,
            Geometry::Two | Geometry::Layers1 => 2,
            Geometry::Three | Geometry::Layers2 => 3,
        }
    }
}

/// What an access outside of a surface does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Outside {
    /// It is reported.
    Trap,
    /// It goes to the nearest place.
    Clamp,
    /// It reads zeros, or writes nothing.
    Zero,
}

/// The property that `txq` or `suq` returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Query {
    Width,
    Height,
    Depth,
    Layers,
    /// Whether coordinates are normalized.
    Normalized,
}

/// `@%p` or `@!%p`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) predicate: Slot,
    pub(crate) negated: bool,
}
