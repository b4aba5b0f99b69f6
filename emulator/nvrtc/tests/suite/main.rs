//! NVRTC, where there is one, and who is taken for it.

mod compiling;
#[cfg(target_os = "linux")]
mod foreign;
