//! The classes by which instructions and their accesses to memory are counted.

use super::operand::{Space, Type};
use super::operation::Unary;

/// The kind of work that an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Class {
    /// Arithmetic of `f32` and `f64`, narrow conversions included.
    Float,
    /// Arithmetic, logic and comparison of integers, moves, conversions of integers and addresses.
    Integer,
    /// Approximate functions: `ex2`, `lg2`, `rcp` and similar functions.
    Special,
    /// Products of matrices: `mma` and `wmma.mma`.
    Matrix,
    /// Branches, calls, returns and exits.
    Control,
    /// `bar.sync`, `bar.warp.sync` and `mbarrier`.
    Barrier,
    /// Shuffles, votes and reductions across a warp.
    Shuffle,
    /// Loads of parameters, which are in constant memory, and of variables there.
    Parameter,
    /// Loads and stores of global memory, `cp.async` included.
    Global,
    /// Loads and stores of shared memory.
    Shared,
    /// Loads and stores of local memory: arrays and registers that did not fit.
    Local,
    /// Fetches from textures, loads and stores of surfaces.
    Texture,
    /// Atomic operations and fences.
    Atomic,
    /// Instructions that have no effect here.
    Nothing,
}

/// The memory that an instruction accesses, and the direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Access {
    /// A load from global memory.
    GlobalLoad,
    /// A store to global memory.
    GlobalStore,
    /// An atomic operation on global memory.
    GlobalAtomic,
    /// A load from shared memory.
    SharedLoad,
    /// A store to shared memory.
    SharedStore,
    /// An atomic operation on shared memory.
    SharedAtomic,
    /// A copy from global to shared memory, `cp.async`.
    CopyAsync,
    /// A load from local memory.
    LocalLoad,
    /// A store to local memory.
    LocalStore,
    /// A fetch from a texture. Sectors are not counted for textures and surfaces, since the layout
    /// of arrays on a GPU is not known.
    TextureFetch,
    /// A load from a surface.
    SurfaceLoad,
    /// A store to a surface.
    SurfaceStore,
    /// An access through a generic address, which may reach any of these memories.
    Generic,
}

impl Class {
    /// Returns the class of arithmetic on a type.
    pub(crate) fn of(ty: Type) -> Class {
        if ty.is_float() { Class::Float } else { Class::Integer }
    }

    /// Returns the class of a conversion.
    pub(crate) fn of_two(to: Type, from: Type) -> Class {
        if to.is_float() { Class::Float } else { Class::of(from) }
    }

    /// Returns the class of an operation on one operand.
    pub(crate) fn of_unary(op: Unary, ty: Type) -> Class {
        match op {
            Unary::Approximate { .. } => Class::Special,
            Unary::Move => Class::Integer,
            _ => Class::of(ty),
        }
    }

    /// Returns the class of loads and stores in a space.
    pub(crate) fn of_space(space: Space) -> Class {
        match space {
            Space::Global | Space::Generic => Class::Global,
            Space::Shared => Class::Shared,
            Space::Local => Class::Local,
            Space::Constant | Space::Parameter => Class::Parameter,
        }
    }
}

impl Access {
    /// Returns the kind of a load from a space, or `None` if its requests are not counted.
    pub(crate) fn load(space: Space) -> Option<Access> {
        Access::of(space, [Access::GlobalLoad, Access::SharedLoad, Access::LocalLoad])
    }

    /// Returns the kind of a store to a space, or `None` if its requests are not counted.
    pub(crate) fn store(space: Space) -> Option<Access> {
        Access::of(space, [Access::GlobalStore, Access::SharedStore, Access::LocalStore])
    }

    /// Returns the kind of an atomic operation in a space.
    pub(crate) fn atomic(space: Space) -> Option<Access> {
        Access::of(space, [Access::GlobalAtomic, Access::SharedAtomic, Access::Generic])
    }

    fn of(space: Space, [global, shared, local]: [Access; 3]) -> Option<Access> {
        match space {
            Space::Global => Some(global),
            Space::Shared => Some(shared),
            Space::Local => Some(local),
            Space::Generic => Some(Access::Generic),
            Space::Constant | Space::Parameter => None,
        }
    }
}
