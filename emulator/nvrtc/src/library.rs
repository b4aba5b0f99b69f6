//! The library itself: loading it, and its C interface behind a safe one.
//!
//! The functions are called directly and not through `cudarc`, which loads a library by its name
//! alone and panics where it is missing. Here the file is known, may be chosen, and may be absent.
//! A compilation is a [`Session`], whose methods are the only callers of the C functions.
//! `tests/suite.rs` loads files that are not NVRTC, and compiles where NVRTC is found.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::Library;

use crate::{Error, Program, Ptx, text};

/// `nvrtcProgram`, a handle.
type Handle = *mut c_void;
/// `nvrtcResult`; 0 is success.
type Status = c_int;
type Strings = *const *const c_char;

/// The newest compute capability that programs are compiled for. Later GPUs run its PTX too, and
/// every driver since CUDA 12.0 knows it.
const NEWEST_ARCHITECTURE: u32 = 90;

/// The result of a compilation.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The PTX, with the kernels' names in its head.
    pub ptx: Ptx,
    /// The compiler's warnings; empty if there are none.
    pub log: String,
    /// The name of the compiler: `NVRTC 12.0`.
    pub compiler: String,
}

/// A loaded NVRTC.
#[derive(Debug)]
pub struct Nvrtc {
    path: PathBuf,
    version: (u32, u32),
    architectures: Vec<u32>,
    functions: Functions,
    /// Must live as long as the functions, which are in it.
    _library: Library,
    /// NVRTC opens this library by name when it compiles, and finds it because it is loaded.
    _builtins: Library,
}

macro_rules! functions {
    ($($name:ident = $symbol:literal($($argument:ty),*) -> $result:ty;)*) => {
        #[derive(Debug, Clone, Copy)]
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) -> $result),*
        }

        impl Functions {
            /// Looks up all functions.
            ///
            /// # Safety
            ///
            /// 1. The library is NVRTC.
            /// 2. The functions are not called after it is closed.
            unsafe fn of(library: &Library) -> Result<Functions, libloading::Error> {
                // SAFETY: each name is one of NVRTC's, with the signature that its header has
                // declared since CUDA 8.
                unsafe { Ok(Functions { $($name: *library.get($symbol)?),* }) }
            }
        }
    };
}

functions! {
    version = "nvrtcVersion"(*mut c_int, *mut c_int) -> Status;
    error = "nvrtcGetErrorString"(Status) -> *const c_char;
    num_architectures = "nvrtcGetNumSupportedArchs"(*mut c_int) -> Status;
    architectures = "nvrtcGetSupportedArchs"(*mut c_int) -> Status;
    create = "nvrtcCreateProgram"(
        *mut Handle, *const c_char, *const c_char, c_int, Strings, Strings
    ) -> Status;
    destroy = "nvrtcDestroyProgram"(*mut Handle) -> Status;
    compile = "nvrtcCompileProgram"(Handle, c_int, Strings) -> Status;
    log_size = "nvrtcGetProgramLogSize"(Handle, *mut usize) -> Status;
    log = "nvrtcGetProgramLog"(Handle, *mut c_char) -> Status;
    ptx_size = "nvrtcGetPTXSize"(Handle, *mut usize) -> Status;
    ptx = "nvrtcGetPTX"(Handle, *mut c_char) -> Status;
    add_name = "nvrtcAddNameExpression"(Handle, *const c_char) -> Status;
    lowered_name = "nvrtcGetLoweredName"(Handle, *const c_char, *mut *const c_char) -> Status;
}

