//! The kernels of the exercises, as runners of the bench.

use std::sync::Arc;

use bench::field::{Forward, Runner};
use ch09_loads_and_stores::ahead;
use ch09_loads_and_stores::strides::{self, Known};
use linrec::device::{Buffer, Device, Function, Stream};
use linrec::{Direction, Error};

/// A variant of the pipe kernel.
#[derive(Debug)]
struct Exercise {
    name: String,
    function: Function,
    /// The elements per thread, and the threads per block.
    size: (u32, u32),
    shared_bytes: u32,
}

impl Forward<f32> for Exercise {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn queue(
        &self,
        inputs: &Buffer<f32>,
        coeffs: &Buffer<f32>,
        outputs: &mut Buffer<f32>,
        shape: (usize, usize),
        stream: &Stream,
    ) -> Result<(), Error> {
        let size = (self.size, self.shared_bytes);
        let forward = Direction::Forward;
        let launch = strides::launch(&self.function, size, inputs, coeffs, outputs, shape, forward);
        launch.run(stream).map(drop)
    }
}

/// Loads the pipe kernels of the exercises: with strides in variables or in constants, and with
/// loads ahead, with or without free bank words.
pub fn all(device: &Device) -> Result<Vec<Runner<f32>>, Error> {
    let mut runners = Vec::new();
    let mut add = |name: String, function: Function, size, shared_bytes| {
        runners.push(Runner::Other(Arc::new(Exercise { name, function, size, shared_bytes })));
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
