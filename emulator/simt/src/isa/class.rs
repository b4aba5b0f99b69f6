//! What instructions count as.

/// What an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Class {
    /// Arithmetic of `f32` and `f64`, narrow conversions included.
    Float,
    /// Arithmetic, logic and comparison of integers, moves, conversions of integers and addresses.
    Integer,
    /// Approximate functions: `ex2`, `lg2`, `rcp` and their like.
    Special,
    /// Products of matrices: `mma` and `wmma.mma`.
    Matrix,
    /// Branches, calls, returns and exits.
    Control,
    /// `bar.sync`, `bar.warp.sync` and `mbarrier`.
    Barrier,
    /// Shuffles, votes and reductions across a warp.
    Shuffle,
    /// Loads of parameters, which lie in constant memory, and of variables there.
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
    /// What has no effect here.
    Nothing,
}

/// Which memory an instruction accesses, and how.
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
    /// A fetch from a texture. Sectors are not counted, here and of surfaces: how a GPU lays arrays
    /// out is not known.
    TextureFetch,
    /// A load from a surface.
    SurfaceLoad,
    /// A store to a surface.
    SurfaceStore,
    /// An access through a generic address, which may go to any of them.
    Generic,
}
