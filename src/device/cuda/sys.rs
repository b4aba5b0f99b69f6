//! The part of the driver's binary interface that this backend uses.
//!
//! Names, numbers and layouts come from NVIDIA's documentation of the CUDA driver API, where they
//! can be looked up. Declaring them here leaves the version of every other CUDA crate in
//! a program free. A result is an integer until it has been checked: a later driver returns codes
//! that this list does not have. [`super::library`] declares the functions. The tests with a fake
//! driver (`tests/suite/driver`) call every one of them.

use std::ffi::c_int;
use std::ptr;

/// A device's number inside of the driver.
pub(super) type CUdevice = c_int;
/// An address in a device's memory.
pub(super) type CUdeviceptr = u64;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) struct $name(*mut std::ffi::c_void);

        impl $name {
            pub(super) const NULL: $name = $name(ptr::null_mut());

            pub(super) fn is_null(self) -> bool {
                self.0.is_null()
            }
        }

        // SAFETY: (1) nothing reads through the address but the driver; (2) the driver takes a
        // handle on every thread; (3) calls with it are unsafe, and each call says which context
        // is current and why no other call is in its way.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}
    )*};
}

handles! {
    /// A context.
    CUcontext;
    /// An event.
    CUevent;
    /// A kernel.
    CUfunction;
    /// A graph, as it was captured.
    CUgraph;
    /// A graph that can be launched.
    CUgraphExec;
    /// A loaded module.
    CUmodule;
    /// A stream; null is the default stream.
    CUstream;
}

impl CUstream {
    /// The stream with the handle that another library has.
    pub(super) fn lent(raw: *mut std::ffi::c_void) -> CUstream {
        CUstream(raw)
    }
}

/// The name of a memory allocation for other processes of this host. Any bytes are valid: the
/// driver returns an error for bytes that name nothing.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CUipcMemHandle(pub(super) [u8; 64]);

/// The result of a call. Any integer is valid; zero is success.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) struct CUresult(pub(super) c_int);

macro_rules! results {
    ($($name:ident = $number:literal,)*) => {
        $(pub(super) const $name: CUresult = CUresult($number);)*
    };
}

results! {
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_STUB_LIBRARY = 34,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_CONTAINED = 226,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
    CUDA_ERROR_MISALIGNED_ADDRESS = 716,
    CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
    CUDA_ERROR_INVALID_PC = 718,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    CUDA_ERROR_TENSOR_MEMORY_LEAK = 721,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_ERROR_MPS_CLIENT_TERMINATED = 810,
    CUDA_ERROR_EXTERNAL_DEVICE = 911,
}

/// A number that a device or a kernel has, with the name that errors call it by.
#[derive(Clone, Copy)]
pub(super) struct Attribute {
    pub(super) number: c_int,
    pub(super) name: &'static str,
}

macro_rules! attributes {
    ($($name:ident = $number:literal,)*) => {$(
        pub(super) const $name: Attribute =
            Attribute { number: $number, name: stringify!($name) };
    )*};
}

attributes! {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 88,
    CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
}

pub(super) const CU_EVENT_DEFAULT: u32 = 0;
pub(super) const CU_EVENT_DISABLE_TIMING: u32 = 2;
/// The only flag of `cuIpcOpenMemHandle`: the memory may be another GPU's.
pub(super) const CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS: u32 = 1;
pub(super) const CU_JIT_ERROR_LOG_BUFFER: c_int = 5;
pub(super) const CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: c_int = 6;
pub(super) const CU_STREAM_CAPTURE_MODE_RELAXED: c_int = 2;
pub(super) const CU_STREAM_NON_BLOCKING: u32 = 1;
