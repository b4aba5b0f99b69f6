//! The arrays, and what runs over them.

use ch05_ref_kernel::by_hand::shipped;
use ch08_reverse_and_backward::ahead;
use ch08_reverse_and_backward::strides::{self, Known};
use linrec::Direction::Forward;
use linrec::device::{
    BackwardOptions, Buffer, Device, ForwardOptions, Function, Recurrence, Storage,
};
use linrec::kernels::{Config, KernelChoice};
use linrec::{Element, Error};

/// Which way data flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Two arrays are read and one is written.
    Forward,
    /// Three and two.
    Backward,
}

impl Pass {
    pub fn name(self) -> &'static str {
        match self {
            Pass::Forward => "forward",
            Pass::Backward => "backward",
        }
    }

    /// How many arrays are moved.
    pub fn arrays(self) -> usize {
        match self {
            Pass::Forward => 3,
            Pass::Backward => 5,
        }
    }
}

/// Three arrays to be read and two to be written.
pub struct Field<S> {
    read: [Buffer<S>; 3],
    written: [Buffer<S>; 2],
}

impl<S: Storage> Field<S> {
    /// Arrays of `len` numbers in [0, 1).
    pub fn new(device: &Device, len: usize) -> Result<Field<S>, Error> {
        let fresh = |name| device.allocate_named::<S>(name, len);
        let mut read = [fresh("inputs")?, fresh("coeffs")?, fresh("outputs")?];
        let mut state = 1_u32;
        let noise: Vec<S> = (0..len.min(1 << 20))
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                S::narrow(S::Accum::from_real(f64::from(state >> 8) / f64::from(1 << 24)))
            })
            .collect();
        for buffer in &mut read {
            for start in (0..len).step_by(noise.len().max(1)) {
                let end = len.min(start + noise.len());
                buffer.slice(start..end)?.upload(&noise[..end - start])?;
            }
        }
        Ok(Field { read, written: [fresh("d_inputs")?, fresh("d_coeffs")?] })
    }

    /// What a forward pass left.
    pub fn outputs(&self, shape: (usize, usize)) -> Result<Vec<S>, Error> {
        self.written[0].slice(..shape.0 * shape.1)?.download()
    }

    /// Overwrites what a forward pass left.
    pub fn forget(&mut self) -> Result<(), Error> {
        self.written[0].zero()
    }
}

/// A kernel, ready to run over a field.
pub struct Runner<S> {
    name: String,
    machine: String,
    kernel: Kernel<S>,
}

enum Kernel<S> {
    Roof(Function, Pass),
    Pipe(Recurrence<S>, Pass),
    /// One of the exercises': with elements per thread and threads per block, and bytes of shared memory.
    Exercise(Function, ((u32, u32), u32)),
}

impl<S: Storage> Runner<S> {
    /// What reads and writes as many bytes, in words of 16.
    pub fn roof(device: &Device, pass: Pass) -> Result<Runner<S>, Error> {
        let entry = match pass {
            Pass::Forward => "elementwise_fwd<float4>",
            Pass::Backward => "elementwise_bwd<float4>",
        };
        let kernel = Kernel::Roof(shipped(device, "elementwise")?.function(entry)?, pass);
        Ok(Runner { name: String::from("roof"), machine: device.name().to_owned(), kernel })
    }

    /// The pipe kernel.
    pub fn pipe(device: &Device, choice: KernelChoice, pass: Pass) -> Result<Runner<S>, Error> {
        let KernelChoice::Pipe(Config {
            max_elems_per_thread, max_threads_per_block, memcode, ..
        }) = choice
        else {
            unreachable!("only pipes take part");
        };
        let name = format!("pipe:{max_elems_per_thread}x{max_threads_per_block}:{memcode}");
        let kernel = Kernel::Pipe(Recurrence::new(device, choice)?, pass);
        Ok(Runner { name, machine: device.name().to_owned(), kernel })
    }

    /// The same under another name.
    pub fn named(self, name: &str) -> Runner<S> {
        Runner { name: name.to_owned(), ..self }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn machine(&self) -> &str {
        &self.machine
    }
}

impl Runner<f32> {
    /// The pipe kernels of the exercises: with their strides in variables, or not; and those that ask ahead, with
    /// free words or without.
    pub fn exercises(device: &Device) -> Result<Vec<Runner<f32>>, Error> {
        let mut runners = Vec::new();
        let mut add = |name: String, function: Function, size, shared| {
            let kernel = Kernel::Exercise(function, (size, shared));
            runners.push(Runner { name, machine: device.name().to_owned(), kernel });
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
                let shared = ahead::shared_bytes(size, free);
                add(name, module.function(&ahead::entry(size, free))?, size, shared);
            }
        }
        Ok(runners)
    }
}

impl<S: Storage> Runner<S> {
    /// Queues the kernel on the device's stream.
    pub fn run(&self, field: &mut Field<S>, shape: (usize, usize)) -> Result<(), Error> {
        let len = shape.0 * shape.1;
        let [a, b, c] = [0, 1, 2].map(|i| field.read[i].slice(..len));
        let [d, e] = [0, 1].map(|i| field.written[i].slice(..len));
        let (a, b, c, mut d, mut e) = (a?, b?, c?, d?, e?);
        let stream = a.device().stream();
        match &self.kernel {
            Kernel::Roof(function, pass) => {
                let packs = len * size_of::<S>() / 16;
                let launch = function.launch(packs.div_ceil(256) as u32, 256).arg(&a).arg(&b);
                let launch = match pass {
                    Pass::Forward => launch.arg(&mut d),
                    Pass::Backward => launch.arg(&c).arg(&mut d).arg(&mut e),
                };
                launch.arg(packs as i64).run(&stream).map(drop)
            }
            Kernel::Pipe(recurrence, Pass::Forward) => {
                let options = ForwardOptions::default();
                recurrence.forward_into(&a, &b, &mut d, shape, options).map(drop)
            }
            Kernel::Pipe(recurrence, Pass::Backward) => {
                let options = BackwardOptions::default();
                recurrence.backward_into(&a, &b, &c, &mut d, &mut e, shape, options).map(drop)
            }
            Kernel::Exercise(function, size) => {
                let launch = strides::launch(function, *size, &a, &b, &mut d, shape, Forward);
                launch.run(&stream).map(drop)
            }
        }
    }
}
