//! The tests of the library: one program, linked once.
//!
//! They judge the library's own engines: the CPU's, and every kernel on every device. The engine of
//! a chapter is judged in its chapter.

mod additions;
mod bits;
mod broken;
mod configurations;
mod contract;
mod cpu;
mod cpu_selective_scan;
mod device;
mod driver;
mod emulator;
mod engines;
mod exponential;
mod extremes;
mod golden;
mod group;
mod kernels;
mod mistakes;
mod probes;
mod properties;
mod readme;
mod scan_gradients;
mod selective_scan;
mod spelling;
mod streaming;
mod vectors;
mod waves;
