//! The pipe kernel with the distance between a thread's elements as a constant, or in a variable:
//! `kernels/exercises/variable_stride.cu`.

use linrec::device::{Buffer, Device, Function, Launch, Module, Storage};
use linrec::kernels::{self, ElementType, KernelChoice, Pass, PipeConfig};
use linrec::{Direction, Error};

/// The accesses for which the compiler knows the distance, which is 1 or -1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// True if it is known in the loads.
    pub to_loads: bool,
    /// True if it is known in the stores.
    pub to_stores: bool,
}

impl Known {
    /// All four combinations.
    pub const ALL: [Known; 4] = [
        Known { to_loads: true, to_stores: true },
        Known { to_loads: true, to_stores: false },
        Known { to_loads: false, to_stores: true },
        Known { to_loads: false, to_stores: false },
    ];

    /// Names the accesses that use a variable: `nothing`, `stores`, `loads`, `both`.
    pub fn variable(self) -> &'static str {
        match (self.to_loads, self.to_stores) {
            (true, true) => "nothing",
            (true, false) => "stores",
            (false, true) => "loads",
            (false, false) => "both",
        }
    }
}

/// The elements per thread, and threads per block, of the shipped instances.
pub const SIZES: [(u32, u32); 2] = [(4, 32), (8, 64)];

/// Returns the kernel's name in C++.
pub fn entry((elems, threads): (u32, u32), known: Known) -> String {
    let Known { to_loads, to_stores } = known;
    format!("linrec_strides<{elems}, {threads}, {to_loads}, {to_stores}>")
}

/// Loads all shipped instances on a device.
///
/// # Errors
///
/// Returns [`Error::Device`] if the device refuses them.
pub fn module(device: &Device) -> Result<Module, Error> {
    let orders = Known::ALL.into_iter().rev();
    let entries =
        SIZES.iter().flat_map(|&size| orders.clone().map(move |known| entry(size, known)));
    catalogue(device, "exercises/variable_stride.cu", entries)
}

/// Loads the shipped instances of an exercise's kernel.
///
/// # Errors
///
/// Returns [`Error::Device`] if the device refuses them, or if there are none.
pub fn catalogue(
    device: &Device,
    path: &str,
    entries: impl IntoIterator<Item = String>,
) -> Result<Module, Error> {
    let program = kernels::program(path).ok_or_else(|| {
        let message = format!("{path} is not in the catalogue");
        Error::Device { device: device.label().to_owned(), message }
    })?;
    device.program(&program.with_entries(entries))
}

/// Prepares a forward pass from zero by a kernel with the pipe kernel's parameters. It has the
/// blocks of the pipe kernel of this size, and `shared_bytes` bytes of dynamic shared memory.
///
/// The kernel expects arrays of `f32`; the caller must ensure that `S` is `f32`.
pub fn launch<'a, S: Storage>(
    kernel: &'a Function,
    (size, shared_bytes): ((u32, u32), u32),
    inputs: &'a Buffer<S>,
    coeffs: &'a Buffer<S>,
    outputs: &'a mut Buffer<S>,
    (num_seqs, seq_len): (usize, usize),
    direction: Direction,
) -> Launch<'a> {
    let geometry =
        pipe(size).geometry(ElementType::F32, Pass::Forward, num_seqs as u64, seq_len as u64);
    let none = None::<&Buffer<f32>>;
    let launch = kernel.launch(geometry.blocks as u32, geometry.threads).shared(shared_bytes);
    let launch = launch.arg(inputs).arg(coeffs).arg(outputs).arg(none).arg(none);
    let launch = launch.arg(num_seqs as i64).arg(seq_len as i64);
    launch.arg(i32::from(direction == Direction::Reverse))
}

/// Returns the pipe kernel of a size.
pub fn pipe((max_elems_per_thread, max_threads_per_block): (u32, u32)) -> KernelChoice {
    KernelChoice::Pipe(PipeConfig {
        max_elems_per_thread,
        max_threads_per_block,
        ..PipeConfig::DEFAULT
    })
}
