//! Operands and modifiers of instructions: types, roundings, spaces, orders and addresses.
//!
//! Every register is a slot, an index into one of three banks. The types here are the types that
//! instructions compute with; the types of PTX declarations are in the parser. The windows of
//! generic addresses are here because the parser needs them for `isspacep`, and the machine for
//! every generic access. Each operand is tested with the instructions that use it (`tests/suite`).

/// The type that an instruction works on. Bits (`.b32`) are unsigned integers.
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
    /// F16 with `.ftz`: subnormal operands and results become zeros with their sign.
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

    /// Returns true if values of the type are in 64-bit slots.
    pub(crate) fn is_wide(self) -> bool {
        self.bytes() == 8
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Type::F32 | Type::F32Ftz | Type::F64) || self.is_half() || self.is_pair()
    }

    /// Returns true if it is a float of 16 bits.
    pub(crate) fn is_half(self) -> bool {
        matches!(self, Type::F16 | Type::F16Ftz | Type::Bf16)
    }

    /// Returns true if it is a pair of floats of 16 bits.
    pub(crate) fn is_pair(self) -> bool {
        matches!(self, Type::F16x2 | Type::F16x2Ftz | Type::Bf16x2)
    }

    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Type::S8 | Type::S16 | Type::S32 | Type::S64)
    }
}

/// The rounding of a result to the destination's format: to nearest even, toward zero, down, up.
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
    /// Only for `ld.const`; its addresses are addresses of global memory.
    Constant,
    /// The kernel's parameters, by an address in a register; read-only.
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

/// An address: a register plus an offset, or only the offset of a variable in its space.
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

/// `Add`, `Min`, `Max` of U32, S32, U64, S64; `Add` of F32, F64; the others of U32 and U64.
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

/// A reduction of a predicate over a block: the number of threads where it is true (a 32-bit slot),
/// or a predicate that is true if it is true in all or in any.
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

/// The three banks of slots, by size.
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
    /// True if the registers have 64 bits.
    pub(crate) wide: bool,
    pub(crate) slots: [Slot; 4],
}

impl Vector {
    /// Returns a load of parameters, or another access without an order if it gets another space.
    pub(crate) fn plain(ty: Type, count: u8, wide: bool, slots: [Slot; 4]) -> Vector {
        Vector { space: Space::Parameter, order: Order::Weak, ty, count, wide, slots }
    }

    pub(crate) fn bytes(&self) -> u32 {
        self.ty.bytes() * u32::from(self.count)
    }
}

/// The numbers of a texture or surface instruction: coordinates, after a layer if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Geometry {
    One,
    Two,
    Three,
    Layers1,
    Layers2,
}

impl Geometry {
    /// Returns the geometry with this name in PTX.
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

    /// Returns the number of 32-bit numbers in a place: the layer and the coordinates.
    pub(crate) fn numbers(self) -> usize {
        match self {
            Geometry::One => 1,
            Geometry::Two | Geometry::Layers1 => 2,
            Geometry::Three | Geometry::Layers2 => 3,
        }
    }
}

/// The effect of an access outside of a surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Outside {
    /// The access is reported.
    Trap,
    /// The access goes to the nearest place.
    Clamp,
    /// The access reads zeros or writes nothing.
    Zero,
}

/// The property that `txq` or `suq` returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Query {
    Width,
    Height,
    Depth,
    Layers,
    /// 1 if coordinates are normalized, else 0.
    Normalized,
}

/// `@%p` or `@!%p`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) predicate: Slot,
    pub(crate) negated: bool,
}