impl Nvrtc {
    /// Loads the library from its file, and its `builtins` from the same folder.
    ///
    /// # Errors
    ///
    /// If `file` is not an absolute path, because the system's linker would look for it in the
    /// current folder and elsewhere. If there is no such library, if it lacks one of the functions,
    /// or if the builtins are missing.
    ///
    /// # Safety
    ///
    /// Loading a library runs code in it.
    ///
    /// 1. `file`, and the file next to it with the name of NVRTC's builtins, are NVIDIA's NVRTC:
    ///    its functions have the signatures of NVRTC's header, and loading it has no conditions.
    /// 2. Nobody else can put other files there before this returns.
    pub unsafe fn load(file: &Path) -> Result<Nvrtc, Error> {
        let refused =
            |why: String| Error::new(format!("{} could not be loaded: {why}", file.display()));
        if !file.is_absolute() {
            return Err(refused("it is not an absolute path".to_owned()));
        }
        // If they were not loaded already, the linker would look for them when NVRTC compiles.
        let builtins = builtins_of(file)
            .ok_or_else(|| refused("its builtins are not in the same folder".to_owned()))?;
        let failed = |error: libloading::Error| refused(error.to_string());
        // SAFETY: the caller vouches for both files.
        let (builtins, library) =
            unsafe { (open(&builtins).map_err(failed)?, open(file).map_err(failed)?) };
        // SAFETY: (1) the caller vouches that the library is NVRTC; (2) the functions are dropped
        // together with it.
        let functions = unsafe { Functions::of(&library) }.map_err(failed)?;
        let version = functions.version().map_err(refused)?;
        let architectures = functions.supported().map_err(refused)?;
        Ok(Nvrtc {
            path: file.to_owned(),
            version,
            architectures,
            functions,
            _library: library,
            _builtins: builtins,
        })
    }

    /// Returns the file that was loaded.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the version of CUDA that it belongs to: 12 and 0.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// Returns the newest architecture that it can compile for and that a GPU of the compute
    /// capability `architecture` runs.
    ///
    /// # Errors
    ///
    /// If the GPU is older than all architectures that it can compile for.
    pub fn nearest(&self, architecture: u32) -> Result<u32, Error> {
        let wanted = architecture.min(NEWEST_ARCHITECTURE);
        let known = self.architectures.iter().copied().filter(|&known| known <= wanted);
        known.max().ok_or_else(|| {
            let (major, minor) = self.version;
            Error::new(format!(
                "version {major}.{minor} ({}) does not compile for compute capability {}.{}",
                self.path.display(),
                architecture / 10,
                architecture % 10
            ))
        })
    }

    /// Compiles `program` to PTX for `compute_{architecture}`.
    ///
    /// # Errors
    ///
    /// If NVRTC refuses the program. The message contains the compiler's own.
    pub fn compile(&self, program: &Program, architecture: u32) -> Result<Compiled, Error> {
        let (major, minor) = self.version;
        let compiler = format!("NVRTC {major}.{minor}");
        let refused =
            |why: String| Error::new(format!("{} could not be compiled: {why}", program.file));

        let source = string(&program.source, "the source").map_err(refused)?;
        let file = string(&program.file, "the file's name").map_err(refused)?;
        let headers = &program.headers;
        let texts = strings(headers.iter().map(|header| &*header.text)).map_err(refused)?;
        let names = strings(headers.iter().map(|header| &*header.name)).map_err(refused)?;
        let entries = strings(program.entries.iter().map(String::as_str)).map_err(refused)?;
        let architecture_option = format!("--gpu-architecture=compute_{architecture}");
        let options = program.options.iter().map(String::as_str);
        let options =
            strings([architecture_option.as_str()].into_iter().chain(options)).map_err(refused)?;

        let session =
            Session::new(&self.functions, &source, &file, &texts, &names).map_err(refused)?;
        for entry in &entries {
            session.add_name(entry).map_err(refused)?;
        }
        let outcome = session.compile(&options);
        let log = session.log().map_err(refused)?;
        if let Err(why) = outcome {
            return Err(refused(if log.is_empty() { why } else { format!("{why}\n{log}") }));
        }
        let mut symbols = Vec::with_capacity(entries.len());
        for (name, entry) in program.entries.iter().zip(&entries) {
            symbols.push((name.clone(), session.lowered_name(entry).map_err(refused)?));
        }
        let body = text::tidy(&session.ptx().map_err(refused)?, program);
        let origin = [
            format!("compiled from {} by {compiler}", program.file),
            format!("options {architecture_option} {}", program.options.join(" ")),
        ];
        let body = text::rename(&body, &mut symbols);
        let ptx = Ptx::new(&origin, &program.hash().to_string(), &symbols, &body);
        Ok(Compiled { ptx, log, compiler })
    }
}

