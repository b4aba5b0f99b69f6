//! What a device is like.

/// The limits and sizes of a device.
///
/// The emulator gives those of the architecture that the kernels are compiled for; what it has no
/// counterpart of is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attributes {
    /// How many blocks run at the same time at least: streaming multiprocessors (SMs) of a GPU; on
    /// the emulator the threads of the current `rayon` pool.
    pub multiprocessors: u32,
    /// Lanes in a warp.
    pub warp_size: u32,
    /// The largest number of threads of a block.
    pub max_threads_per_block: u32,
    /// The largest block along each axis.
    pub max_block: [u32; 3],
    /// The largest grid along each axis.
    pub max_grid: [u32; 3],
    /// Bytes of shared memory that every block can have.
    pub shared_bytes: u32,
    /// Bytes of shared memory that a block can have on request; a launch that needs them makes the
    /// request by itself.
    pub shared_bytes_opt_in: u32,
    /// The architecture, as major and minor number: `(9, 0)` is `sm_90`.
    pub compute_capability: (u32, u32),
    /// 32-bit registers of an SM.
    pub registers: Option<u32>,
    /// Threads that an SM holds at a time.
    pub threads_per_multiprocessor: Option<u32>,
    /// Bytes of the cache that all SMs share.
    pub l2_bytes: Option<u64>,
    /// The highest clock of the SMs, in kHz.
    pub clock_khz: Option<u32>,
    /// The highest clock of the memory, in kHz.
    pub memory_clock_khz: Option<u32>,
    /// The width of the path to memory, in bits.
    pub memory_bus_bits: Option<u32>,
    /// The newest CUDA version that the driver knows, as major and minor number.
    pub cuda_version: Option<(u32, u32)>,
    /// Whether it takes launches whose blocks wait for each other
    /// ([`Launch::cooperative`](super::Launch::cooperative)).
    pub cooperative: bool,
    /// Whether it uses the host's page tables, so that kernels can reach all of the host's memory.
    /// Some of it they can reach in any case: see [the safety of launches](super#safety).
    pub reaches_host_memory: bool,
}
