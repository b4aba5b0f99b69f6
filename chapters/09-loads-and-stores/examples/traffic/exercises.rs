//! The kernels of the exercises, as runners of the bench.

use std::sync::Arc;

use bench::field::Runner;
use ch09_loads_and_stores::ahead;
use ch09_loads_and_stores::strides::{self, Known};
use linrec::Error;
use linrec::device::{Buffer, Device, ForwardOptions, Function, OverBuffers, Shape};

/// A variant of the pipe kernel.
#[derive(Debug)]
struct Exercise {
    name: String,
    function: Function,
    /// The elements per thread, and the threads per block.
    size: (u32, u32),
    shared_bytes: u32,
}

impl OverBuffers for Exercise {
    type Stored = f32;

    fn device(&self) -> &Device {
        self.function.device()
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    /// Goes from zero, with plain coefficients; final states are not written.
    fn forward_into(
        &self,
        inputs: &Buffer<f32>,
        coeffs: &Buffer<f32>,
        outputs: &mut Buffer<f32>,
        Shape { num_seqs, seq_len }: Shape,
        ForwardOptions { direction, stream, .. }: ForwardOptions<f32>,
    ) -> Result<(), Error> {
        let (size, shape) = ((self.size, self.shared_bytes), (num_seqs, seq_len));
        let launch =
            strides::launch(&self.function, size, inputs, coeffs, outputs, shape, direction);
        launch.run(stream.unwrap_or(&self.device().stream())).map(drop)
    }
}

/// Loads the pipe kernels of the exercises: with strides in variables or in constants, and with
/// loads ahead, with or without free bank words.
pub fn all(device: &Device) -> Result<Vec<Runner<f32>>, Error> {
    let mut runners = Vec::new();
    let mut add = |name: String, function: Function, size, shared_bytes| {
        runners.push(Runner::Kernel(Arc::new(Exercise { name, function, size, shared_bytes })));
    };
    let module = strides::module(device)?;
    for size in strides::SIZES {
        for known in Known::ALL {
            let name = format!("strides:{}x{}:{}", size.0, size.1, known.variable());
            add(name, module.function(&strides::entry(size, known))?, size, 0);
        }
    }
    let module = ahead::module(device)?;
    for size in ahead::SIZES {
        for free in ahead::FREE {
            let name = format!("ahead:{}x{}:{free}", size.0, size.1);
            let shared_bytes = ahead::shared_bytes(size, free);
            add(name, module.function(&ahead::entry(size, free))?, size, shared_bytes);
        }
    }
    Ok(runners)
}