/// One compilation, whose handle is destroyed at its end. Errors are the library's own messages.
struct Session<'a> {
    functions: &'a Functions,
    handle: Handle,
}

impl<'a> Session<'a> {
    fn new(
        functions: &'a Functions,
        source: &CStr,
        file: &CStr,
        header_texts: &[CString],
        header_names: &[CString],
    ) -> Result<Self, String> {
        let (texts, names) = (pointers(header_texts), pointers(header_names));
        let num_headers = count(texts.len())?;
        let mut handle = ptr::null_mut();
        // SAFETY: (1) the function has this signature in every version since CUDA 8; (2) `source`,
        // `file` and the strings in `texts` and `names` end in a zero byte and outlive the call,
        // which copies them; (3) each list has `num_headers` pointers; (4) `handle` is writable.
        let status = unsafe {
            (functions.create)(
                &mut handle,
                source.as_ptr(),
                file.as_ptr(),
                num_headers,
                texts.as_ptr(),
                names.as_ptr(),
            )
        };
        functions.check(status)?;
        Ok(Session { functions, handle })
    }

    fn add_name(&self, entry: &CStr) -> Result<(), String> {
        // SAFETY: (1) the handle belongs to a program that has not been compiled yet and that no
        // other thread knows; (2) `entry` ends in a zero byte and is copied.
        self.functions.check(unsafe { (self.functions.add_name)(self.handle, entry.as_ptr()) })
    }

    fn compile(&self, options: &[CString]) -> Result<(), String> {
        let options = pointers(options);
        let num_options = count(options.len())?;
        // SAFETY: (1) the handle is live and no other thread knows it; (2) the list has
        // `num_options` strings, each ending in a zero byte.
        let status =
            unsafe { (self.functions.compile)(self.handle, num_options, options.as_ptr()) };
        self.functions.check(status)
    }

    fn lowered_name(&self, entry: &CStr) -> Result<String, String> {
        let mut name = ptr::null();
        // SAFETY: (1) the program has been compiled; (2) `entry` was added before with the same
        // characters; (3) `name` is writable.
        let status =
            unsafe { (self.functions.lowered_name)(self.handle, entry.as_ptr(), &mut name) };
        self.functions.check(status)?;
        if name.is_null() {
            return Err(format!("it returned no name for {}", entry.to_string_lossy()));
        }
        // SAFETY: the call succeeded, so `name` is a string that ends in a zero byte and lives as
        // long as the program. It is copied here.
        Ok(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }

    fn log(&self) -> Result<String, String> {
        let text = self.text(self.functions.log_size, self.functions.log)?;
        Ok(text.trim().to_owned())
    }

    fn ptx(&self) -> Result<String, String> {
        self.text(self.functions.ptx_size, self.functions.ptx)
    }

    /// Returns a text by a pair of functions, which return its size in bytes and the bytes.
    fn text(
        &self,
        size: unsafe extern "C" fn(Handle, *mut usize) -> Status,
        get: unsafe extern "C" fn(Handle, *mut c_char) -> Status,
    ) -> Result<String, String> {
        let mut bytes = 0;
        // SAFETY: (1) the handle is live; (2) `bytes` is writable.
        self.functions.check(unsafe { size(self.handle, &mut bytes) })?;
        let mut text = vec![0_u8; bytes];
        // SAFETY: (1) the handle is live; (2) `get` writes the number of bytes that its partner
        // `size` returned, and `text` has this length.
        self.functions.check(unsafe { get(self.handle, text.as_mut_ptr().cast()) })?;
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        text.truncate(end);
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is live and not used again. The status only says whether it was live.
        unsafe { (self.functions.destroy)(&mut self.handle) };
    }
}

impl Functions {
    fn version(&self) -> Result<(u32, u32), String> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both numbers are writable.
        self.check(unsafe { (self.version)(&mut major, &mut minor) })?;
        Ok((major.unsigned_abs(), minor.unsigned_abs()))
    }

