//! NCCL's library, and the table of its functions.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use libloading::Library;

use super::find::{self, failure};
use crate::Error;
use crate::device::cuda::sys::CUstream;

/// `ncclComm_t`, a handle.
pub(in crate::device::cuda) type Comm = *mut c_void;
/// `ncclDataType_t`: single bytes.
pub(in crate::device::cuda) const BYTES: c_int = 0;

/// The result of a call. Any integer is valid.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(in crate::device::cuda) struct Status(pub(in crate::device::cuda) c_int);

impl Status {
    pub(in crate::device::cuda) const SUCCESS: Status = Status(0);
    /// The call goes on; its state has to be asked for again.
    pub(in crate::device::cuda) const IN_PROGRESS: Status = Status(7);
}

/// `ncclUniqueId`, by which the ranks of a communicator find each other.
#[repr(C)]
#[derive(Clone, Copy)]
pub(in crate::device::cuda) struct RawId(pub(in crate::device::cuda) [u8; ID_BYTES]);

pub(in crate::device::cuda) const ID_BYTES: usize = 128;

/// `ncclConfig_t` of NCCL 2.14. Later versions have more fields behind it, and take them as unset
/// if size and version are these.
#[repr(C)]
pub(in crate::device::cuda) struct Config {
    size: usize,
    magic: u32,
    version: u32,
    blocking: c_int,
    /// Padding in 2.14, and the next field of later versions: it holds their value for "unset".
    unset: c_int,
}

impl Config {
    /// The mode in which no call waits.
    pub(in crate::device::cuda) fn unblocking() -> Config {
        Config {
            size: size_of::<Config>(),
            magic: 0xcafe_beef,
            version: OLDEST as u32,
            blocking: 0,
            unset: c_int::MIN,
        }
    }
}

/// The oldest version: the first with a mode in which no call waits.
const OLDEST: c_int = 21_400;

/// NCCL's functions.
#[derive(Debug)]
pub(in crate::device::cuda) struct Functions {
    version: unsafe extern "C" fn(*mut c_int) -> Status,
    words: unsafe extern "C" fn(Status) -> *const c_char,
    pub(in crate::device::cuda) unique_id: unsafe extern "C" fn(*mut RawId) -> Status,
    pub(in crate::device::cuda) init:
        unsafe extern "C" fn(*mut Comm, c_int, RawId, c_int, *mut Config) -> Status,
    pub(in crate::device::cuda) state: unsafe extern "C" fn(Comm, *mut Status) -> Status,
    pub(in crate::device::cuda) finalize: unsafe extern "C" fn(Comm) -> Status,
    pub(in crate::device::cuda) destroy: unsafe extern "C" fn(Comm) -> Status,
    pub(in crate::device::cuda) abort: unsafe extern "C" fn(Comm) -> Status,
    pub(in crate::device::cuda) all_gather:
        unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, Comm, CUstream) -> Status,
    pub(in crate::device::cuda) send:
        unsafe extern "C" fn(*const c_void, usize, c_int, c_int, Comm, CUstream) -> Status,
    pub(in crate::device::cuda) receive:
        unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, Comm, CUstream) -> Status,
    pub(in crate::device::cuda) broadcast: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        c_int,
        c_int,
        Comm,
        CUstream,
    ) -> Status,
}

/// Returns NCCL's functions; the library is loaded once, and stays.
///
/// # Errors
///
/// If the library is missing or too old, with the way out.
pub(in crate::device::cuda) fn functions() -> Result<&'static Functions, Error> {
    static LOADED: OnceLock<Result<(Functions, Library), Error>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| {
        let library = find::library()?;
        // SAFETY: (1) it has NCCL's name in a place of the system's or the user's; (2) it is kept
        // together with its functions.
        let functions = unsafe { Functions::of(&library) };
        let functions = functions.map_err(|error| {
            failure(format!("the library found lacks a function: {error}; {}", find::WAY_OUT))
        })?;
        functions.must_be_new_enough()?;
        Ok((functions, library))
    });
    loaded.as_ref().map(|(functions, _)| functions).map_err(Clone::clone)
}

impl Functions {
    /// # Safety
    ///
    /// 1. The library is NCCL.
    /// 2. The functions are not called after it is closed.
    unsafe fn of(library: &Library) -> Result<Functions, libloading::Error> {
        // SAFETY: each name is one of NCCL's, with the signature that its header has declared since
        // 2.14; the result and the type of elements are C enums, and thus integers of the size of
        // a `Status`.
        unsafe {
            Ok(Functions {
                version: *library.get(b"ncclGetVersion\0")?,
                words: *library.get(b"ncclGetErrorString\0")?,
                unique_id: *library.get(b"ncclGetUniqueId\0")?,
                init: *library.get(b"ncclCommInitRankConfig\0")?,
                state: *library.get(b"ncclCommGetAsyncError\0")?,
                finalize: *library.get(b"ncclCommFinalize\0")?,
                destroy: *library.get(b"ncclCommDestroy\0")?,
                abort: *library.get(b"ncclCommAbort\0")?,
                all_gather: *library.get(b"ncclAllGather\0")?,
                send: *library.get(b"ncclSend\0")?,
                receive: *library.get(b"ncclRecv\0")?,
                broadcast: *library.get(b"ncclBroadcast\0")?,
            })
        }
    }

    fn must_be_new_enough(&self) -> Result<(), Error> {
        let mut version = 0;
        // SAFETY: `version` may be written.
        let asked = unsafe { (self.version)(&mut version) };
        if asked != Status::SUCCESS {
            return Err(failure(format!("asking for its version failed: {}", self.words(asked))));
        }
        if version >= OLDEST {
            return Ok(());
        }
        // Versions up to 2.8 have smaller numbers of another form.
        Err(failure(format!(
            "its version is {version}, and {OLDEST} (2.14) is the oldest that can be used; {}",
            find::WAY_OUT
        )))
    }

    /// Returns NCCL's words for a code.
    pub(in crate::device::cuda) fn words(&self, status: Status) -> String {
        // SAFETY: the function takes any number, and returns null or a constant string.
        let words = unsafe {
            let words = (self.words)(status);
            (!words.is_null()).then(|| CStr::from_ptr(words).to_string_lossy().into_owned())
        };
        let words = words.unwrap_or_else(|| String::from("it has no words for it"));
        format!("{words} (code {})", status.0)
    }
}
