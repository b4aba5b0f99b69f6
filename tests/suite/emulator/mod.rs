//! Runs shipped kernels that no engine of the library uses, by the emulator's own interface.
#![allow(dead_code, reason = "each test uses a part")]

pub mod engine;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use linrec::kernels;
use linrec::simt::{Counters, Launch, Memory, Module, Prepared, Report};

#[derive(Debug, Clone, Copy)]
pub enum Argument {
    /// The address of a buffer, null, or a 64-bit number.
    Long(u64),
    /// A 32-bit number.
    Int(i32),
}

pub struct Shipped {
    module: Arc<Module>,
    symbol: String,
}

impl Shipped {
    /// Finds the kernel with the C++ name `entry` in `kernels/ptx/{name}.ptx`.
    pub fn new(name: &str, entry: &str) -> Shipped {
        let (_, ptx) = kernels::shipped()
            .find(|(shipped, _)| *shipped == name)
            .unwrap_or_else(|| panic!("{name} is not shipped"));
        let module = parsed(name, ptx.text());
        let symbol = ptx.symbol(entry).unwrap_or_else(|| panic!("{name} has no {entry}"));
        Shipped { module, symbol: symbol.to_owned() }
    }

    /// Runs the blocks `range` of a grid of `blocks`.
    pub fn run_range(
        &self,
        memory: &Memory,
        blocks: u32,
        threads: u32,
        arguments: &[Argument],
        range: std::ops::Range<u64>,
    ) -> Result<Counters, Report> {
        self.run_shared(memory, blocks, (threads, 0), arguments, range)
    }

    /// Runs some blocks of a grid, with `shared_bytes` bytes of dynamic shared memory each.
    pub fn run_shared(
        &self,
        memory: &Memory,
        blocks: u32,
        (threads, shared_bytes): (u32, u32),
        arguments: &[Argument],
        range: std::ops::Range<u64>,
    ) -> Result<Counters, Report> {
        let kernel = self.module.kernel(&self.symbol).expect("the head names kernels of its PTX");
        let bytes = bytes_of(arguments);
        let mut launch = Launch::new(kernel, [blocks, 1, 1], [threads, 1, 1], &bytes);
        launch.dynamic_shared = shared_bytes;
        let launch = launch.prepare(memory)?;
        if kernel.communicates() { launch.run_together(range, None) } else { launch.run(range) }
    }

    /// Runs whole grids alongside each other, one for each list of arguments.
    pub fn run_side_by_side(
        &self,
        memory: &Memory,
        blocks: u32,
        threads: u32,
        arguments: &[Vec<Argument>],
    ) -> Result<(), Report> {
        let kernel = self.module.kernel(&self.symbol).expect("the head names kernels of its PTX");
        let bytes: Vec<_> = arguments.iter().map(|arguments| bytes_of(arguments)).collect();
        let launches = bytes.iter().map(|bytes| {
            Launch::new(kernel, [blocks, 1, 1], [threads, 1, 1], bytes).prepare(memory)
        });
        Prepared::run_side_by_side(&launches.collect::<Result<Vec<_>, _>>()?).map(drop)
    }

    pub fn run(
        &self,
        memory: &Memory,
        blocks: u32,
        threads: u32,
        arguments: &[Argument],
    ) -> Result<Counters, Report> {
        self.run_range(memory, blocks, threads, arguments, 0..u64::from(blocks))
    }
}

fn bytes_of(arguments: &[Argument]) -> Vec<u8> {
    let bytes = arguments.iter().flat_map(|argument| match argument {
        Argument::Long(value) => value.to_le_bytes().to_vec(),
        Argument::Int(value) => value.to_le_bytes().to_vec(),
    });
    bytes.collect()
}

/// Parses a PTX, once for all tests.
fn parsed(name: &str, text: &str) -> Arc<Module> {
    static ALL: Mutex<BTreeMap<String, Arc<Module>>> = Mutex::new(BTreeMap::new());
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let parse = || Module::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    all.entry(name.to_owned()).or_insert_with(|| Arc::new(parse())).clone()
}

/// Makes a buffer with these values and a name for reports.
pub fn upload(memory: &Memory, name: &str, values: &[f32]) -> Argument {
    let Argument::Long(address) = allocate(memory, name, values.len()) else { unreachable!() };
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    memory.write(address, &bytes).unwrap();
    Argument::Long(address)
}

/// Makes a buffer of `len` floats that are not written.
pub fn allocate(memory: &Memory, name: &str, len: usize) -> Argument {
    Argument::Long(memory.allocate(name, 4 * len as u64).unwrap())
}

pub fn zeros(memory: &Memory, name: &str, len: usize) -> Argument {
    upload(memory, name, &vec![0.0; len])
}

pub fn download(memory: &Memory, buffer: Argument, len: usize) -> Vec<f32> {
    let Argument::Long(address) = buffer else { panic!("{buffer:?} is no buffer") };
    let mut bytes = vec![0; 4 * len];
    memory.read(address, &mut bytes).unwrap();
    bytes.chunks(4).map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect()
}
