//! The pipe kernel with the distance between a thread's elements known to the compiler, or in a
//! variable: `kernels/exercises/variable_stride.cu`.

use linrec::device::{Buffer, Device, Function, Launch, Module, Storage};
use linrec::kernels::{self, ElementType, KernelChoice, Pass, PipeConfig};
use linrec::{Direction, Error};

/// What the compiler knows of the distance, 1 or -1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// In the loads.
    pub to_loads: bool,
    /// In the stores.
    pub to_stores: bool,
}

impl Known {
    /// All four.
    pub const ALL: [Known; 4] = [
        Known { to_loads: true, to_stores: true },
        Known { to_loads: true, to_stores: false },
        Known { to_loads: false, to_stores: true },
        Known { to_loads: false, to_stores: false },
    ];

    /// What is in a variable, in a word: `nothing`, `stores`, `loads`, `both`.
    pub fn variable(self) -> &'static str {
        match (self.to_loads, self.to_stores) {
            (true, true) => "nothing",
            (true, false) => "stores",
            (false, true) => "loads",
            (false, false) => "both",
        }
    }
}

/// Elements for each thread, and threads in a block, of the shipped instances.
pub const SIZES: [(u32, u32); 2] = [(4, 32), (8, 64)];

/// The kernel's name, as C++ writes it.
pub fn entry((elems, threads): (u32, u32), known: Known) -> String {
    let Known { to_loads, to_stores } = known;
    format!("linrec_strides<{elems}, {threads}, {to_loads}, {to_stores}>")
}

/// All shipped instances on a device.
///
/// # Errors
///
/// [`Error::Device`] if the device refuses them.
pub fn module(device: &Device) -> Result<Module, Error> {
    let orders = Known::ALL.into_iter().rev();
    let entries =
        SIZES.iter().flat_map(|&size| orders.clone().map(move |known| entry(size, known)));
    catalogue(device, "exercises/variable_stride.cu", entries)
}

/// The shipped instances of an exercise's kernel.
///
/// # Errors
///
/// [`Error::Device`] if the device refuses them, or there are none.
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

/// A forward pass from zero by a kernel that takes what the pipe kernel takes, with the blocks of
/// the pipe kernel of this size and so many bytes of dynamic shared memory.
///
/// The kernel takes arrays of `f32`, and it is up to the caller that `S` is that.
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

/// The pipe kernel of a size.
pub fn pipe((max_elems_per_thread, max_threads_per_block): (u32, u32)) -> KernelChoice {
    KernelChoice::Pipe(PipeConfig {
        max_elems_per_thread,
        max_threads_per_block,
        ..PipeConfig::DEFAULT
    })
}