    /// Returns the compute capabilities that it compiles for, as in `compute_80`.
    fn supported(&self) -> Result<Vec<u32>, String> {
        let mut count = 0;
        // SAFETY: the number is writable.
        self.check(unsafe { (self.num_architectures)(&mut count) })?;
        let mut architectures = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the function writes the number of numbers that its partner returned, and the list
        // has this length.
        self.check(unsafe { (self.architectures)(architectures.as_mut_ptr()) })?;
        Ok(architectures.into_iter().map(c_int::unsigned_abs).collect())
    }

    fn check(&self, status: Status) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: any number is accepted, and the result is a constant string or null.
        let words = unsafe {
            let words = (self.error)(status);
            (!words.is_null()).then(|| CStr::from_ptr(words).to_string_lossy())
        };
        Err(words.map_or_else(|| format!("error {status}"), Into::into))
    }
}

/// Loads one file, given as an absolute path.
///
/// By default Windows would also look in the current folder for the libraries that the file needs.
/// Here it looks only next to the file and in the folders of the program and the system.
///
/// # Safety
///
/// 1. The code that the file runs when it is loaded and closed has no conditions.
/// 2. Nobody else can put another file there before this returns.
unsafe fn open(file: &Path) -> Result<Library, libloading::Error> {
    #[cfg(windows)]
    {
        use libloading::os::windows;
        const FOLDERS: u32 =
            windows::LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | windows::LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
        // SAFETY: the caller vouches for the file, and an absolute path is not searched for.
        unsafe { windows::Library::load_with_flags(file, FOLDERS) }.map(Library::from)
    }
    #[cfg(not(windows))]
    // SAFETY: the caller vouches for the file, and a path with a slash is not searched for.
    unsafe {
        Library::new(file)
    }
}

/// Returns the part of NVRTC that it opens by name, in the same folder.
pub(crate) fn builtins_of(file: &Path) -> Option<PathBuf> {
    let files = file.parent()?.read_dir().ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut builtins: Vec<_> = files.filter(|file| is_builtins(file)).collect();
    builtins.sort();
    // The library's own version comes before others.
    let number = number_of(file);
    builtins.iter().rev().find(|file| number_of(file) == number).or(builtins.last()).cloned()
}

fn is_builtins(file: &Path) -> bool {
    let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    (name.starts_with("libnvrtc-builtins.so") || name.starts_with("nvrtc-builtins64_"))
        && !name.contains(".alt.")
}

/// Returns the two digits of the major version in `libnvrtc.so.12` and `nvrtc64_120_0.dll`,
/// `libnvrtc-builtins.so.12.0` and `nvrtc-builtins64_120.dll`.
fn number_of(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?;
    let (_, version) = name.split_once(".so.").or_else(|| name.split_once("64_"))?;
    Some(version.chars().take(2).collect())
}

fn string(text: &str, what: &str) -> Result<CString, String> {
    CString::new(text).map_err(|_| format!("{what} holds a zero byte"))
}

fn strings<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Vec<CString>, String> {
    texts.map(|text| string(text, "a header, an entry's name or an option")).collect()
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).collect()
}

fn count(len: usize) -> Result<c_int, String> {
    c_int::try_from(len).map_err(|_| format!("{len} headers or options are too many"))
}
