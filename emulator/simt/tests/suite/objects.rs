//! Kernels on textures and surfaces: a short way from an instruction to its results, in every way
//! to run.

use crate::kernel::module;
use simt::{AddressMode, Counters, Launch, Memory, Module, Report, Sampler, Trace};

/// Geometries as PTX writes them, and the registers that say where.
pub const GEOMETRIES: [(&str, &str); 5] = [
    ("1d", "{%f1}"),
    ("2d", "{%f1, %f2}"),
    ("3d", "{%f1, %f2, %f3, %f3}"),
    ("a1d", "{%r5, %f1}"),
    ("a2d", "{%r5, %f1, %f2, %f2}"),
];

/// A kernel that lets each thread execute `body`, with the object in `%rd1`; of a number and three
/// floats from the second buffer in `%r5` and `%f1` to `%f3`, and `%r6` to `%r8` with the same
/// bits. What is then in `%r10` to `%r13` goes to the third.
pub fn kernel(body: &str) -> Module {
    kernel_with("", body)
}

/// A kernel as that of [`kernel`], in a module with these variables.
pub fn kernel_with(variables: &str, body: &str) -> Module {
    let source = format!(
        ".version 8.0
        .target sm_80
        .address_size 64
        {variables}
        .visible .entry k(.param .u64 object, .param .u64 at, .param .u64 out)
        {{
            .reg .b16 %h<9>;
            .reg .b32 %r<30>;
            .reg .f32 %f<9>;
            .reg .b64 %rd<20>;
            ld.param.u64 %rd1, [object];
            ld.param.u64 %rd2, [at];
            ld.param.u64 %rd3, [out];
            mov.u32 %r1, %ctaid.x;
            mov.u32 %r2, %ntid.x;
            mov.u32 %r3, %tid.x;
            mad.lo.u32 %r1, %r1, %r2, %r3;
            mul.wide.u32 %rd4, %r1, 16;
            add.s64 %rd2, %rd2, %rd4;
            add.s64 %rd3, %rd3, %rd4;
            ld.global.v4.u32 {{%r5, %r6, %r7, %r8}}, [%rd2];
            mov.b32 %f1, %r6;
            mov.b32 %f2, %r7;
            mov.b32 %f3, %r8;
            mov.u32 %r10, 0;
            mov.u32 %r11, 0;
            mov.u32 %r12, 0;
            mov.u32 %r13, 0;
            {body}
            st.global.v4.u32 [%rd3], {{%r10, %r11, %r12, %r13}};
            ret;
        }}"
    );
    module(&source)
}

/// A fetch for [`kernel`].
pub fn fetch(opcode: &str, at: &str) -> String {
    let level = if opcode.contains("level") { ", %f1" } else { "" };
    match opcode.contains(".v4.f32.") {
        true => format!(
            "{opcode} {{%f4, %f5, %f6, %f7}}, [%rd1, {at}]{level};
            mov.b32 %r10, %f4; mov.b32 %r11, %f5; mov.b32 %r12, %f6; mov.b32 %r13, %f7;"
        ),
        false => format!("{opcode} {{%r10, %r11, %r12, %r13}}, [%rd1, {at}]{level};"),
    }
}

/// A sampler with these address modes, one for each axis.
pub fn sampler(address_modes: [AddressMode; 3], normalized_coordinates: bool) -> Sampler {
    Sampler { address_modes, normalized_coordinates, ..Sampler::default() }
}

/// The bytes of the arguments of [`kernel`].
pub fn arguments(object: u64, at: u64, out: u64) -> Vec<u8> {
    [object, at, out].into_iter().flat_map(u64::to_le_bytes).collect()
}

/// The ways to run a launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Way {
    Plain,
    Traced,
    Together,
}

pub const WAYS: [Way; 3] = [Way::Plain, Way::Traced, Way::Together];

pub fn launch(launch: Launch, memory: &Memory, way: Way) -> Result<Counters, Report> {
    let (prepared, blocks) = (launch.prepare(memory)?, launch.blocks());
    match way {
        Way::Plain => prepared.run(0..blocks),
        Way::Traced => prepared.run_traced(0..blocks, &mut Trace::new(1 << 16)),
        Way::Together => prepared.run_together(0..blocks, None),
    }
}

/// Runs a kernel of [`kernel`] for each of these numbers, in every way, which must give the same.
pub fn run(
    module: &Module,
    memory: &Memory,
    object: u64,
    at: &[[u32; 4]],
) -> Result<Vec<[u32; 4]>, Report> {
    let threads = 64;
    let mut padded = at.to_vec();
    padded.resize(at.len().next_multiple_of(threads), at[0]);
    let bytes: Vec<u8> = padded.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    let places = memory.allocate("at", bytes.len() as u64).unwrap();
    memory.write(places, &bytes).unwrap();
    let out = memory.allocate("out", bytes.len() as u64).unwrap();
    let arguments = arguments(object, places, out);
    let grid = [(padded.len() / threads) as u32, 1, 1];
    let kernel = module.kernel("k").unwrap();
    let mut found = Vec::new();
    for way in WAYS {
        memory.forget(out, bytes.len() as u64).unwrap();
        let result =
            launch(Launch::new(kernel, grid, [threads as u32, 1, 1], &arguments), memory, way);
        let mut values = vec![0; bytes.len()];
        memory.read(out, &mut values).unwrap();
        found.push(result.map(|_| words(&values)));
    }
    memory.free(places).unwrap();
    memory.free(out).unwrap();
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0].is_err(), found[2].is_err());
    if found[0].is_ok() {
        assert_eq!(found[0], found[2]);
    }
    found.swap_remove(0).map(|mut values| {
        values.truncate(at.len());
        values
    })
}

pub fn words(bytes: &[u8]) -> Vec<[u32; 4]> {
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    bytes.chunks(16).map(|four| std::array::from_fn(|i| word(&four[4 * i..4 * i + 4]))).collect()
}

/// A buffer with these bytes.
pub fn buffer(memory: &Memory, name: &str, bytes: &[u8]) -> u64 {
    let address = memory.allocate(name, bytes.len() as u64).unwrap();
    memory.write(address, bytes).unwrap();
    address
}
